"""Choose, buy and draw measurements: before the first question, and during the stream."""

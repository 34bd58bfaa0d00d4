"""The public universe: attributes, their values and bins, and the file that declares them."""

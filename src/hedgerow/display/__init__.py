"""The display of answers to people: questions in plain words, pictures, and the page of a report.

- ``titles``: a question as a phrase, such as "mean of age where sex is F".
- ``pictures``: bars, tables and small multiples, drawn with matplotlib.
- ``report_page``: the page of a report, with a cover, for a screen and for paper.
"""

"""The public universe: the attributes of a record and the values that each may take.

- ``attributes`` and ``dates``: columns that may be declared, with their cells and labels.
- ``universe``: all attributes of a record.
- ``files``: a universe in a file that people read and write.
"""

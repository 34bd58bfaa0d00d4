"""Steps from a question to an answer that sessions and published releases share.

``askable`` is the base class of both. ``answer_cache`` repeats earlier answers and remembers the last ones for a
report, ``scaling`` turns estimates into answers, ``synthetic`` draws records, and ``blocks`` holds the
tables of a session.
"""

"""Answer the questions of a session: one engine per profile.

``interface`` defines what a session needs of an engine. ``theory`` is the textbook profile with its guarantee,
``practical`` is the profile tuned for accuracy at the user's n, and ``release`` answers from a hypothesis that was
bought all at once. ``sampling`` answers from a few random rows, ``multi_block`` answers about several blocks of rows,
and ``over_time`` counts rows block after block. ``wire`` is the JSON form of everything the engines write down.
"""

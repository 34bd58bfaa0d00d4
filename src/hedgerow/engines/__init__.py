"""What answers a session.

``engine`` is the protocol; ``theory`` the textbook profile with its guarantee, ``practical`` the profile for accuracy at the user's
n, ``release`` a hypothesis that was bought all at once. ``wire`` is the JSON form of what they write down.
"""

"""What may be asked, as public values.

``universe`` declares what a record can be. ``counts`` are the questions, ``workloads`` named classes of them; bound to a
universe a question is ``linear``, a table, a mean of two linear ones, or a convex one (``convex/minimize``): what they share
is in ``bound``. ``wire`` is the JSON form of them all, ``text`` the form in which people write them, and ``words`` says a bound count
again.
"""

"""Questions that may be asked about records of a ``universe``, as public values.

``counts``, ``ratios`` and ``statistics`` define the questions, ``workloads`` named classes of them. A question that is
bound to a universe is ``linear``, a table, ``composed`` of several linear ones, or convex (``convex/minimize``);
``bound`` holds what they have in common. ``wire`` is the JSON form of all of them, ``parse`` the form in which people
write them, and ``wording`` turns a bound count back into a readable question.
"""

"""The practical profile: accuracy at the user's n, with the same privacy proof as the theory profile.

``prefit`` spends most of the budget before the first question, after ``value_groups`` has grouped rare values.
``free_answers`` holds everything that follows from released values, by way of ``measurement``, ``residuals``,
``corrections``, ``error_bars`` and ``merged_bars``. ``engine`` answers from it, ``purchases`` pays for better
answers, and ``guard`` reports where the hypothesis is wrong. ``convex`` does the same for convex questions, with
``excess_bounds`` for their free bars.
"""

"""The practical profile.

``prefit`` spends most of the budget before the first question, after ``merging`` took rare values together; ``knowledge`` is what
follows from all that was released, by way of ``measurement``, ``residuals``, ``corrections``, ``error_bars`` and ``merged_bars``; ``engine`` answers from it, ``purchases`` pay for better, ``guard`` says where
it is wrong; ``convex`` does the same for convex questions, with ``excess_bounds`` for their free bars.
"""

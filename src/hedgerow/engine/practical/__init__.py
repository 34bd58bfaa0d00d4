"""The practical profile: accuracy at the user's n, with the same privacy proof as the theory profile.

- ``measurement``: a released value, its noise, and the coordinates in which it was drawn.
- ``fit``: the model of groups of values, and what is released beyond it.
- ``bars``: the error bars that released values imply. ``certificate``: the largest error of any small question.
- ``free_answers``: answers and bars from released values alone.
- ``measure``: ``prefit`` spends most of the budget before the first question, ``purchases`` pays for better answers.
- ``guard``: reports where the hypothesis is wrong. ``convex``: answers convex questions.
- ``engine``: answers a session's questions by all of these.
"""

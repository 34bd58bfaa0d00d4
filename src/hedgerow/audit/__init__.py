"""Tools to check privacy claims: lower bounds on ε from runs, and exact losses.

- ``bounds``: lower bounds on ε from the frequencies of an event on two neighbours, with a stated confidence; the number
  of runs that a claim takes.
- ``sampled``: ``distinguish`` for any mechanism; ``learned``: statistics for categories, vectors and sequences.
- ``exact``: ε, δ(ε) and ρ of two known laws, against the claim of an event.
- ``one_run``: one run of a whole session with many canaries.

``hedgerow.research.audit_cases`` has every mechanism of this package on its worst neighbours, and broken mechanisms
that these tools catch. ``python -m hedgerow.audit`` runs all of them.

A bound above a claim refutes it, at the stated confidence. A bound below it proves nothing: the proofs are in
docs/proofs.
"""

from hedgerow._renamed import renamed_names
from hedgerow.audit.bounds import (
    clopper_pearson,
    epsilon_lower_bound,
    epsilon_lower_bound_of_scores,
    epsilon_of_event,
    reachable_epsilon,
    runs_to_tell,
)
from hedgerow.audit.exact import (
    Pair,
    Verdict,
    above_threshold_pair,
    check_pair,
    exponential_pair,
    gaussian_pair,
    laplace_pair,
)
from hedgerow.audit.one_run import OneRun, epsilon_of_guesses, one_run, probability_of_guessing
from hedgerow.audit.sampled import Finding, PerProcess, distinguish

__all__ = [
    "Finding",
    "OneRun",
    "Pair",
    "PerProcess",
    "Verdict",
    "above_threshold_pair",
    "check_pair",
    "clopper_pearson",
    "distinguish",
    "epsilon_lower_bound",
    "epsilon_lower_bound_of_scores",
    "epsilon_of_event",
    "epsilon_of_guesses",
    "exponential_pair",
    "gaussian_pair",
    "laplace_pair",
    "one_run",
    "probability_of_guessing",
    "reachable_epsilon",
    "runs_to_tell",
]

__getattr__ = renamed_names(__name__, {"checked": "check_pair"})

"""hedgerow: any number of adaptive questions about a sensitive table under one fixed privacy budget."""

from hedgerow.accounting import Accountant, Budget
from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    NotPrivateWarning,
    TooLarge,
)
from hedgerow.queries import (
    Query,
    any_of,
    conjunction,
    count,
    interval,
    linear,
    marginal,
    mean,
    parity,
    threshold,
)
from hedgerow.session import Answer, Session, open, release
from hedgerow.universe import OTHER, Categories, Flag, Integers, Range, Universe, isnt
from hedgerow.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds

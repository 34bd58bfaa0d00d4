"""One paper's mechanism per file, corrected where the paper is wrong, with the guarantee it states.

    bound = hr.textbook.noisy_mirror_descent.noisy_descent_bound(potential, slope=1.0, noise=0.5, steps=100)

- Learning: ``multiplicative_weights``, ``noisy_mirror_descent`` (any norm, potential and covariance).
- Counts: ``sparse_vector``, ``pmw`` (online), ``mwem`` (offline), ``small_db``.
- Counts from samples of the rows: ``subsampled``, ``scq``, ``descent_by_queries``.
- Convex questions: ``convex_pmw``, ``convex_offline`` and their ``oracles``, ``localized_oracle``, ``oracle_choice``.
- Guarantees of the theorems: ``bounds``.

Each file is imported when it is first named. Sessions, ``hr.release`` and ``hr.erm`` use these mechanisms; here they
stand alone, for experiments and proofs.
"""

import importlib as _importlib
import typing as _typing

_FILES = (
    *("bounds", "convex_offline", "convex_pmw", "descent_by_queries", "localized_oracle", "multiplicative_weights"),
    *("mwem", "noisy_mirror_descent", "oracle_choice", "oracles", "pmw", "scq", "small_db", "sparse_vector"),
    "subsampled",
)


def __getattr__(name: str) -> _typing.Any:
    if name not in _FILES:
        raise AttributeError(f"module 'hedgerow.textbook' has no attribute {name!r}")
    return _importlib.import_module(f"hedgerow.textbook.{name}")


def __dir__() -> list[str]:
    return sorted(_FILES)

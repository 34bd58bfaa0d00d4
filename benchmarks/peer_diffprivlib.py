"""Fits diffprivlib's models: `python peer_diffprivlib.py task.npz coefficients.npz`, in the environment of peers.txt.

The task holds X, y, model ("logistic" or "linear"), epsilons, seeds and, for the logistic model, ridges: weights of ½‖θ‖² on
the sum of losses, which diffprivlib calls 1/(C·n); 0 stands for its default C = 1. The answer has one θ for each (ε, ridge,
seed), NaN where the fit failed.
"""

import functools
import sys
import warnings

import numpy as np
from diffprivlib import models

# The same sums as without `optimize`, a hundred times faster: the linear model's XᵀX is an einsum.
np.einsum = functools.partial(np.einsum, optimize=True)


def fitted(model, X, y, epsilon, ridge, seed):
    if model == "linear":
        peer = models.LinearRegression(
            epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False, copy_X=False, random_state=seed
        )
    else:
        C = 1 / (ridge * len(y)) if ridge else 1.0
        peer = models.LogisticRegression(
            epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False, max_iter=1000, random_state=seed
        )
    try:
        return np.ravel(peer.fit(X, y).coef_)
    except (ValueError, FloatingPointError, np.linalg.LinAlgError):
        return np.full(X.shape[1], np.nan)


def main(task_path, answer_path):
    warnings.simplefilter("ignore")
    task = np.load(task_path)
    X, y = task["X"].astype(np.float64), task["y"]
    theta = [
        [[fitted(str(task["model"]), X, y, ε, ridge, int(seed)) for seed in task["seeds"]] for ridge in task["ridges"]]
        for ε in task["epsilons"]
    ]
    np.savez(answer_path, theta=np.array(theta))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The solvers, one per file.

Each plans its draws from public facts and runs once the plan is paid for (``erm.solver``).
"""

from __future__ import annotations

from hedgerow.erm.solver import Solver
from hedgerow.erm.solvers.frank_wolfe import FrankWolfe
from hedgerow.erm.solvers.frank_wolfe_general import FrankWolfeGeneral
from hedgerow.erm.solvers.lasso import LassoSolver
from hedgerow.erm.solvers.mirror_descent import MirrorDescent
from hedgerow.erm.solvers.noisy_sgd import NoisySgd
from hedgerow.erm.solvers.objective_perturbation import ObjectivePerturbation
from hedgerow.erm.solvers.output_perturbation import OutputPerturbation, RegularizedOutputPerturbation
from hedgerow.erm.solvers.whitened_descent import WhitenedDescent

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        FrankWolfe,
        FrankWolfeGeneral,
        LassoSolver,
        MirrorDescent,
        NoisySgd,
        ObjectivePerturbation,
        OutputPerturbation,
        RegularizedOutputPerturbation,
        WhitenedDescent,
    )
}
"""Every solver by its name. tests/erm/test_solvers.py checks each of them against the contract of a solver."""

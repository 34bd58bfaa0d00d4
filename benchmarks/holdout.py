"""The classic false discovery at full size, and how many questions a budget is good for. Writes docs/benchmarks-holdout.md.

    python benchmarks/holdout.py [--seeds 5] [--quick]

10,000 rows to train on, 10,000 held out, 10,000 features, all of them coins: every classifier's true accuracy is 50 %. An analyst
asks about every feature and lets those vote that look best.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from hedgerow.errors import NotPrivateWarning
from hedgerow.generalise import transfer, widths
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.research.pages import short_lines
from hedgerow.research.stories.false_discovery import TRUTH, Discovery, draw, false_discovery

DOCS = Path(__file__).resolve().parent.parent / "docs"
BUDGET, ROUNDS, QUESTIONS = Budget(1.0, 0.0), 5, 10_000
BUDGETS = (BUDGET, Budget(4.0, 0.0), Budget(1.0, 1e-6), Budget(4.0, 1e-6), Budget(16.0, 1e-6))
NAIVE_AT_LEAST, OURS_AT_MOST, SPLIT_AT_MOST = 0.10, 0.02, 1000
warnings.simplefilter("ignore", NotPrivateWarning)


def questions_table(rows: int) -> tuple[list[str], bool]:
    """Return, for each budget, the error of 10,000 answers, and the number that a split budget answers as well."""
    lines = [
        "| budget | threshold | within, of the holdout | questions, split | within, of the population | questions, split |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    fits = True
    for budget in BUDGETS:
        plan = widths.plan_holdout(
            Amount.share_of(budget), budget, rows=rows, trained_on=rows, rounds=ROUNDS, questions=QUESTIONS, beta=0.05, threshold=None
        )  # fmt: skip
        error = widths.on_sample(plan, QUESTIONS, ROUNDS)
        split = widths.split_questions(budget, rows, error, plan.beta)
        last = widths.QuestionCounts(QUESTIONS, QUESTIONS - 1, 0, 0, 1)
        low, high, _ = widths.interval(
            plan, last, widths.QuestionCounts(QUESTIONS, QUESTIONS, 0, 0, 1), TRUTH * rows, True
        )
        width = (high - low) / 2
        fits &= split <= SPLIT_AT_MOST or budget != BUDGET
        lines.append(
            f"| ε = {budget.epsilon:g}, δ = {budget.delta:g} | {plan.threshold / rows:.3f} | {error:.3f} | {split:,} | {width:.3f} | "
            f"{split_for_population(budget, rows, width):,} |"
        )
    return lines, fits


def split_for_population(budget: Budget, rows: int, width: float) -> int:
    """Return the same for the population: Laplace noise on each, 8 bits an answer, and short descriptions or Jung et al."""
    found, k = 0, 1
    while k <= 10**6:
        on_sample = widths.split_error(budget, rows, k, 0.025)
        words = (
            on_sample + 2.0**-9 + transfer.naive(rows, k - 1, 8, 0.025)
            if k > 1
            else on_sample + transfer.few_words(rows, 0.0, 0.025)
        )
        theorem = transfer.jung(budget.epsilon, budget.delta, widths.split_error(budget, rows, k, 1e-5), 1e-5, 0.05)
        if min(words, theorem) > width:
            break
        found, k = k, k + max(1, k // 20)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, written nowhere")
    given, _ = parser.parse_known_args()
    size = 1000 if given.quick else 10_000
    runs: list[Discovery] = []
    began = time.perf_counter()
    for seed in range(given.seeds):
        runs.append(false_discovery(size, size, BUDGET, np.random.default_rng(seed), rounds=ROUNDS, voters=(500,)))
        print(f"  seed {seed}: naive {runs[-1].naive[0]:.4f}, ours {runs[-1].scores[0]!r}", flush=True)
    took = (time.perf_counter() - began) / given.seeds
    naive = [run.naive[0] - TRUTH for run in runs]
    ours = [run.scores[0].value - TRUTH for run in runs]
    asked = [len(run.holdout.scores) for run in runs]
    measured = [sum(score.source == "holdout" for score in run.holdout.scores) for run in runs]
    covered = [all(s.low <= TRUTH <= s.high for s in run.holdout.scores) for run in runs]
    table, fits = questions_table(size)
    curve = false_discovery(size, size, BUDGET, np.random.default_rng(given.seeds), rounds=ROUNDS)
    held = min(naive) >= NAIVE_AT_LEAST and max(map(abs, ours)) <= OURS_AT_MOST and min(asked) >= QUESTIONS and fits
    text = [
        "# Benchmarks of the reusable holdout",
        "",
        f"`python benchmarks/holdout.py`: {size:,} rows to train on, {size:,} held out, {size:,} features, all of them coin flips; ε = {BUDGET.epsilon:g}, "
        f"δ = {BUDGET.delta:g}, {ROUNDS} rounds, β = 0.05. The analyst asks about every feature, and then about a vote of the best 500. {given.seeds} seeds.",
        "",
        "| | claimed − true accuracy, mean | least | largest | must be |",
        "|---|---:|---:|---:|---|",
        f"| test set, asked directly | {np.mean(naive):.3f} | {min(naive):.3f} | {max(naive):.3f} | ≥ {NAIVE_AT_LEAST:.2f} |",
        f"| `hr.Holdout` | {np.mean(ours):+.3f} | {min(ours):+.3f} | {max(ours):+.3f} | within {OURS_AT_MOST:.2f} |",
        "",
        f"Questions answered before exhaustion: at least {min(asked):,} (the search ended, the holdout did not), of which {min(measured)} to {max(measured)} were "
        f"measured. All intervals for the population held in {sum(covered)} of {len(covered)} runs. {took:.1f} s a run.",
        "",
        "![claimed accuracy by the number of features that vote](benchmark-holdout.png)",
        "",
        "## How many questions a budget answers",
        f"All of {QUESTIONS:,} adaptive questions are answered within the error shown, with probability 0.95, when {ROUNDS} of them differ from the guess. Beside it: how many questions the same "
        "budget answers equally well when it is split among them, with Laplace noise on each (composed by the ledger). *Of the holdout*: the error for the "
        "mean over its rows. *Of the population*: the interval of a score that the training set explains; for the split, the better bound of description length and Jung et al.",
        "",
        *table,
        "",
        f"If δ = 0, or if ε is small, the split answers at most {SPLIT_AT_MOST:,}, as it must at ε = {BUDGET.epsilon:g}, δ = {BUDGET.delta:g}. With δ > 0 and a large ε it answers more questions "
        "about the holdout's own rows with the same error, because the holdout's threshold must allow for chance differences between guess and holdout, and does not fall with the noise. For the population it does so in none of these rows.",
        "",
    ]
    print("\n".join(text))
    if not given.quick:
        draw(
            curve,
            DOCS / "benchmark-holdout.png",
            f"{size:,} rows, {size:,} features that say nothing, ε = {BUDGET.epsilon:g}",
        )
        (DOCS / "benchmarks-holdout.md").write_text(short_lines("\n".join(text)), encoding="utf-8")
        if not held:
            raise SystemExit("What must hold does not: see the table.")


if __name__ == "__main__":
    main()

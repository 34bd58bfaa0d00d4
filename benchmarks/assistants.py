"""An assistant as an adversary and as an analyst. Writes docs/benchmarks-assistants.md: `make bench-assistants`.

    python benchmarks/assistants.py [--runs 32] [--questions 10000] [--workers 2]

The adversary is hedgerow.research.audit_cases.assistant_cases; the analyst is assistants_analyst.py.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import assistants_analyst as analyst
import numpy as np
from mcp import Client

from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.protocol import OneDesk, build_server
from hedgerow.assistants.toolbox import call_tool
from hedgerow.audit.bounds import reachable_epsilon
from hedgerow.audit.sampled import PerProcess, judge_event, outputs_of
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.research.audit_cases import assistant_cases as cases
from hedgerow.research.pages import short_lines

DOCS = Path(__file__).resolve().parent.parent / "docs"
CONFIDENCE = 0.95
TOOLS: dict[str, Callable[[Any], cases.CountTool]] = {
    "`hedgerow mcp`": cases.HedgerowTools,
    "a tool with fresh noise, ε = 0.1 each": cases.FreshNoiseTool,
    "a read-only database": cases.ReadOnlyDatabase,
}


def adversary(name: str, runs: int, questions: int, workers: int) -> tuple[str, float]:
    """The line of a tool, and the bound on its ε."""

    def make(number: int) -> Callable[[Any], tuple[float, ...]]:
        rng = np.random.default_rng([number, questions])
        return lambda data: cases.Adversary(rng).attack(TOOLS[name](data), questions)

    outputs = outputs_of(PerProcess(make), cases.PAIR, runs, workers=workers)
    first, second = (np.array([each[0] for each in found]) for found in outputs)
    right = int((first > 0).sum() + (second < 0).sum())
    choosing = runs // 4
    found = judge_event(first, second, choosing, delta=cases.CLAIM.delta, confidence=CONFIDENCE).epsilon
    return f"| {name} | {runs} | {right / (2 * runs):.0%} | {found:.2f} |", found


def transcript(questions: int) -> str:
    """Run the script once through the protocol, and say how far its results are those of the functions."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    ready, ended = threading.Event(), asyncio.Event()
    holder: list[Client] = []

    async def connect(desk: AssistantDesk) -> None:
        async with Client(build_server(OneDesk(desk)), mode="legacy") as client:
            holder.append(client)
            ready.set()
            await ended.wait()

    class Protocol(cases.HedgerowTools):
        different, bought, refused = 0, 0, 0

        def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            spent = self.session.spent
            found = asyncio.run_coroutine_threadsafe(holder[0].call_tool(name, arguments), loop).result()
            if found.is_error:
                self.refused += 1
                raise InvalidInput(found.content[0].text)
            data: dict[str, Any] = found.structured_content
            self.bought += self.session.spent > spent
            again = call_tool(self.desk, name, arguments).data
            if name == "buy":
                again, told = again["answer"], data["answer"]
                self.different += {**again, "charged": 0} != {**told, "charged": 0}
            else:
                self.different += again != data
            return data

    tools = Protocol(cases.PAIR[0])
    running = asyncio.run_coroutine_threadsafe(connect(tools.desk), loop)
    ready.wait()
    asked: list[int] = []
    plain_ask = tools.ask

    def counted(each: Any) -> Any:
        asked.append(len(each))
        return plain_ask(each)

    tools.ask = counted  # type: ignore[method-assign]
    cases.Adversary(np.random.default_rng(5)).attack(tools, questions)
    loop.call_soon_threadsafe(ended.set)
    running.result()
    spent, total = tools.session.spent, tools.session.budget.total
    assert tools.different == 0 and spent <= total
    return (
        f"One whole transcript went through the protocol with the SDK's client: {sum(asked):,} questions in {len(asked)} calls of "
        f"`ask`, {tools.bought} purchases and {tools.refused} refused ones. Every result was that of the same call in process. "
        f"The ledger then held {spent / total:.0%} of the budget."
    )


def analyst_lines() -> list[str]:
    """The tables of the analyst."""
    lines = [
        "| table | script | conclusions | right in sign and size | wrong | of these, in sign | of these, the interval contains the "
        "truth | not settled | of these, the value is right |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    kinds = {script: {kind: analyst.Tally() for kind in analyst.KINDS} for script in ("tools", "rows", "hints")}
    everything = {script: analyst.Tally() for script in ("tools", "rows")}
    for name in analyst.TABLES:
        found = analyst.analyse(name)
        for script, tallies in found.items():
            if script in everything:
                total = _sum(tallies.values())
                lines.append(_tally_line(f"{name} | {_script(script)}", total))
                everything[script] = _sum([everything[script], total])
            for kind, tally in tallies.items():
                kinds[script][kind] = _sum([kinds[script][kind], tally])
    lines += [_tally_line(f"all | {_script(script)}", total) for script, total in everything.items()]
    lines += ["", "By kind of task, over all three tables:", "", "| kind" + lines[0].removeprefix("| table"), lines[1]]
    for kind in analyst.KINDS:
        lines += [_tally_line(f"{kind} | {_script(script)}", kinds[script][kind]) for script in everything]
    lines.append(_tally_line(f"coefficient | {_script('hints')}", kinds["hints"]["coefficient"]))
    return lines


def _script(name: str) -> str:
    return {"tools": "the tools", "rows": "the raw rows", "hints": "the tools, bootstrapped"}[name]


def _sum(tallies: Any) -> analyst.Tally:
    found = list(tallies)
    names = ("right", "wrong", "wrong_sign", "inside", "unsettled", "value_right")
    return analyst.Tally(**{name: sum(getattr(each, name) for each in found) for name in names})


def _tally_line(head: str, found: analyst.Tally) -> str:
    drawn = found.right + found.wrong
    share = f"{found.right} ({found.right / drawn:.0%})" if drawn else "0"
    return (
        f"| {head} | {drawn} | {share} | {found.wrong} | {found.wrong_sign} | {found.inside} | {found.unsettled} | "
        f"{found.value_right} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=DOCS / "benchmarks-assistants.md")
    given = parser.parse_args()
    began = time.monotonic()
    found = {name: adversary(name, given.runs, given.questions, given.workers) for name in TOOLS}
    print(*(line for line, _ in found.values()), f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
    claim, (ours, *others) = cases.CLAIM, (bound for _, bound in found.values())
    judged = given.runs - given.runs // 4
    reach = reachable_epsilon(judged, confidence=CONFIDENCE, delta=claim.delta)
    most = math.exp(claim.epsilon) / (1 + math.exp(claim.epsilon)) + claim.delta
    lines = [
        "# Benchmarks of assistants as analysts",
        "",
        f"`make bench-assistants`: {given.runs} runs of the adversary on either table, {given.questions:,} questions each.",
        "",
        "## An adversary that knows every row but one",
        f"It knows {cases.ROWS - 1} of {cases.ROWS} rows, and that the last one is in one of two cells. It asks {given.questions:,} "
        "adaptive counts of cells, of which exactly one is such a cell, follows those that seemed to tell most, buys what is sold, "
        f"and guesses by the average. The claim of `hedgerow mcp` is ε = {claim.epsilon:g}, δ = {claim.delta:g} for all questions "
        f"together: whoever guesses is right at most {most:.1%} of the time. *ε found*: a lower bound at {CONFIDENCE:.0%} "
        f"confidence, of which these runs can find at most {reach:.2f}. The same script asks all three.",
        "",
        "| asked | runs | guesses right | ε found |",
        "|---|---:|---:|---:|",
        *(line for line, _ in found.values()),
        "",
        transcript(given.questions),
        "",
        "A bound below the claim proves nothing; the [proofs](proofs/README.md) do, and [the audit](audit.md) reads the noisy "
        "numbers themselves, which tell more than answers.",
        "",
        "## An analyst with 40 tasks on each table",
        f"ε = {analyst.BUDGET.epsilon:g}, δ = {analyst.BUDGET.delta:g}. The whole table is the population, and both scripts work on "
        "the same random half of it. Tasks are drawn from the declaration: shares, means, differences of two groups, correlations, "
        "trends and coefficients of models. A sign is concluded only where its interval excludes 0: the guaranteed interval of the "
        f"tools, or the estimate ± {analyst.REACH} bootstrap deviations on the raw rows. A size is right within {analyst.CLOSE:.0%} "
        "of the declared range (of a coefficient: of 1 or of itself). A share or a mean counts as a conclusion however wide its "
        "interval is, so that it can be wrong in size although its interval contains the truth: an analyst who reads intervals would "
        "not report it.",
        "",
        *analyst_lines(),
        "",
        "All intervals of the tools hold together, those of the raw rows one by one. So the tools settle less, and an analyst who "
        "reports only what is settled says less. Values that are not settled are mostly right, but nothing guarantees which. "
        "Guaranteed intervals of coefficients follow from a bound on the excess risk, and hardly ever settle a sign. `fit_model` "
        "gives bootstrapped ones beside them, each for one coefficient, as a hint: the last line judges these.",
    ]
    given.out.write_text(short_lines("\n".join(lines) + "\n"))
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    if not (ours <= claim.epsilon < min(others)):
        sys.exit("the adversary must stay below the claim, and tell the others' tables apart")


if __name__ == "__main__":
    try:
        main()
    except HedgerowError as refused:
        sys.exit(str(refused))

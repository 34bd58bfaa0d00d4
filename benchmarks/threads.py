"""Measure the CPU time of a release without environment variables, on a busy machine: `python benchmarks/threads.py`.

Three processes do the same, one after the other, beside as many busy loops as `--busy` says, one for each core by default: as the
package is, with BLAS left as it was found, and with one thread set from outside. Bar: the first needs at most 1.1 times the
CPU of the last.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

WORK = """
import json, time, warnings
import numpy as np
import hedgerow as hr
from hedgerow import _threads
{before}
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
sizes = dict(a=60, b=40, c=20, d=8, e=2)
hidden = rng.integers(0, 4, 50_000)
frame = {{name: np.minimum(rng.poisson(0.15 * size * (1 + hidden)), size - 1) for name, size in sizes.items()}}
import pandas as pd
frame = pd.DataFrame(frame)
universe = hr.Universe.from_sizes(sizes)
def released(seed):
    hr.release(frame, universe=universe, budget=hr.Budget(1.0, 1e-9), seed=seed, progress=False)
released(0)  # compiled now, if not before
wall, cpu = time.perf_counter(), time.process_time()
released(1)
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""
FREE = "_threads._libraries = lambda: ()"
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def used(before: str = "", **environment: str) -> tuple[float, float]:
    """Seconds of CPU, and on the wall."""
    plain = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ran = subprocess.run(
        [sys.executable, "-c", WORK.format(before=before)], env=plain | environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    cpu, wall = json.loads(ran.stdout)
    return cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1)
    loops = parser.parse_args().busy
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        ours, free, outside = used(), used(FREE), used(OPENBLAS_NUM_THREADS="1")
    finally:
        for loop in busy:
            loop.kill()
    for what, (cpu, wall) in (
        ("as it is", ours),
        ("BLAS as it was found", free),
        ("one thread set from outside", outside),
    ):
        print(f"{what}: {cpu:.1f} s of CPU, {wall:.1f} s on the wall")
    print(f"ratio of the first to the last: {ours[0] / outside[0]:.2f} (bar 1.1)")


if __name__ == "__main__":
    main()

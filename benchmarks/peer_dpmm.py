"""AIM and MST as dpmm has them (from private-pgm), run by peers.py with the Python of .venv-peers-records.

Reads a request as JSON from its argument: method, epsilon, delta, options, sizes, codes (a .npy file), records (the file to
write) and limit, in seconds of CPU. Prints what it used. Out of time it is killed by the system.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import pandas as pd


def main() -> None:
    request = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (request["limit"], request["limit"] + 5))
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    model = {"aim": AIMGM, "mst": MSTGM}[request["method"]](
        epsilon=request["epsilon"], delta=request["delta"], domain=request["sizes"], n_jobs=1,
        random_state=np.random.RandomState(request["seed"]), **request["options"],
    )  # fmt: skip
    frame = pd.DataFrame(np.load(request["codes"]), columns=list(request["sizes"]))
    began = time.process_time()
    model.fit(frame)
    records = model.generate(n_records=len(frame))[list(request["sizes"])].to_numpy(np.int64)
    np.save(request["records"], records)
    print(json.dumps({"cpu": time.process_time() - began}))


if __name__ == "__main__":
    main()

"""Counts of requests and their latencies, as Prometheus reads them.

Nothing here depends on rows, questions or people.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._below: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def add(self, endpoint: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests[endpoint, status] += 1
        buckets = self._below.setdefault(endpoint, [0] * (len(EDGES) + 1))
        buckets[bisect_left(EDGES, seconds)] += 1
        self._seconds[endpoint] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Return the counters in Prometheus' text format."""
        lines = [
            "# HELP hedgerow_requests_total Requests by endpoint and status.",
            "# TYPE hedgerow_requests_total counter",
        ]
        for (endpoint, status), count in sorted(self._requests.items()):
            lines.append(f'hedgerow_requests_total{{endpoint="{endpoint}",status="{status}"}} {count}')
        lines += ["# HELP hedgerow_request_seconds Time to answer.", "# TYPE hedgerow_request_seconds histogram"]
        for endpoint, buckets in sorted(self._below.items()):
            total = 0
            for edge, count in zip((*EDGES, "+Inf"), buckets, strict=True):
                total += count
                lines.append(f'hedgerow_request_seconds_bucket{{endpoint="{endpoint}",le="{edge}"}} {total}')
            lines.append(f'hedgerow_request_seconds_sum{{endpoint="{endpoint}"}} {self._seconds[endpoint]:.6f}')
            lines.append(f'hedgerow_request_seconds_count{{endpoint="{endpoint}"}} {total}')
        return "\n".join(lines) + "\n"

"""The service as a client meets it: a real application over ASGI, with a real session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from starlette.testclient import TestClient

import hedgerow as hr
from hedgerow.server.people import Tokens
from hedgerow.server.registry import Registry
from hedgerow.server.run import application, first_token
from hedgerow.server.settings import Limits, Settings

UNIVERSE = hr.Universe(age=hr.Integers(17, 90), sex=hr.Categories(["F", "M"]), smoker=hr.Flag())


def rows(n: int = 2000) -> pd.DataFrame:
    return pd.DataFrame(
        {"age": [17 + i % 74 for i in range(n)], "sex": ["FM"[i % 2] for i in range(n)], "smoker": [i % 3 == 0 for i in range(n)]}
    )

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def eager():
    """Threads are switched after every few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)

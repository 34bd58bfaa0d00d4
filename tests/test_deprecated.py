"""Former names of modules work for one release: they give the same modules, with a warning at the line that uses them."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import hedgerow as hr
from hedgerow import _deprecated

EVERY = """
import importlib, warnings
from hedgerow import _deprecated

for former, new in _deprecated.MOVED.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(f"import hedgerow.{former}")
        again = importlib.import_module(f"hedgerow.{former}")
    module = importlib.import_module(f"hedgerow.{new}")
    assert again is module and module.__spec__.name == module.__name__ == f"hedgerow.{new}", former
    said = {str(each.message) for each in caught if each.filename == "<string>"}
    text = f"hedgerow.{former} is now hedgerow.{new}. The former name works in this release only."
    assert not said if former in _deprecated.ALIASES else text in said, (former, said)
print(len(_deprecated.MOVED))
"""


def test_a_former_name_gives_the_module_of_the_new_name_and_warns_where_it_is_imported() -> None:
    ran = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True)
    assert ran.stdout == f"{len(_deprecated.MOVED)}\n", ran.stderr


def test_a_module_below_a_former_package_is_the_new_ones() -> None:
    with pytest.warns(DeprecationWarning, match=r"hedgerow\.ledgers(\.chain)? is now hedgerow\.ledger(\.chain)?\."):
        found = importlib.import_module("hedgerow.ledgers.chain")
    assert found is importlib.import_module("hedgerow.ledger.chain")


def test_a_former_attribute_warns_where_it_is_used() -> None:
    with pytest.warns(DeprecationWarning, match=r"hedgerow\.ledgers is now hedgerow\.ledger\.") as caught:
        found = hr.__getattr__("ledgers")
    assert found is hr.ledger
    assert caught[0].filename == __file__


def test_the_alias_that_stays_warns_of_nothing() -> None:
    assert hr.bench is hr.unsafe  # warnings are errors here
    assert importlib.import_module("hedgerow.bench") is hr.unsafe


def test_a_pickle_that_names_a_former_module_is_read() -> None:
    count = type(hr.count(a=1))
    written = f"chedgerow.questions.counts\n{count.__name__}\n.".encode()
    sys.modules.pop("hedgerow.questions.counts", None)
    with pytest.warns(DeprecationWarning, match=r"is now hedgerow\.query(\.counts)?\."):
        assert pickle.loads(written) is count


def test_an_unknown_former_name_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("hedgerow.nowhere")


def test_the_former_place_of_the_hard_instance_warns() -> None:
    with pytest.warns(DeprecationWarning, match="hard_instance"):
        assert callable(hr.erm.hard_instance)

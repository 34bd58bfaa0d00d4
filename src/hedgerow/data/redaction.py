"""Hide engine errors, which may quote rows, and make private folders for files that contain rows."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import TypeVar

from hedgerow.errors import DataUnavailable, HedgerowError

Result = TypeVar("Result")


def folder_of(owner: object) -> str:
    """Make a folder that only the current user can open, and remove it when ``owner`` is collected.

    A forked process that ends does not remove the folder.
    """
    made, here = tempfile.mkdtemp(prefix="hedgerow-cells-"), os.getpid()
    weakref.finalize(owner, lambda: shutil.rmtree(made, ignore_errors=True) if os.getpid() == here else None)
    return made


def hide_engine_errors(work: Callable[[], Result]) -> Result:
    """Run the work and return its result. If it fails, drop the engine's message, which may quote a row.

    The refusal is raised after the failure was handled, so that it does not carry the failure as its context.
    """
    refusal: HedgerowError | None = None
    try:
        return work()
    except HedgerowError as own:
        refusal = type(own)(*own.args)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of a compiled library is not an Exception
        pass
    raise refusal or DataUnavailable(
        "The table must be readable by the engine. Found that it is not (the engine's message is withheld: it may "
        "quote rows). Check the file's format, its types and the connection."
    )

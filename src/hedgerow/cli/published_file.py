"""Ask a release file on the command line: ``--file people.hedgerow`` in place of the configuration file."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import hedgerow as hr
from hedgerow.cli.file import File, is_same_file
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.release_file.release import Release
    from hedgerow.universe.universe import Universe

SUFFIX = ".hedgerow"


class PublishedFile:
    """A release file in place of a configuration file: it has the universe, and nothing that could be spent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def release(self) -> Release:
        """The release, read when it is first needed."""
        return hr.load(self.path)

    @property
    def universe(self) -> Universe:
        """The universe of the release."""
        return self.release.universe

    def is_own(self, path: Path) -> bool:
        """Tell whether a path leads to the release file."""
        return is_same_file(path, self.path)

    def require_other(self, out: Path | None) -> None:
        """Refuse to write over the release file."""
        if out is not None and self.is_own(out):
            raise InvalidInput(
                f"--out must be a file of its own. Found {str(out)!r}, which is the release. Name another."
            )


def file_at(place: Path) -> File | PublishedFile:
    """Return the configuration file at this path, or the release file."""
    return PublishedFile(place) if place.suffix == SUFFIX else File(place)

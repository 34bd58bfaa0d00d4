"""Harm in release files: what a file reveals, what it claims, and what a stranger's file could do."""

from __future__ import annotations

from mutant import Writer

HOSTILE = "release_file/test_hostile_files.py::test_"
PUBLISHED = "release_file/test_published.py::test_"
SIGNED = "release_file/test_signing.py::test_"

releases = Writer("release files", "release_file/")
releases(
    "RF1", "publish.py::_choose_answers", "answers that the owner left out are in the file",
    'for bound, estimate in given if answers != "none" else ():', "for bound, estimate in given:",
    PUBLISHED + "the_owner_chooses_which_answers_are_recorded",
)  # fmt: skip
releases(
    "RF2", "publish.py::_charge", "questions that the owner left out are named in the log",
    'entry.asked is None or answers == "none"', "entry.asked is None",
    PUBLISHED + "the_owner_chooses_which_answers_are_recorded",
)  # fmt: skip
releases(
    "RF3", "container.py::unpack", "a changed member is read",
    "len(parts[name]) != size or _hash(parts[name]) != digest", "len(parts[name]) != size",
    HOSTILE + "a_flaw_is_refused_by_one_error",
)  # fmt: skip
releases(
    "RF4", "container.py::_require_members", "a bomb is unpacked",
    "if sum(sizes.values()) > limit:", "if len(sizes) > limit:",
    HOSTILE + "a_bomb_is_refused_before_it_is_unpacked",
)  # fmt: skip
releases(
    "RF5", "container.py::_with_arrays.filled", "one array that is referred to often takes any amount of memory",
    "if placed > limit:", "if placed < 0:",
    HOSTILE + "an_array_that_is_referred_to_often_counts_as_often",
)  # fmt: skip
releases(
    "RF6", "document.py::_table", "parameters that are no numbers are read",
    "found.shape != shape or not np.isfinite(found).all()", "found.shape != shape",
    HOSTILE + "a_flaw_is_refused_by_one_error",
)  # fmt: skip
releases(
    "RF7", "release.py::Release.select_blocks", "an answer about one block has the recorded answers of all",
    "view._begin(self._published, chosen, (), self._limit, is_whole=False)", "view._begin(self._published, self._blocks, (), self._limit, is_whole=False)",
    PUBLISHED + "a_view_of_one_block_answers_about_it",
)  # fmt: skip

RELEASE_MUTANTS = releases.mutants

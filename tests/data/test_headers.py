"""The refusal of a missing column quotes the first line only if it is clearly a header, because it may be a record."""

from __future__ import annotations

import pytest

from hedgerow.data.headers import missing_columns

DECLARED = ["age", "sex"]


def said(columns: list[str], *, is_text: bool = True) -> str:
    missing = [name for name in DECLARED if name not in columns]
    return str(missing_columns(missing, DECLARED, columns, is_text=is_text))


@pytest.mark.parametrize(
    "record", [["34", "F"], ["secret;34"], ["Anna Secret", "34"], ["s\0e\0c\0"], ["\ufffd\ufffds"]]
)
def test_a_first_line_that_may_be_a_record_is_not_quoted(record: list[str]) -> None:
    """All such lines have one message, whatever is in them."""
    assert said(record) == said(["another", "record", "altogether"])
    assert "no header" in said(record)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (["Age", "SEX"], "Did you mean 'Age'? Did you mean 'SEX'?"),
        (["age;sex;id"], "between ';'"),
        (["\ufffd\ufffda\0g\0e\0", "\0s\0e\0x\0"], "'age', 'sex' in an encoding"),
        (["age", "gender"], "Found no 'sex'; the table has 'age', 'gender'"),
        ([""], "an empty first line"),
    ],
)
def test_a_header_is_quoted_with_the_likely_cause(header: list[str], words: str) -> None:
    assert words in said(header)


def test_the_columns_of_a_frame_are_always_named() -> None:
    assert "the table has 'x', 'y'" in said(["x", "y"], is_text=False)
    assert "and 12 more" in said([f"c{i}" for i in range(20)], is_text=False)

"""Documents that an assistant may read: the universe, the privacy statement, the certificate, and its own history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow._json import readable, write_spaced
from hedgerow.answering.privacy_statement import without_spending
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.quoting import safe_text
from hedgerow.errors import InvalidInput
from hedgerow.report import plain
from hedgerow.universe.files import to_mapping

if TYPE_CHECKING:
    from hedgerow.answering.privacy_statement import PrivacyStatement

LARGEST = 200_000  # characters of a document


@dataclass(frozen=True)
class AssistantResource:
    """A document: its address, its title, its media type, and the function that writes it."""

    uri: str
    name: str
    description: str
    media: str
    write: Callable[[AssistantDesk], str]


def read_resource(desk: AssistantDesk, uri: str) -> tuple[str, str]:
    """Return the media type and the text of a document."""
    for each in RESOURCES:
        if each.uri == uri:
            text = "".join(mark if mark.isprintable() or mark == "\n" else _escape(mark) for mark in each.write(desk))
            if len(text) > LARGEST:
                raise InvalidInput(
                    f"A document must have at most {LARGEST} characters. Found {len(text)}. Use describe_dataset with "
                    "some columns."
                )
            return each.media, text
    known = ", ".join(each.uri for each in RESOURCES)
    raise InvalidInput(f"A resource must be one of {known}. Found {safe_text(uri, 100)}. Read one of these.")


def _escape(mark: str) -> str:
    """Return a mark that nobody sees as JSON writes it, which means the same in a document of JSON."""
    return write_spaced(mark)[1:-1]


def _universe(desk: AssistantDesk) -> str:
    return readable(plain(to_mapping(desk.view.universe)))


def _statement(desk: AssistantDesk) -> str:
    made: PrivacyStatement = desk.table.statement()  # type: ignore[attr-defined]  # sessions and releases have it
    return readable(plain(made.record if desk.shows_spending else without_spending(made.record)))


def _certificate(desk: AssistantDesk) -> str:
    found = desk.view.certificate
    return "Nothing was certified." if found is None else str(found)


def _history(desk: AssistantDesk) -> str:
    return readable(plain({"calls": list(desk.calls)}))


RESOURCES = (
    AssistantResource(
        "hedgerow://universe", "Universe", "Every column with its declared values.", "application/json", _universe
    ),
    AssistantResource(
        "hedgerow://statement", "Privacy statement", "What is protected, how, and what is not covered.",
        "application/json", _statement,
    ),
    AssistantResource(
        "hedgerow://certificate", "Certificate", "What is guaranteed of every small question, asked or not.",
        "text/plain", _certificate,
    ),
    AssistantResource(
        "hedgerow://history", "History", "Your own calls here, the latest ones.", "application/json", _history
    ),
)  # fmt: skip

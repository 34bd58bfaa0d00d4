"""Everything that is stored or sent, as JSON: each form is declared once, and one encoder and one decoder use it.

    >>> from hedgerow.query.counts import count
    >>> dumps(count(sex="F"))
    '{"kind":"count","predicates":[["sex",{"kind":"in","values":["F"]}]],"v":1}'
    >>> loads(dumps(count(sex="F")))
    count(sex='F')

The outermost record states its version ``v``; ``kind`` is the public name of the function or class that made the
object. Equal objects written with the same values have the same text, and reading gives back an equal object. Reading
refuses everything else with InvalidInput: another version, another kind, a missing or an additional field, a wrong
type, and records that are nested too deep or too large. docs/wire.md has the rules and an example of each form.

    registry          which type has which kind and fields; encode and decode
    records           whole records with their version: dumps, loads, to_json, from_json
    values            numbers, texts, lists and arrays
    universes  questions  convex  releases  answers      the forms, by what they describe
    bound_questions   bound questions as they are stored
    ledgers           a ledger as lines
    state             snapshots of an engine

A new form is one entry:

    register(
        "told", Told,
        lambda told: {"query": encode(told.query), "cost": write_number("cost", told.cost)},
        lambda query, cost: Told(decode("query", query, Query), read_number("cost", cost)),
    )

A frozen dataclass whose fields have plain or registered types needs only ``register_dataclass(cls)``.
"""

# each of these modules registers its forms when it is imported
from hedgerow.serialize import answers, convex, ledgers, questions, releases, universes  # noqa: F401
from hedgerow.serialize.answers import AnsweredQuestion
from hedgerow.serialize.bound_questions import bound_question, question_of
from hedgerow.serialize.ledgers import LedgerTerms, ledger_from_lines, ledger_lines
from hedgerow.serialize.records import dumps, from_json, loads, to_json
from hedgerow.serialize.registry import decode, encode, register, register_dataclass, register_refusal, registered
from hedgerow.serialize.state import decode_state, encode_state

__all__ = [
    "AnsweredQuestion",
    "LedgerTerms",
    "bound_question",
    "decode",
    "decode_state",
    "dumps",
    "encode",
    "encode_state",
    "from_json",
    "ledger_from_lines",
    "ledger_lines",
    "loads",
    "question_of",
    "register",
    "register_dataclass",
    "register_refusal",
    "registered",
    "to_json",
]

"""The former name of ``hedgerow.serialize``, deprecated: the same functions under their old address."""

from hedgerow.serialize import dumps, from_json, ledger_from_lines, ledger_lines, loads, to_json

__all__ = ["dumps", "from_json", "ledger_from_lines", "ledger_lines", "loads", "to_json"]

"""Values that have confused readers of tables. Tests show that none of them changes how another row is read."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd

SPELLED = """3 03 +3 -3 3. .3 3.0 3.00 3e0 3E0 3e+0 30e-1 0x3 0b11 0o3 3L 3f 3d 3y 1_0 1,5 3,000 1.5.2 -- - + . e e3 3e 3e+
1e5 1e400 -1e400 1e-400 1e99999999999 9e18 9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551616
4294967296 2147483647 2147483648 -2147483649 9007199254740993 9007199254740993.0 4.9999999999999999999 0.1 1/2 50% $5 £5 5€
000000000000000000000000000003 ٣ ３ ³ Ⅲ 三 1e 1d5 3j NaN nan -nan NAN inf -inf +inf Inf INF Infinity -Infinity infinit nan(1)
1.#QNAN 1.#INF #N/A #DIV/0! #VALUE! 1:30 00:00 1.0e+02 .e1 5e-324 1.7976931348623157e308 1.7976931348623159e308 +-3 -+3 --3
+.5 -.5e1 −3 –3"""
NULLS = "NULL null None none N/A NA n/a na <NA> NaT nil ? \\N (null) undefined missing unknown"
TRUTHS = "true True TRUE t T yes YES y Y on false False FALSE f no NO n N off 0 1 1.0 0.0"
TIMES = "2020-01-01 2020-02-30 0000-00-00 9999-12-31 12:34 2020-01-01T00:00:00Z 1e3-01 20200101 -infinity epoch now"


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("SECRET")

    __repr__ = __str__


# fmt: off
def _numbers() -> list[object]:
    blank = [" 3", "3 ", " 3 ", "\t3", "3\u00a0", "3\u2003", "3\v", "\f3", "- 3", "3 4", " ", "  ", "\t", "\u00a0", ""]
    long = ["3" * 18, "3" * 19, "3" * 20, "3" * 400, "3" * 401, "3" * 5000, "0" * 500 + "3", "0." + "3" * 500]
    carried = [
        3, 3.0, 3.5, -0.0, True, False, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 10**400, 10**5000, 1e300, 5e-324,
        float("nan"), float("inf"), float("-inf"), np.int8(3), np.uint64(2**64 - 1), np.float32(0.7), np.float64(3),
        np.bool_(True), complex(3, 0), complex(3, 1), decimal.Decimal("3"), decimal.Decimal("3.00"),
        decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("1E+5000"), decimal.Decimal("-Infinity"),
    ]
    return [*SPELLED.split(), *blank, *long, *carried]


def _texts() -> list[object]:
    return [
        '"', '""', '"""', '""""', "'", "''", '"ok', 'ok"', 'o"k', '6" scar', '"a" "b"', '"a""b', 'a""b"', '"a\\"b"', "`", "“ok”",
        '",', ',"', '","', ',",', '"\n', '\n"', '"\r\n"', '"a\nb"', "\\", "\\n", '\\"', "a\\", '"x",y', '"x"y,z"',
        "a\nb", "\n", "\n\n", "a\r\nb", "\r", "a\rb", "\r\n", "a\n", "\na", "\x0b", "\x0c", "\x1c", "\x85", "\u2028",
        ",", ";", "|", "\t", ":", "a,b", "a;b;c", "a|b|c", "a\tb", ",,,", ";;;", "#", "#3", "//", "# comment", "%", "!",
        "é", "e\u0301", "ß", "İ", "ı", "ﬀ", "日本", "😀", "👩‍👩‍👧", "\u202eabc", "שלום", "\ufeff", "\ufeffF", "\ufffd", "\U0010ffff",
        "\ud800", "\udfff", "a\udc80b", "\0", "F\0", "\0\0", "\x01", "\x07", "\x1b[31m", "\x7f", "\u200b", "F\u200b",
        '{"a": 1}', "[1, 2]", "{}", "[]", "=1+1", "=cmd|' /C calc'!A0", "@SUM(1)", "'; DROP TABLE t; --", "{{7*7}}", "%s",
        "$(ls)", "<b>F</b>", "&amp;", "a=b&c=d", "\\u0041", "\\x41", "%41", "::", "NULL::int", "1; 2", "é".encode("latin-1"),
        "F ", " F", "f", "FF", "F\n", "F\r", "F,M", "M;", '"F"', "'F'", "F\t", "Female", "x" * 1000, "x" * 100_000, "\n" * 1000,
        *NULLS.split(), *TRUTHS.split(), *TIMES.split(),
    ]


def _objects() -> list[object]:
    nested: list[object] = []
    nested.append(nested)
    return [
        datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), datetime.time(1), datetime.timedelta(1),
        np.datetime64("2020-01-01"), np.datetime64("NaT", "D"), np.timedelta64(1, "D"), np.timedelta64("NaT", "D"),
        np.datetime64(2**62, "s"), pd.Timestamp("2020-01-01", tz="UTC"), pd.NaT, pd.NA, pd.Period("2020"),
        None, b"F", b"\xff\xfe", bytearray(b"3"), memoryview(b"3"), [3], [], (3,), {3}, {"a": 3}, {}, nested, object(),
        Unprintable(), Unprintable, np.array([1, 2]), np.array(3), range(3), Ellipsis, slice(1),
    ]
# fmt: on

NUMBERS = _numbers()
AWKWARD = [*NUMBERS, *_texts(), *_objects()]

"""Random statements, from a grammar of supported SQL and much unsupported SQL."""

from __future__ import annotations

import random

NUMBERS = ("a", "b")
COLUMNS = ("a", "b", "c", "m", "flag")


class Grammar:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def some(self, of: tuple[str, ...], most: int) -> list[str]:
        return self.random.sample(of, self.random.randint(0, min(most, len(of))))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def statement(self) -> str:
        groups = self.some(COLUMNS, 2)
        outputs = [*groups, *(f"{self.number(2)} AS x{i}" for i in range(self.random.randint(1, 3)))]
        if self.chance(0.02):
            outputs.append(
                self.one("*", "a", "count(DISTINCT a)", "row_number() OVER ()", "a + 1", "upper(c)", "'text'")
            )
        text = f"SELECT {'DISTINCT ' if self.chance(0.01) else ''}{', '.join(outputs)} FROM {self.source(2)}"
        if self.chance(0.7):
            text += f" WHERE {self.condition(3)}"
        if groups:
            text += f" GROUP BY {self.grouping(groups)}"
        if self.chance(0.2):
            text += f" HAVING {self.comparison()}"
        if self.chance(0.3):
            text += f" ORDER BY {self.one('x0', '1', *groups)}{self.one('', ' DESC', ' ASC')}"
            if self.chance(0.3):
                text += f" LIMIT {self.random.randint(0, 5)}"
        if self.chance(0.02):
            text += self.one(" UNION SELECT 1", " QUALIFY x0 > 1", "; SELECT 1", " WINDOW w AS ()", " FOR UPDATE", ")")
        return text

    def source(self, depth: int) -> str:
        if depth == 0 or self.chance(0.75):
            return (
                self.one(
                    "data",
                    "data",
                    "data",
                    "data AS d",
                    "DATA",
                    "data TABLESAMPLE 10%",
                    "other",
                    "data JOIN data e ON TRUE",
                )
                if self.chance(0.1)
                else "data"
            )
        where = f" WHERE {self.condition(2)}" if self.chance(0.8) else ""
        limited = " LIMIT 3" if self.chance(0.02) else ""
        return f"(SELECT {self.one('*', '*', 'a, b, c, m, flag')} FROM {self.source(depth - 1)}{where}{limited}) AS t"

    def grouping(self, groups: list[str]) -> str:
        listed = ", ".join(groups)
        if self.chance(0.7):
            return listed if self.chance(0.8) else ", ".join(str(i + 1) for i in range(len(groups)))
        return self.one(f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())")

    def number(self, depth: int) -> str:
        """An aggregate, or arithmetic of some."""
        if depth and self.chance(0.25):
            return f"({self.number(depth - 1)} {self.one('+', '-', '*', '/')} {self.one(self.number(depth - 1), self.literal())})"
        if depth and self.chance(0.05):
            return f"(- {self.number(depth - 1)})"
        found = self.one(
            "count(*)", "count(*)", f"count({self.one(*COLUMNS)})", f"sum({self.one(*NUMBERS)})", f"avg({self.one(*NUMBERS)})",
            f"sum({self.case()})", f"avg({self.case()})", f"count({self.case()})", f"count_if({self.condition(1)})", "count(1)",
            f"{self.one('min', 'max', 'median')}({self.one(*NUMBERS)})",
            f"quantile_{self.one('disc', 'cont')}({self.one(*NUMBERS)}, {self.one('0', '0.25', '0.9', '1')})",
        )  # fmt: skip
        if self.chance(0.15) and not found.startswith("count_if"):
            found += f" FILTER (WHERE {self.condition(1)})"
        return found

    def case(self) -> str:
        whens = " ".join(
            f"WHEN {self.condition(1)} THEN {self.one('1', '0', '-2', '2.5', 'NULL', 'a')}"
            for _ in range(self.random.randint(1, 2))
        )
        return f"CASE {whens}{self.one('', ' ELSE 0', ' ELSE 3', ' ELSE b')} END"

    def literal(self) -> str:
        return self.one("1", "2", "0.5", "-3", "100")

    def comparison(self) -> str:
        return f"{self.number(1)} {self.one('>', '>=', '<', '<=')} {self.random.choice((0.5, 3.5, 10.5, 40.5))}"

    def condition(self, depth: int) -> str:
        if depth and self.chance(0.45):
            joined = f"{self.condition(depth - 1)} {self.one('AND', 'OR')} {self.condition(depth - 1)}"
            return f"({joined})" if self.chance(0.8) else joined
        if depth and self.chance(0.2):
            return f"NOT ({self.condition(depth - 1)})"
        number, value = self.one(*NUMBERS), self.random.randint(-1, 5)
        return self.one(
            f"{number} {self.one('<', '<=', '>', '>=')} {value}",
            f"{max(0, value)} {self.one('<', '<=', '>', '>=')} {number}",
            f"{number} {self.one('=', '<>', '!=')} {self.random.randint(0, 2)}",
            f"{number} {self.one('', 'NOT ')}BETWEEN {value} AND {self.random.randint(0, 4)}",
            f"{number} {self.one('', 'NOT ')}IN ({self.random.randint(0, 2)}, {self.random.randint(0, 2)})",
            f"c {self.one('=', '<>')} '{self.one('x', 'xy', 'z')}'",
            f"c {self.one('', 'NOT ')}IN ('x', '{self.one('xy', 'z')}')",
            f"c {self.one('', 'NOT ')}{self.one('LIKE', 'ILIKE')} '{self.one('x%', '%y', '_', 'X_', '%')}'",
            f"m {self.one('=', '<>')} '{self.one('p', 'q')}'",
            f"m IS {self.one('', 'NOT ')}NULL",
            f"m {self.one('', 'NOT ')}IN ('p', {self.one('NULL', chr(39) + 'q' + chr(39))})",
            self.one("flag", "NOT flag", "flag = TRUE", "flag IS FALSE", "flag = 1", "TRUE", "FALSE"),
            self.one("a = b", "c < 'y'", "length(c) > 1", "a IN (SELECT b FROM data)", "a % 2 = 0", "c = 'unheard'")
            if self.chance(0.1)
            else "a >= 1",
        )  # fmt: skip

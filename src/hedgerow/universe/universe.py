"""The public universe: the attributes of a record and the values that each may take.

A universe is declared from public knowledge before the data are seen. A record is coded as one cell per attribute
(``attributes``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _html
from hedgerow._checks import did_you_mean
from hedgerow._json import parse
from hedgerow._types import Names
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes import Attribute, Integers, Range
from hedgerow.universe.attributes.integers import integer_coded


class Universe:
    """All records that could exist: one declared attribute per column. Public and immutable.

    Parameters
    ----------
    attributes : mapping of str to Attribute, optional
        The attributes by column name, for names that are not identifiers.
    **named : Attribute
        The attributes by column name.

    Example
    -------
    >>> import hedgerow as hr
    >>> hr.Universe(age=hr.Range(17, 90, bins=8), sex=hr.Categories(["F", "M"]), smoker=hr.Flag()).size
    32
    """

    def __init__(self, attributes: Mapping[str, Attribute] | None = None, /, **named: Attribute) -> None:
        if attributes is not None and not isinstance(attributes, Mapping):
            raise InvalidInput(
                f"A universe must be declared by a mapping of names to attributes. Found {type(attributes).__name__}. "
                "Write, for example, Universe({'sex': Flag()}) or Universe(sex=Flag())."
            )
        self._attributes: dict[str, Attribute] = {**(attributes or {}), **named}
        if not self._attributes:
            raise InvalidInput(
                "A universe must have at least one attribute. Found none. Declare the columns, as in "
                "Universe(sex=Flag())."
            )
        for name, attribute in self._attributes.items():
            if not isinstance(name, str):
                raise InvalidInput(
                    f"The name of an attribute must be a text. Found {name!r}. Name the column as its header does."
                )
            if not isinstance(attribute, Attribute):
                raise InvalidInput(
                    f"Attribute {name!r} must be a Range, Categories, Dates, Flag or Integers. Found "
                    f"{type(attribute).__name__}. Declare it with one of these."
                )
        self.notes: Mapping[str, str] = {}
        """A sentence for each column that a draft wrote: how sure it is, and how many rows lie outside."""
        self.names: tuple[str, ...] = tuple(self._attributes)
        self.shape: tuple[int, ...] = tuple(a.size for a in self._attributes.values())
        self.size: int = math.prod(self.shape)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._size = dict(zip(self.names, self.shape, strict=True))

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, int]) -> Universe:
        """Declare integer-coded columns: ``{"age": 85, "sex": 2}`` means the values 0 … 84 and 0 … 1.

        Parameters
        ----------
        sizes : mapping of str to int
            Number of values of each column.

        Returns
        -------
        Universe

        Raises
        ------
        InvalidInput
            If a size is not a whole number of at least 1.

        Example
        -------
        >>> hr.Universe.from_sizes({"age": 85, "sex": 2})  # doctest: +SKIP
        """
        return cls({name: integer_coded(name, size) for name, size in sizes.items()})

    @classmethod
    def from_json(cls, path: str | Path | Mapping[str, Any]) -> Universe:
        """Read a domain file: a JSON object ``{"column": size}`` for integer-coded data. A mapping is accepted too.

        Instead of a size, a column may have a table with its declaration, as ``save`` writes it.

        Parameters
        ----------
        path : path or mapping
            The file, or its contents.

        Returns
        -------
        Universe

        Raises
        ------
        InvalidInput
            If the file does not exist or is not such an object.

        Example
        -------
        >>> hr.Universe.from_json({"age": 85, "sex": 2}).shape
        (85, 2)
        """
        from hedgerow.universe.files import from_mapping

        if isinstance(path, Mapping):
            return cls(from_mapping(path))
        if not isinstance(path, str | Path):
            raise InvalidInput(
                f"A domain must be a mapping or the path of a file. Found {type(path).__name__}. Give one."
            )
        try:
            sizes = parse(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidInput(f"The domain file must exist. Found nothing at {str(path)!r}. Check the path.") from None
        except ValueError:
            raise InvalidInput(
                f"The domain file must be JSON. Found other text in {str(path)!r}. Check the file."
            ) from None
        if not isinstance(sizes, dict):
            raise InvalidInput(
                f'The domain file must hold an object such as {{"age": 85}}. Found {type(sizes).__name__}. '
                "Check the file."
            )
        return cls(from_mapping(sizes))

    @classmethod
    def load(cls, path: str | Path) -> Universe:
        """Read a universe from a .toml or .json file, written by ``save`` or by hand (docs/universe.md).

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Universe

        Example
        -------
        >>> universe = hr.Universe.load("people.toml")  # doctest: +SKIP
        """
        from hedgerow.universe.files import load

        return cls(load(path))

    def save(self, path: str | Path) -> None:
        """Write the whole declaration to a readable file, .toml or .json.

        Parameters
        ----------
        path : path
            The file to write.

        Raises
        ------
        InvalidInput
            If the file is neither .toml nor .json.

        Example
        -------
        >>> hr.Universe(sex=hr.Flag(), visits=hr.Integers(0, 9)).save("visits.toml")
        >>> hr.Universe.load("visits.toml").names
        ('sex', 'visits')
        """
        from hedgerow.universe.files import save

        save(self, path)

    @classmethod
    def draft(cls, source: Any, **how: Any) -> Universe:
        """Draft a universe for a table: from public facts for free, from the data for a stated price.

        Parameters
        ----------
        source
            The table, as for ``hr.open``.
        **how
            Options of ``hr.drafting.draft``.

        Returns
        -------
        Draft

        Example
        -------
        >>> known = {"age": (17, 90), "sex": ["F", "M"]}
        >>> draft = hr.Universe.draft("people.csv", codebook=known, columns=["age", "sex"])
        >>> draft.names
        ('age', 'sex')
        """
        from hedgerow.drafting.draft import draft

        return draft(source, **how)

    @classmethod
    def from_schema(cls, source: Any, **how: Any) -> Universe:
        """Draft a universe from the schema of a database table, a frame, a Parquet file or Arrow data, for free.

        Parameters
        ----------
        source
            An Arrow schema, a frame, a Parquet file, or a database URL.
        **how
            Options of ``hr.drafting.from_schema``.

        Returns
        -------
        Universe

        Example
        -------
        >>> import pyarrow
        >>> hr.Universe.from_schema(pyarrow.schema({"smoker": pyarrow.bool_()})).names
        ('smoker',)
        """
        from hedgerow.drafting.draft import from_schema

        return from_schema(source, **how)

    def __getitem__(self, name: str) -> Attribute:
        try:
            return self._attributes[name]
        except (KeyError, TypeError):
            raise self._unknown(name) from None

    def index(self, name: str) -> int:
        """Return the position of an attribute. Refuse an unknown name.

        Parameters
        ----------
        name : str
            Name of the attribute.

        Returns
        -------
        int

        Raises
        ------
        InvalidInput
            If the universe has no such attribute.

        Example
        -------
        >>> universe.names[universe.index("sex")]
        'sex'
        """
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise self._unknown(name) from None

    def order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names in the order of the universe, each once: the canonical form of a set of attributes.

        Parameters
        ----------
        names : iterable of str
            Names of attributes.

        Returns
        -------
        tuple of str

        Example
        -------
        >>> hr.Universe(age=hr.Integers(0, 9), sex=hr.Flag()).order(["sex", "age", "sex"])
        ('age', 'sex')
        """
        return tuple(self.names[i] for i in sorted({self.index(name) for name in names}))

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the number of cells of each of these attributes.

        Parameters
        ----------
        names : iterable of str
            Names of attributes.

        Returns
        -------
        tuple of int

        Example
        -------
        >>> hr.Universe(age=hr.Integers(0, 9), sex=hr.Flag()).sizes(["sex", "age"])
        (2, 10)
        """
        names = tuple(names)
        try:
            return tuple([self._size[name] for name in names])  # a list is faster, and this is called very often
        except (KeyError, TypeError):
            return tuple(self.shape[self.index(name)] for name in names)  # raises with the unknown name

    def cells(self, names: Iterable[str]) -> int:
        """Return the exact number of cells of the marginal on these attributes.

        Parameters
        ----------
        names : iterable of str
            Names of attributes.

        Returns
        -------
        int

        Example
        -------
        >>> hr.Universe(age=hr.Integers(0, 9), sex=hr.Flag()).cells(["sex", "age"])
        20
        """
        return math.prod(self.sizes(names))

    def decode(self, codes: NDArray[np.integer[Any]], *, numeric: bool = False) -> dict[str, list[Any] | NDArray[Any]]:
        """Turn an array of cells (rows × attributes) into columns of labels.

        Parameters
        ----------
        codes : array of int
            One row per record, one column per attribute.
        numeric : bool
            Replace bins of numbers by their representative values.

        Returns
        -------
        dict
            The column of each attribute.

        Example
        -------
        >>> hr.Universe(age=hr.Integers(0, 9), sex=hr.Categories(["F", "M"])).decode(np.array([[3, 0], [7, 1]]))
        {'age': [3, 7], 'sex': ['F', 'M']}
        """
        columns: dict[str, list[Any] | NDArray[Any]] = {}
        for i, (name, attribute) in enumerate(self._attributes.items()):
            if numeric and isinstance(attribute, Range) and attribute.values is not None:
                columns[name] = attribute.values[codes[:, i]]
            else:
                cells, labels = codes[:, i].tolist(), attribute.plain_labels
                if len(cells) >= attribute.size:
                    labels = list(labels)
                columns[name] = [labels[cell] for cell in cells]
        return columns

    def _unknown(self, name: Any) -> InvalidInput:
        """Return the error about an undeclared attribute."""
        return InvalidInput(
            "An attribute must be one of "
            f"{', '.join(map(repr, self.names[:12]))}{', …' if len(self.names) > 12 else ''}. Found {name!r}."
            f"{did_you_mean(name, self.names)} Check the spelling, or declare it in the universe."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Universe) and self._declaration() == other._declaration()

    def __hash__(self) -> int:
        return hash((self.names, self.shape))

    def _declaration(self) -> list[tuple[str, type, Attribute, list[float] | None]]:
        """Return the declaration in a form that can be compared."""
        return [(name, type(a), a, _representatives(a)) for name, a in self._attributes.items()]

    def _repr_html_(self) -> str:
        columns = ("attribute", "kind", "cells", "values", *(["note"] if self.notes else []))
        lines = [(*line, self.notes.get(line[0], ""))[: len(columns)] for line in self._lines()]
        return _html.table(columns, lines, repr(self))

    def __str__(self) -> str:
        lines = [
            f"  {name}: {kind}, {size}: {values}" + (f"\n      {self.notes[name]}" if name in self.notes else "")
            for name, kind, size, values in self._lines()
        ]
        return "\n".join([repr(self), *lines])

    def _lines(self) -> list[tuple[Any, ...]]:
        """Return one line per attribute for display: name, kind, size and first values."""
        return [
            (name, type(a).__name__, a.size, ", ".join(map(str, a.labels[:6])) + (", …" if a.size > 6 else ""))
            for name, a in self._attributes.items()
        ]

    def __repr__(self) -> str:
        return f"Universe({', '.join(f'{n}: {s}' for n, s in zip(self.names, self.shape, strict=True))}; {self.size} cells)"


def _representatives(attribute: Attribute) -> list[float] | None:
    """Return the numbers that stand for the cells, unless the declaration already implies them."""
    if isinstance(attribute, Integers) or attribute.values is None:
        return None
    found: list[float] = np.nan_to_num(attribute.values, nan=np.inf).tolist()
    return found


def subsets(names: Names, least: int = 0) -> list[Names]:
    """Return all subsets of at least ``least`` attributes, smaller ones first."""
    return [s for k in range(least, len(names) + 1) for s in itertools.combinations(names, k)]

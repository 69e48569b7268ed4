"""Columns as named tuples of arrays: cutting them."""

from __future__ import annotations

from typing import Any, TypeVar

C = TypeVar("C", bound=tuple[Any, ...])


def head(columns: C, count: int) -> C:
    """The first `count` rows of every column."""
    return type(columns)(*(column[:count] for column in columns))


def take(columns: C, rows: Any) -> C:
    """The given rows of every column, in that order."""
    return type(columns)(*(column[rows] for column in columns))

"""Evaluates a condition over columns of values, with the three truth values of SQL and a fourth
one.

The fourth value, UNDECIDED, means that the result depends on a value that is not in the redo. If
the missing value does not affect the result, the condition is still TRUE or FALSE.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.conditions.tree import Comparison
from olr_pg.conditions.typed_conditions import (
    ANY_CHARACTER,
    ANY_TEXT,
    UTF8,
    UTF16,
    Bytewise,
    Inverted,
    Joined,
    Missing,
    Pattern,
)
from olr_pg.kernels.compile import inlined, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.conditions.typed_conditions import RowCondition, Step
    from olr_pg.datatypes.columns import ValueColumn

Truths = npt.NDArray[np.uint8]

ABSENT: Final = -2
"""Length of a value that is not in the redo. The lengths −1 and 0 mean NULL."""


class Truth(IntEnum):
    """The result of a condition for a row."""

    FALSE = 0
    UNKNOWN = 1
    TRUE = 2
    UNDECIDED = 3
    """The result depends on a value that is not in the redo."""


_FALSE, _UNKNOWN, _TRUE = int(Truth.FALSE), int(Truth.UNKNOWN), int(Truth.TRUE)
_UNDECIDED = int(Truth.UNDECIDED)

# The results of each operator if the value is less than, equal to, or greater than the literal.
_OUTCOMES: Final = {
    Comparison.EQUAL: (False, True, False),
    Comparison.NOT_EQUAL: (True, False, True),
    Comparison.LESS: (True, False, False),
    Comparison.LESS_OR_EQUAL: (True, True, False),
    Comparison.GREATER: (False, False, True),
    Comparison.GREATER_OR_EQUAL: (False, True, True),
}
_ANY_TEXT, _ANY_CHARACTER = ANY_TEXT, ANY_CHARACTER
_UTF8, _UTF16 = UTF8, UTF16


def evaluate(condition: RowCondition, columns: Sequence[ValueColumn]) -> Truths:
    """Return the `Truth` of the condition for each row; shape (rows).

    Args:
        columns: the values of the columns `condition.ordinals`, in Oracle's internal form. The
            length of a value is `ABSENT` if the redo does not contain it.
    """
    return _truths(condition.step, columns)


def _truths(step: Step, columns: Sequence[ValueColumn]) -> Truths:
    match step:
        case Joined(parts, every):
            first, *others = parts
            found = _truths(first, columns)
            for part in others:
                found = _joined(found, _truths(part, columns), every=every)
            return found
        case Inverted(part):
            inner = _truths(part, columns)
            return np.where(inner == _UNDECIDED, inner, _TRUE - inner).astype(np.uint8)
        case Missing(slot):
            length = columns[slot].length
            is_null = np.where(length <= 0, _TRUE, _FALSE)
            return np.where(length == ABSENT, _UNDECIDED, is_null).astype(np.uint8)
        case Bytewise(slot, operator, literal, pad, size):
            column = columns[slot]
            truths = np.empty(column.length.size, np.uint8)
            compare_kernel(
                column.data, column.offset, column.length, Literal(literal, pad, size),
                _OUTCOMES[operator], truths,
            )  # fmt: skip
            return truths
        case Pattern(slot, items, character):
            column = columns[slot]
            truths = np.empty(column.length.size, np.uint8)
            like_kernel(column.data, column.offset, column.length, items, character, truths)
            return truths


def _joined(left: Truths, right: Truths, *, every: bool) -> Truths:
    decisive = _FALSE if every else _TRUE
    decided = (left == decisive) | (right == decisive)
    undecided = (left == _UNDECIDED) | (right == _UNDECIDED)
    plain = np.minimum(left, right) if every else np.maximum(left, right)
    found = np.where(decided, decisive, np.where(undecided, _UNDECIDED, plain))
    return found.astype(np.uint8)


@inlined
def _without_value(length: int) -> int:
    if length == -2:
        return _UNDECIDED
    return _UNKNOWN


class Literal(NamedTuple):
    """The literal of a comparison; see `Bytewise` for the attributes."""

    literal: Any
    pad: Any
    size: int


@kernel
def compare_kernel(
    data: Any, offset: Any, length: Any, wanted: Literal, outcomes: tuple[bool, bool, bool],
    truths: Any,
) -> None:  # fmt: skip
    """Compare values with a literal byte by byte.

    Args:
        outcomes: the results if the value is less than, equal to, or greater than the literal.
    """
    literal, pad, size = wanted.literal, wanted.pad, wanted.size
    less, equal, greater = outcomes
    for row in range(length.size):
        count = min(int(length[row]), size)
        if count <= 0:
            truths[row] = _without_value(count)
            continue
        start = int(offset[row])
        outcome = 0
        ends = max(count, int(literal.size))
        if pad.size == 0:
            ends = min(count, int(literal.size))
        for at in range(ends):
            one = int(data[start + at]) if at < count else int(pad[(at - count) % pad.size])
            other = int(pad[(at - literal.size) % pad.size]) if at >= literal.size else 0
            if at < literal.size:
                other = int(literal[at])
            if one != other:
                outcome = -1 if one < other else 1
                break
        if outcome == 0 and pad.size == 0 and count != literal.size:
            outcome = -1 if count < literal.size else 1
        holds = equal if outcome == 0 else (less if outcome < 0 else greater)
        truths[row] = _TRUE if holds else _FALSE


@inlined
def _character(data: Any, at: int, end: int, character: int) -> int:
    """Return the offset of the end of the character that begins at `at`."""
    after = at + 1
    if character == _UTF16:
        after = at + 2
    elif character == _UTF8:
        while after < end and data[after] & 0xC0 == 0x80:
            after += 1
    return min(after, end)


@kernel
def like_kernel(
    data: Any, offset: Any, length: Any, items: Any, character: int, truths: Any
) -> None:
    """Match values with a LIKE pattern (`Pattern`). The number of steps for a value is at most its
    length times the length of the pattern.
    """
    for row in range(length.size):
        if length[row] <= 0:
            truths[row] = _without_value(int(length[row]))
            continue
        at, item = int(offset[row]), 0
        end = at + int(length[row])
        star, resume = -1, at
        matched = True
        while at < end or item < items.size:
            if item < items.size and items[item] == _ANY_TEXT:
                star, resume = item, at
                item += 1
            elif item < items.size and at < end and items[item] == _ANY_CHARACTER:
                at = _character(data, at, end, character)
                item += 1
            elif item < items.size and at < end and items[item] == int(data[at]):
                at += 1
                item += 1
            elif star >= 0 and resume < end:
                resume = _character(data, resume, end, character)
                at, item = resume, star + 1
            else:
                matched = False
                break
        truths[row] = _TRUE if matched else _FALSE

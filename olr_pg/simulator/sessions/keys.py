"""The numbers that rows are known by, chosen so that copies of their redo can be stamped.

Redo that is written once to be copied (`simulator.stamping`) has keys with as many digits as all
its copies: after one or two fixed digits, four are the copy's number, and the last two are never
00. So a key keeps its length as a NUMBER and as text. Facts: values-and-lobs §2 (NUMBER).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COPIES_MAX: Final = 1800
"""Copies that there are numbers and index blocks for."""


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The form of a kind of numbers, of which each copy has a range.

    Attributes:
        first: below the numbers of the first copy.
        stride: from a copy to the next.
        pair_at: the byte of the stored NUMBER where the four digits of the copy begin.
        digits_at: their position in its text.
    """

    first: int
    stride: int
    pair_at: int
    digits_at: int


IDENTITY: Final = KeyForm(10_000_000_000, 1_000_000, 2, 1)
"""Of a NUMBER(12): 1, the copy, six digits."""

PLACE: Final = KeyForm(100_000, 100, 1, 0)
"""Of a NUMBER(6): 1000 and the copy, two digits."""


class Keys:
    """The numbers that a workload takes.

    Args:
        copy: whose numbers they are; None if nothing will be copied: from 1 on.
    """

    def __init__(self, copy: int | None = None) -> None:
        self._copy = copy
        self._taken = dict[str, int]()

    def _at(self, form: KeyForm, number: int) -> int:
        if self._copy is None:
            return number
        assert number < form.stride
        return form.first + self._copy * form.stride + number

    def place(self, number: int) -> int:
        """Return a number of the form `PLACE`; `number` from 1."""
        return self._at(PLACE, number)

    def take(self, name: str) -> int:
        """Take the next number of a sequence, of the form `IDENTITY`."""
        self._taken[name] = self._following(name)
        return self._at(IDENTITY, self._taken[name])

    def next(self, name: str) -> int:
        """Return the next number of a sequence."""
        return self._at(IDENTITY, self._following(name))

    def _following(self, name: str) -> int:
        number = self._taken.get(name, 0) + 1
        return number + (self._copy is not None and number % 100 == 0)

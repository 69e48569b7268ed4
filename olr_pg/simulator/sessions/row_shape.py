"""The rows of the workload `wide`, and the columns that its statements set.

`Keys` chooses key numbers so that copies of their redo can be made. In redo that is written once
and then copied (`simulator.stamping`), keys have the same number of digits as in all copies. After
fixed digits come four digits with the number of the copy; the last two digits are never 00. So a
key has the same length in every copy, as a NUMBER and as text. Facts: values-and-lobs §2 (NUMBER).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

COLUMNS_MIN: Final = 3
COLUMNS_MAX: Final = 1_000
"""Maximum number of columns of a table in Oracle."""

ONE_PIECE_COLUMNS: Final = 250
ONE_PIECE_BYTES: Final = 5_000
"""Number of columns and bytes up to which a row fits into one piece."""

ROW_BYTES_MIN: Final = 20
ROW_BYTES_MAX: Final = 60_000


@dataclass(frozen=True, slots=True)
class RowShape:
    """The rows of the workload `wide`, and the columns that its statements set.

    Attributes:
        columns: number of columns, `COLUMNS_MIN` to `COLUMNS_MAX`; the first one is the key.
        sets: number of distinct sets of columns that UPDATEs set; 0 if each UPDATE draws its own
            set.
        set_max: maximum number of columns that an UPDATE sets.
        nulls: probability that a value of a nullable column is NULL.
        row_bytes: approximate bytes of a row without NULLs; None for the usual sizes of the types.
        statements: statements of each transaction; 0 if one transaction has all statements, None if
            transactions have four on average.
    """

    columns: int = 200
    sets: int = 0
    set_max: int = 8
    nulls: float = 0.15
    row_bytes: int | None = None
    statements: int | None = None

    @property
    def can_be_copied(self) -> bool:
        """Return whether redo of this shape can be copied: each row must have one piece, and there
        must be several transactions.
        """
        in_one_piece = self.columns <= ONE_PIECE_COLUMNS and (self.row_bytes or 0) < ONE_PIECE_BYTES
        return in_one_piece and self.statements != 0


COPIES_MAX: Final = 1800
"""Maximum number of copies: more would need further numbers and index blocks."""


@dataclass(frozen=True, slots=True)
class KeyForm:
    """A form of key numbers, in which each copy has its own range.

    Attributes:
        first: the number before the first copy's numbers.
        stride: distance from a number to the same number of the next copy.
        pair_at: the byte of the stored NUMBER at which the four digits of the copy begin.
        digits_at: position of these digits in the text of the number.
    """

    first: int
    stride: int
    pair_at: int
    digits_at: int


IDENTITY: Final = KeyForm(10_000_000_000, 1_000_000, 2, 1)
"""The form of a NUMBER(12): the digit 1, four digits of the copy, six digits."""

PLACE: Final = KeyForm(100_000, 100, 1, 0)
"""The form of a NUMBER(6): 1000 plus the copy, two digits."""


class Keys:
    """The key numbers of a workload.

    Args:
        copy: the copy whose numbers are used; None if nothing is copied, so that numbers begin at
            1.
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
        """Return `number`, which counts from 1, in the form `PLACE`."""
        return self._at(PLACE, number)

    def take(self, name: str) -> int:
        """Take the next number of a sequence, in the form `IDENTITY`."""
        self._taken[name] = self._following(name)
        return self._at(IDENTITY, self._taken[name])

    def next(self, name: str) -> int:
        """Return the next number of a sequence without taking it."""
        return self._at(IDENTITY, self._following(name))

    def _following(self, name: str) -> int:
        number = self._taken.get(name, 0) + 1
        return number + (self._copy is not None and number % 100 == 0)

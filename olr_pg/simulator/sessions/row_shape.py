"""The rows of the workload `wide`, and the columns that its statements set."""

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
        """Return whether such redo can be copied: rows of one piece, several transactions."""
        in_one_piece = self.columns <= ONE_PIECE_COLUMNS and (self.row_bytes or 0) < ONE_PIECE_BYTES
        return in_one_piece and self.statements != 0

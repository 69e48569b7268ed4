"""Sequences of SQL."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from olr_pg.simulator.ora_error import OraError


@dataclass(slots=True)
class SqlSequence:
    """A sequence; `following` is its next value."""

    name: str
    following: int = 1
    increment: int = 1
    cache: int = 20
    maximum: int = 10**28 - 1

    def take(self) -> Decimal:
        """Take the next value.

        Raises:
            OraError: ORA-08004, the sequence has no more values.
        """
        if self.following > self.maximum:
            raise OraError(
                8004,
                f"sequence {self.name}.NEXTVAL exceeds MAXVALUE and cannot be instantiated",
            )
        value, self.following = self.following, self.following + self.increment
        return Decimal(value)

"""The assessment as values: what the HTML, the text and the JSON are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.inventory import LogDay, OtherSchema


class Effort(IntEnum):
    """How much work something is; the number is the minutes that the estimate takes for it."""

    NONE = 0
    LOW = 15
    MEDIUM = 60
    HIGH = 240


class Carrier(IntEnum):
    """Who carries it over."""

    REPLICATED = 1
    """olr_pg loads and replicates it."""

    CONVERTED = 2
    """`olr-pg schema` and the load make it."""

    WITH_TABLE = 3
    """It is a part of a table or key, and comes with it."""

    BY_HAND = 4

    @property
    def title(self) -> str:
        """The word for people."""
        return _CARRIERS[self]


_CARRIERS = {
    Carrier.REPLICATED: "replicated",
    Carrier.CONVERTED: "converted",
    Carrier.WITH_TABLE: "with its table",
    Carrier.BY_HAND: "by hand",
}


class AssessedColumn(NamedTuple):
    """A column: its type there and here.

    Attributes:
        lost: what the target column does not keep.
        obstacle: why it is not replicated.
    """

    name: str
    oracle_type: str
    target_type: str
    lost: str
    obstacle: str


class AssessedTable(NamedTuple):
    """What is told of a table beside its item.

    Attributes:
        replicated: ``yes``, or why not.
        key: what identifies its rows; empty where nothing does.
    """

    name: str
    kind: str
    rows: int | None
    bytes: int
    lob_bytes: int
    replicated: str
    logging: str
    key: str
    columns: tuple[AssessedColumn, ...]


class Item(NamedTuple):
    """One thing of the source.

    Attributes:
        kind: Oracle's word, as in DBA_OBJECTS; of what is no object there, its own.
        minutes: of work by the estimate.
        reasons: for the effort, and what to do.
        lines: of code.
    """

    kind: str
    name: str
    carrier: Carrier
    effort: Effort
    minutes: int
    reasons: tuple[str, ...] = ()
    lines: int = 0
    is_object: bool = True
    status: str = "VALID"


class KindCount(NamedTuple):
    """How many there are of a kind, and how many of them need a hand."""

    kind: str
    total: int
    by_hand: int
    minutes: int


class Rates(NamedTuple):
    """What this machine and the target did, measured now.

    Attributes:
        copy_bytes: per second, of COPY over one connection.
    """

    copy_bytes: float
    connections: int


class Report(NamedTuple):
    """The whole assessment."""

    database: str
    version: str
    scn: int
    owners: Sequence[str]
    items: Sequence[Item]
    tables: Sequence[AssessedTable]
    others: Sequence[OtherSchema]
    unread: Sequence[str]
    redo: Sequence[LogDay]
    rates: Rates | None

    @property
    def counts(self) -> list[KindCount]:
        """Count by kind, the most work first."""
        found = []
        for kind in dict.fromkeys(item.kind for item in self.items):
            own = [item for item in self.items if item.kind == kind]
            by_hand = sum(item.carrier is Carrier.BY_HAND for item in own)
            found.append(KindCount(kind, len(own), by_hand, sum(one.minutes for one in own)))
        return sorted(found, key=lambda one: (-one.minutes, one.kind))

    @property
    def minutes(self) -> int:
        """Add up the estimate."""
        return sum(item.minutes for item in self.items)

    @property
    def replicated_bytes(self) -> int:
        """Add up the segments of the tables that are replicated, LOBs too."""
        return sum(t.bytes + t.lob_bytes for t in self.tables if t.replicated == "yes")

    @property
    def load_seconds(self) -> float | None:
        """Estimate the load's time from the measured rate; None where nothing was measured."""
        if self.rates is None or self.rates.copy_bytes <= 0:
            return None
        return self.replicated_bytes / (self.rates.copy_bytes * self.rates.connections)

    @property
    def redo_per_day(self) -> int | None:
        """Return the redo of the largest whole day; None where nothing tells."""
        return max((day.bytes for day in self.redo), default=None)


def duration(minutes: float) -> str:
    """Write a time for people: ``45 min``, ``3.5 h``, ``4 days`` of eight hours."""
    if minutes < 60:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 16 else f"{hours / 8:.0f} days of 8 h"

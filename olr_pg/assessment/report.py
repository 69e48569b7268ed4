"""The assessment as values, from which the HTML, text and JSON forms are made.

The time of a migration is estimated from the speed of the target, which is measured.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.filesize import decimal

from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.dictionary.inventory import LogDay, OtherSchema


class Effort(IntEnum):
    """The amount of work that an object needs. The value of each member is the number of minutes in
    the estimate.
    """

    NONE = 0
    LOW = 15
    MEDIUM = 60
    HIGH = 240


class Carrier(IntEnum):
    """How an object is migrated."""

    REPLICATED = 1
    """olr_pg loads and replicates the object."""

    CONVERTED = 2
    """`olr-pg schema` and the load create the object."""

    WITH_TABLE = 3
    """The object is a part of a table or key, and is created with it."""

    BY_HAND = 4

    @property
    def title(self) -> str:
        """The word to display."""
        return _CARRIERS[self]


_CARRIERS = {
    Carrier.REPLICATED: "replicated",
    Carrier.CONVERTED: "converted",
    Carrier.WITH_TABLE: "with its table",
    Carrier.BY_HAND: "by hand",
}


class AssessedColumn(NamedTuple):
    """A column, with its types in the source and in the target.

    Attributes:
        lost: the details of values that the target column does not preserve.
        obstacle: the reason why the column is not replicated.
    """

    name: str
    oracle_type: str
    target_type: str
    lost: str
    obstacle: str


class AssessedTable(NamedTuple):
    """Details of a table, in addition to its item.

    Attributes:
        replicated: ``yes``, or the reason why the table is not replicated.
        key: the kind and the columns of the key that identifies the table's rows; empty without a
            key.
        limits: what of the table can exceed the fixed limits of PostgreSQL.
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
    limits: tuple[str, ...] = ()

    @property
    def facts(self) -> list[str]:
        """The details of the table, one per line."""
        rows = "rows unknown" if self.rows is None else counted(self.rows, "row")
        facts = [self.kind, rows, decimal(self.bytes)]
        if self.lob_bytes:
            facts.append(f"{decimal(self.lob_bytes)} of LOBs")
        facts.append(f"replicated: {self.replicated}")
        facts.append(self.key or "no key")
        facts.append(f"supplemental logging: {self.logging or 'none for this table'}")
        return facts


class TextColumns(NamedTuple):
    """The text columns of the replicated tables in a database with one byte per character.

    Attributes:
        declared: NLS_CHARACTERSET.
        as_declared: number of columns that are converted from the declared set.
        configured: number of columns with another set in `source.character-sets`.
    """

    declared: str
    as_declared: int
    configured: int

    @property
    def remark(self) -> str:
        """The risk of a wrongly declared set, and the next command; empty without such columns."""
        if not self.as_declared:
            return ""
        spoilt = (
            "become U+FFFD" if self.declared == _SEVEN_BITS else "become other characters or U+FFFD"
        )
        also = f" ({self.configured} have a configured set)" if self.configured else ""
        return (
            f"Text: the database declares {self.declared}, and olr_pg converts"
            f" {counted(self.as_declared, 'text column')} from this set{also}. Oracle does not"
            " check the bytes that applications write: bytes of another set, such as"
            f" WE8MSWIN1252, {spoilt} in PostgreSQL. Run `olr-pg doctor --load` with the live"
            " source: it reads some rows, and names columns with such bytes. Then name the"
            " character set of these columns in `source.character-sets` (docs/charsets.md)."
        )


class Item(NamedTuple):
    """An object of the source.

    Attributes:
        kind: the kind of object as in DBA_OBJECTS. If this view lacks the kind, a term of this
            module.
        minutes: estimated minutes of work.
        reasons: the reasons for the effort, and the actions to take.
        lines: number of lines of code.
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
    """The number of objects of a kind, and how many of them need manual work."""

    kind: str
    total: int
    by_hand: int
    minutes: int


class MeasuredRates(NamedTuple):
    """The measured speed of this host and the target.

    Attributes:
        copy_bytes: bytes per second that COPY writes over one connection.
        updates: updated rows per second over one connection; 0 if not measured.
    """

    copy_bytes: float
    connections: int
    updates: float = 0.0


class RedoRates(NamedTuple):
    """The measured speed of decoding on this host, with simulated redo of orders.

    Attributes:
        bytes_per_second: bytes of redo that one core decodes per second.
        bytes_per_change: bytes of redo for each changed row.
        cores: number of cores of this machine.
    """

    bytes_per_second: float
    bytes_per_change: float
    cores: int


class CatchUp(NamedTuple):
    """The time that replication needs after the load to catch up with the changes that were made
    during the load.

    Attributes:
        redo_per_second: bytes of redo that the source writes per second, on the day with the most
            redo.
        decoded_per_second: bytes of redo that this host can decode per second.
        applied_per_second: bytes of redo whose changes the target can apply per second.
        seconds: time to catch up; None if the source writes redo faster than it can be replicated,
            so that replication never catches up.
    """

    redo_per_second: float
    decoded_per_second: float
    applied_per_second: float
    seconds: float | None


_SEVEN_BITS: Final = "US7ASCII"
_DAY_SECONDS: Final = 86_400
NEEDED: Final = re.compile(r"the object needs (.+), which is not created")
_UNIT_MINUTES: Final = 5
_DAY_MINUTES, _FEW_DAYS = 8 * 60, 5
_ROUTINES: Final = frozenset(
    {"FUNCTION", "PROCEDURE", "PACKAGE", "PACKAGE BODY", "TYPE", "TYPE BODY"}
)
_WRITTEN: Final = _ROUTINES | {"TRIGGER", "VIEW", "MATERIALIZED VIEW"}

NOT_LOOKED_AT: Final = (
    ("privileges on columns", "DBA_COL_PRIVS"),
    ("policies of Virtual Private Database", "DBA_POLICIES"),
    ("redaction of columns", "REDACTION_POLICIES"),
    ("Label Security", "DBA_SA_POLICIES"),
    ("fine-grained auditing", "DBA_AUDIT_POLICIES"),
    ("unified auditing", "AUDIT_UNIFIED_POLICIES"),
    ("collations of columns (NLS_SORT, COLLATE)", "DBA_TAB_COLS.COLLATION"),
    ("application contexts", "DBA_CONTEXT"),
    ("queues and their subscribers", "DBA_QUEUES"),
    ("directories", "DBA_DIRECTORIES"),
    ("roles, system privileges and profiles", "DBA_ROLES, DBA_SYS_PRIVS, DBA_PROFILES"),
)
"""Kinds of objects that an inventory may lack, with the view that contains each kind."""


class Report(NamedTuple):
    """The whole assessment.

    Attributes:
        texts: None if the database can have several bytes per character.
    """

    database: str
    version: str
    scn: int
    owners: Sequence[str]
    items: Sequence[Item]
    tables: Sequence[AssessedTable]
    others: Sequence[OtherSchema]
    unread: Sequence[str]
    redo: Sequence[LogDay]
    rates: MeasuredRates | None
    redo_rates: RedoRates | None = None
    looked_at: Sequence[str] = ()
    texts: TextColumns | None = None

    @property
    def not_looked_at(self) -> list[tuple[str, str]]:
        """Return the kinds of objects that are missing in the inventory because their view was not
        read, with these views.
        """
        return [(what, view) for what, view in NOT_LOOKED_AT if view not in self.looked_at]

    @property
    def counts(self) -> list[KindCount]:
        """Return the counts by kind; kinds with the most work come first."""
        found = []
        for kind in dict.fromkeys(item.kind for item in self.items):
            own = [item for item in self.items if item.kind == kind]
            by_hand = sum(item.carrier is Carrier.BY_HAND for item in own)
            found.append(KindCount(kind, len(own), by_hand, sum(one.minutes for one in own)))
        return sorted(found, key=lambda one: (-one.minutes, one.kind))

    @property
    def causes(self) -> list[tuple[int, str]]:
        """Return the number of objects that each reason blocks, including objects that depend on
        blocked objects; the highest number comes first.

        An object that depends on a missing object names the first cause (`schema.trial`), and is
        counted for the reason of this cause. Reasons that block only one object are left out.
        """
        stopped = [item for item in self.items if item.carrier is Carrier.BY_HAND and item.reasons]
        reasons = {item.name: item.reasons[0] for item in stopped}
        counts = Counter[str]()
        for item in stopped:
            needed = NEEDED.fullmatch(item.reasons[0])
            counts[reasons.get(needed[1], item.reasons[0]) if needed else item.reasons[0]] += 1
        ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
        return [(count, reason) for reason, count in ordered if count > 1]

    @property
    def cost_units(self) -> int:
        """Return the estimate in the cost units of ora2pg; a unit is five minutes."""
        return -(-self.minutes // _UNIT_MINUTES)

    @property
    def level(self) -> str:
        """Return the estimate as a level of ora2pg: a letter for the cost, and a digit for the kind
        of work.

        Letters: A, no rewriting; B, up to five days; C, more. Digits: 1, there is no code; 2,
        triggers that need no rewriting; 3, routines that need no rewriting; 4, triggers or views to
        rewrite; 5, routines to rewrite.
        """
        rewritten = {item.kind for item in self.items if item.minutes and item.kind in _WRITTEN}
        kinds = {item.kind for item in self.items}
        if rewritten:
            days = self.minutes / _DAY_MINUTES
            return ("B" if days <= _FEW_DAYS else "C") + ("5" if rewritten & _ROUTINES else "4")
        if kinds & _ROUTINES:
            return "A3"
        return "A2" if "TRIGGER" in kinds else "A1"

    @property
    def altered(self) -> list[Item]:
        """Return the items that are converted but differ in a detail; the item's reason describes
        the detail.
        """
        return [
            item
            for item in self.items
            if item.carrier is Carrier.CONVERTED and item.reasons and item.kind != "TABLE"
        ]

    @property
    def minutes(self) -> int:
        """Return the total of the estimate."""
        return sum(item.minutes for item in self.items)

    @property
    def replicated_bytes(self) -> int:
        """Return the total size in bytes of the replicated tables' segments, including LOBs."""
        return sum(t.bytes + t.lob_bytes for t in self.tables if t.replicated == "yes")

    @property
    def load_seconds(self) -> float | None:
        """Return the estimated time of the load from the measured rate; None if not measured."""
        if self.rates is None or self.rates.copy_bytes <= 0:
            return None
        return self.replicated_bytes / (self.rates.copy_bytes * self.rates.connections)

    @property
    def redo_per_day(self) -> int | None:
        """Return the bytes of archived redo of the day with the most redo; None if unknown."""
        return max((day.bytes for day in self.redo), default=None)

    @property
    def catch_up(self) -> CatchUp | None:
        """Return the estimated time for catching up after the load; None if a required rate is
        unknown.
        """
        most, load, rates, redo = self.redo_per_day, self.load_seconds, self.rates, self.redo_rates
        if most is None or load is None or rates is None or redo is None:
            return None
        comes = most / _DAY_SECONDS
        decoded = redo.bytes_per_second * redo.cores
        applied = rates.updates * rates.connections * redo.bytes_per_change
        spare = min(decoded, applied) - comes
        seconds = comes * load / spare if spare > 0 else None
        return CatchUp(comes, decoded, applied, seconds)

    def time_lines(self) -> Iterator[str]:
        """Yield the estimated times of the load and of catching up, with the rates that they are
        based on.
        """
        seconds, rates = self.load_seconds, self.rates
        if seconds is None or rates is None:
            yield "The times are not estimated, because the speed of the target was not measured."
            return
        yield (
            f"Load: {_span(seconds)} for {decimal(self.replicated_bytes)}. This time is an"
            f" estimate. A test wrote {decimal(int(rates.copy_bytes))} per second into the target"
            " with COPY over one connection, and the load uses"
            f" {counted(rates.connections, 'connection')}. The estimate assumes that the source is"
            " fast enough."
        )
        if self.catch_up is None:
            yield "Catching up: unknown, because the redo per day or a measured rate is missing."
            return
        yield self._catch_up_line(self.catch_up, rates)

    def _catch_up_line(self, found: CatchUp, rates: MeasuredRates) -> str:
        redo = self.redo_rates
        assert redo is not None
        takes = (
            "never, because the source writes redo faster than it can be replicated"
            if found.seconds is None
            else f"{_span(found.seconds)} after the load"
        )
        return (
            f"Catching up: {takes}. This value is an estimate: on its busiest day, the source"
            f" wrote {decimal(int(found.redo_per_second))} of redo per second. This machine"
            f" decodes {decimal(int(redo.bytes_per_second))} per second and core, and has"
            f" {counted(redo.cores, 'core')}. The target updates {rates.updates:,.0f} rows per"
            f" second and connection, over {counted(rates.connections, 'connection')}. A test"
            f" measured these rates with simulated orders ({redo.bytes_per_change:,.0f} bytes of"
            " redo for each changed row). `olr-pg bench` measures in more detail."
        )


def _span(seconds: float) -> str:
    """Return a time of a computer's work as text."""
    if seconds < 60:
        return "less than a minute"
    hours = seconds / 3_600
    if hours < 1:
        return f"about {seconds / 60:.0f} min"
    return f"about {hours:.1f} h" if hours < 48 else f"about {hours / 24:.1f} days"


def duration(minutes: float) -> str:
    """Return a time of human work as text: ``45 min``, ``3.5 h``, or ``4 days`` of eight hours."""
    if minutes < 60:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 16 else f"{hours / 8:.0f} days of 8 h"


_ROWS: Final = 50_000
_UPDATED: Final = 20_000
_LINE: Final = b"%d\tsome text of a usual length, as a row has it\t%d.25\t2026-03-07 01:44:39\n"
_UPDATE: Final = """
UPDATE olr_pg_rate AS t SET b = u.b FROM unnest(%s::int[], %s::text[]) AS u (a, b) WHERE t.a = u.a
"""


def measure_rates(connection: Connection[Any], connections: int) -> MeasuredRates:
    """Copy rows to a temporary table with a key, update some, and measure the time.

    Args:
        connection: a connection to the target in autocommit mode.
        connections: number of connections that a load will use in parallel.
    """
    data = b"".join(_LINE % (number, number) for number in range(_ROWS))
    keys = list(range(0, _ROWS, _ROWS // _UPDATED))[:_UPDATED]
    with connection.transaction(force_rollback=True):
        connection.execute(
            "CREATE TEMPORARY TABLE olr_pg_rate (a int PRIMARY KEY, b text, c numeric, d timestamp)"
        )
        began = time.perf_counter()
        with connection.cursor() as cursor, cursor.copy("COPY olr_pg_rate FROM STDIN") as copy:
            copy.write(data)
        copied = time.perf_counter()
        connection.execute(_UPDATE, (keys, ["another text of a usual length"] * len(keys)))
        updated = time.perf_counter()
    return MeasuredRates(
        copy_bytes=len(data) / max(copied - began, 1e-6),
        connections=connections,
        updates=len(keys) / max(updated - copied, 1e-6),
    )


def join_reports(reports: Mapping[str, Report]) -> Report:
    """Join the assessments of a source's containers. If there is only one assessment, return it
    unchanged.

    The figures of redo concern the whole database, so they are the same in each report.

    Args:
        reports: the report of each container by the container's name, in the order of the
            containers.
    """
    first = next(iter(reports.values()))
    if len(reports) == 1:
        return first
    told = {name: _named(name, one) for name, one in reports.items()}.values()
    return first._replace(
        owners=[owner for one in told for owner in one.owners],
        items=[item for one in told for item in one.items],
        tables=[table for one in told for table in one.tables],
        others=[other for one in told for other in one.others],
        unread=[view for one in told for view in one.unread],
        redo=next((one.redo for one in told if one.redo), ()),
    )


def _named(container: str, report: Report) -> Report:
    def told(name: str) -> str:
        return f"{container}.{name}"

    return report._replace(
        owners=[told(owner) for owner in report.owners],
        items=[item._replace(name=told(item.name)) for item in report.items],
        tables=[table._replace(name=told(table.name)) for table in report.tables],
        others=[other.model_copy(update={"owner": told(other.owner)}) for other in report.others],
        unread=[f"{view} in {container}" for view in report.unread],
    )

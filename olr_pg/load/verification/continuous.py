"""Continuous verification: compares every table in turn, repeatedly, while replication runs.

A table with a key is walked range by range (`digests`). Each range is compared as of an SCN of
its own. So a table of any size is compared within the budget, and no statement of the source runs
for long. After a restart, a walk continues at its recorded progress. If no range differs, the table
is reported as equal as of the oldest SCN of its ranges. A table without a suitable key is compared
as a whole. When a walk ends, the table whose last comparison is the oldest is next.

A pause between two ranges limits the comparisons to a budget of time and rows. The budget gets
smaller as the lag of replication grows.

Rows that differ are compared once more, as of a later SCN. Only rows that differ both times are
reported. Missing LOB values that ``olr_pg.incomplete`` lists are counted separately; `olr-pg
fetch-lobs` fetches them. A stopped or paused table is reported as not compared.

If configured, rows that differ both times are repaired, as by `olr-pg repair`: a target row that
has changed since the comparison is not touched. Rows that differ because the configuration leaves
changes out are reported, but not repaired. Repairing does not remove the cause of differences.
So the number of rows repaired per hour is limited; when it is exceeded, repairs stop, and an
operator must investigate.

Two files in `context.data` contain the progress in each table and the rows that differ. The files
contain values of rows. So other users of the host cannot read the files, and the files are
encrypted if a key is configured.
"""

from __future__ import annotations

import base64
import time
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import structlog

from olr_pg.applier.settings import DdlPolicy
from olr_pg.applier.statements.target_plan import TablePlan, target_name
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.decoding.filters import NO_FILTERS
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import replace_file
from olr_pg.files.sealed import sealed_bytes, stored_rows
from olr_pg.load.canonical import fields_of
from olr_pg.load.verification.differences import FORMAT, STATE, TableDifferences, difference_lines
from olr_pg.load.verification.digests import TableKey, can_be_walked
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.verification import (
    AT_POSITION,
    DIFFERENT,
    EXTRA,
    MISSING,
    KeyedPart,
    estimated_rows,
    verify,
)
from olr_pg.monitor.proofs import FILE_NAME, Proof, read_proofs, write_proofs
from olr_pg.observability.wording import counted
from olr_pg.transactions.finished_columns import DmlKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from psycopg import Connection
    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Table
    from olr_pg.load.table_data import SourceTable, TableSource
    from olr_pg.load.verification.verification import RowDifference, VerifiedTable

WALKS: Final = "walks.json"
DIFFERENCES: Final = "differences.jsonl"
"""The file with the rows that differ, for `olr-pg repair`."""


ROWS_KEPT_MAX: Final = 1_000
"""Maximum number of differing rows of one table in the file."""


class Walk(NamedTuple):
    """An unfinished walk through a table.

    Attributes:
        shape: names and types of the key's columns; if they change, the walk starts again.
        after: the last compared key, as an image; None at the beginning.
        scn, at: the lowest SCN as of which a range was compared, and the time of the first
            comparison; 0 if no range was compared.
        rows, differences, lacking, mended: the counts of this walk so far; see `Proof`.
    """

    shape: tuple[str, ...]
    after: bytes | None = None
    scn: int = 0
    at: float = 0.0
    rows: int = 0
    differences: int = 0
    lacking: int = 0
    mended: int = 0


class WalkFile:
    """The walks of all tables; used by one thread.

    Args:
        directory: the directory of the target.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / WALKS
        self._walks = self._read()

    def _read(self) -> dict[str, Walk]:
        try:
            found = orjson.loads(stored_rows(self._path))
            return {name: _walk(one) for name, one in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            _log.warning(
                "could not read the progress of the comparison: starting over", file=str(self._path)
            )
            return {}

    def of(self, table: str, shape: Sequence[str]) -> Walk:
        """Return the walk of a table; return a new walk if there is none, or if `shape` has
        changed.
        """
        known = self._walks.get(table)
        return known if known is not None and known.shape == tuple(shape) else Walk(tuple(shape))

    def is_unfinished(self, table: str) -> bool:
        """Return whether a walk has begun."""
        return table in self._walks

    def put(self, table: str, walk: Walk | None) -> None:
        """Store the progress of a walk durably. If `walk` is None, the walk has ended, and its
        record is deleted.

        Raises:
            OSError: the file cannot be written.
        """
        if walk is not None:
            self._walks[table] = walk
        elif self._walks.pop(table, None) is None:
            return
        walks = {
            name: {**one._asdict(), "after": one.after and base64.b64encode(one.after).decode()}
            for name, one in self._walks.items()
        }
        replace_file(self._path, sealed_bytes(orjson.dumps(walks)))


def _walk(known: dict[str, Any]) -> Walk:
    after = known["after"] and base64.b64decode(known["after"], validate=True)
    return Walk(**{**known, "shape": tuple(known["shape"]), "after": after})


class DifferenceFile:
    """The rows that differ, by table, in the form that `olr-pg repair` reads.

    Args:
        directory: the directory of the target.
    """

    def __init__(self, directory: Path, subscription: str) -> None:
        self._path = directory / DIFFERENCES
        self._head = {"format": FORMAT, "subscription": subscription}

    def put(self, table: str, lines: Sequence[dict[str, Any]], *, is_new: bool) -> None:
        """Store the differing rows of a table.

        Args:
            lines: the line of the table, then a line for each row; empty if no row differs. The
                file can contain several groups of rows for a table.
            is_new: True to replace the rows that an earlier walk found; False to add to them.

        Raises:
            OSError: the file cannot be written.
        """
        if not lines and not is_new:
            return  # Most ranges have no differences: do not read the file for them.
        known = self._read()
        if not lines and table not in known:
            return
        before = known.pop(table, [])
        if is_new or (lines and before and lines[0]["columns"] != before[0]["columns"]):
            before = []
        # Rows keep the state that the target had during their own comparison: a repair needs it.
        if lines and before:
            head = next(line for line in reversed(before) if "columns" in line)
            lines = lines[all(head[key] == lines[0][key] for key in STATE) :]
        known[table] = _bounded([*before, *lines])
        written = [self._head, *(line for one in known.values() for line in one)]
        data = b"".join(orjson.dumps(line, default=str) + b"\n" for line in written)
        replace_file(self._path, sealed_bytes(data))

    def _read(self) -> dict[str, list[Any]]:
        known: dict[str, list[Any]] = {}
        try:
            lines = [orjson.loads(line) for line in stored_rows(self._path).splitlines()]
        except (OSError, ValueError):
            return {}
        if lines[:1] != [self._head]:
            return {}
        for line in lines[1:]:
            if "columns" in line:
                own = known.setdefault(line["table"], [])
            own.append(line)
        return known


def _bounded(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a table up to the row with the number `ROWS_KEPT_MAX`."""
    rows, kept = 0, list[dict[str, Any]]()
    for line in lines:
        if rows == ROWS_KEPT_MAX:
            break
        rows += "columns" not in line
        kept.append(line)
    return kept


PAUSE_SECONDS_MIN: Final = 1.0
"""Minimum pause between two ranges or tables."""

LAG_SECONDS: Final = 5.0
"""Maximum time between two checks of the lag."""

ROWS_FIRST: Final = 10_000
ROWS_MIN: Final = 500
ROWS_MAX: Final = 100_000
"""Rows per range: `ROWS_FIRST` for the first range of a table; later ranges have between `ROWS_MIN`
and `ROWS_MAX` rows, depending on the time that a range takes.
"""

RANGE_SECONDS: Final = (0.5, 3.0)
"""If a range took less than the first number of seconds, the next range is larger. If it took more
than the second number, the next range is smaller.
"""

_RANGES_WITHOUT_INDEX: Final = 64
"""Maximum number of ranges if the target has no index on the key, because PostgreSQL then reads the
whole table for each range.
"""

_EXTRA_CHECKED_MAX: Final = 1_000
"""Maximum number of extra rows of a range that are looked for in the source, with a statement each.
If the two sides order keys differently, the source has many of them.
"""

_LATER_TRIES: Final = 6

_HOUR: Final = 3600.0

_log = structlog.get_logger(__name__)

_KNOWN: Final = """
SELECT key, target_column FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s AND key IS NOT NULL
"""
_KNOWN_WITHOUT_KEY: Final = """
SELECT count(DISTINCT row_id), coalesce(array_agg(DISTINCT target_column), '{}')
FROM olr_pg.incomplete WHERE subscription = %s AND source_table = %s AND key IS NULL
"""


_ALL_KINDS: Final = frozenset({MISSING, EXTRA, DIFFERENT})
_KEPT_BY: Final = {
    DmlKind.INSERT: frozenset({MISSING}),
    # An update may change the key: then one row is missing, and another one is extra.
    DmlKind.UPDATE: _ALL_KINDS,
    DmlKind.DELETE: frozenset({EXTRA}),
}
"""By operation that `filter.operations` leaves out, the kinds of differences that this causes."""

_REMOVES_ROWS: Final = (
    DdlKind.TRUNCATE,
    DdlKind.TRUNCATE_PARTITION,
    DdlKind.DROP_PARTITION,
    DdlKind.DROP_TABLE,
)
"""DDL after which the target has extra rows if `apply.ddl` ignores it."""


def intended_kinds(
    filters: Filters, ddl: Mapping[DdlKind, DdlPolicy], table: Table
) -> frozenset[str]:
    """Return the kinds of differences that the configuration can cause in a table, because it
    leaves out transactions, operations or DDL. A repair would undo the configuration.
    """
    found = _ALL_KINDS if filters.concerns_transactions else frozenset()
    dropped = filters.dropped([table])
    for kind in DmlKind:
        if dropped is not None and dropped[0, kind - DmlKind.INSERT]:
            found |= _KEPT_BY[kind]
    if any(ddl.get(kind) is DdlPolicy.IGNORE for kind in _REMOVES_ROWS):
        found |= {EXTRA}
    return found


class Mending:
    """Limits the number of repaired rows.

    Args:
        rows_max: maximum rows in any hour.
        filters: the filters of the target; see `intended_kinds`.

    Attributes:
        is_over: whether the limit was exceeded; then no more rows are repaired.
    """

    def __init__(self, rows_max: int, filters: Filters = NO_FILTERS) -> None:
        self.filters = filters
        self._rows_max = rows_max
        self._mended = deque[tuple[float, int]]()
        self.is_over = False

    def may_mend(self, rows: int, now: float) -> bool:
        """Return whether `rows` more rows can be repaired. If the result is False, no rows are
        repaired from now on.

        Args:
            now: the monotonic time in seconds.
        """
        while self._mended and self._mended[0][0] <= now - _HOUR:
            self._mended.popleft()
        done = sum(count for _, count in self._mended)
        self.is_over = self.is_over or done + rows > self._rows_max
        return not self.is_over

    def note(self, rows: int, now: float) -> None:
        """Count repaired rows."""
        self._mended.append((now, rows))


class Budget(NamedTuple):
    """The limits of continuous verification.

    Attributes:
        share: maximum share of the time of one core, above 0 up to 1. Verification, source and
            target work one after the other, so together they use one core at most.
        rows_per_second: maximum rows of the source per second; None for no limit.
        lag_max: from this lag in seconds on, nothing is compared. Below `lag_max`, the share
            decreases linearly with the lag.
    """

    share: float = 0.1
    rows_per_second: float | None = None
    lag_max: float = 60.0

    def share_at(self, lag: float) -> float:
        """Return the share of the time that may be used if the lag is `lag` seconds."""
        if lag >= self.lag_max:
            return 0.0 if lag else self.share
        return self.share * (1 - lag / self.lag_max)


class _Outcome(NamedTuple):
    """The result of comparing a table or a range of its key.

    Attributes:
        scn: the SCN of the last comparison.
        rows, differences, lacking, mended: see `Proof`.
        doubtful: whether Oracle and PostgreSQL may order the keys of the differing rows
            differently. If so, the table is compared as a whole.
        lines: the lines of the differing rows for the file of differences; empty if all were
            repaired.
    """

    scn: int
    rows: int
    differences: int = 0
    lacking: int = 0
    mended: int = 0
    doubtful: bool = False
    lines: tuple[dict[str, Any], ...] = ()


class ContinuousVerification:
    """Compares one table after the other, and the rows of a table range by range.

    Args:
        source: the source of the rows.
        directory: the target's directory, for the files with the results.
        session: opens a Spark session; called if a table is compared as a whole and is too large
            for this process.
        mending: limits repairs; None to only report differences.
        pause: a function that waits for a number of seconds.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        source: TableSource,
        directory: Path,
        session: Callable[[], SparkSession],
        mending: Mending | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._mending, self._pause = mending, pause
        self._settings, self._source = settings, source
        self._path = directory / FILE_NAME
        self._session = session
        self.proofs = read_proofs(self._path)
        self._walks = WalkFile(directory)
        self._differences = DifferenceFile(directory, settings.subscription)
        self._whole = set[str]()
        self._rows = dict[str, int]()
        self._compared_rows = 0

    def walk(
        self,
        tables: Sequence[Table],
        budget: Budget,
        *,
        lag: Callable[[], float] = lambda: 0.0,
    ) -> Iterator[Proof]:
        """Compare the tables endlessly; after each range yield the current result for its table.

        Args:
            lag: returns the lag of replication in seconds.

        Raises:
            OSError: the result cannot be written.
        """
        while not budget.share_at(lag()):
            self._pause(LAG_SECONDS)
        while True:
            began, self._compared_rows = time.monotonic(), 0
            yield self.prove(min(tables, key=self._due))
            self._rest(budget, time.monotonic() - began, lag)

    def _rest(self, budget: Budget, busy: float, lag: Callable[[], float]) -> None:
        """Pause until the share of time used by the last step is within the budget for the current
        lag.
        """
        debt, waited = busy, 0.0
        by_rows = 0.0
        if budget.rows_per_second:
            by_rows = self._compared_rows / budget.rows_per_second - busy
        while True:
            share = budget.share_at(lag())
            wanted = max(by_rows, PAUSE_SECONDS_MIN) - waited
            if share:
                wanted = max(wanted, debt * (1 / share - 1))
                if wanted <= 0:
                    return
            seconds = min(wanted, LAG_SECONDS) if share else LAG_SECONDS
            self._pause(seconds)
            waited += seconds
            debt = max(debt - seconds * share / (1 - share), 0.0) if share < 1 else 0.0

    def _due(self, table: Table) -> tuple[bool, float, str]:
        """Return the sort key of a table: a table with an unfinished walk comes first, then the
        table with the oldest comparison. A comparison in the future was made while the clock was
        wrong; the table must not wait until then.
        """
        known = self._known(table)
        tried_at = known.tried_at if known.tried_at <= time.time() else 0.0
        goes_on = self.is_walking(table.full_name) and not known.failure
        return not goes_on, tried_at, table.full_name

    def is_walking(self, table: str) -> bool:
        """Return whether a walk through a table has begun and not ended."""
        return self._walks.is_unfinished(table)

    def _known(self, table: Table) -> Proof:
        return self.proofs.get(table.full_name, Proof(table.full_name))

    def prove(self, table: Table) -> Proof:
        """Compare the next range of a table, or the whole table; return the table's current result.

        If rows differ, compare them once more as of a later SCN.
        """
        try:
            proof, walk = self._step(table)
        except OlrPgError as error:
            self._save(self._known(table)._replace(tried_at=time.time(), failure=str(error)))
        else:
            self._save(proof)
            self._walks.put(table.full_name, walk)
        return self._known(table)

    def _save(self, proof: Proof) -> None:
        self.proofs[proof.table] = proof
        write_proofs(self._path, self.proofs.values())

    def _step(self, table: Table) -> tuple[Proof, Walk | None]:
        """Compare a range or the whole table; return the result and the progress of the walk."""
        source = None if table.full_name in self._whole else self._source.by_key(table)
        if source is not None:
            with connect_with(self._settings, writes=False) as connection:
                key = self._key(connection, table)
                found = None if key is None else self._next_range(source, key)
            if found is not None:
                return found
        return self._whole_table(table), None

    def _key(self, connection: Connection[Any], table: Table) -> TableKey | None:
        """Return the key by which the table can be compared range by range; None if it has no such
        key.
        """
        target = read_table(connection, *target_name(self._settings, table.owner, table.name))
        if target is None:
            return None
        plan = TablePlan(table.full_name, target, table, self._settings)
        encoding = connection.info.parameter_status("server_encoding") or ""
        if not can_be_walked(plan, table, self._settings.facts.charset, encoding):
            return None
        key = TableKey(connection, self._settings, plan, table)
        if not key.has_index:
            rows = estimated_rows(connection, target) // _RANGES_WITHOUT_INDEX
            self._rows[table.full_name] = max(self._rows.get(table.full_name, ROWS_FIRST), rows)
        return key

    def _next_range(self, source: SourceTable, key: TableKey) -> tuple[Proof, Walk | None] | None:
        """Compare the next range. Return None if the table must be compared as a whole."""
        table, name = source.table, source.table.full_name
        walk = self._walks.of(name, key.shape)
        while True:
            rows = self._rows.get(name, ROWS_FIRST)
            began = time.monotonic()
            part = key.next_range(walk.after, rows)
            try:
                # Check the definition before rows are reported or repaired: a repair with an
                # older one would leave a new column NULL.
                later = partial(self._source.by_key, is_checked=True)
                found = self._outcome(source, later, KeyedPart(part, key.cuts(part)), key)
            except OlrPgError as error:
                if error.code is not Code.KEY_RANGE_TOO_SLOW:
                    raise
                if rows > ROWS_MIN:
                    self._rows[name] = max(rows // 4, ROWS_MIN)
                    continue
                found = None
            if found is None or found.doubtful:
                _log.warning("the table will be compared as a whole, not by key ranges", table=name)
                self._whole.add(name)
                return None
            self._fit(name, rows, time.monotonic() - began)
            return self._walked(table, walk, found, part.upto)

    def _fit(self, table: str, rows: int, seconds: float) -> None:
        """Choose the number of rows of the table's next range."""
        quick, slow = RANGE_SECONDS
        if seconds > slow:
            self._rows[table] = max(rows // 2, ROWS_MIN)
        elif seconds < quick:
            self._rows[table] = max(min(rows * 2, ROWS_MAX), rows)

    def _walked(
        self, table: Table, walk: Walk, found: _Outcome, upto: bytes | None
    ) -> tuple[Proof, Walk | None]:
        now, name = time.time(), table.full_name
        self._differences.put(name, found.lines, is_new=walk.after is None)
        walk = Walk(
            walk.shape,
            upto,
            scn=min(walk.scn or found.scn, found.scn),
            at=walk.at or now,
            rows=walk.rows + found.rows,
            differences=walk.differences + found.differences,
            lacking=walk.lacking + found.lacking,
            mended=walk.mended + found.mended,
        )
        counts = (walk.rows, walk.differences, walk.lacking)
        if upto is None:
            done = Proof(name, walk.scn, walk.at, *counts, tried_at=now, mended=walk.mended)
            return done, None
        known = self._known(table)._replace(tried_at=now, failure="")
        if walk.differences:
            worst = max(walk.differences, known.differences)
            known = known._replace(scn=found.scn, at=now, differences=worst)
        return known, walk

    def _whole_table(self, table: Table) -> Proof:
        (source,) = self._source.sources([table])
        found = self._outcome(source, lambda _: self._source.later(source))
        now, name = time.time(), table.full_name
        self._differences.put(name, found.lines, is_new=True)
        counts = (found.rows, found.differences, found.lacking)
        return Proof(name, found.scn, now, *counts, tried_at=now, mended=found.mended)

    def _outcome(
        self,
        source: SourceTable,
        later: Callable[[Table], SourceTable | None],
        within: KeyedPart | None = None,
        key: TableKey | None = None,
    ) -> _Outcome:
        """Compare; if rows differ, compare them once more as of a later SCN.

        Args:
            later: returns the table as of the current SCN.
        """
        found = self._compared(source, within)
        if found.identical:
            return _Outcome(found.scn, found.source_rows)
        for _ in range(_LATER_TRIES):
            again = self._compared(later(source.table) or source, within)
            if again.scn > found.scn or again.identical or source.data.reached is None:
                break
            self._pause(LAG_SECONDS)
        rest = confirmed(found.differences, again.differences)
        if key is not None and _is_misplaced(source, again.scn, key, rest):
            return _Outcome(again.scn, again.source_rows, doubtful=True)
        told, lines, lacking = self._told(again._replace(differences=rest))
        mended = self._mend(again, told) if told and self._mending else 0
        return _Outcome(
            again.scn,
            again.source_rows,
            # If a chunk had too many differences to fetch, at least one of its rows differs.
            len(told) - mended + again.skipped,
            lacking,
            mended,
            lines=() if mended == len(told) else lines,
        )

    def _mend(self, found: VerifiedTable, rows: Sequence[RowDifference]) -> int:
        """Repair the rows of a table, all or none, except rows that differ intentionally; return
        the number of repaired rows.
        """
        assert self._mending is not None
        name, now = found.table.source.full_name, time.monotonic()
        kept = intended_kinds(self._mending.filters, self._settings.ddl, found.table.source)
        told, rows = rows, [one for one in rows if one.kind not in kept]
        if len(rows) < len(told):
            _log.info(
                "rows differ because of `filter` or `apply.ddl`, so they are not repaired",
                table=name,
                rows=len(told) - len(rows),
            )
        if not rows:
            return 0
        was_over = self._mending.is_over
        try:
            if not self._mending.may_mend(len(rows) + found.skipped, now):
                if not was_over:
                    raise OlrPgError(
                        Code.MENDING_ENDED, f"{counted(len(rows), 'row')} to correct", table=name
                    )
                return 0
            (done,) = repair(self._settings, [_differences(found, rows)])
        except OlrPgError as error:
            _log.error(
                "could not repair rows that differ", table=name, code=error.label, reason=str(error)
            )
            return 0
        self._mending.note(len(rows), now)
        _log.warning("repaired rows that differed", **done._asdict())
        return len(rows) - done.left

    def _compared(self, source: SourceTable, within: KeyedPart | None) -> VerifiedTable:
        found = verify(self._settings, [source], self._session, AT_POSITION._replace(within=within))
        for failure in found.failures:
            raise failure
        self._compared_rows += found.tables[0].source_rows
        return found.tables[0]

    def _told(
        self, result: VerifiedTable
    ) -> tuple[list[RowDifference], tuple[dict[str, Any], ...], int]:
        """Remove the rows that differ only in LOB values that ``olr_pg.incomplete`` lists as
        missing.

        Returns:
            The remaining differences, their lines in the file, and the number of rows removed.
        """
        if not result.differences:
            return [], (), 0
        of = self._settings.subscription, result.table.source.full_name
        with connect_with(self._settings, writes=False) as connection:
            known = {(_texts(key), column) for key, column in connection.execute(_KNOWN, of)}
            count, columns = connection.execute(_KNOWN_WITHOUT_KEY, of).fetchone() or (0, ())
            _, head, *lines = difference_lines(connection, self._settings.subscription, [result])
        left_out = [
            [place] for place, line in enumerate(lines)
            if "key" in line and "differing" in line
            and all((_texts(line["key"]), column) in known for column in line["differing"])
        ]  # fmt: skip
        rest = [place for place in range(len(lines)) if [place] not in left_out]
        left_out += islice(_differing_in(result, columns, rest), count)
        places = {place for one in left_out for place in one}
        told = [
            (difference, line)
            for place, (difference, line) in enumerate(zip(result.differences, lines, strict=True))
            if place not in places
        ]
        told_lines = (head, *(line for _, line in told)) if told else ()
        return [one for one, _ in told], told_lines, len(left_out)


def _is_misplaced(
    source: SourceTable, scn: int, key: TableKey, rows: Sequence[RowDifference]
) -> bool:
    """Return whether the two sides may have put some of these rows into different ranges.

    If the source has a row with the key of an extra row, source and target order the keys
    differently, for example because the column has a linguistic collation. The row must not be
    deleted.
    """
    if any(key.is_doubtful(one.key) for one in rows):
        return True
    extra = (one.key for one in rows if one.kind == EXTRA)
    cuts = key.cuts_at(islice(extra, _EXTRA_CHECKED_MAX))
    if not cuts or source.data.within is None:
        return False
    parts = source.data.within(scn, cuts).partitions
    return any(True for part in parts for _ in part.batches())


def _differences(found: VerifiedTable, rows: Iterable[RowDifference]) -> TableDifferences:
    compared, target = found.compared, found.table.target
    return TableDifferences(
        found.table.source.full_name,
        *(target.schema, target.name),
        tuple(column.name for column in compared.columns),
        tuple(column.base_oid for column in compared.columns),
        tuple(column.name for column in compared.key_columns) if compared.keyed else (),
        list(rows),
        found.state,
    )


def _differing_in(
    result: VerifiedTable, columns: Collection[str], places: Iterable[int]
) -> Iterator[list[int]]:
    """Yield the differences that can be explained by a row whose two sides differ only in these
    columns.

    In a table without a key, such a row appears as two differences: a missing row and an extra row.

    Args:
        places: indexes of the differences to examine.
    """
    missing = dict[tuple[bytes | None, ...], list[int]]()
    extra = dict[tuple[bytes | None, ...], list[int]]()
    for place in places:
        one = result.differences[place]
        source, target = (
            None if image is None else tuple(
                field.value for field in fields_of(image, result.compared.columns)
                if field.column.name not in columns
            )
            for image in (one.source, one.target)
        )  # fmt: skip
        if source is not None and target is not None:
            if source == target:
                yield [place]
        elif source is not None:
            missing.setdefault(source, []).append(place)
        elif target is not None:
            extra.setdefault(target, []).append(place)
    for values, here in missing.items():
        for pair in zip(here, extra.get(values, ()), strict=False):
            yield list(pair)


def confirmed(
    first: Sequence[RowDifference], again: Sequence[RowDifference]
) -> tuple[RowDifference, ...]:
    """Return the differences of the second comparison that were also found by the first one, with
    the same kind and key.
    """
    before = {(one.kind, one.key) for one in first}
    return tuple(one for one in again if (one.kind, one.key) in before)


def _texts(key: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in key.items())

"""The status of a fallback as values, for its page, its JSON and `olr-pg fallback status`.

Positions are PostgreSQL's LSNs in PostgreSQL's format. An unknown value is None, and null in JSON.
"""

from __future__ import annotations

import importlib.metadata
import shlex
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.fallback.pgoutput import lsn_text
from olr_pg.monitor.problems import Problem
from olr_pg.monitor.status_values import TABLES_SHOWN, Identity, StageState, matching, shown_counts
from olr_pg.observability.advised_commands import complete_commands
from olr_pg.observability.wording import counted, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.errors import OlrPgError
    from olr_pg.fallback.fallback_run import Status
    from olr_pg.fallback.oracle_ledger import TableStop
    from olr_pg.fallback.preparation import Slot

MIB: Final = 1 << 20
FULL_RATIO: Final = 0.8
"""If the retained WAL reaches this share of `fallback.max-wal-mb`, the slot is reported as a
problem. The alert rule uses the same share.
"""

STATE_WORDS: Final = {
    "FOLLOWING": "Replicating from PostgreSQL to Oracle",
    "CONNECTING": "Connecting to the replication slot",
    "WAITING_FOR_DATABASE": "Waiting for PostgreSQL or Oracle",
    "STOPPED": "Stopped: the way back cannot continue",
}
"""A text for each state, for people; scripts read the state's name."""


class Looked(NamedTuple):
    """The last answers of PostgreSQL and Oracle.

    Attributes:
        at: time of the query, Unix time in seconds.
        found: the answers; None if PostgreSQL or Oracle did not answer.
        error: the reason why there is no answer.
    """

    at: float
    found: Status | None
    error: OlrPgError | None = None


@dataclass(frozen=True, slots=True)
class WayBackTable:
    """A table of the fallback.

    Attributes:
        state: `replicating`, `stopped` or `catching up`.
        lsn: Oracle has the table's changes of all transactions that end at or before this LSN.
        reason: the error that stopped the table; None if it is not stopped.
        conflicts: number of changes that were skipped, or that overwrote Oracle's row.
        changed_values: number of values that a policy changed.
    """

    name: str
    state: str
    lsn: str
    reason: str | None
    conflicts: int
    changed_values: int


@dataclass(frozen=True, slots=True)
class WayBackStatus:
    """The status of a fallback, in the form that the status page shows.

    Attributes:
        way_back: `status_record`, with `answered_at` and `max_wal_bytes`; None if PostgreSQL or
            Oracle does not answer.
        commands: for each problem, the complete commands that solve it.
    """

    version: str
    at: float
    started_at: float
    state: StageState
    identity: Identity
    way_back: dict[str, Any] | None
    tables: tuple[WayBackTable, ...]
    problems: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]

    @property
    def health(self) -> str:
        """Return ``failed`` if the fallback cannot continue, ``degraded`` if it has problems,
        otherwise ``ok``.
        """
        if self.state.name == "STOPPED":
            return "failed"
        return "degraded" if self.problems else "ok"

    def as_record(self) -> dict[str, Any]:
        """Return the status for JSON."""
        record = asdict(self)
        record["state"]["words"] = STATE_WORDS[self.state.name]
        return {"health": self.health, **record}

    def as_shown(self, wanted: str) -> dict[str, Any]:
        """Return the status for the page; see `ServedStatus`. Stopped tables are first."""
        found = sorted(matching(self.tables, wanted), key=lambda one: _ORDER.index(one.state))
        record = replace(self, tables=tuple(found[:TABLES_SHOWN])).as_record()
        return {**record, "shown": shown_counts(self.tables, found)}


_ORDER: Final = ("stopped", "catching up", "replicating")
"""The states of tables, in the order of the page."""


class Watched(NamedTuple):
    """The fallback that a status describes.

    Attributes:
        tables: ``OWNER.NAME`` of each table.
        max_wal_mb: `fallback.max-wal-mb`.
        target: the name of the target, if there are several; otherwise empty.
        started_at: when the process started.
    """

    identity: Identity
    tables: Sequence[str]
    max_wal_mb: int
    target: str
    started_at: float

    def status(self, looked: Looked, since: float, at: float) -> WayBackStatus:
        """Return the status.

        Args:
            since: when the state of `looked` began.
            at: the current time.
        """
        found, config = looked.found, self.identity.config
        problems = [
            problem._replace(text=complete_commands(problem.text, config, self.target))
            for problem in self._problems(looked)
        ]
        record = None
        if found is not None:
            more = {"answered_at": looked.at, "max_wal_bytes": self.max_wal_mb * MIB}
            record = {**status_record(found), **more}
        return WayBackStatus(
            version=importlib.metadata.version("olr-pg"),
            at=at,
            started_at=self.started_at,
            state=StageState(state_of(looked), since),
            identity=self.identity,
            way_back=record,
            tables=() if found is None else tuple(self._tables(found)),
            problems=tuple(problem.text for problem in problems),
            commands=tuple(problem.commands for problem in problems),
        )

    def _tables(self, found: Status) -> Iterator[WayBackTable]:
        if found.ledger is None:
            return
        counts: dict[tuple[str, bool], int] = {}
        for record, count in found.records.items():
            key = record.table, record.is_conflict
            counts[key] = counts.get(key, 0) + count
        stops = found.ledger.stops
        for name in sorted({*self.tables, *stops}):
            stop = stops.get(name)
            yield WayBackTable(
                name=name,
                state=_table_state(stop),
                lsn=lsn_text(found.ledger.lsn if stop is None else stop.lsn),
                reason=None if stop is None else stop.reason,
                conflicts=counts.get((name, True), 0),
                changed_values=counts.get((name, False), 0),
            )

    def _problems(self, looked: Looked) -> Iterator[Problem]:
        found, error = looked.found, looked.error
        if found is None:
            if error is not None:
                yield Problem(f"{error}; {error.action}", (self._command("doctor"),))
            return
        if is_lost(found.slot):
            yield Problem(
                "The slot, or WAL that it needs, is missing in PostgreSQL. Oracle cannot get the"
                " changes that it lacks; end the way back",
                (self._command("fallback end"),),
            )
        elif found.slot is not None and found.slot.wal_bytes is not None:
            kept = found.slot.wal_bytes
            if kept > FULL_RATIO * self.max_wal_mb * MIB:
                yield Problem(
                    f"The slot keeps {kept / MIB:,.0f} MiB of PostgreSQL's WAL;"
                    f" `fallback.max-wal-mb` is {self.max_wal_mb:,} MiB; find out why Oracle is"
                    " behind. If PostgreSQL's disk gets full, end the way back with"
                    " `olr-pg fallback end`",
                    (self._command("doctor"),),
                )
        if found.ledger is None:
            yield Problem(
                "Oracle does not contain the ledger of this way back; check the account of"
                " `fallback.user`",
                (self._command("doctor"),),
            )
            return
        yield from self._stopped(found.ledger.stops)

    def _stopped(self, stops: dict[str, TableStop]) -> Iterator[Problem]:
        """Yield a problem for each cause: stopped tables with the same error code are reported as
        one problem.
        """
        by_code: dict[str, dict[str, str]] = {}
        for name, stop in sorted(stops.items()):
            if stop.is_stopped:
                reason = stop.reason or "the reason is unknown"
                by_code.setdefault(reason.partition(":")[0], {})[name] = reason
        for group in by_code.values():
            names, reason = list(group), next(iter(group.values()))
            told = f"Table {names[0]} has stopped: {reason}"
            if len(names) > 1:
                count = counted(len(names), "table")
                told = f"{count} have stopped: {some(names)}. The first error is: {reason}"
            options = [word for name in names for word in ("--table", name)]
            yield Problem(
                f"{told}; correct the cause, then resume the table. You can also skip the"
                " transaction that failed",
                tuple(self._command(f"fallback {verb}", *options) for verb in ("resume", "skip")),
            )

    def _command(self, command: str, *arguments: str) -> str:
        words = ["--config", self.identity.config or "FILE"]
        if self.target:
            words += ["--target", self.target]
        return " ".join(["olr-pg", command, *map(shlex.quote, (*arguments, *words))])


def state_of(looked: Looked) -> str:
    """Return the name of the state of a fallback."""
    found = looked.found
    if found is None:
        return "WAITING_FOR_DATABASE"
    if found.slot is None or found.ledger is None or is_lost(found.slot):
        return "STOPPED"
    return "FOLLOWING" if found.slot.is_active else "CONNECTING"


def is_lost(slot: Slot | None) -> bool:
    """Return whether the slot is missing, or PostgreSQL has removed WAL that it needs."""
    return slot is None or slot.wal_status == "lost"


def status_record(found: Status) -> dict[str, Any]:
    """Return the status for JSON, with the status of each PDB if there are several."""
    slot, ledger = found.slot, found.ledger
    more = (
        {"containers": {one.container: status_record(one) for one in found.containers}}
        if found.containers
        else {}
    )
    return more | {
        "begun": found.begun,
        "slot": None if slot is None else {**slot._asdict(), "lsn": lsn_text(slot.lsn)},
        "lag_bytes": found.lag_bytes,
        "set_aside": found.set_aside,
        "records": [
            {**record._asdict(), "occurrences": count} for record, count in found.records.items()
        ],
        "ledger": None
        if ledger is None
        else {"lsn": lsn_text(ledger.lsn), "transactions": ledger.transactions},
        "tables": []
        if ledger is None
        else [
            {
                "table": name,
                "lsn": lsn_text(one.lsn),
                "stopped": one.is_stopped,
                "reason": one.reason,
            }
            for name, one in sorted(ledger.stops.items())
        ],
    }


def _table_state(stop: TableStop | None) -> str:
    if stop is None:
        return "replicating"
    return "stopped" if stop.is_stopped else "catching up"

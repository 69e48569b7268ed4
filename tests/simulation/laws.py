"""The laws that every run must keep, at any moment of it.

1. Each table of the target holds exactly what the transactions make of it that its ledger row
   names: every committed change once, in commit order, and nothing of a rolled-back one.
2. The checkpoint does not pass a transaction that is not durable in every table; nor does the
   recovery image that it names, of what had committed before it. Nothing moves it but the
   applier's confirmations; an honest other client's do, which the applier must not believe.
3. What the server sends on a connection are the wanted transactions, whole, in the order of
   delivery, each as the source committed it; left out are none but such as were durable or
   confirmed before.
4. A table of which rows are in no redo, or whose DDL no copy can follow, stops before them, with
   the error that says so, and no other does; the checkpoint does not pass them before it has.
5. In the end every table that goes on is defined as in the source: `schema diff` lists nothing, and
   the target has no index or constraint that the source does not have.
"""

from __future__ import annotations

import json
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from psycopg import sql
from psycopg.errors import DeadlockDetected, UndefinedTable

from olr_pg.wire.elements import Begin, Commit, decode_element
from olr_pg.wire.messages import (
    BackToScn,
    Data,
    LastCommitedScn,
    LogOff,
    Ok,
    StartScn,
    decode_answer,
    decode_request,
)
from tests.rendering.element_lines import render_line, whole_changes
from tests.target_rows import column_types, differing_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import psycopg

    from olr_pg.wire.elements import Element
    from olr_pg.wire.frames import ByteOrder
    from olr_pg.wire.messages import Answer, Request
    from tests.rendering.element_lines import ValueRenderer
    from tests.simulation.proxy import Recording
    from tests.simulation.truth import SourceTransaction, Truth

    Connection = psycopg.Connection[tuple[Any, ...]]

FRAME: Final = 4

UNLOGGED: Final = "blocks of the table were written without redo"


class LawBrokenError(Exception):
    """A law was broken; says which, and where."""


class Applied(NamedTuple):
    """A table's row in the ledger.

    Attributes:
        transactions: how many were applied.
        stopped: by an error that stays.
    """

    commit_scn: int
    xids: frozenset[str]
    transactions: int
    stopped: bool = False

    def has(self, transaction: SourceTransaction) -> bool:
        """Whether a transaction is applied, or held behind the error."""
        if transaction.commit_scn == self.commit_scn:
            return transaction.xid in self.xids
        return transaction.commit_scn < self.commit_scn


NOTHING: Final = Applied(0, frozenset(), 0)

Identity = tuple[int, str]
"""Commit SCN and XID of a transaction."""


class Error(NamedTuple):
    """A row of the error table."""

    table: str
    operation: str
    message: str
    commit_scn: int
    xid: str
    resolution: str


def read_ledger(connection: Connection, subscription: str) -> dict[str, Applied]:
    """The ledger's rows by source table; empty where there is no ledger yet."""
    if connection.execute("SELECT to_regclass('olr_pg.ledger')").fetchone() == (None,):
        return {}
    rows = connection.execute(
        "SELECT source_table, commit_scn, xids, transactions, stopped FROM olr_pg.ledger"
        " WHERE subscription = %s",
        (subscription,),
    )
    return {name: Applied(scn, frozenset(xids), *rest) for name, scn, xids, *rest in rows}


def read_held(connection: Connection, subscription: str) -> dict[str, frozenset[Identity]]:
    """The transactions and DDL that stopped tables hold."""
    found = dict[str, set[Identity]]()
    for table, *identity in connection.execute(
        "SELECT source_table, commit_scn, xid FROM olr_pg.held WHERE subscription = %s",
        (subscription,),
    ):
        found.setdefault(table, set()).add((identity[0], identity[1]))
    return {table: frozenset(identities) for table, identities in found.items()}


# --- the tables ---


class Judge(Protocol):
    """Says which tables may stop, where that depends on the target."""

    def wrong_errors(self, errors: Sequence[Error]) -> list[Error]:
        """The errors that should not be there."""


def check_target(
    connection: Connection,
    truth: Truth,
    subscription: str,
    schema: str,
    judge: Judge | None = None,
) -> dict[str, Applied]:
    """Law 1, at one moment; the ledger as it was then.

    A table that stopped has everything before, and holds everything since.

    DDL does not keep to snapshots (TRUNCATE makes a table empty for older ones), so it is kept
    away meanwhile.

    Raises:
        LawBrokenError: it does not hold.
    """
    while True:
        tables = _tables(connection, schema)
        with (
            # A table can get another name before it is locked.
            suppress(DeadlockDetected, UndefinedTable),
            connection.transaction(force_rollback=True),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            if tables:
                # LOCK comes before the snapshot, which the first query takes.
                names = sql.SQL(", ").join(sql.Identifier(schema, table) for table in tables)
                connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
            if _tables(connection, schema) == tables:
                return _check_tables(connection, truth, subscription, schema, judge)


def _tables(connection: Connection, schema: str) -> list[str]:
    """The tables of the target that are there."""
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
        " AND relkind IN ('r', 'p') ORDER BY relname",
        (schema,),
    )
    return [name for (name,) in rows]


def _check_tables(
    connection: Connection, truth: Truth, subscription: str, schema: str, judge: Judge | None
) -> dict[str, Applied]:
    ledger = read_ledger(connection, subscription)
    held = read_held(connection, subscription) if ledger and judge is not None else {}
    for table in truth.tables:
        _check_table(connection, truth, table, ledger, schema, held)
    if ledger:
        rows = connection.execute(
            "SELECT source_table, operation, message, commit_scn, xid, resolution"
            " FROM olr_pg.error WHERE subscription = %s",
            (subscription,),
        ).fetchall()
        errors = [Error(*row) for row in rows]
        wrong = [one for one in errors if not _is_due(truth, one)]
        wrong = wrong if judge is None else judge.wrong_errors(errors)
        if wrong:
            raise LawBrokenError(f"the error table has what should not be there: {wrong}")
    return ledger


def _is_due(truth: Truth, error: Error) -> bool:
    """Whether an error is that of a table with rows that no redo has, or with unfollowed DDL."""
    if error.operation == "undecoded":
        return error.table in truth.unlogged and UNLOGGED in error.message
    return error.operation == "ddl" and error.table in truth.unfollowed


def _check_table(
    connection: Connection,
    truth: Truth,
    table: str,
    ledger: Mapping[str, Applied],
    schema: str,
    held: Mapping[str, frozenset[Identity]],
) -> None:
    applied = ledger.get(table, NOTHING)
    stop = truth.stops.get(table)
    if stop is not None and not applied.stopped and applied.commit_scn >= stop:
        raise LawBrokenError(
            f"{table}: nothing can be followed since {stop}, but it goes on: {applied}"
        )

    def has(one: SourceTransaction, name: str) -> bool:
        is_held = name in one.held or one.identity in held.get(name, ())
        return ledger.get(name, NOTHING).has(one) and not is_held

    _check_held(truth, table, ledger.get(table, NOTHING), held.get(table, frozenset()))
    count = sum(has(one, table) for one in truth.of_table(table))
    if applied.transactions != count:
        raise LawBrokenError(
            f"{table}: the ledger counts {applied.transactions} transactions, but {count} end at"
            f" or before {applied.commit_scn} {sorted(applied.xids)}"
        )
    name = table.partition(".")[2].lower()
    columns = column_types(connection, schema, name)
    is_vacant = truth.is_vacant(table, has)
    if columns and is_vacant:
        raise LawBrokenError(f"{table}: it was renamed, but the target has it still")
    if not columns:
        if applied.transactions and not is_vacant:
            raise LawBrokenError(f"{table}: it is in the ledger but not there")
        return
    wrong = [
        one
        for one, is_there in truth.named(table, has).items()
        if (one.lower() in columns) is not is_there
    ]
    if wrong:
        raise LawBrokenError(f"{table}: DDL of the columns {wrong} is not followed: {columns}")
    rows = truth.rows(table, has)
    unknown = {column.lower() for row in rows for column in row} - columns.keys()
    if unknown:
        raise LawBrokenError(f"{table}: there are no columns {', '.join(sorted(unknown))}")
    differing = differing_rows(connection, schema, name, rows)
    if differing:
        raise LawBrokenError(
            f"{table}: rows differ after {count} transactions, up to {applied.commit_scn}"
            f" {sorted(applied.xids)}:\n" + "\n".join(map(str, differing[:10]))
        )


def _check_held(truth: Truth, table: str, applied: Applied, held: frozenset[Identity]) -> None:
    """Whether a stopped table holds all since the first that it holds."""
    if held and not applied.stopped:
        raise LawBrokenError(f"{table} goes on, but holds {sorted(held)}")
    first = min(held, default=(0, ""))
    missing = [
        one.identity
        for one in truth.of_table(table) if held and applied.has(one)
        and one.commit_scn > first[0] and one.identity not in held
    ]  # fmt: skip
    if missing:
        raise LawBrokenError(f"{table} stopped at {first}, but does not hold {missing}")


def lagging(ledger: dict[str, Applied], truth: Truth, up_to_scn: int) -> SourceTransaction | None:
    """The first transaction with a lower commit SCN that is not durable everywhere."""
    for one in truth.followed:
        if one.commit_scn < up_to_scn and not is_durable(one, ledger):
            return one
    return None


def is_durable(
    transaction: SourceTransaction,
    ledger: dict[str, Applied],
    starts: Mapping[str, int] = MappingProxyType({}),
) -> bool:
    """Whether a transaction is in all its tables, but for those that are read from elsewhere.

    Args:
        starts: the SCN from which a restart reads for a table's sake, wherever the checkpoint is.
    """
    return all(
        (table in starts and transaction.begin_scn >= starts[table])
        or ledger.get(table, NOTHING).has(transaction)
        or (table in transaction.held and ledger.get(table, NOTHING).stopped)
        for table in transaction.tables
    )


def read_starts(
    connection: Connection, truth: Truth, subscription: str, ledger: dict[str, Applied]
) -> dict[str, int]:
    """From where a restart reads for the sake of tables that were made, and are not handed over.

    One that the target does not know yet has been noted by the appliance, or is not made yet.
    """
    starts = dict.fromkeys(truth.made - ledger.keys(), 0)
    if truth.made & ledger.keys():
        rows = connection.execute(
            "SELECT source_table, start_scn FROM olr_pg.load"
            " WHERE NOT handed_over AND subscription = %s",
            (subscription,),
        )
        starts |= {table: scn for table, scn in rows if table in truth.made}
    return starts


def not_stopped(ledger: dict[str, Applied], truth: Truth, up_to_scn: int) -> list[str]:
    """The tables with rows that no redo has before an SCN, and that have not stopped."""
    return [
        table
        for table, scn in truth.stops.items()
        if scn < up_to_scn and not ledger.get(table, NOTHING).stopped
    ]


# --- the checkpoint ---


def broken_by_checkpoint(
    connection: Connection, truth: Truth, subscription: str, scn: int
) -> str | None:
    """How a checkpoint at `scn` breaks law 2, None where it does not."""
    ledger = read_ledger(connection, subscription)
    starts = read_starts(connection, truth, subscription, ledger)
    unseen = [
        table
        for table in not_stopped(ledger, truth, scn)
        if table not in starts or truth.stops[table] < starts[table]
    ]
    if unseen:
        return f"the checkpoint {scn} passes the SCN at which {', '.join(unseen)} must stop"
    for one in truth.followed:
        if one.begin_scn < scn and not is_durable(one, ledger, starts):
            return (
                f"the checkpoint {scn} passes transaction {one.xid}, which began at"
                f" {one.begin_scn}, committed at {one.commit_scn} and is not durable"
            )
    return None


def broken_by_image(
    connection: Connection, truth: Truth, subscription: str, path: Path
) -> str | None:
    """How the checkpoint breaks law 2 with the image at `path`, None where it does not."""
    image = json.loads(path.read_text("utf-8"))["image"]
    # A thread without a mark, of which no log was read then, is read from the start again.
    read = min(scn for _, scn in image["watermarks"])
    ledger = read_ledger(connection, subscription)
    starts = read_starts(connection, truth, subscription, ledger)
    for one in truth.followed:
        passed = one.commit_scn < read or one.commit_scn <= image["commit_scn"]
        if passed and not is_durable(one, ledger, starts):
            return f"{path.name} passes transaction {one.identity}, which is not durable"
    return None


def check_checkpoint(
    connection: Connection, truth: Truth, subscription: str, data: Any, foreign: str
) -> None:
    """Law 2 for the file as it is.

    Args:
        foreign: who may confirm what the target does not have.

    Raises:
        LawBrokenError: it does not hold.
    """
    path = data / "checkpoint.json"
    if not path.exists():
        return
    saved = json.loads(path.read_text("utf-8"))
    if saved["confirmed_by"] == foreign:
        return
    scn = saved["min_start_scn"]
    broken = broken_by_checkpoint(connection, truth, subscription, scn)
    if broken:
        raise LawBrokenError(broken)


# --- the stream ---


def check_stream(
    recording: Recording,
    truth: Truth,
    order: ByteOrder,
    render_value: ValueRenderer,
    confirmed: set[int],
) -> int:
    """Law 3 for one connection; how many whole transactions it carried.

    Args:
        confirmed: by earlier connections, and then by this one too: the identities of the truth's.

    Raises:
        LawBrokenError: it does not hold.
    """
    stream = _Stream(truth, order, render_value, frozenset(confirmed))
    asked, answers = _asked(recording, order), _answered(recording, order)
    for request, answer in zip(asked, answers, strict=False):
        stream.take(request, answer)
    for request in asked[len(answers) :]:
        # It may have been heard by a server that could not answer any more.
        stream.hear(request)
    confirmed.update(stream.confirmed)
    return stream.whole


def _asked(recording: Recording, order: ByteOrder) -> list[Request]:
    """The requests that are answered; what a fault swallowed was not forwarded or recorded."""
    requests = (decode_request(message[FRAME:], order) for message in recording.requests)
    return [request for request in requests if not isinstance(request, LogOff)]


def _answered(recording: Recording, order: ByteOrder) -> list[Answer]:
    return [decode_answer(message[FRAME:], order) for message in recording.answers]


class _Stream:
    """Follows one connection."""

    def __init__(
        self,
        truth: Truth,
        order: ByteOrder,
        render_value: ValueRenderer,
        before: frozenset[int],
    ) -> None:
        self._before = before
        self._truth = truth
        self._order = order
        self._render_value = render_value
        self._wanted: list[SourceTransaction] = []
        self._next = 0
        self._confirmed = 0
        self._elements: list[Element] = []
        self.whole = 0

    def take(self, request: Request, answer: Answer) -> None:
        if isinstance(request, StartScn) and isinstance(answer, Ok):
            scn = request.scn
            self._wanted = [one for one in self._truth.transactions if one.begin_scn >= scn]
        self.hear(request)
        if isinstance(request, BackToScn):
            self._elements = []
            while (
                self._next > self._confirmed
                and self._wanted[self._next - 1].commit_scn > request.scn
            ):
                self._next -= 1
        if isinstance(answer, Data):
            self._element(decode_element(answer.element, self._order))

    def hear(self, request: Request) -> None:
        """What a request does whether or not its answer comes."""
        if isinstance(request, LastCommitedScn):
            self._confirm(request.scn)

    @property
    def confirmed(self) -> set[int]:
        """What this connection confirmed."""
        return {id(one) for one in self._wanted[: self._confirmed]}

    def _confirm(self, scn: int) -> None:
        while self._confirmed < self._next and self._wanted[self._confirmed].commit_scn <= scn:
            self._confirmed += 1

    def _element(self, element: Element) -> None:
        if isinstance(element, Begin) != (not self._elements):
            raise LawBrokenError(f"a transaction is not whole: {element}")
        self._elements.append(element)
        if not isinstance(element, Commit):
            return
        lines = b"".join(
            render_line(one, self._render_value) for one in whole_changes(self._elements)
        )
        self._pass_over(lines)
        if self._next >= len(self._wanted):
            raise LawBrokenError(f"nothing should have come any more:\n{lines.decode()}")
        expected = b"".join(self._wanted[self._next].lines)
        if lines != expected:
            raise LawBrokenError(
                f"transaction {self._next} of the connection was sent as\n{lines.decode()}"
                f"but it is\n{expected.decode()}"
            )
        self._elements = []
        self._next += 1
        self.whole += 1

    def _pass_over(self, lines: bytes) -> None:
        """Leave out what was confirmed before and is not what came."""
        end = self._next
        while end < len(self._wanted) and b"".join(self._wanted[end].lines) != lines:
            if id(self._wanted[end]) not in self._before:
                return
            end += 1
        del self._wanted[self._next : end]

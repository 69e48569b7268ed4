"""Tests statements in the target and rolls them back, or runs them.

The trial of a whole schema is divided into several transactions, so that they do not fill
PostgreSQL's lock table. Until a transaction ends, it keeps a lock on each object that it has
created. All sessions share one lock table (``max_locks_per_transaction``). So one transaction
creates only a few hundred objects. The transaction first creates the objects that its statements
need: the tables that they name, with keys and generated columns, and the views that they read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.observability.redaction import mask
from olr_pg.postgres.later_constraints import run_statement
from olr_pg.postgres.sqlstates import (
    is_duplicate,
    is_malformed,
    is_missing,
    is_of_statement,
    is_out_of_memory,
    is_transient,
    plain_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection

    from olr_pg.schema.statement import Statement

PIECE_MAX: Final = 600
"""Maximum number of statements in a transaction, including the statements that create needed
objects.
"""

_QUALIFIED: Final = re.compile(r'"(?:[^"]|"")+"\."(?:[^"]|"")+"')
_MAKERS: Final = frozenset({"sequence", "table", "partition", "view", "materialized view"})
_WITH_TABLE: Final = frozenset({"unique key", "generated column"})


class Piece(NamedTuple):
    """The statements of one transaction of a trial, as indexes in the list of all statements.

    Attributes:
        needed: the statements that create needed objects, in the order of the list.
        tried: the statements that this transaction tests, in the order of the list.
    """

    needed: tuple[int, ...]
    tried: tuple[int, ...]


class Needs:
    """Finds the statements on which each statement of an ordered list depends, by the names in its
    SQL.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        known = dict[str, str]()  # saves memory: table names repeat often
        self._names = [
            tuple(
                known.setdefault(name, name) for name in dict.fromkeys(_QUALIFIED.findall(one.sql))
            )
            for one in statements
        ]
        self._makers: dict[str, int] = {}
        self._parts: dict[str, list[int]] = {}
        for at, one in enumerate(statements):
            names = self._names[at] or tuple(_QUALIFIED.findall(one.present))
            if names and one.kind in _MAKERS:
                self._makers.setdefault(names[0], at)
            elif names and one.kind in _WITH_TABLE:
                self._parts.setdefault(names[0], []).append(at)
        self._schemas = {at for at, one in enumerate(statements) if one.kind == "schema"}
        self._behind: dict[int, frozenset[int]] = {}
        self._sets: dict[frozenset[int], frozenset[int]] = {}

    def pieces(self, most: int = PIECE_MAX) -> Iterator[Piece]:
        """Divide the list into pieces, so that each statement that can run is tested in exactly one
        piece.
        """
        part, held = list[int](), set[int]()
        for at in self._order():
            more = self.behind(at)
            if part and len(held | more) + len(part) >= most:
                yield self.piece(part)
                part, held = [], set()
            part.append(at)
            held |= more
        if part:
            yield self.piece(part)

    def halves(self, piece: Piece) -> list[Piece]:
        """Divide a piece into two pieces, each with the statements that it needs. Return an empty
        list if the piece tests only one statement.
        """
        if len(piece.tried) < 2:
            return []
        middle = len(piece.tried) // 2
        return [self.piece(part) for part in (piece.tried[:middle], piece.tried[middle:])]

    def made_by(self, at: int) -> list[int]:
        """Return the statements that create the objects that a statement names, without the
        statement itself.
        """
        makers = [self._makers[name] for name in self._names[at] if name in self._makers]
        return [maker for maker in makers if maker != at]

    def _order(self) -> list[int]:
        """Return the indexes of the statements that can run, sorted by the last table that each
        needs.
        """
        running = (at for at, one in enumerate(self._statements) if one.runs)
        return sorted(running, key=self._place)

    def _place(self, at: int) -> tuple[int, int]:
        tables = [one for one in (*self.behind(at), at) if self._statements[one].kind == "table"]
        return max(tables, default=0), at

    def behind(self, at: int) -> frozenset[int]:
        """Return all statements that a statement needs directly or indirectly, without the
        statement itself.
        """
        found, todo = set(self._schemas), [at]
        while todo:
            one = todo.pop()
            known = self._behind.get(one)
            if known is not None:
                found |= known
                continue
            more = self._direct(one) - found
            found |= more
            todo += more
        found.discard(at)
        needed = frozenset(found)
        self._behind[at] = self._sets.setdefault(needed, needed)
        return self._behind[at]

    def _direct(self, at: int) -> set[int]:
        found = set(self.made_by(at))
        if self._statements[at].kind not in _WITH_TABLE:
            others = [name for name in self._names[at] if self._makers.get(name) in found]
            found.update(part for name in others for part in self._parts.get(name, ()))
        return found

    def piece(self, part: Sequence[int]) -> Piece:
        """Return a piece that tests these statements."""
        own = set(part)
        needed = set[int]().union(*(self.behind(at) for at in part)) - own
        return Piece(tuple(sorted(needed)), tuple(sorted(part)))


CREATED: Final = "created"
PRESENT: Final = "present"
FAILED: Final = "failed"
LEFT_OUT: Final = "left out"

_LOCK_SECONDS: Final = 3
_STATEMENT_SECONDS: Final = 60
_BATCH: Final = 50


class TrialOutcome(NamedTuple):
    """The result of running a statement.

    Attributes:
        state: `CREATED`, `PRESENT` (the object already existed), `FAILED` or `LEFT_OUT`.
        reason: the reason for `FAILED` or `LEFT_OUT`; otherwise empty.
    """

    statement: Statement
    state: str
    reason: str = ""


def tried(connection: Connection[Any], statements: Sequence[Statement]) -> list[Statement]:
    """Run all statements in transactions that are rolled back. Return the statements. Statements
    that failed are refused: they have the reason.

    Args:
        connection: a connection in autocommit mode.
    """
    statements = _with_roles(connection, statements)
    needs = Needs(statements)
    trial = _Trial(connection, statements, needs)
    waiting = list(needs.pieces())
    while waiting:
        piece = waiting.pop(0)
        try:
            trial.run(piece)
        except psycopg.Error as error:
            if not is_out_of_memory(error):
                raise
            # PostgreSQL's lock table is full, because it is smaller than usual or other sessions
            # hold many locks. Try smaller pieces.
            smaller = needs.halves(piece)
            if not smaller:
                trial.refuse(
                    piece,
                    f"{_said(error)}: increase max_locks_per_transaction, then it can be tried",
                )
            waiting[:0] = smaller
    return trial.judged()


class _Trial:
    """The statements of a trial; those that have failed so far are marked as refused."""

    def __init__(
        self, connection: Connection[Any], statements: Sequence[Statement], needs: Needs
    ) -> None:
        self._connection = connection
        self._statements = list(statements)
        self._needs = needs
        self._roots: dict[int, str] = {}
        self._there = are_present(connection, statements)

    def judged(self) -> list[Statement]:
        return self._statements

    def refuse(self, piece: Piece, reason: str) -> None:
        for at in piece.tried:
            self._statements[at] = self._statements[at].refused(reason)

    def run(self, piece: Piece) -> None:
        """Run the statements of a piece in a transaction that is rolled back. Refuse the statements
        that fail.
        """
        with self._connection.transaction(force_rollback=True):
            self._connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
            self._connection.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
            running = [at for at in sorted((*piece.needed, *piece.tried)) if self._runs(at)]
            for begin in range(0, len(running), _BATCH):
                self._batch(running[begin : begin + _BATCH], {*piece.tried})

    def _runs(self, at: int) -> bool:
        return self._statements[at].runs and not self._there[at]

    def _lacks(self, at: int) -> bool:
        """If a statement needs an object that cannot be created, refuse the statement, and return
        True. The reason names the object that failed first.
        """
        for maker in self._needs.made_by(at):
            one = self._statements[maker]
            if one.runs:
                continue
            root = self._roots.get(maker, one.name)
            self._roots[at] = root
            self._statements[at] = self._statements[at].refused(
                f"the object needs {root}, which is not created"
            )
            return True
        return False

    def _batch(self, batch: Sequence[int], tried_here: set[int]) -> None:
        """Run several statements at once. If one of the statements fails, run them one by one."""
        batch = [at for at in batch if not self._lacks(at)]
        together = ";\n".join(self._statements[at].sql for at in batch)
        try:
            with self._connection.transaction():
                self._connection.execute(together.encode())
        except psycopg.Error as error:
            if _is_of_all(error, self._connection):
                raise
        else:
            for at in tried_here.intersection(batch):
                self._statements[at] = _proved(self._connection, self._statements[at])
            return
        for at in batch:
            judged = self._statements[at] if self._lacks(at) else self._tried(at)
            if at in tried_here:
                self._statements[at] = judged

    def _tried(self, at: int) -> Statement:
        return _try(self._connection, self._statements[at])


def _is_of_all(error: psycopg.Error, connection: Connection[Any]) -> bool:
    return is_out_of_memory(error) or not is_of_statement(error, connection)


def _try(connection: Connection[Any], one: Statement) -> Statement:
    """Run a statement. Return it in the form that this server accepts, or refused if the server
    rejects it.
    """
    try:
        made = one._replace(sql=run_statement(connection, one.sql))
    except psycopg.Error as error:
        if _is_of_all(error, connection):
            raise
        # The error comes from another session, so the server has not rejected the statement itself.
        if is_transient(error) or (is_duplicate(error) and not one.present):
            return one
        return one.refused(_said(error))
    return _proved(connection, made)


def _proved(connection: Connection[Any], one: Statement) -> Statement:
    """Run the query that checks a created object. Return the statement, refused if the query shows
    that the object does not work.
    """
    if not one.trial:
        return one
    try:
        with connection.transaction():
            connection.execute(one.trial.encode())
    except psycopg.Error as error:
        if _is_of_all(error, connection):
            raise
        return one.refused(_said(error)) if is_malformed(error) else one
    return one


def _said(error: psycopg.Error) -> str:
    return f"PostgreSQL: {mask(plain_words(error))}"


def _with_roles(
    connection: Connection[Any], statements: Sequence[Statement]
) -> Sequence[Statement]:
    """Return the statements; refuse grants to roles that the target does not have. One query checks
    all grants, because there can be thousands.
    """
    rows = connection.execute("SELECT rolname FROM pg_roles").fetchall()
    roles = {"", *(name for (name,) in rows)}
    return [
        one if one.role in roles else one.refused(f'PostgreSQL: role "{one.role}" does not exist')
        for one in statements
    ]


def are_present(connection: Connection[Any], statements: Sequence[Statement]) -> list[bool]:
    """Return, for each statement, whether the target already has its object."""
    asked = [at for at, one in enumerate(statements) if one.present]
    found = [False] * len(statements)
    for begin in range(0, len(asked), _BATCH):
        some = asked[begin : begin + _BATCH]
        query = "SELECT " + ", ".join(f"({statements[at].present})" for at in some)
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        for at, answer in zip(some, row, strict=True):
            found[at] = answer is True
    return found


def is_present(connection: Connection[Any], one: Statement) -> bool:
    """Return whether the target already has the statement's object."""
    return are_present(connection, [one])[0]


def run_statements(
    connection: Connection[Any], statements: Iterable[Statement]
) -> list[TrialOutcome]:
    """Run the statements whose objects do not exist yet, each in its own transaction. If one fails,
    the others still run.

    Args:
        connection: a connection in autocommit mode.
    """
    return [_run(connection, one) for one in statements]


def _run(connection: Connection[Any], one: Statement) -> TrialOutcome:
    if not one.runs:
        return TrialOutcome(one, LEFT_OUT, one.reason)
    if is_present(connection, one):
        return TrialOutcome(one, PRESENT)
    try:
        run_statement(connection, one.sql)
    except psycopg.Error as error:
        if not is_of_statement(error, connection):
            raise
        reason = mask(plain_words(error))
        # If the role of a grant does not exist, the grant is left out, not failed.
        lacks_role = one.kind == "grant" and is_missing(error)
        return TrialOutcome(one, LEFT_OUT if lacks_role else FAILED, f"PostgreSQL: {reason}")
    return TrialOutcome(one, CREATED)

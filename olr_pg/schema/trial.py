"""Tests statements in the target and rolls them back, or runs them."""

from __future__ import annotations

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
from olr_pg.schema.trial_pieces import Needs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Connection

    from olr_pg.schema.statement import Statement
    from olr_pg.schema.trial_pieces import Piece

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
    """The state of a trial: the statements, of which those that failed so far are refused."""

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
                f"it needs {root}, which is not created"
            )
            return True
        return False

    def _batch(self, batch: Sequence[int], tried_here: set[int]) -> None:
        """Run several statements at once. If one of them fails, run them one by one."""
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

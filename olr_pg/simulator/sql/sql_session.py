"""A session that executes SQL: its statements, its transaction and its savepoints."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.block_runs import BlockRun, TriggeredRow
from olr_pg.simulator.sql.blocks import is_block, read_block
from olr_pg.simulator.sql.create_table import Words
from olr_pg.simulator.sql.database import StatementRestart
from olr_pg.simulator.sql.definitions import define, is_definition
from olr_pg.simulator.sql.name_scopes import Context
from olr_pg.simulator.sql.parsing import Insert, Query, Statement, parse, tokens_of, word
from olr_pg.simulator.sql.row_changes import Changes
from olr_pg.simulator.sql.row_store import Mark, SqlTransaction
from olr_pg.simulator.sql.statements import Outcome, Plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.sql.blocks import Block
    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.lob_calls import LobChange, Locator
    from olr_pg.simulator.sql.row_store import Check, SqlTable, Trigger, Values
    from olr_pg.simulator.sql.statements import Prepared
    from olr_pg.simulator.sql.typed_values import Value

_BLOCKS_KEPT: Final = 200


class SqlSession:
    """A session.

    Attributes:
        transaction: the open transaction; None if there is none.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self.database = database
        self.sim = database.connect()
        self.sim.chains.rewrites = True
        self.transaction: SqlTransaction | None = None
        self._drawn: dict[str, Value] = {}
        self._plans = Plans(database)
        self._ended = 0
        self._aside: SqlSession | None = None

    def execute(self, text: str, binds: Sequence[Value] = ()) -> Outcome:
        """Execute a statement.

        Raises:
            OraError: the error that Oracle would report; the changes of the statement are undone.
        """
        return self.execute_many(text, [binds])

    def execute_many(self, text: str, rows: Sequence[Sequence[Value]]) -> Outcome:
        """Execute a statement for each row of binds. If one fails, earlier rows stay changed."""
        tokens = tokens_of(text)
        first = word(tokens[0]) if tokens else ""
        with self.database.lock:
            if first in ("COMMIT", "ROLLBACK", "SAVEPOINT"):
                self._control(first, [one.text.upper() for one in tokens if one.text != ";"])
                return Outcome()
            if is_definition(first):
                define(self, text)
                return Outcome()
            if is_block(first):
                self._run_block(text.strip())
                return Outcome()
            statement = parse(text)
            if len(rows) > 1 and isinstance(statement, Insert) and not statement.returning:
                try:
                    return self._statement(statement, rows)
                except OraError:
                    pass  # Repeated row by row, to keep changes before the failing row.
            outcome = Outcome()
            for binds in rows:
                one = self._statement(statement, [binds])
                outcome = Outcome(
                    outcome.count + one.count, one.is_query, one.columns, one.declared,
                    one.rows, [*outcome.returned, *one.returned],
                )  # fmt: skip
            return outcome

    # --- statements ---

    def _statement(self, statement: Statement, rows: Sequence[Sequence[Value]]) -> Outcome:
        """Execute DML or a query; if it fails, all its changes are undone."""
        run = self._plans.of(statement)
        if isinstance(statement, Query) and statement.locking is None:
            return run(self._context(rows[0]), None)
        while True:
            began = self.transaction is None
            transaction = self.transaction = self.transaction or SqlTransaction()
            mark = self._mark()
            try:
                return self._changed(run, rows, transaction)
            except StatementRestart:
                self._take_back(mark)
            except OraError:
                self._take_back(mark)
                if began and not transaction.entries:
                    self._end(committed=False)
                raise

    def _changed(
        self, run: Prepared, rows: Sequence[Sequence[Value]], transaction: SqlTransaction
    ) -> Outcome:
        changes = self._changes(transaction)
        if len(rows) == 1:
            outcome = run(self._context(rows[0]), changes)
            changes.finish()
            return outcome
        changes.gathered = {}
        for binds in rows:
            run(self._context(binds), changes)
        count = changes.insert_gathered()
        changes.finish()
        return Outcome(count)

    def _changes(self, transaction: SqlTransaction) -> Changes:
        return Changes(self.database, self.sim, transaction, self._holds, self._fire)

    def _context(self, binds: Sequence[Value]) -> Context:
        return Context(
            self.transaction, binds, self.database.now(), self.database.owner,
            self._next_value, self._current_value, self.database.current_scn,
        )  # fmt: skip

    def _next_value(self, name: str) -> Value:
        self._drawn[name] = self.database.sequences[name].take()
        return self._drawn[name]

    def _current_value(self, name: str) -> Value:
        if name not in self._drawn:
            raise OraError(8002, f"sequence {name}.CURRVAL is not yet defined in this session")
        return self._drawn[name]

    def _holds(self, table: SqlTable, check: Check, values: Values) -> bool | None:
        condition = self.database.check_condition(table, check)
        found: bool | None = condition([self._context(()), values])
        return found

    # --- PL/SQL ---

    def _run_block(self, text: str) -> None:
        """Run a block; if it fails, its changes since its last COMMIT are undone."""
        block = _block_of(text)
        began, mark, ended = self.transaction is None, self._mark(), self._ended
        try:
            BlockRun(self, text, block).run()
        except OraError:
            if self.transaction is not None:
                self._take_back(mark if ended == self._ended else Mark(0, 0))
                if began and not self.transaction.entries:
                    self._end(committed=False)
            raise

    def _fire(
        self, table: SqlTable, trigger: Trigger, event: str, old: Values | None, new: Values | None
    ) -> Values | None:
        row = TriggeredRow(table, event, old, new)
        BlockRun(self, trigger.text, trigger.block, row=row).run()
        return row.new

    def control(self, text: str) -> None:
        """Execute COMMIT, ROLLBACK or SAVEPOINT of a block."""
        self.execute(text)

    def change_lob(self, locator: Locator, change: LobChange) -> None:
        """Change a part of a LOB for a block."""
        transaction = self.transaction = self.transaction or SqlTransaction()
        mark = self._mark()
        try:
            self._changes(transaction).change_lob(locator, change)
        except OraError:
            self._take_back(mark)
            raise

    def aside(self) -> SqlSession:
        """Return the session that runs autonomous transactions."""
        self._aside = self._aside or SqlSession(self.database)
        return self._aside

    def expect_end(self) -> None:
        """Raise ORA-06519 if the autonomous transaction is still open."""
        if self.transaction is not None and self.transaction.entries:
            raise OraError(6519, "active autonomous transaction detected and rolled back")

    # --- transactions ---

    def _mark(self) -> Mark:
        entries = len(self.transaction.entries) if self.transaction else 0
        return Mark(entries, self.sim.savepoint())

    def _take_back(self, mark: Mark) -> None:
        self.sim.rollback_to(mark.undo)
        if self.transaction is not None:
            self.transaction.take_back(mark.entries)
        self.database.lock.notify_all()

    def _control(self, first: str, words: Sequence[str]) -> None:
        if first == "COMMIT":
            self.commit()
        elif first == "SAVEPOINT":
            self._set_savepoint(words[-1])
        elif "TO" in words:
            self._roll_back_to(words[-1])
        else:
            self.rollback()

    def _set_savepoint(self, name: str) -> None:
        self.transaction = self.transaction or SqlTransaction()
        self.transaction.savepoints.pop(name, None)
        self.transaction.savepoints[name] = self._mark()

    def _roll_back_to(self, name: str) -> None:
        if self.transaction is None or name not in self.transaction.savepoints:
            raise OraError(
                1086, f"savepoint '{name}' never established in this session or is invalid"
            )
        points = self.transaction.savepoints
        if self.transaction.loaded:
            raise OraError(
                3001, "unimplemented feature: the simulator cannot roll back part of a load"
            )
        self._take_back(points[name])
        for later in list(points)[list(points).index(name) + 1 :]:
            del points[later]

    def commit(self) -> None:
        """Commit the transaction."""
        with self.database.lock:
            self._end(committed=True)

    def rollback(self) -> None:
        """Roll back the transaction."""
        with self.database.lock:
            self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        transaction, self.transaction = self.transaction, None
        self._ended += 1
        model = self.sim.transaction
        if committed:
            self.sim.commit()
        else:
            self.sim.rollback()
        scn = self.database.instance.scn
        if model is not None and model.commit_scn:
            scn = model.commit_scn
        if transaction is not None:
            transaction.end(scn if committed else None)
            self.database.lock.notify_all()
            if committed and model is not None:
                self.database.committed()

    def close(self) -> None:
        """End the session, and roll back its open transaction."""
        self.rollback()


@lru_cache(_BLOCKS_KEPT)
def _block_of(text: str) -> Block:
    return read_block(Words(text))

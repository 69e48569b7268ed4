"""A session that executes SQL and PL/SQL blocks: its statements, its transaction and its
savepoints.

A block runs for a session, or for each row of a trigger. In the statements of a block, variables
become binds. A name that is both a variable and a column means the variable. In Oracle, such a name
means the column, so a block must not use one name for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlglot.tokenizer_core import TokenType

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.blocks import (
    LOB_TYPES,
    Assignment,
    Block,
    Call,
    Choice,
    Control,
    Loop,
    Piece,
    SqlStatement,
    Step,
    Variable,
    is_block,
    read_block,
)
from olr_pg.simulator.sql.create_table import Words
from olr_pg.simulator.sql.database import SqlDatabase, StatementRestart
from olr_pg.simulator.sql.definitions import define, is_definition
from olr_pg.simulator.sql.name_scopes import Context
from olr_pg.simulator.sql.parsing import Insert, Query, Statement, parse, tokens_of, word
from olr_pg.simulator.sql.row_changes import LOB_CALLS, Changes, LobChange, Locator
from olr_pg.simulator.sql.row_store import Check, Mark, SqlTable, SqlTransaction, Trigger, Values
from olr_pg.simulator.sql.statements import ROW, Outcome, Plans
from olr_pg.simulator.sql.typed_values import Value, to_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.simulator.sql.statements import Prepared

_PREDICATES: Final = ("INSERTING", "UPDATING", "DELETING")
NO_DATA_FOUND: Final = 1403
RAISED_MIN: Final = -20_999


class Runner(Protocol):
    """The session that runs a block."""

    def execute(self, text: str, binds: Sequence[Value] = ()) -> Outcome:
        """Execute a statement."""

    def control(self, text: str) -> None:
        """Execute COMMIT, ROLLBACK or SAVEPOINT."""

    def change_lob(self, locator: Locator, change: LobChange) -> None:
        """Change a part of a LOB."""

    def aside(self) -> Runner:
        """Return the session that runs autonomous transactions."""

    def expect_end(self) -> None:
        """Raise ORA-06519 if the autonomous transaction is still open."""


@dataclass(slots=True)
class TriggeredRow:
    """The row for which a trigger runs.

    Attributes:
        event: INSERTING, UPDATING or DELETING.
        old, new: the values before and after the change; None if there are none.
    """

    table: SqlTable
    event: str
    old: Values | None
    new: Values | None

    def get(self, name: str) -> Value:
        """Return ``OLD.column`` or ``NEW.column``."""
        values = self.old if name.startswith("OLD.") else self.new
        return None if values is None else values[self._place(name)]

    def set(self, name: str, value: Value) -> None:
        """Set ``NEW.column``."""
        if self.new is None or not name.startswith("NEW."):
            raise OraError(4084, "cannot change NEW values for this trigger type")
        at = self._place(name)
        value = self.table.columns[at].converted(value, self.table.name)
        self.new = (*self.new[:at], value, *self.new[at + 1 :])

    def _place(self, name: str) -> int:
        at = self.table.position(name.partition(".")[2])
        if at is None:
            raise OraError(4076, "invalid NEW or OLD specification")
        return at


class BlockRun:
    """One run of a block.

    Args:
        text: the text of the statement that contains the block.
        outer: the run of the block around it, whose variables it sees.
        row: the row of a trigger.
    """

    def __init__(
        self,
        runner: Runner,
        text: str,
        block: Block,
        outer: BlockRun | None = None,
        row: TriggeredRow | None = None,
    ) -> None:
        self.runner, self._text, self._block = runner, text, block
        self._outer = outer
        self._row: TriggeredRow | None = row or (outer._row if outer else None)
        self._values: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}

    def run(self, arguments: Sequence[Value] = ()) -> None:
        """Run the block.

        Raises:
            OraError: a statement failed, and no handler matches the error.
        """
        block = self._block
        for at, parameter in enumerate(block.parameters):
            self._declare(parameter, arguments[at] if at < len(arguments) else None)
        for variable in block.variables:
            self._declare(variable, self._value(variable.value) if variable.value else None)
        if not block.is_autonomous:
            self._run_body()
            return
        main, self.runner = self.runner, self.runner.aside()
        try:
            self._run_body()
            self.runner.expect_end()
        except OraError:
            self.runner.control("ROLLBACK")
            raise
        finally:
            self.runner = main

    def _run_body(self) -> None:
        if not self._block.handlers:
            self._run(self._block.steps)
            return
        try:
            self._run(self._block.steps)
        except OraError as error:
            for codes, steps in self._block.handlers:
                if None in codes or error.code in codes:
                    self._run(steps)
                    return
            raise

    def _run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Assignment():
                    self._assign(step.name, self._value(step.value))
                case SqlStatement():
                    self._run_sql(step)
                case Control():
                    self.runner.control(self._sql(step.text)[0])
                case Call():
                    self._call(step)
                case Choice():
                    self._choose(step)
                case Loop():
                    self._loop(step)
                case Block():
                    BlockRun(self.runner, self._text, step, self).run()

    # --- variables ---

    def _declare(self, variable: Variable, value: Value) -> None:
        self._values[variable.name] = value
        self._kinds[variable.name] = variable.kind

    def _owner(self, name: str) -> BlockRun | None:
        if name in self._values:
            return self
        return self._outer._owner(name) if self._outer else None

    def _assign(self, name: str, value: Any) -> None:
        if self._row is not None and name.startswith(("NEW.", "OLD.")):
            self._row.set(name, value)
            return
        owner = self._owner(name)
        if owner is None:
            raise OraError(6550, f"PLS-00201: identifier '{name}' must be declared")
        owner._values[name] = value

    # --- SQL ---

    def _sql(self, piece: Piece) -> tuple[str, list[Any]]:
        """Return the text of a statement in which binds replace variables, and the values of the
        binds.
        """
        out, binds, last, at = list[str](), list[Any](), piece[0].start, 0
        while at < len(piece):
            found = self._variable(piece, at)
            if found is None:
                at += 1
                continue
            value, length = found
            out.append(self._text[last : piece[at].start])
            out.append(value if isinstance(value, _Literal) else ":v")
            if not isinstance(value, _Literal):
                binds.append(value.read() if isinstance(value, Locator) else value)
            at += length
            last = piece[at - 1].end + 1
        out.append(self._text[last : piece[-1].end + 1])
        return "".join(out), binds

    def _variable(self, piece: Piece, at: int) -> tuple[Any, int] | None:
        """Return the value of the variable at `at`, and its number of words; None if it is no
        variable.
        """
        token, name = piece[at], word(piece[at])
        follows = [word(one) for one in piece[at + 1 : at + 4]]
        if token.kind is TokenType.COLON and self._row and follows[0] in ("NEW", "OLD"):
            return self._row.get(f"{follows[0]}.{follows[2]}"), 4
        if self._row and name in _PREDICATES:
            return _Literal("1 = 1" if name == self._row.event else "1 = 0"), 1
        is_part = at > 0 and piece[at - 1].kind is TokenType.DOT
        owner = None if is_part or not name else self._owner(name)
        if owner is None:
            return None
        value = owner._values[name]
        if isinstance(value, dict):
            if follows[:1] != ["."] or follows[1] not in value:
                raise OraError(6550, f"PLS-00302: component of '{name}' must be declared")
            return value[follows[1]], 3
        return None if follows[:1] == ["."] else (value, 1)

    def _value(self, piece: Piece) -> Any:
        """Compute an expression."""
        if len(piece) == 1:
            found = self._variable(piece, 0)
            if found is not None and not isinstance(found[0], _Literal):
                return found[0]
        text, binds = self._sql(piece)
        return self.runner.execute(f"SELECT {text} FROM DUAL", binds).rows[0][0]  # noqa: S608

    def _holds(self, piece: Piece) -> bool:
        text, binds = self._sql(piece)
        query = f"SELECT 1 FROM DUAL WHERE {text}"  # noqa: S608
        return bool(self.runner.execute(query, binds).rows)

    def _run_sql(self, step: SqlStatement) -> None:
        text, binds = self._sql(step.text)
        if not step.into:
            self.runner.execute(text, binds)
            return
        leads = [self._is_lob(name) for name in step.into]
        row = f', "{ROW}"' if any(leads) else ""
        if step.returns:
            marks = ", ".join(":o" for _ in range(len(step.into) + any(leads)))
            outcome = self.runner.execute(f"{text}{row} INTO {marks}", [*binds, *step.into, None])
            rows = outcome.returned
        else:
            rest, more = self._sql(step.rest) if step.rest else ("", [])
            rows = self.runner.execute(f"{text}{row} {rest}", [*binds, *more]).rows
            if not rows:
                raise OraError(NO_DATA_FOUND, "no data found")
        if len(rows) > 1:
            raise OraError(1422, "exact fetch returns more than requested number of rows")
        for found in rows:
            self._take(step, found, leads)

    def _take(self, step: SqlStatement, found: Sequence[Any], leads: Sequence[bool]) -> None:
        for at, (name, leads_on) in enumerate(zip(step.into, leads, strict=True)):
            value = found[at]
            if leads_on and value is not None:
                stored = found[-1]
                own = [place for place, one in enumerate(stored.values) if one is value]
                if own:
                    value = Locator(stored, own[0])
            self._assign(name, value)

    def _is_lob(self, name: str) -> bool:
        owner = self._owner(name)
        return owner is not None and owner._kinds.get(name) in LOB_TYPES

    # --- statements of PL/SQL ---

    def _call(self, step: Call) -> None:
        name = step.name
        if name == "RAISE_APPLICATION_ERROR":
            code, text = (self._value(one) for one in step.arguments[:2])
            raise OraError(-max(int(code), RAISED_MIN), str(text))
        if name in LOB_CALLS:
            self._call_lob(step)
            return
        owner = self._procedure(name)
        if owner is None:
            raise OraError(
                6550, f"PLS-00201: identifier '{name}' must be declared, and is unknown here"
            )
        arguments = [self._value(one) for one in step.arguments]
        BlockRun(self.runner, self._text, owner._block.procedures[name], owner).run(arguments)

    def _procedure(self, name: str) -> BlockRun | None:
        if name in self._block.procedures:
            return self
        return self._outer._procedure(name) if self._outer else None

    def _call_lob(self, step: Call) -> None:
        """Run a call of DBMS_LOB, on the LOB of a row or of a variable."""
        lob, *others = [self._value(one) for one in step.arguments]
        if lob is None:
            raise OraError(6502, "PL/SQL: numeric or value error: invalid LOB locator specified")
        values = [one.read() if isinstance(one, Locator) else one for one in others]
        change = LOB_CALLS[step.name](lob.read() if isinstance(lob, Locator) else lob, values)
        if isinstance(lob, Locator):
            self.runner.change_lob(lob, change)
        else:
            self._assign(word(step.arguments[0][0]), change.value)

    def _choose(self, step: Choice) -> None:
        for condition, steps in step.branches:
            if not condition or self._holds(condition):
                self._run(steps)
                return

    def _loop(self, step: Loop) -> None:
        for value in self._turns(step):
            inner = BlockRun(self.runner, self._text, self._block, self)
            inner._values[step.variable] = value
            inner._run(step.steps)

    def _turns(self, step: Loop) -> Iterator[Any]:
        if step.query:
            text, binds = self._sql(step.query)
            outcome = self.runner.execute(text, binds)
            for row in outcome.rows:
                yield dict(zip(outcome.columns, row, strict=True))
            return
        first, last = (int(to_number(self._value(one)) or 0) for one in (step.first, step.last))
        for at in range(first, last + 1):
            yield Decimal(at)


class _Literal(str):
    """Text that is used unchanged in a statement."""

    __slots__ = ()


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

"""A database that takes SQL, for tests: its rows, and what decoding its logs makes of them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.scalars import format_rowid
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.fields.cells import Cell
from olr_pg.simulator.model.lobs import LobCell, LobDraft, content_text
from olr_pg.simulator.model.transactions import ADD_COLUMN, TRUNCATE
from olr_pg.simulator.simulated_files import log_files
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.sql.sql_session import SqlSession
from tests.replicator.decoded_seeds import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.model.transactions import DdlEffect, Transaction
    from olr_pg.simulator.sql.row_store import SqlTable
    from olr_pg.simulator.sql.sql_columns import SqlColumn
    from olr_pg.simulator.sql.typed_values import Value

Rows = dict[str, dict[str, Any]]
"""Rows by ROWID, or by key, with their values as JSON by column."""


class Recorded:
    """A database whose logs are in a folder.

    Attributes:
        at: the rows of every table as each commit left them, by its SCN.
        redefined: the rows of every table behind each DDL, with the SCN below which it is.
        names: those of the start by those of now, behind each DDL.
    """

    def __init__(self, folder: Path, seed: int = 1, shape: DatabaseShape | None = None) -> None:
        self.folder = folder
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.logs: list[Path] = []
        archive = log_files(folder / "logs", self.logs)
        self.database = SqlDatabase(seed, shape or demo_shape(), archive)
        self.session = SqlSession(self.database)
        self.at: dict[int, dict[str, Rows]] = {}
        self.redefined: list[tuple[int, dict[str, Rows]]] = []
        self.names: list[tuple[int, dict[str, str]]] = []

    def run(self, *statements: str) -> int:
        """Carry statements out; how many rows the last one concerned."""
        return [self.session.execute(one).count for one in statements][-1]

    def rows(self, query: str, *binds: Value) -> list[tuple[Any, ...]]:
        return [tuple(map(plain, row)) for row in self.session.execute(query, binds).rows]

    def start(self) -> None:
        """From here on changes are judged."""
        start = self.database.begin_recording()
        write_snapshot(start, str(self.folder / "dictionary.json"))
        for log in self.logs:
            log.unlink()
        self.logs.clear()
        self.followed = dict(self.database.tables)
        self._note_names(start.scn)
        self.first = self._rows_at(start.scn)
        self.database.committed = self._note_commit
        self.database.changed = self._note_definitions

    def _rows_at(self, scn: int) -> dict[str, Rows]:
        """Rows of the tables of the start: another one may have taken a name."""
        return {
            name: rows_at(one, scn)
            for name, one in self.followed.items()
            if one in self.database.tables.values()
        }

    def _note_commit(self) -> None:
        if self.database.instance.committed:  # locks alone are no transaction of it
            scn = self.database.instance.committed[-1].commit_scn
            self.at[scn] = self._rows_at(scn)

    def _note_definitions(self) -> None:
        scn = self.database.instance.scn
        self.redefined.append((scn, self._rows_at(scn)))
        self._note_names(scn)

    def _note_names(self, scn: int) -> None:
        own = {one.name: name for name, one in self.followed.items()
               if one in self.database.tables.values()}  # fmt: skip
        self.names.append((scn, own))

    def _name_at(self, name: str, scn: int) -> str:
        """What a table was called at the start."""
        return next(own for at, own in reversed(self.names) if at <= scn)[name]

    def decode(self) -> list[dict[str, Any]]:
        """What the logs say, once the database is shut down."""
        from olr_pg.replicator.decode_once import decode_logs

        self.database.shut_down()
        source = Source(self.folder, load_snapshot(str(self.folder / "dictionary.json")))
        lines = source.lines(decode_logs(source.snapshot, [log.path for log in source.logs]))
        return [json.loads(line, parse_float=Decimal, parse_int=Decimal)
                for line in lines.splitlines()]  # fmt: skip

    def check_replay(self) -> int:
        """Rows at the start and decoded changes are the rows at each commit; how many commits.

        DDL, which changes rows but has no changes of rows, is carried out: TRUNCATE empties a
        table, an added column has its default, and behind what gives rows other places or columns
        replay begins anew. LOB values that redo does not hold whole are not compared.
        """
        rows = {table: dict(found) for table, found in self.first.items()}
        commits, decoded = 0, self.decode()
        following = [*(int(one["commit_scn"]) for one in decoded[1:]), 0][: len(decoded)]
        committed = self.database.instance.committed
        effects = [(one.commit_scn, effect) for one in committed for effect in one.ddl]
        unread = _Unread(committed)
        for change, next_scn in zip(decoded, following, strict=True):
            scn = int(change["commit_scn"])
            while effects and effects[0][0] < scn:
                self._redefine(rows, *effects.pop(0))
            if change["op"] in ("insert", "update", "delete"):
                name = self._name_at(change["table"].partition(".")[2], scn)
                _carry_out(rows[name], change, self.followed[name])
            elif change["op"] == "commit":
                commits += 1
                if scn != next_scn:  # several commits may have one SCN
                    unread.follow(scn)
                    self._compare(rows, self.at.get(scn), unread, scn)
        for effect in effects:
            self._redefine(rows, *effect)
        scn = self.database.instance.scn
        unread.follow(scn)
        self._compare(rows, self._rows_at(scn), unread, scn)
        return commits

    def _redefine(self, rows: dict[str, Rows], scn: int, effect: DdlEffect) -> None:
        names = [name for name, one in self.followed.items() if one.sim is effect.table]
        if not names or effect.operation == ADD_COLUMN:
            return
        name = names[0]
        if effect.operation == TRUNCATE:
            rows[name].clear()
            return
        found = next(own for at, own in self.redefined if at > scn)
        rows[name] = dict(found.get(name, {}))

    def _compare(
        self, rows: dict[str, Rows], truth: dict[str, Rows] | None, unread: _Unread, scn: int
    ) -> None:
        if truth is None:  # of DDL, or of nothing that SQL sees
            return
        for name, table in self.followed.items():
            if name in truth:
                wanted, defaults = truth[name], _defaults(table)
                own = {
                    key: {one: defaults.get(one) for one in wanted.get(key, ())} | row
                    for key, row in rows[name].items()
                }
                assert unread.without(name, own) == unread.without(name, wanted), (name, scn)


class _Unread:
    """The LOB values that redo does not hold whole, by table, row and column."""

    def __init__(self, committed: Sequence[Transaction]) -> None:
        self._left = [one for one in committed if any(two.table.lobs for two in one.changes)]
        self.places: set[tuple[str, str, str]] = set()

    def follow(self, scn: int) -> None:
        """Take what has committed up to an SCN."""
        while self._left and self._left[0].commit_scn <= scn:
            transaction = self._left.pop(0)
            for change in transaction.changes:
                rowid = format_rowid(change.dataobj, change.dba, change.slot)
                for at, cell in change.after.items():
                    place = (change.table.name, rowid, change.table.columns[at].name)
                    whole = not isinstance(cell, LobCell) or (
                        transaction.lobs.value(cell.stored) is not None
                    )
                    (self.places.discard if whole else self.places.add)(place)

    def without(self, table: str, rows: Rows) -> Rows:
        """Rows without these values."""
        if not self.places:
            return rows
        return {
            key: {name: value for name, value in row.items()
                  if (table, key, name) not in self.places}
            for key, row in rows.items()
        }  # fmt: skip


def _defaults(table: SqlTable) -> dict[str, Any]:
    """What rows have in columns that were added after them."""
    return {
        column.name: None if column.default is None else json.loads(column.default.json)
        for column in table.sim.columns
    }


def _carry_out(own: Rows, change: dict[str, Any], table: SqlTable) -> None:
    def identity(image: dict[str, Any]) -> str:
        if change.get("rowid"):
            return str(change["rowid"])
        key = table.primary_key
        assert key is not None
        return ",".join(
            json.dumps(image[table.columns[at].name], default=str) for at in key.columns
        )

    if change["op"] == "insert":
        found = identity(change["after"])
        assert found not in own, change
        own[found] = change["after"]
        return
    found = identity(change["before"])
    old = own.pop(found)
    for column, value in change["before"].items():
        assert (_defaults(table) | old).get(column) == value, change
    if change["op"] == "update":
        own[identity(old | change["after"])] = old | change["after"]


def rows_at(table: SqlTable, scn: int) -> Rows:
    """The rows at an SCN, as `olr-pg decode` prints values."""
    found: Rows = {}
    for stored, values in table.scan(None, scn):
        image = {
            column.name: _json(column, value)
            for column, value in zip(table.columns, values, strict=True)
            if column.name
        }
        key = table.primary_key
        if table.sim.index_organised and key is not None:
            parts = [image[table.columns[at].name] for at in key.columns]
            found[",".join(json.dumps(one, default=str) for one in parts)] = image
        else:
            found[stored.row.rowid] = image
    return found


def _json(column: SqlColumn, value: Value) -> Any:
    cell = column.cell(value)
    if cell is None:
        return None
    text = cell.json
    if isinstance(cell, LobDraft):
        assert column.storage is not None
        text = content_text(column.storage.kind, cell.content)
    assert isinstance(cell, Cell)
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def plain(value: Any) -> Any:
    """A value as a test writes it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, str):
        return str(value)
    return bytes(value) if isinstance(value, bytes) else value

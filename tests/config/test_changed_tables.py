"""Tables beside `apply.tables`."""

from __future__ import annotations

import errno
import json
import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from olr_pg.config.changed_tables import TableChanges, change_tables, read_table_changes
from olr_pg.config.reading import load_config
from olr_pg.config.table_patterns import TableName, table_list_query
from olr_pg.errors import OlrPgError

A, B, C, ODD = (TableName("S", name) for name in ("A", "B", "C", "it's"))


def test_added_and_removed_and_back() -> None:
    changes = TableChanges().plus([B, ODD]).minus([A])
    assert changes.names([A, C]) == (C, B, ODD)
    assert changes.minus([B]).names([A, C]) == (C, ODD)
    assert changes.plus([A]).names([A, C]) == (A, C, B, ODD)
    assert TableChanges().plus([A]).names([A, C]) == (A, C)
    assert changes.plus([B]) == changes


@pytest.mark.parametrize("end", ["", ";", " ORDER BY 2;\n"])
def test_a_query_gives_the_same_tables(end: str) -> None:
    changes = TableChanges().plus([B, ODD]).minus([A])
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE dual (x)")
        database.execute("INSERT INTO dual VALUES (1)")
        query = changes.query(table_list_query([A, C]) + end)
        found = {TableName(*row) for row in database.execute(query)}
        assert found == {B, C, ODD}
        query = TableChanges((), (C,)).query(table_list_query([A, C]))
        assert database.execute(query).fetchall() == [A]
    database.close()
    assert TableChanges().query("SELECT 1") == "SELECT 1"


def write(folder: Path, **apply: Any) -> Path:
    path = folder / "c.json"
    section = {"connect-string": "embedded", "tables": ["S.A", "S.B"], **apply}
    source = {"kind": "offline", "dictionary": "d", "logs": "l"}
    document = {"source": source, "apply": section, "context": {"data": str(folder)}}
    path.write_text(json.dumps(document))
    return path


def test_whoever_reads_the_configuration_has_them(tmp_path: Path) -> None:
    path = write(tmp_path)
    config = load_config(path)
    change_tables(config.changes_file(), lambda _: TableChanges((C,), (A,)))
    found = load_config(path)
    assert found.apply is not None
    assert found.apply.table_names == (B, C)
    assert found.apply.table_query == table_list_query([B, C])
    assert found.apply.tables == (A, B)  # the file stays as it is
    write(tmp_path, tables="SELECT OWNER, TABLE_NAME FROM ALL_TABLES")
    found = load_config(path)
    assert found.apply is not None
    assert "NOT (OWNER = 'S' AND TABLE_NAME = 'A')" in found.apply.table_query


def test_each_target_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    apply = {"connect-string": "host=x dbname=y", "tables": ["S.A"]}
    targets = [{"name": n, "apply": {**apply, "subscription": n}} for n in ("one", "two")]
    source = {"kind": "offline", "dictionary": "d", "logs": "l"}
    path.write_text(json.dumps({"source": source, "target": targets, "context": {"data": "data"}}))
    one, _ = load_config(path).targets
    one.changes_file().parent.mkdir(parents=True)
    change_tables(one.changes_file(), lambda changes: changes.plus([B]))
    found = [part.apply and part.apply.table_names for part in load_config(path).targets]
    assert found == [(A, B), (A,)]


@pytest.mark.parametrize("text", ["", "[]", '{"added": [1], "removed": []}', '{"added": []}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tables.json"
    path.write_text(text)
    with pytest.raises(OlrPgError) as caught:
        read_table_changes(path)
    assert caught.value.code == 4036
    assert "repeat the `olr-pg tables add`" in caught.value.action


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text('{"version": 99, "added": [], "removed": []}')
    with pytest.raises(OlrPgError) as caught:
        read_table_changes(path)
    assert caught.value.code == 4035


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        change_tables(tmp_path / "none" / "tables.json", lambda changes: changes)
    assert caught.value.code == 8015
    assert "its disk has free space" in caught.value.action


def test_commands_at_the_same_time_change_the_list_one_after_the_other(tmp_path: Path) -> None:
    """Each keeps what the other has changed, also since it has read the configuration."""
    path = tmp_path / "tables.json"
    more = [TableName("S", f"T{number}") for number in range(20)]
    threads = [
        threading.Thread(target=change_tables, args=(path, partial(TableChanges.plus, names=[one])))
        for one in more
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert set(read_table_changes(path).added) == {*more}


def test_another_user_is_told_who_may_read_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", unreadable)
    with pytest.raises(OlrPgError) as caught:
        read_table_changes(tmp_path / "tables.json")
    assert (caught.value.code, caught.value.detail) == (1092, "Permission denied")
    assert caught.value.action.startswith("run the command as the user of the appliance")

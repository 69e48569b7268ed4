"""The record of the dictionary's changes: whole lines only, of one database, not behind a gap."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.dictionary.committed_changes import (
    DictionaryTransaction,
    Statement,
    SysRowChange,
    SysRowOperation,
)
from olr_pg.errors import OlrPgError
from tests.files.durable_writes import recorded
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.scripted_source import SHOP, Reader, ScriptedSource

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot

FIRST = DictionaryTransaction(
    3,
    0x0001_0002_0000_0003,
    90,
    100,
    (1, 15, 7, 16),
    (
        SysRowChange("COL$", SysRowOperation.INSERT, "AAAAACAAAAAAFQ+AAH", {"OBJ#": b"\xc1\x02"}),
        SysRowChange("TAB$", SysRowOperation.UPDATE, "AAAAACAAAAAAFQ+AAD", {"DATAOBJ#": None}),
        SysRowChange("OBJ$", SysRowOperation.DELETE, "AAAAASAAAAAAHdNAAV", {}),
    ),
    (Statement(15, 72726, "SHOP", "A", "ALTER TABLE a ADD (\U0001f600 …)", 95),),
)
SECOND = FIRST._replace(commit_scn=200, position=(1, 15, 9, 16), changes=(), statements=())


def test_what_was_written_is_read_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    writes = recorded(monkeypatch)
    history = DictionaryHistory(path, "DB", 50)
    assert writes.keep(path)
    for transaction in (FIRST, SECOND, FIRST):
        history.add(transaction)
    again = DictionaryHistory(path, "DB", 50)
    assert again.transactions == [FIRST, SECOND]
    again.add(FIRST)
    assert path.read_bytes().count(b"\n") == 3


def test_lines_that_a_killed_run_has_not_synced_are_durable_once_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    DictionaryHistory(path, "DB", 50).add(FIRST)
    writes = recorded(monkeypatch)
    assert DictionaryHistory(path, "DB", 50).transactions == [FIRST]
    assert writes.keep(path)


def test_a_newer_snapshot_needs_only_what_is_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    history = DictionaryHistory(path, "DB", 50)
    history.add(FIRST)
    history.add(SECOND)
    assert DictionaryHistory(path, "DB", 100).transactions == [SECOND]


def test_behind_an_older_snapshot_it_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    DictionaryHistory(path, "DB", 50).add(FIRST)
    older = DictionaryHistory(path, "DB", 49)
    assert older.transactions == []
    older.add(SECOND)
    assert DictionaryHistory(path, "DB", 49).transactions == [SECOND]


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    history = DictionaryHistory(path, "DB", 50)
    history.add(FIRST)
    whole = path.read_bytes()
    history.add(SECOND)
    size = len(path.read_bytes())
    for cut in (1, size - len(whole) - 1):
        path.write_bytes(path.read_bytes()[:size][: size - cut])
        assert DictionaryHistory(path, "DB", 50).transactions == [FIRST]
        assert path.read_bytes() == whole
        DictionaryHistory(path, "DB", 50).add(SECOND)
        assert DictionaryHistory(path, "DB", 50).transactions == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no json\n", "a line is damaged"),
        (b"{}\n", "a line is damaged"),
        (b'{"format":"olr-pg-dictionary-changes/x","database":"DB","snapshot_scn":1}\n', "format"),
        (b'{"format":"olr-pg-dictionary-changes/1","database":"X","snapshot_scn":1}\n', "'X'"),
        (
            b'{"format":"olr-pg-dictionary-changes/1","database":"DB","snapshot_scn":1}\n{}\n',
            "a line is damaged",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(content)
    with pytest.raises(OlrPgError) as caught:
        DictionaryHistory(path, "DB", 50)
    assert caught.value.code == 3075
    assert reason in caught.value.detail


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        DictionaryHistory(tmp_path / "missing" / "h.jsonl", "DB", 50)
    assert caught.value.code == 3075


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "changes.jsonl"
    DictionaryHistory(path, "X/1/1", 5)
    path.write_text(path.read_text().replace("changes/1", "changes/2"))
    with pytest.raises(OlrPgError, match="version 2") as caught:
        DictionaryHistory(path, "X/1/1", 5)
    assert caught.value.code == 4035


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    history = DictionaryHistory(path, "DB", 50)
    history.add(FIRST)
    size = path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, hard))
    try:
        with pytest.raises(OlrPgError) as caught:
            history.add(SECOND)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == 3075
    assert caught.value.action.startswith("free disk space")
    assert path.stat().st_size == size
    history.add(SECOND)
    assert DictionaryHistory(path, "DB", 50).transactions == [FIRST, SECOND]


def test_ddl_that_could_not_be_kept_is_followed_once_it_can(tmp_path: Path) -> None:
    """The disk was full for a while; the client comes back to the same process."""
    made = DdlSource(tmp_path)
    made.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = made.take_snapshot()
    # The statement itself commits apart from what it did to the dictionary.
    dictionary = made.session.ddl.begin(made.tables["A"])
    assert dictionary is not None
    dictionary.update(made.session.rows, "COL$", (made.tables["A"].obj, 2), name="TITLE")
    made.session.commit()
    made.instance.advance_scn()
    made.insert("A", 1, "one")
    made.finish()
    source = ScriptedSource(snapshot)
    source.logs = discover_logs([str(tmp_path / "logs")])
    path = tmp_path / "h.jsonl"
    history = DictionaryHistory(path, "DB", snapshot.scn)

    def follow(known: Snapshot) -> DictionaryFollower:
        follower = DictionaryFollower(known, record=history.add)
        follower.apply(tuple(history.transactions))
        return follower

    aside = path.rename(tmp_path / "aside.jsonl")
    path.mkdir()
    with Reader(source, snapshot.scn, query=SHOP, once=True, follow=follow) as reader:
        reader.drain()
        failure = reader.failure()
        assert failure is not None
        assert failure.code == 3075
        path.rmdir()
        aside.rename(path)
        reader.start_again(snapshot.scn)
        reader.drain()
        assert reader.failure() is None
        assert b"TITLE" in reader.take_messages()
    assert len(DictionaryHistory(path, "DB", snapshot.scn).transactions) == 1

"""Whose session a transaction was of: said once per session and log, found for each of them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo.sessions import SessionAttributes, SessionDirectory, SessionKey
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


def begins(snapshot: Snapshot, logs: str) -> tuple[list[dict[str, Any]], SessionDirectory]:
    sessions = SessionDirectory()
    packed, decoding = (
        PackedLines(snapshot.database, sessions),
        LogDecoding(snapshot, [logs], packed=True),
    )
    lines: list[dict[str, Any]] = []
    for run in decoding.runs(DecodingOptions(sessions=sessions)):
        for piece in packed.pieces(run.blob, decoding.tables):
            lines += [json.loads(line) for line in bytes(piece).splitlines()]
    return [line for line in lines if line["op"] == "begin"], sessions


def test_the_session_of_the_real_transaction(real_log_dir: Path) -> None:
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    (begin,), sessions = begins(snapshot, str(real_log_dir / "*.dbf"))
    assert begin["session"] == {
        "thread": 1,
        "session": 56,
        "serial": 52353,
        "current_user": "SYS",
        "login_user": "OLR_TEST",
        "os_user": "oracle",
        "machine": "5cc32f241b99",
        "process": "498",
        "program": "sqlplus@5cc32f241b99 (TNS V1-V3)",
    }
    found = sessions.find(SessionKey(1, 56, 52353))
    assert found is not None
    assert found.login_user == "OLR_TEST"
    assert sessions.find(SessionKey(2, 56, 52353)) is None


@pytest.mark.parametrize("split_bytes", [1 << 30, 1024])
def test_later_transactions_find_their_session_in_any_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    for number in range(6):
        source.insert("A", number)
    source.threads[0].switch()
    source.insert("A", 7)
    source.finish()
    found, _ = begins(snapshot, str(source.directory / "logs"))
    # The rows of the SYS tables were written before, by a transaction of no interest.
    assert len(found) == 7
    assert {line["session"]["login_user"] for line in found} == {"SHOP"}


@pytest.mark.parametrize("split_bytes", [1 << 30, 1024])
def test_the_redo_thread_and_the_name_of_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    source = DdlSource(tmp_path / "s", followed=False, threads=2)
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    names = ["", "nightly load", "", "zażółć", ""]
    for number, name in enumerate(names):
        # The first of a session has a 5.19, the others a 5.20.
        source.on_thread(1 + number % 2).name_transaction(name)
        source.insert("A", number, thread=1 + number % 2)
        for thread in source.threads:
            thread.flush()
    source.finish()
    found, _ = begins(snapshot, str(source.directory / "logs"))
    assert [line["session"].get("transaction_name", "") for line in found] == names
    assert [line["session"]["thread"] for line in found] == [1, 2, 1, 2, 1]


def test_a_session_that_was_not_announced_has_its_numbers_only() -> None:
    sessions = SessionDirectory()
    assert sessions.find_in_any_thread(1, 2) is None
    sessions.add({SessionKey(1, 1, 2): SessionAttributes(login_user="A")})
    sessions.add({SessionKey(2, 1, 2): SessionAttributes(login_user="B")})
    found = sessions.find_in_any_thread(1, 2)
    assert found is not None
    assert found.login_user == "B"

"""DDL statements beside the changes, as ``olr-pg decode --ddl`` prints them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import JsonLines, render_ddl
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs, is_wanted
from olr_pg.simulator.simulation import simulate
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot

Line = dict[str, Any]


def lines_of(
    snapshot: Snapshot, logs: str, tables: Sequence[str] | None = None, *, ddl: bool = True
) -> list[Line]:
    render, text = JsonLines(snapshot.database), list[bytes]()

    def take(transaction: DictionaryTransaction) -> None:
        text.extend(render_ddl(transaction, partial(is_wanted, tables)))

    for blob in decode_logs(
        snapshot, [logs], tables=tables, options=DecodingOptions(ddl=take if ddl else None)
    ):
        text.append(render.render(blob))
    return [json.loads(line) for line in b"".join(text).splitlines()]


@pytest.mark.parametrize("split_bytes", [1 << 30, 1024])
def test_statements_stand_where_they_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    source.create("B", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, 22)
    source.truncate("A")
    source.insert("B", 3)
    source.comment("B")
    source.finish()
    logs = str(source.directory / "logs")
    found = lines_of(snapshot, logs)
    assert [(line["op"], line.get("command"), line.get("table")) for line in found] == [
        ("begin", None, None), ("insert", None, "SHOP.A"), ("commit", None, None),
        ("ddl", "ALTER TABLE", "SHOP.A"),
        ("begin", None, None), ("insert", None, "SHOP.A"), ("commit", None, None),
        ("ddl", "TRUNCATE TABLE", "SHOP.A"),
        ("begin", None, None), ("insert", None, "SHOP.B"), ("commit", None, None),
        ("ddl", "ALTER TABLE", "SHOP.B"),
    ]  # fmt: skip
    assert found[-1]["text"] == "ALTER TABLE B CACHE"
    assert set(found[-1]) == {"op", "scn", "commit_scn", "xid", "table", "command", "text"}
    scns = [line["commit_scn"] for line in found]
    assert scns == sorted(scns)
    # Without the option the output is what it always was; and one table has its own.
    assert lines_of(snapshot, logs, ddl=False) == [line for line in found if line["op"] != "ddl"]
    of_b = [line["op"] for line in lines_of(snapshot, logs, ["SHOP.B"])]
    assert of_b == ["begin", "insert", "commit", "ddl"]


@pytest.mark.parametrize("seed", range(60, 68))
def test_each_ddl_of_a_random_database_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Logged statements are those of the simulator's DDL; the changes stay byte for byte."""
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=16_384)
    )
    snapshot = simulate(seed, tmp_path, size=200_000).snapshot
    found = lines_of(snapshot, str(tmp_path / "logs"))
    statements = [line for line in found if line["op"] == "ddl"]
    told = [json.loads(line) for line in (tmp_path / "ddl.jsonl").read_text().splitlines()]
    known = {(line["commit_scn"], line["xid"], line["table"]) for line in told}
    ours = [(line["commit_scn"], line["xid"], line["table"]) for line in statements]
    assert len(ours) == len(set(ours))
    assert set(ours) <= known
    if snapshot.sys_rows is not None and statements:
        assert set(ours) == known
    scns = [line["commit_scn"] for line in found]
    assert scns == sorted(scns)
    truth = (tmp_path / "truth.jsonl").read_text().splitlines()
    assert [line for line in found if line["op"] != "ddl"] == [json.loads(line) for line in truth]

"""The way from flushes and sights to latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.bench.online_latency import Committed, Flushed, Seen, commits, latencies

if TYPE_CHECKING:
    from pathlib import Path

FLUSHES = [Flushed(10.0, 101), Flushed(11.0, 103), Flushed(12.0, 110)]
SEEN = [Seen(10.5, 100), Seen(11.25, 102), Seen(12.5, 109)]


def of(table: str, *scns: int) -> list[Committed]:
    return [Committed(scn, frozenset((table,))) for scn in scns]


def test_each_commit_counts_from_the_flush_that_has_it() -> None:
    seen = {"A": SEEN}
    assert latencies(of("A", 100, 102, 105, 109), FLUSHES, seen, 0.0) == [0.25, 0.5, 0.5]
    assert latencies(of("A", 100, 102, 105), FLUSHES, seen, 1.0) == [0.5]
    # What is not seen yet, or not flushed, is not counted.
    assert latencies(of("A", 102, 109, 120), FLUSHES, {"A": SEEN[:2]}, 0.0) == [0.25]
    with pytest.raises(ValueError, match="no commit"):
        latencies(of("A", 120), FLUSHES, seen, 0.0)


def test_a_commit_counts_until_all_its_tables_have_it() -> None:
    seen = {"A": SEEN, "B": [Seen(11.75, 102)]}
    both = Committed(102, frozenset("AB"))
    assert latencies([both], FLUSHES, seen, 0.0) == [0.75]
    assert latencies([both, *of("A", 109)], FLUSHES, seen, 0.0) == [0.5, 0.75]
    with pytest.raises(ValueError, match="no commit"):
        latencies([Committed(102, frozenset("AC"))], FLUSHES, seen, 0.0)


def test_transactions_are_read_with_their_tables(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    truth.write_text(
        '{"op":"begin","commit_scn":7}\n'
        '{"op":"insert","commit_scn":7,"table":"S.A","new":{"X":"\\"table\\":"}}\n'
        '{"op":"delete","commit_scn":7,"table":"S.B"}\n'
        '{"op":"commit","commit_scn":7}\n'
        '{"op":"begin","commit_scn":9}\n{"op":"commit","commit_scn":9}\n'
    )
    assert list(commits(truth)) == [
        Committed(7, frozenset(("S.A", "S.B"))),
        Committed(9, frozenset()),
    ]

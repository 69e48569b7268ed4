"""Two PDBs with equal schemas, tables, object numbers and XIDs, decoded in one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import orjson
import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.split import decode_split, open_split, plan_splits
from olr_pg.dictionary.loader import load_dictionary, load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.sessions.workload import DdlUse, LobUse
from olr_pg.simulator.simulation import simulate
from tests.replicator.decoded_seeds import difference

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

SIZE: Final = 200_000


def twins(folder: Path, seed: int = 3, size: int = SIZE, **shape: Any) -> Snapshot:
    """Write the redo of two PDBs, SIMPDB and OTHERPDB, and the truth of both."""
    of_both = DatabaseShape(
        RedoFormat(COMPATIBLE["19"]), con_id=3, neighbour=True, twins=True, sessions=3, **shape
    )
    simulate(seed, folder, size=size, shape=of_both)
    return load_dictionary(dictionaries(folder))


def dictionaries(folder: Path) -> list[str]:
    return [str(folder / "dictionary.json"), str(folder / "dictionary.OTHERPDB.json")]


def decoded(snapshot: Snapshot, folder: Path) -> bytes:
    lines = JsonLines(snapshot.database)
    return b"".join(map(lines.render, decode_logs(snapshot, [str(folder / "logs")])))


def transactions(lines: bytes) -> list[dict[str, Any]]:
    return [line for line in map(orjson.loads, lines.splitlines()) if line["op"] == "begin"]


@pytest.mark.parametrize(
    ("seed", "shape"),
    [
        (3, {}),
        (4, {"ddl": DdlUse.ANY}),
        (5, {"ddl": DdlUse.ANY, "threads": 2, "lobs": LobUse.WHOLE}),
    ],
)
def test_one_decode_gives_the_truth_of_both(
    tmp_path: Path, seed: int, shape: dict[str, Any]
) -> None:
    both = twins(tmp_path, seed, **shape)
    first, second = both.containers
    assert {one.source_owner for one in first.tables} & {one.source_owner for one in second.tables}
    assert {one.obj for one in first.tables} & {one.obj for one in second.tables}
    truth = (tmp_path / "truth.jsonl").read_bytes()
    xids = Counter(line["xid"] for line in transactions(truth))
    assert max(xids.values()) == 2, "no XID is used by both"
    problem = difference(decoded(both, tmp_path), truth)
    assert problem is None, problem


def test_each_alone_gives_its_own_share(tmp_path: Path) -> None:
    both = twins(tmp_path)
    whole = [orjson.loads(line) for line in decoded(both, tmp_path).splitlines()]
    for path, name in zip(dictionaries(tmp_path), ("SIMPDB", "OTHERPDB"), strict=True):
        alone = [orjson.loads(one) for one in decoded(load_snapshot(path), tmp_path).splitlines()]
        own = [
            {**line, "table": line["table"].removeprefix(f"{name}.")}
            for line in whole
            if line.get("table", "").startswith(f"{name}.")
        ]
        assert own
        assert [line for line in alone if "table" in line] == own


def test_a_decoder_that_ignores_the_container_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = twins(tmp_path)
    truth = (tmp_path / "truth.jsonl").read_bytes()
    # Planted: all tables are looked up as those of the first container.
    blind = replace(
        both,
        members=tuple(
            replace(one, tables=tuple(replace(t, con_id=3) for t in one.tables))
            for one in both.members
        ),
        tables=tuple(replace(one, con_id=3) for one in both.tables),
    )
    try:
        found = decoded(blind, tmp_path)
    except OlrPgError:
        return  # rows of the other container do not even fit the columns
    assert difference(found, truth) is not None


def test_one_pass_reads_each_split_once(tmp_path: Path) -> None:
    both = twins(tmp_path)
    read = list[object]()

    def decode(subscription: Any, splits: Any) -> Any:
        for split in splits:
            read.append((split.path, split.first_block))
            yield decode_split(subscription, open_split(split), split)

    list(decode_logs(both, [str(tmp_path / "logs")], options=DecodingOptions(decode=decode)))
    logs = discover_logs([str(tmp_path / "logs")])
    assert len(read) == sum(len(plan_splits(log)) for log in logs)

"""What is decoded from simulated logs is what the simulator knows to be in them, byte by byte.

``OLR_PG_SEEDS=1000`` decodes as many databases instead of the usual few, ``OLR_PG_SEED_SIZE=4MB``
ones of that size instead of the usual 100 kB. ``python -m tests.sweep`` decodes those of
``olr-pg simulate`` by the hundred, in one process.
"""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from olr_pg.capture.archived_log import ArchivedLog
from olr_pg.cli.bench import parse_size
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import Subscription, open_for_decoding, plan_splits, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.files.sealed import waiting_rows_sealed
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator.decode_once import DecodingOptions, chosen_tables, decode_logs, thread_starts
from olr_pg.simulator.database_shape import DatabaseShape, choose_shape
from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.model.transactions import ADD_COLUMN, PARTITION, RENAME_COLUMN, TRUNCATE
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import DdlUse, LobUse, RandomWorkload
from olr_pg.simulator.simulated_files import prepare_directory
from olr_pg.simulator.simulation import Simulation
from tests.replicator.decoded_seeds import (
    SimulatedSeed,
    Source,
    difference,
    lost_by_more,
    simulated,
)
from tests.split_results import packed_split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.simulator.model.tables import SimTable
    from olr_pg.simulator.sessions.session import SimSession

USUAL_SEEDS: Final = 20
SEEDS: Final = int(os.environ.get("OLR_PG_SEEDS", USUAL_SEEDS))
FOUND: Final = {27: "splits of another thread were lost where a DDL had some decoded again"}
"""Further seeds that found a bug, and which."""

SIZE: Final = parse_size(os.environ.get("OLR_PG_SEED_SIZE", "100KB"))
MEGABYTES: Final = {
    1: "LOB pages at the SCN of a commit were dropped with those of its transaction",
    2: "in splits, finished in parts",
    3: "",
    4: "in splits",
}
"""Seeds of ``olr-pg simulate``, and what they are good for."""

LATER: Final = {1: (1_000_000, 4), 11: (250_000, 3), 18: (400_000, 2)}
"""Seeds of many logs, their size, and how many of the logs are left out."""

RELEASES: Final = ("11.2", "12.1", "12.2", "19", "21", "23")
LEVELS: Final = (*((level,) for level in Logging), tuple(Logging))
SPLIT_SEEDS: Final = (5, 11, 13, 14)
PARTITIONS: Final = 12


def shape_of(seed: int) -> DatabaseShape:
    """Twelve seeds in a row have every release in both byte orders; the rest is drawn."""
    rng = Random(seed)
    drawn = choose_shape(
        seed,
        "random",
        version=COMPATIBLE[RELEASES[seed % len(RELEASES)]],
        big_endian=seed // len(RELEASES) % 2 == 1,
        block_size=rng.choice(BLOCK_SIZES),
        threads=rng.choice((1, 2)),
    )
    return DatabaseShape(
        drawn.redo,
        con_id=drawn.con_id,
        threads=drawn.threads,
        neighbour=drawn.neighbour,
        logging=rng.choice(LEVELS),
        sessions=drawn.sessions + drawn.threads - 1,
        start_scn=drawn.start_scn,
        pace=drawn.pace,
        lobs=drawn.lobs,
        ddl=rng.choice((DdlUse.NONE, DdlUse.ANY, DdlUse.ANY)),
        unproven=rng.random() < 0.3,
    )


def command(test: str, seed: int) -> str:
    file = f"tests/replicator/{Path(__file__).name}"
    return f"OLR_PG_SEEDS={seed + 1} uv run pytest '{file}::{test}[{seed}]'"


def make_source(
    folder: Path, seed: int, workload: str = "random", ddl: DdlUse | None = None
) -> Source:
    shape = shape_of(seed) if workload == "random" else None
    if shape is not None and ddl is not None:
        shape = replace(shape, ddl=ddl)
    return simulated(folder, seed, workload, SIZE, shape, prefilled=seed % 3 == 0)


def check_same(decoded: bytes, truth: bytes, again: str) -> None:
    found = difference(decoded, truth)
    if found is not None:
        pytest.fail(f"{found}\n{again}", pytrace=False)


def test_the_usual_seeds_have_every_release_order_block_size_and_level() -> None:
    shapes = [shape_of(seed) for seed in range(USUAL_SEEDS)]
    assert {(shape.redo.version, shape.redo.big_endian) for shape in shapes} == {
        (COMPATIBLE[release], order) for release in RELEASES for order in (False, True)
    }
    assert {shape.redo.block_size for shape in shapes} == set(BLOCK_SIZES)
    assert {shape.logging for shape in shapes} == set(LEVELS)
    assert {shape.threads for shape in shapes} == {1, 2}
    assert {shape.con_id for shape in shapes} == {0, 3}
    assert {shape.neighbour for shape in shapes} == {False, True}
    assert {shape.ddl for shape in shapes} == {DdlUse.NONE, DdlUse.ANY}
    assert {RedoFormat(shape.redo.version).has_container for shape in shapes} == {False, True}


@pytest.mark.parametrize("seed", sorted({*range(SEEDS), *FOUND}))
def test_decoding_gives_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    source = make_source(tmp_path, seed)
    split_bytes = (1 << 30, 8_192, 20_000)[seed // len(RELEASES) % 3]
    # Where a log is in splits, what is open between them is on disk, and finished in parts.
    storage = SpillFiles(tmp_path / "spill", 0, part_bytes=(1, 700, 4_000)[seed % 3])
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    logs = [str(tmp_path / "logs")]
    with waiting_rows_sealed(are_sealed=bool(seed % 2)):
        decoded = source.lines(
            decode_logs(source.snapshot, logs, options=DecodingOptions(storage=storage))
        )
    again = f"{command('test_decoding_gives_the_truth', seed)}\n{shape_of(seed)}"
    check_same(decoded, source.truth, again)


@pytest.mark.parametrize("seed", MEGABYTES)
def test_decoding_a_megabyte_gives_the_truth(tmp_path: Path, seed: int) -> None:
    chosen = SimulatedSeed(seed, 1_000_000)
    source = chosen.simulated(tmp_path)
    check_same(chosen.decode(source), source.truth, chosen.command)


@pytest.mark.parametrize("seed", LATER)
def test_more_redo_never_gives_less(tmp_path: Path, seed: int) -> None:
    # Who begins later than the dictionary's snapshot must not have missed any DDL.
    size, first_log = LATER[seed]
    chosen = SimulatedSeed(seed, size, ddl=DdlUse.NONE)
    source = chosen.simulated(tmp_path)
    whole = chosen.decode(source)
    check_same(whole, source.truth, chosen.command)
    lost = lost_by_more(whole, chosen.decode(source, first_log))
    assert lost is None, f"{chosen.command}, without {first_log} logs: {lost}"


@pytest.mark.parametrize("seed", range(3))
def test_the_orders_give_the_truth(tmp_path: Path, seed: int) -> None:
    source = make_source(tmp_path, seed, "orders")
    decoded = source.lines(decode_logs(source.snapshot, [str(tmp_path / "logs")]))
    check_same(decoded, source.truth, command("test_the_orders_give_the_truth", seed))


class DdlWorkload(RandomWorkload):
    """Much DDL on tables with LOBs and index-organised ones, and little else beside inserts."""

    def tables(self) -> list[TableSpec]:
        """A table index-organised, one of its partitioned kind, and two with LOBs."""
        wanted: list[tuple[bool, bool | None]] = [(True, False), (True, True), *[(False, None)] * 2]
        found = list[TableSpec]()
        while wanted:
            spec = self._table(len(found))
            has_lobs = any(column.type.lob is not None for column in spec.columns)
            kind = spec.index_organised, spec.partitions > 1 if spec.index_organised else None
            if has_lobs != spec.index_organised and kind in wanted:
                wanted.remove(kind)
                found.append(spec)
        return found

    def step(self, session: SimSession, tables: Sequence[SimTable]) -> None:
        """Every fourth action is DDL, or a commit, without which there is none."""
        draw = self._rng.random()
        if draw < 0.25:
            session.commit()
        elif draw < 0.4:
            self._ddl(session, self._rng.choice(tables))
        else:
            super().step(session, tables)


@pytest.mark.parametrize("seed", range(4))
def test_ddl_on_tables_with_lobs_and_index_organised_ones(tmp_path: Path, seed: int) -> None:
    shape = replace(
        shape_of(seed + 8), lobs=LobUse.WHOLE, ddl=DdlUse.ANY, sessions=2, neighbour=False
    )

    def workload(rng: Random, shape: DatabaseShape, _: int) -> DdlWorkload:
        return DdlWorkload(rng, shape.logging, lobs=shape.lobs, ddl=shape.ddl)

    simulation = Simulation(seed, prepare_directory(tmp_path), shape, workload)
    simulation.run(6 * SIZE)
    simulation.write()
    done = {
        (effect.operation, effect.table.index_organised)
        for transaction in simulation.committed()
        for effect in transaction.ddl
    }
    assert done >= {(PARTITION, True), (ADD_COLUMN, False), (ADD_COLUMN, True)}
    assert {operation for operation, _ in done} >= {ADD_COLUMN, TRUNCATE, PARTITION, RENAME_COLUMN}
    assert (PARTITION, False) not in done
    source = Source(tmp_path, load_snapshot(str(tmp_path / "dictionary.json")))
    decoded = source.lines(decode_logs(source.snapshot, [str(tmp_path / "logs")]))
    check_same(decoded, source.truth, f"seed {seed}: {shape}")


@pytest.fixture(scope="module", params=SPLIT_SEEDS)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Of DDL there is none: the tests here subscribe once, and follow nothing."""
    made = make_source(tmp_path_factory.mktemp("source"), int(request.param), ddl=DdlUse.NONE)
    assert made.truth
    return made


class Piece(NamedTuple):
    """Blocks [first, end) of a log."""

    log: ArchivedLog
    first: int
    end: int


def subscription_of(source: Source) -> Subscription:
    return subscribe(chosen_tables(source.snapshot, None), source.snapshot.database.con_id)


def decode_pieces(
    subscription: Subscription, pieces: Iterable[Piece]
) -> Iterator[bytes | memoryview]:
    """The packed results, as Spark tasks send them."""
    for piece in pieces:
        log = open_for_decoding(piece.log.path)
        yield packed_split(subscription, log, piece.first, piece.end)


def merge(
    source: Source,
    subscription: Subscription,
    logs: Sequence[ArchivedLog],
    results: Iterable[tuple[int, bytes | memoryview]],
    start_scn: int = 0,
) -> bytes:
    merger = Merger(subscription, start_scn, thread_starts(logs))
    blobs = [
        run.blob for thread, packed in results for run in merger.feed(thread, read_result(packed))
    ]
    assert (merger.failure, merger.waiting) == (None, 0)
    return source.lines(blobs)


def random_pieces(rng: Random, log: ArchivedLog) -> list[Piece]:
    """Any cuts between the first block with redo and the end."""
    (whole,) = plan_splits(log)
    inner = range(whole.first_block + 1, whole.end_block)
    cuts = sorted(rng.sample(inner, min(len(inner), rng.choice((0, 1, 2, 5, 12)))))
    bounds = [whole.first_block, *cuts, whole.end_block]
    return [Piece(log, first, end) for first, end in itertools.pairwise(bounds)]


def shuffled_threads(rng: Random, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces of each thread in their order, the threads in any."""
    waiting = {
        thread: [piece for piece in pieces if piece.log.header.thread == thread]
        for thread in sorted({piece.log.header.thread for piece in pieces})
    }
    while left := [queue for queue in waiting.values() if queue]:
        yield rng.choice(left).pop(0)


def test_any_split_gives_the_truth(source: Source) -> None:
    subscription, logs = subscription_of(source), source.logs
    for number in range(PARTITIONS):
        rng = Random(number)
        pieces = [piece for log in logs for piece in random_pieces(rng, log)]
        order = list(shuffled_threads(rng, pieces))
        packed = decode_pieces(subscription, order)
        threads = (piece.log.header.thread for piece in order)
        decoded = merge(source, subscription, logs, zip(threads, packed, strict=True))
        check_same(decoded, source.truth, f"partition {number} of {source.folder}: {order}")


def test_every_block_a_split_of_its_own_gives_the_truth(source: Source) -> None:
    subscription, logs = subscription_of(source), source.logs
    pieces = [
        Piece(log, block, min(block + 1, split.end_block))
        for log in logs
        for split in plan_splits(log)
        # A log without redo is a split without blocks, which tells how far its thread is read.
        for block in range(split.first_block, max(split.first_block + 1, split.end_block))
    ]
    packed = decode_pieces(subscription, pieces)
    threads = (piece.log.header.thread for piece in pieces)
    decoded = merge(source, subscription, logs, zip(threads, packed, strict=True))
    check_same(decoded, source.truth, str(source.folder))


def transactions_of(truth: bytes) -> list[tuple[int, bytes]]:
    """Begin SCN and lines of every transaction."""
    found = list[tuple[int, bytes]]()
    for line in truth.splitlines(keepends=True):
        begins = line.startswith(b'{"op":"begin"')
        if begins:
            found.append((json.loads(line)["scn"], line))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def test_a_restart_delivers_what_began_at_its_scn_or_later(source: Source) -> None:
    """From every begin SCN, with the logs that a restart reads: those that reach it."""
    subscription, logs = subscription_of(source), source.logs
    transactions = transactions_of(source.truth)
    assert len(transactions) > 10
    wholes = [Piece(log, split.first_block, split.end_block)
              for log in logs for split in plan_splits(log)]  # fmt: skip
    packed = list(decode_pieces(subscription, wholes))
    for start in sorted({begin for begin, _ in transactions}):
        kept = [
            (piece.log, result)
            for piece, result in zip(wholes, packed, strict=True)
            if (piece.log.header.next_scn or 0) > start
        ]
        results = ((log.header.thread, result) for log, result in kept)
        decoded = merge(source, subscription, [log for log, _ in kept], results, start)
        expected = b"".join(lines for begin, lines in transactions if begin >= start)
        check_same(decoded, expected, f"from SCN {start}, {source.folder}")

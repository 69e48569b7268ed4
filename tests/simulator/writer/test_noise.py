"""The simulator's redo that is no row change, beside that of the real logs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.simulator.simulation import simulate
from tests.simulator.reader import ParsedLog, ParsedVector, parse_log

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SEEDS: Final = range(40, 64)
SIZE: Final = 60_000
NOISE_LAYERS: Final = (4, 13, 14, 17, 22, 23)
SPACE_LAYERS: Final = (13, 14, 22)
OFTEN: Final = 0.001


@pytest.fixture(scope="module")
def real(shared_dir: Path) -> list[ParsedLog]:
    folder = shared_dir / "real" / "oracle-free-23ai"
    return [parse_log(path.read_bytes()) for path in sorted(folder.glob("*.dbf"))]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> list[list[ParsedLog]]:
    """The logs of each seed."""
    return [
        [
            parse_log(path.read_bytes())
            for path in simulate(seed, tmp_path_factory.mktemp("sim"), size=SIZE).logs
        ]
        for seed in SEEDS
    ]


@pytest.fixture(scope="module")
def simulated(databases: list[list[ParsedLog]]) -> list[ParsedLog]:
    return [log for logs in databases for log in logs]


def vectors(logs: Iterable[ParsedLog]) -> list[ParsedVector]:
    return [vector for log in logs for record in log.records for vector in record.vectors]


def noise(logs: Iterable[ParsedLog]) -> Counter[str]:
    """How often each opcode of the noise stands there."""
    return Counter(vector.opcode for vector in vectors(logs) if vector.layer in NOISE_LAYERS)


def patterns(logs: Iterable[ParsedLog]) -> Counter[tuple[str, ...]]:
    """How often each sequence of opcodes makes up a record."""
    return Counter(
        tuple(vector.opcode for vector in record.vectors) for log in logs for record in log.records
    )


def test_every_opcode_of_the_real_logs_is_there(
    real: list[ParsedLog], simulated: list[ParsedLog]
) -> None:
    counts = Counter(vector.opcode for vector in vectors(real))
    often = {opcode for opcode, count in counts.items() if count > OFTEN * counts.total()}
    assert len(often) > 30
    assert often <= {vector.opcode for vector in vectors(simulated)}


def test_every_record_of_the_real_logs_is_there(
    real: list[ParsedLog], simulated: list[ParsedLog]
) -> None:
    """By its opcodes: alone in a record, or with the same others, those of transactions too."""
    counts = patterns(real)
    often = {pattern for pattern, count in counts.items() if count > OFTEN * counts.total()}
    assert ("5.4", "17.28", "24.4") in often
    assert any(len(pattern) > 1 and pattern[0].startswith("13.") for pattern in often)
    assert often <= set(patterns(simulated))


def test_space_management_looks_like_that_of_the_real_logs(
    real: list[ParsedLog], simulated: list[ParsedLog]
) -> None:
    def shapes(logs: list[ParsedLog]) -> set[tuple[str, int, int, tuple[int, ...]]]:
        return {
            (vector.opcode, vector.cls, vector.typ, tuple(map(len, vector.fields)))
            for vector in vectors(logs)
            if vector.layer in SPACE_LAYERS
        }

    assert shapes(real) == shapes(simulated)


def test_the_shares_are_like_those_of_the_real_logs(
    real: list[ParsedLog], simulated: list[ParsedLog]
) -> None:
    """At most a third of the vectors would have to be others; measured: a fifth."""
    theirs, ours = noise(real), noise(simulated)
    shared = sum(
        min(theirs[opcode] / theirs.total(), ours[opcode] / ours.total()) for opcode in theirs
    )
    assert shared > 2 / 3


def test_lwns_have_mostly_two_records_of_which_the_first_is_void(
    real: list[ParsedLog], simulated: list[ParsedLog]
) -> None:
    for logs in (real, simulated):
        lwns = [lwn for log in logs for lwn in log.lwns]
        ((usual, _),) = Counter(len(lwn.records) for lwn in lwns).most_common(1)
        assert usual == 2
        ((vld, _),) = Counter(
            lwn.records[0].vld for lwn in lwns if len(lwn.records) == usual
        ).most_common(1)
        assert vld == 6


def test_databases_differ(databases: list[list[ParsedLog]], real: list[ParsedLog]) -> None:
    """From those with hardly any noise to those with little else, as the real one."""
    shares = sorted(noise(logs).total() / len(vectors(logs)) for logs in databases)
    assert shares[0] < 0.05
    assert shares[-1] > noise(real).total() / len(vectors(real)) - 0.2

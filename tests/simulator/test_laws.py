from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import BLOCK_SIZES, COMPATIBLE, RedoFormat
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.simulation import simulate
from tests.simulator.laws import LOG_LAWS, broken_laws
from tests.simulator.reader import ParsedLog, parse_log
from tests.simulator.relayout import laid_out_again

if TYPE_CHECKING:
    from pathlib import Path


def read_threads(summary: Summary) -> dict[int, list[ParsedLog]]:
    threads = dict[int, list[ParsedLog]]()
    for path in summary.logs:
        log = parse_log(path.read_bytes())
        threads.setdefault(log.header.thread, []).append(log)
    return threads


def assert_lawful(summary: Summary) -> None:
    for path in summary.logs:
        ours, written = laid_out_again(path.read_bytes())
        assert (ours == written).all()
    threads = read_threads(summary)
    assert broken_laws(log for logs in threads.values() for log in logs) == []
    for logs in threads.values():
        for own, following in itertools.pairwise(log.header for log in logs):
            assert following.sequence == own.sequence + 1
            assert following.first_scn == own.next_scn


def test_the_laws_hold_in_the_real_logs(shared_dir: Path) -> None:
    folder = shared_dir / "real" / "oracle-free-23ai"
    logs = [parse_log(path.read_bytes()) for path in sorted(folder.glob("*.dbf"))]
    assert len(logs) == 2
    assert broken_laws(logs, log_laws=LOG_LAWS) == []


@pytest.mark.parametrize("seed", range(8))
def test_the_laws_hold_in_simulated_logs(tmp_path: Path, seed: int) -> None:
    assert_lawful(simulate(seed, tmp_path, size=60_000))


@given(
    seed=st.integers(0, 2**32),
    version=st.sampled_from(sorted(COMPATIBLE.values())),
    big_endian=st.booleans(),
    block_size=st.sampled_from(BLOCK_SIZES),
    in_pdb=st.booleans(),
    threads=st.integers(1, 2),
    logging=st.sampled_from(Logging),
)
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a shape says enough unshrunk
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_the_laws_hold_in_every_shape(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    version: int,
    big_endian: bool,
    block_size: int,
    in_pdb: bool,
    threads: int,
    logging: Logging,
) -> None:
    redo = RedoFormat(version, big_endian, block_size)
    con_id = 3 if in_pdb and redo.has_container else 0
    shape = DatabaseShape(
        redo, con_id=con_id, threads=threads, neighbour=con_id > 0, logging=(logging,)
    )
    assert_lawful(simulate(seed, tmp_path_factory.mktemp("sim"), size=40_000, shape=shape))


def test_a_broken_file_breaks_a_law(tmp_path: Path) -> None:
    summary = simulate(5, tmp_path, size=60_000)
    data = bytearray(summary.logs[0].read_bytes())
    (_, logs), *_ = read_threads(summary).items()
    record = next(r for r in logs[0].records if any(v.opcode == "5.1" for v in r.vectors))
    vector = next(v for v in record.vectors if v.opcode == "5.1")
    at = data.index(vector.fields[0][:8])
    data[at] ^= 4  # siz
    found = broken_laws([parse_log(bytes(data))])
    assert any("checksum" in fault for fault in found)
    assert any("siz" in fault for fault in found)

"""Copies of online logs, taken at any instant, are decoded to a beginning of the truth."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.capture.logs import discover_logs
from olr_pg.capture.online_copies import is_overwritten, open_current
from olr_pg.replicator.decode_once import decode_logs
from tests.online_source import OnlineGroups, SmallLogs, small_logs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallLogs:
    return small_logs(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def truth(made: SmallLogs) -> bytes:
    return decoded(made, made.folder / "logs")


def decoded(made: SmallLogs, *places: Path) -> bytes:
    return b"".join(map(bytes, decode_logs(made.snapshot, [str(place) for place in places])))


@given(
    switches=st.integers(1, 5),
    blocks=st.integers(0, 80),
    archived=st.integers(0, 5),
    torn=st.booleans(),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_copies_decode_to_a_beginning_of_the_truth(
    tmp_path_factory: pytest.TempPathFactory,
    made: SmallLogs,
    truth: bytes,
    switches: int,
    blocks: int,
    archived: int,
    torn: bool,
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    archive = folder / "archive"
    archive.mkdir()
    groups = OnlineGroups(folder / "groups", made.logs)
    for _ in range(switches):
        groups.switch()
    groups.current.write(blocks)
    if torn:
        groups.current.put(groups.current.written, b"\1\x22" + bytes(300))
    for log in made.logs[: max(switches - 3, min(archived, switches - 1))]:
        shutil.copy(log.path, archive)
    for group in groups.groups[switches:]:
        group.path.unlink()  # never written
    got = decoded(made, archive, groups.folder)
    assert truth.startswith(got)
    if switches == 5 and blocks == 80:
        assert got


def test_of_two_copies_the_longer_one_counts(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    groups.switch().write(4)
    shutil.copy(groups.current.path, tmp_path / "early.log")
    groups.current.write()
    places = [str(tmp_path / "early.log"), str(groups.current.path)]
    (log,) = discover_logs(places, online=True)
    assert log.path == places[1]
    (log,) = discover_logs([*places, made.logs[1].path], online=True)
    assert not log.grows


def test_a_current_log_is_whole_up_to_its_last_group(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    groups.switch()
    assert open_current(str(groups.current.path)).blocks == 2
    groups.current.write()
    log = open_current(str(groups.current.path))
    assert (log.blocks, log.grows) == (made.logs[1].blocks, True)
    assert log.next_scn <= made.logs[1].next_scn


def test_a_closed_log_whose_file_is_used_again_is_left_out(tmp_path: Path, made: SmallLogs) -> None:
    groups = OnlineGroups(tmp_path / "groups", made.logs[1:], 1)
    group = groups.switch()
    group.write()
    group.close()
    (log,) = discover_logs([str(group.path)], online=True)
    assert not is_overwritten(log)
    later = Path(made.logs[3].path).read_bytes()
    group.put(4, later[4 * 512 : 5 * 512])
    assert is_overwritten(log)

"""Online logs as they are written, beside the archived ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from olr_pg.capture import log_tail
from olr_pg.capture.logs import LogScan, discover_logs
from olr_pg.capture.online_file import OnlineFile
from olr_pg.capture.online_logs import COMPARE_SECONDS, MemberWay, OnlineLogs
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from tests.online_source import OnlineGroups, SmallLogs, small_logs

if TYPE_CHECKING:
    from collections.abc import MutableMapping

NOTHING = LogScan((), (), ())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallLogs:
    return small_logs(tmp_path_factory.mktemp("small"))


class Bench:
    """Groups that are written, and a reader of them."""

    def __init__(self, folder: Path, logs: SmallLogs) -> None:
        self.logs = logs.logs[1:]  # the first one has DDL only
        self.groups = OnlineGroups(folder / "groups", self.logs)
        self.now = 0.0
        self.spool = folder / "spool"
        self.online = self.reader()

    def reader(self, verify_seconds: float = 0.0) -> OnlineLogs:
        online = OnlineLogs(self.spool, verify_seconds, lambda: self.now)
        online.use([[str(group.path)] for group in self.groups.groups])
        return online

    def found(self, *archived: int, scn: int = 0) -> list[tuple[int, int, bool]]:
        """(index of the log, blocks, grows) of what there is, with some logs archived."""
        scan = LogScan(tuple(self.logs[n] for n in archived), (), ())
        first = self.logs[0].header.sequence
        return [
            (log.header.sequence - first, log.blocks, log.grows)
            for log in self.online.add_to(scan, scn).logs
            if log.path not in {self.logs[n].path for n in archived}
        ]


@pytest.fixture
def bench(tmp_path: Path, made: SmallLogs) -> Bench:
    return Bench(tmp_path, made)


def test_a_current_log_is_there_as_far_as_its_groups_are_whole(bench: Bench) -> None:
    assert bench.found() == []
    bench.groups.switch()
    assert bench.found() == [(0, FIRST_DATA_BLOCK, True)]
    blocks = bench.logs[0].blocks
    seen = set[int]()
    for written in range(FIRST_DATA_BLOCK, blocks):
        bench.groups.current.write(1)
        ((_, end, grows),) = bench.found()
        assert grows
        assert end <= written + 1
        seen.add(end)
    assert blocks in seen
    assert len(seen) > 4


def test_what_was_read_is_the_log(bench: Bench) -> None:
    bench.groups.switch().write()
    bench.groups.switch()
    whole, _ = bench.online.add_to(NOTHING, 0).logs
    archived = bench.logs[0]
    assert (whole.header.nab, whole.next_scn) == (archived.header.nab, archived.next_scn)
    assert not whole.grows
    size = archived.header.block_size * FIRST_DATA_BLOCK
    ours, its = Path(whole.path).read_bytes(), Path(archived.path).read_bytes()
    assert ours[size : whole.used_bytes] == its[size:]
    (again,) = discover_logs([whole.path])
    assert again.next_scn == archived.next_scn


def test_a_poll_has_news_only_where_something_was_written(bench: Bench) -> None:
    bench.groups.switch().write(3)
    bench.found()
    assert not bench.online.poll()
    bench.groups.current.write()
    assert bench.online.poll()
    assert not bench.online.poll()
    bench.groups.switch()
    assert bench.online.poll()


@pytest.mark.parametrize("verify_seconds", [0.0, 1.0])
def test_everything_that_was_written_is_read_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, verify_seconds: float
) -> None:
    """A reader that takes one piece per look falls behind a source that writes faster."""
    bench.online = bench.reader(verify_seconds)
    group = bench.groups.switch()
    monkeypatch.setattr(log_tail, "FIRST_BYTES", 2 * group.block_size)
    group.write()
    bench.found()
    bench.now = verify_seconds
    assert bench.online.poll() == bool(verify_seconds)
    assert bench.found() == [(0, bench.logs[0].blocks, True)]


def test_a_switch_ends_a_log_and_the_next_one_is_behind_it(bench: Bench) -> None:
    for _ in range(3):
        bench.groups.switch().write(8)
    found = bench.found()
    assert [index for index, _, _ in found] == [0, 1, 2]
    assert [grows for _, _, grows in found] == [False, False, True]


def test_a_group_that_is_used_again_does_not_show_what_was_in_it(bench: Bench) -> None:
    for _ in range(4):
        bench.groups.switch().write()
    bench.groups.switch()
    (last,) = [one for one in bench.found(0, 1, 2, 3) if one[0] == 4]
    assert last == (4, FIRST_DATA_BLOCK, True)


def test_archived_logs_come_first_and_what_is_archived_is_not_read(bench: Bench) -> None:
    bench.groups.switch().write()
    bench.groups.switch().write(5)
    assert [index for index, _, _ in bench.found(0)] == [1]
    assert len(list(bench.spool.iterdir())) == 1


def test_a_log_that_was_overwritten_before_it_was_read_is_not_there(bench: Bench) -> None:
    bench.groups.switch().write(6)
    assert bench.found() == [(0, 8, True)] or bench.found()[0][2]
    for _ in range(3):
        bench.groups.switch().write(4)
    assert [index for index, _, _ in bench.found()] == [1, 2, 3]
    assert [index for index, _, _ in bench.found(0)] == [1, 2, 3]


def test_a_log_that_is_not_whole_is_not_there_where_a_later_one_is_archived(bench: Bench) -> None:
    bench.groups.switch().write(6)
    assert bench.found()
    assert bench.found(1) == []


def test_behind_a_log_whose_end_is_not_there_nothing_is(bench: Bench) -> None:
    group = bench.groups.switch()
    group.write()
    size = group.block_size
    data = group.path.read_bytes()
    bench.groups.switch().write()
    end = bench.logs[0].blocks - 1
    group.put(end, bytes(size))
    assert [index for index, _, _ in bench.found()] == [0]
    (problem,) = bench.online.add_to(NOTHING, 0).unusable
    assert problem.code == 2250
    group.put(end, data[end * size : (end + 1) * size])
    assert [index for index, _, _ in bench.found()] == [0, 1]
    assert bench.online.add_to(NOTHING, 0).unusable == ()


def test_a_torn_header_is_read_the_next_time(bench: Bench) -> None:
    group = bench.groups.switch()
    group.write(5)
    before = bench.found()
    group.put(1, b"\1\2\3")
    assert bench.found() == before
    bench.groups.switch()
    assert len(bench.found()) == 2


def test_the_first_member_that_can_be_read_is_read(bench: Bench, tmp_path: Path) -> None:
    bench.groups.switch().write()
    path = bench.groups.groups[0].path
    other = tmp_path / "other.log"
    shutil.copy(path, other)
    bench.online.use([[str(tmp_path / "missing.log"), str(other)]])
    assert [index for index, _, _ in bench.found()] == [0]
    bench.online.use([[str(tmp_path / "missing.log")]])
    (problem,) = bench.online.add_to(NOTHING, 0).unusable
    assert problem.code == 2002


def test_a_file_that_was_replaced_is_opened_again(bench: Bench, tmp_path: Path) -> None:
    group = bench.groups.switch()
    group.write(5)
    bench.found()
    new = tmp_path / "new"
    shutil.copy(group.path, new)
    new.rename(group.path)
    group.write()
    assert bench.found() == [(0, bench.logs[0].blocks, True)]


def test_what_nobody_wants_any_more_is_removed(bench: Bench) -> None:
    bench.groups.switch().write()
    bench.groups.switch().write(5)
    bench.found()
    assert len(list(bench.spool.iterdir())) == 2
    bench.found(scn=bench.logs[0].next_scn + 1)
    assert len(list(bench.spool.iterdir())) == 1
    bench.online.close()
    assert not list(bench.spool.iterdir())


def test_what_was_read_first_is_read_again(bench: Bench) -> None:
    bench.online = bench.reader(verify_seconds=1.0)
    group = bench.groups.switch()
    group.write()
    assert bench.found() == [(0, FIRST_DATA_BLOCK, True)]
    bench.now = 0.9
    assert not bench.online.poll()
    bench.now = 1.0
    assert bench.online.poll()
    assert bench.found() == [(0, bench.logs[0].blocks, True)]


def test_what_is_different_then_is_not_taken(bench: Bench) -> None:
    bench.online = bench.reader(verify_seconds=1.0)
    group = bench.groups.switch()
    group.write()
    bench.found()
    size = group.block_size
    block = group.path.read_bytes()[3 * size : 4 * size]
    group.put(3, bytes(size))
    bench.now = 1.0
    assert not bench.online.poll()
    group.put(3, block)
    bench.online.poll()
    bench.now = 2.0
    assert bench.online.poll()
    assert bench.found() == [(0, bench.logs[0].blocks, True)]


def test_what_is_in_the_folder_of_an_earlier_run_is_removed(bench: Bench) -> None:
    (bench.spool / "1_1_1.log").write_bytes(b"old")
    bench.reader()
    assert not list(bench.spool.iterdir())


def test_a_member_that_was_given_up_does_not_open_a_closed_log_again(
    bench: Bench, tmp_path: Path
) -> None:
    group = bench.groups.switch()
    group.write(6)
    given_up = tmp_path / "given up.log"
    shutil.copy(group.path, given_up)
    group.write()
    bench.groups.switch()
    bench.online.use([[str(group.path)], [str(given_up)], [str(bench.groups.current.path)]])
    assert bench.found() == [(0, bench.logs[0].blocks, False), (1, FIRST_DATA_BLOCK, True)]


class Members:
    """Two members of the first group, which are looked at as far ones are."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.group = bench.groups.groups[0]
        self.paths = [str(folder / "a.log"), str(folder / "b.log")]
        self.online = OnlineLogs(
            folder / "far", clock=lambda: bench.now, way=MemberWay(look_seconds=0.02)
        )
        self.online.use([self.paths])

    def copy(self, *numbers: int) -> None:
        for number in numbers:
            shutil.copyfile(self.group.path, self.paths[number])

    def blocks(self, seconds: float = 1.0) -> int:
        self.bench.now += seconds
        return max((log.blocks for log in self.online.add_to(NOTHING, 0).logs), default=0)


def _replacements(logs: list[MutableMapping[str, object]]) -> list[tuple[object, object]]:
    return [
        (Path(str(line["member"])).name, line["reason"])
        for line in logs
        if line["event"] == "switching to another member of a group of online logs"
    ]


def test_a_member_that_fails_is_replaced_by_the_next_and_that_is_said_once(
    bench: Bench, tmp_path: Path
) -> None:
    bench.groups.switch().write(8)
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    before = members.blocks()
    assert before > FIRST_DATA_BLOCK
    members.group.write()
    members.copy(1)
    Path(members.paths[0]).unlink()
    with structlog.testing.capture_logs() as logs:
        assert members.blocks() == bench.logs[0].blocks
        for _ in range(3):
            members.blocks()
    assert [name for name, _ in _replacements(logs)] == ["a.log"]
    assert members.online.add_to(NOTHING, 0).unusable == ()


@pytest.mark.parametrize("closed", [False, True], ids=["at work", "closed"])
def test_a_member_that_kept_an_archived_log_is_replaced_by_the_next(
    bench: Bench, tmp_path: Path, *, closed: bool
) -> None:
    """As a copy of its storage does that is not renewed any more."""
    group = bench.groups.switch()
    group.write(8)
    if closed:
        bench.groups.switch()
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    members.blocks()
    bench.groups.switch().write()
    while bench.groups.current is not group:
        bench.groups.switch().write()
    members.copy(1)
    number = len(bench.groups.groups)
    archived = LogScan(tuple(bench.logs[:number]), (), ())
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            bench.now += COMPARE_SECONDS
            last = members.online.add_to(archived, bench.logs[0].next_scn).logs[-1]
    assert (last.header.sequence, last.blocks) == (
        bench.logs[number].header.sequence, bench.logs[number].blocks,
    )  # fmt: skip
    assert [name for name, _ in _replacements(logs)] == ["a.log"]


@pytest.mark.parametrize("content", [b"", b"\0" * 700, b"another file" * 100, None])
def test_a_group_whose_header_cannot_be_read_for_long_is_told_of(
    bench: Bench, content: bytes | None
) -> None:
    group = bench.groups.switch()
    group.write(8)
    before = bench.found()
    bench.now += 1
    good = group.path.read_bytes()
    group.path.write_bytes(good[:600] + b"!" + good[601:] if content is None else content)
    for _ in range(2):  # Oracle may be writing it
        assert bench.online.add_to(NOTHING, 0).unusable == ()
    bench.now += COMPARE_SECONDS
    (problem,) = bench.online.add_to(NOTHING, 0).unusable
    assert problem.code == Code.ONLINE_LOG_NOT_SOUND
    assert problem.where["file"] == str(group.path)
    assert bench.found() == before
    group.path.write_bytes(good)
    group.write()
    assert bench.online.add_to(NOTHING, 0).unusable == ()
    assert bench.found() == [(0, bench.logs[0].blocks, True)]


@pytest.mark.parametrize("how", ["stands still", "is damaged", "has an older log"])
def test_a_member_that_is_behind_is_replaced_by_the_next(
    bench: Bench, tmp_path: Path, how: str
) -> None:
    group = bench.groups.switch()
    group.write(8)
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    before = members.blocks()
    group.write()
    number = 0
    if how == "has an older log":
        for _ in bench.groups.groups:
            bench.groups.switch().write()
        number = len(bench.groups.groups)
    members.copy(1)
    if how == "is damaged":
        members.copy(0)
        size = group.block_size
        with Path(members.paths[0]).open("r+b") as file:
            file.seek((before + 1) * size)
            file.write(bytes(size))
    with structlog.testing.capture_logs() as logs:
        assert members.blocks(COMPARE_SECONDS / 2) == before
        for _ in range(2):
            members.blocks(COMPARE_SECONDS)
    last = members.online.add_to(NOTHING, 0).logs[-1]
    sequence = bench.logs[number].header.sequence
    assert (last.header.sequence, last.blocks) == (sequence, bench.logs[number].blocks)
    assert [name for name, _ in _replacements(logs)] == ["a.log"]


def test_a_way_that_is_broken_replaces_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.groups.switch().write(8)
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    before = members.blocks()
    read = OnlineFile.read

    def broken(self: OnlineFile, offset: int, size: int) -> object:
        raise OlrPgError(Code.LOG_NOT_BROUGHT, "cut", name=self.path)

    members.group.write()
    members.copy(0, 1)
    monkeypatch.setattr(OnlineFile, "read", broken)
    with structlog.testing.capture_logs() as logs:
        assert members.blocks() == before
        (problem,) = members.online.add_to(NOTHING, 0).unusable
        assert problem.code == Code.LOG_NOT_BROUGHT
        monkeypatch.setattr(OnlineFile, "read", read)
        assert members.blocks() == bench.logs[0].blocks
    assert _replacements(logs) == []
    assert members.online.add_to(NOTHING, 0).unusable == ()


def test_members_that_are_far_are_not_looked_at_more_often_than_that_takes(
    bench: Bench, tmp_path: Path
) -> None:
    bench.groups.switch().write(8)
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    before = members.blocks()
    members.group.write()
    members.copy(0, 1)
    bench.now += 0.01
    assert not members.online.poll()
    assert members.blocks(0.0) == before
    bench.now += 0.01
    assert members.online.poll()


def test_new_redo_of_a_far_log_takes_one_read_where_there_was_some_before(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read is a way there and back; where nothing is new, the log's end and its header."""
    bench.groups.switch().write(3)
    members = Members(bench, tmp_path)
    members.copy(0, 1)
    members.blocks()
    read, reads = OnlineFile.read, list[int]()

    def counted(self: OnlineFile, offset: int, size: int) -> object:
        reads.append(offset)
        return read(self, offset, size)

    monkeypatch.setattr(OnlineFile, "read", counted)
    taken = list[int]()
    for written in (3, 3, 0, 0):
        members.group.write(written)
        members.copy(0, 1)
        bench.now += 0.02
        assert members.online.poll() == bool(written)
        taken.append(len(reads))
        reads.clear()
    assert taken == [1, 1, 2, 2]

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from olr_pg.capture.logs import LogPlaces, discover_logs, open_log, scan_logs
from olr_pg.errors import Code, OlrPgError

from .conftest import BLOCK, RealLogs

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import ArchivedLog


def error_of(*specs: str) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        discover_logs(specs)
    return caught.value


def sequences(*specs: str) -> list[int]:
    return [log.header.sequence for log in discover_logs(specs)]


# --- where logs are looked for ---


def test_headers_order_the_logs_whatever_their_names(logs: RealLogs) -> None:
    first, second = logs.put("z.bin", logs.first), logs.put("a", logs.second)

    assert [log.path for log in discover_logs([second, first])] == [first, second]


def test_a_directory_is_searched_with_its_sub_directories(logs: RealLogs) -> None:
    logs.put("2026_03_07/o1_mf_1_16_x_.arc", logs.second)
    logs.put("2026_03_06/o1_mf_1_15_y_.arc", logs.first)

    assert sequences(str(logs.folder)) == [15, 16]


@pytest.mark.parametrize("pattern", ["*.arc", "day?", "**/*.arc", "day[12]"])
def test_globs(logs: RealLogs, pattern: str) -> None:
    logs.put("day1/x.arc", logs.first)
    logs.put("day2/y.arc", logs.second)
    logs.put("top.arc", logs.first)

    assert set(sequences(str(logs.folder / pattern))) <= {15, 16}
    assert 15 in sequences(str(logs.folder / pattern))


def test_a_file_whose_name_looks_like_a_glob(logs: RealLogs) -> None:
    assert sequences(logs.put("log[1].arc", logs.first)) == [15]


def test_thread_and_incarnation_come_before_the_sequence(logs: RealLogs) -> None:
    logs.put("a", logs.first)
    logs.put("b", logs.changed(logs.first, (logs.THREAD, 2), sequence=3))
    logs.put("c", logs.changed(logs.first, (logs.RESETLOGS, 1224959855), sequence=1))
    found = discover_logs([str(logs.folder)])

    assert [log.position[:3] for log in found] == [
        (1224959854, 1, 15),
        (1224959854, 2, 3),
        (1224959855, 1, 1),
    ]


# --- files that are no redo logs ---


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"a text file\n", b"text " * 1000, b"\x1f\x8b" + bytes(600)],
    ids=["empty", "tiny", "short", "text", "gzip"],
)
def test_other_files_beside_the_logs_are_skipped_with_a_warning(
    logs: RealLogs, data: bytes
) -> None:
    logs.put("15", logs.first)
    other = logs.put("README", data)
    with capture_logs() as entries:
        discover_logs([str(logs.folder)])
    scan = scan_logs([str(logs.folder)])

    assert [log.header.sequence for log in scan.logs] == [15]
    assert [file.path for file in scan.skipped] == [other]
    assert scan.unusable == ()
    assert [(entry["log_level"], entry["file"]) for entry in entries] == [("warning", other)]


@pytest.mark.parametrize(
    ("begin", "code"),
    [
        (bytes(BLOCK), 2005),
        (b"\xff" * BLOCK, 2005),
        (b"text " * 102 + b"..", 2005),
        (b"\x5a" * 2 * BLOCK, 2005),
        (b"\x5a" * 15 * BLOCK, 2005),
        (bytes(8192), 2004),
        (b"\x5a" * 8192, 2005),
        (b"\x5a" * 200_000, 2005),
    ],
    ids=[
        *("zeros", "ones", "text", "two blocks", "fifteen blocks", "all zeros", "sixteen blocks"),
        "two thirds",
    ],
)
def test_a_log_without_a_beginning_is_not_skipped(logs: RealLogs, begin: bytes, code: int) -> None:
    """It is the first log, so no gap shows that its changes are missing."""
    logs.put("16", logs.second)
    damaged = logs.put("15", begin + logs.first[len(begin) :])
    scan = scan_logs([str(logs.folder)])

    assert scan.skipped == ()
    assert [log.header.sequence for log in scan.logs] == [16]
    (error,) = scan.unusable
    assert (error.code, error.where["file"]) == (code, damaged)
    assert "move it out of the directory" in error.action
    assert error_of(str(logs.folder)).code == code
    assert error_of(damaged).code == code
    with pytest.raises(OlrPgError) as caught:  # as `decode` looks for logs
        discover_logs([str(logs.folder)], online=True)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "is_like"),
    [
        ("arch1_15_1224959854.dbf", True),
        ("ARCH1_15_1224959854.DBF", True),
        ("redo_15.dbf", True),
        ("README", False),
        ("15.lock", False),
        ("notes.dbf", False),
        ("copied/arch1_16_1224959854.dbf", False),
    ],
)
def test_a_file_that_is_garbage_is_a_log_if_its_name_says_so(
    logs: RealLogs, name: str, is_like: bool
) -> None:
    """A wrong key, a damaged disk or a tool of somebody leaves nothing of a log but its name."""
    logs.put("arch1_16_1224959854.dbf", logs.second)
    garbage = logs.put(name, b"\x5a" * len(logs.first))
    scan = scan_logs([str(logs.folder)])
    assert [file.path for file in scan.skipped] == ([] if is_like else [garbage])
    assert [(e.code, e.where["file"]) for e in scan.unusable] == [(2005, garbage)] * is_like
    assert all("move it out of the directory" in error.action for error in scan.unusable)


def test_logs_without_a_suffix_have_names_with_numbers_in_the_same_places(logs: RealLogs) -> None:
    logs.put("arch_1_16", logs.second)
    garbage = logs.put("arch_1_15", b"\x5a" * 5000)
    other = logs.put("notes_2", b"\x5a" * 5000)
    scan = scan_logs([str(logs.folder)])
    assert [file.path for file in scan.skipped] == [other]
    assert [error.where["file"] for error in scan.unusable] == [garbage]


def test_an_empty_file_that_is_named_like_the_logs_is_not_skipped(logs: RealLogs) -> None:
    """A copy to a full disk leaves such a file."""
    logs.put("one/1_15.arc", logs.first)
    empty = logs.put("one/1_16.ARC", b"")
    others = {logs.put(name, b"") for name in ("one/done.arc", "one/16", "two/1_15.arc")}
    scan = scan_logs([str(logs.folder)])

    assert {file.path for file in scan.skipped} == others
    (error,) = scan.unusable
    assert (error.code, error.where["file"]) == (2004, empty)
    assert error_of(str(logs.folder)).code == 2004


@pytest.mark.parametrize("size", [1024, 4096])
@pytest.mark.parametrize("order", ["little", "big"])
def test_the_blocks_of_a_damaged_log_may_have_any_size(
    logs: RealLogs, size: int, order: Literal["little", "big"]
) -> None:
    block = bytes((1, 0x22 if size < 4096 else 0x82, 0, 0)) + (1).to_bytes(4, order)
    damaged = logs.put("16", b"\x5a" * size + block.ljust(size, b"\1"))
    (error,) = scan_logs([str(logs.folder)]).unusable

    assert (error.code, error.where["file"], error.where["block"]) == (2005, damaged, 0)


def test_hidden_files_are_copies_in_progress_and_not_looked_at(logs: RealLogs) -> None:
    logs.put("15", logs.first)
    logs.put(".arch1_16.dbf.Xa3", logs.second[:700])

    assert sequences(str(logs.folder)) == [15]


@pytest.mark.parametrize("data", [b"x", b"a text file\n", b"text " * 1000])
def test_a_file_given_by_name_must_be_a_log(logs: RealLogs, data: bytes) -> None:
    assert error_of(logs.put("README", data)).code == 2003


def test_an_empty_file_given_by_name_is_truncated(logs: RealLogs) -> None:
    assert error_of(logs.put("x", b"")).code == 2004


def test_a_file_that_does_not_exist(logs: RealLogs) -> None:
    error = error_of(str(logs.folder / "none.dbf"))

    assert (error.code, error.detail) == (2002, "No such file or directory")


def test_no_log_at_all(logs: RealLogs) -> None:
    assert error_of(str(logs.folder), str(logs.folder / "*.arc")).code == 2001
    assert error_of().code == 2001


def test_a_link_that_leads_nowhere_is_no_log(logs: RealLogs) -> None:
    logs.put("15", logs.first)
    (logs.folder / "16").symlink_to(logs.folder / "gone")

    assert sequences(str(logs.folder)) == [15]


# --- logs that cannot be used ---


@pytest.mark.parametrize("size", [32, 100, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 3000, 5119])
def test_a_truncated_log(logs: RealLogs, size: int) -> None:
    logs.put("15", logs.first)
    cut = logs.put("16", logs.second[:size])

    assert error_of(cut).code == 2004
    assert error_of(str(logs.folder)).code == 2004
    assert error_of(cut).where["file"] == cut


def test_a_truncated_log_names_its_place_and_both_sizes(logs: RealLogs) -> None:
    error = error_of(logs.put("x", logs.second[:4096]))

    assert error.detail == "expected 5120 bytes (10 blocks of 512), found 4096"
    assert (error.where["thread"], error.where["sequence"]) == (1, 16)


def test_a_copy_that_has_its_size_but_not_its_end(logs: RealLogs) -> None:
    whole = open_log(logs.put("whole.arc", logs.first))
    half = whole.used_bytes // 2
    error = error_of(logs.put("a.arc", logs.first[:half] + bytes(len(logs.first) - half)))

    assert (error.code, error.where["block"]) == (2004, whole.blocks - 1)


def test_a_copy_whose_middle_is_not_there_yet(logs: RealLogs) -> None:
    """As a tool makes it that copies several parts at the same time."""
    path = Path(logs.put("15", b""))
    begin, size = 32 * 1024, len(logs.first)
    parts = {0: logs.first[:begin], size // 2: logs.first[size // 2 :]}
    with path.open("r+b") as file:
        file.truncate(size)
        for at, part in parts.items():
            file.seek(at)
            file.write(part)
        if os.lseek(file.fileno(), 0, os.SEEK_HOLE) >= size:
            pytest.skip("the file system shows no holes")
    places = LogPlaces([str(logs.folder)])
    (problem,) = places.scan().unusable
    assert (problem.code, problem.detail) == (2004, "a part of the log was never written")
    with path.open("r+b") as file:
        file.write(logs.first)
    assert (len(places.scan().logs), places.scan().unusable) == (1, ())


def test_space_behind_the_last_block_in_use_is_tolerated(logs: RealLogs) -> None:
    log = open_log(logs.put("x", logs.second + bytes(3 * BLOCK)))

    assert (log.size, log.used_bytes, log.blocks, log.next_scn) == (6656, 5120, 10, 2267723)


@pytest.mark.parametrize("field", ["NAB", "NEXT_SCN"])
def test_a_log_copied_while_it_was_written(logs: RealLogs, field: str) -> None:
    offset_and_form: tuple[int, str] = getattr(logs, field)
    open_value = (1 << 32) - 1 if field == "NAB" else (1 << 64) - 1
    logs.put("15", logs.first)
    path = logs.put("16", logs.changed(logs.second, (offset_and_form, open_value)))
    scan = scan_logs([str(logs.folder)])

    assert error_of(path).code == 2008
    assert [log.header.sequence for log in scan.logs] == [15]
    assert [error.code for error in scan.unusable] == [2008]


@pytest.mark.parametrize("offset", [0, 21, 28, BLOCK + 4, BLOCK + 160, BLOCK + 300])
def test_a_flipped_bit_in_the_header_is_found(logs: RealLogs, offset: int) -> None:
    data = bytearray(logs.second)
    data[offset] ^= 4

    assert error_of(logs.put("16", bytes(data))).code in {2003, 2005}


@pytest.mark.parametrize("nab", [0, 1])
def test_a_header_without_itself_in_use_is_corrupt(logs: RealLogs, nab: int) -> None:
    assert error_of(logs.put("x", logs.changed(logs.second, (logs.NAB, nab)))).code == 2005


def test_scns_that_run_backwards_are_corrupt(logs: RealLogs) -> None:
    data = logs.changed(logs.second, (logs.NEXT_SCN, 2267716))

    assert error_of(logs.put("x", data)).code == 2005


@given(
    places=st.lists(
        st.tuples(st.sampled_from([*range(16, 84), *range(156, 304)]), st.integers(0, 255)),
        min_size=1,
        max_size=12,
    )
)
def test_any_header_gives_a_log_or_a_coded_error(
    real_log_dir: Path, tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]]
) -> None:
    logs = RealLogs(tmp_path_factory.getbasetemp(), real_log_dir)
    fields = [((offset, "B"), value) for offset, value in places]
    path = logs.put("mutated", logs.changed(logs.second, *fields))
    try:
        log = open_log(path)
    except OlrPgError as error:
        sound = error.code in {2003, 2004, 2005, 2007, 2008} and error.where["file"] == path
    else:
        sound = log.used_bytes <= log.size and log.header.first_scn <= log.next_scn

    assert sound


# --- the same log more than once ---


def test_the_same_file_by_several_ways_is_one(logs: RealLogs) -> None:
    path = logs.put("15", logs.first)
    (logs.folder / "link").symlink_to(path)
    with capture_logs() as entries:
        found = discover_logs([path, str(logs.folder), path])

    assert len(found) == 1
    assert entries == []


def test_an_identical_copy_is_ignored_with_a_warning(logs: RealLogs) -> None:
    one, two = logs.put("a", logs.first), logs.put("b", logs.first)
    with capture_logs() as entries:
        found = discover_logs([str(logs.folder)])

    assert [log.path for log in found] == [one]
    assert [(entry["first"], entry["second"]) for entry in entries] == [(one, two)]


def test_two_different_logs_for_one_place(logs: RealLogs) -> None:
    changed = bytearray(logs.first)
    changed[50_000] ^= 1
    one, two = logs.put("a", logs.first), logs.put("b", bytes(changed))
    error = error_of(one, two)

    assert (error.code, error.where["sequence"]) == (2012, 15)
    assert error.detail == f"{one} and {two} differ"


def test_logs_of_two_databases_are_not_in_each_others_way(logs: RealLogs) -> None:
    logs.put("a", logs.first)
    logs.put("b", logs.changed(logs.first, (logs.DBID, 42)))

    assert len(discover_logs([str(logs.folder)])) == 2


def test_a_log_that_vanishes_between_listing_and_opening(
    logs: RealLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.put("15", logs.first)
    path = logs.put("16", logs.second)

    def vanish_and_open(found: str) -> ArchivedLog:
        if found == path:
            Path(found).unlink()
        return open_log(found)

    monkeypatch.setattr("olr_pg.capture.logs.open_log", vanish_and_open)
    scan = scan_logs([str(logs.folder)])

    assert [log.header.sequence for log in scan.logs] == [15]
    assert [error.code for error in scan.unusable] == [2002]


def test_a_directory_that_vanishes_after_it_was_found_is_passed_over(
    logs: RealLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an empty day of a fast recovery area does."""
    logs.put("15", logs.first)
    day = logs.folder / "2026_03_06"
    day.mkdir()

    def vanish_and_open(found: str) -> ArchivedLog:
        day.rmdir()
        return open_log(found)

    monkeypatch.setattr("olr_pg.capture.logs.open_log", vanish_and_open)
    scan = scan_logs([str(logs.folder)])
    assert ([log.header.sequence for log in scan.logs], scan.unusable) == ([15], ())


def test_what_cannot_be_examined_keeps_no_other_log_from_being_read(logs: RealLogs) -> None:
    logs.put("15", logs.first)
    (logs.folder / "ring").symlink_to(logs.folder / "ring")
    scan = scan_logs([str(logs.folder)])
    assert [log.header.sequence for log in scan.logs] == [15]
    assert [(one.code, one.where["file"]) for one in scan.unusable] == [
        (2002, str(logs.folder / "ring"))
    ]


@pytest.mark.parametrize("pattern", ["", "*.arc"])
def test_a_place_that_cannot_be_listed_any_more_is_waited_for(logs: RealLogs, pattern: str) -> None:
    logs.put("here/15.arc", logs.first)
    logs.put("there/16.arc", logs.second)
    here, gone = logs.folder / "here", logs.folder / "gone"
    places = LogPlaces([str(here / pattern), str(logs.folder / "there")])
    assert len(places.scan().logs) == 2
    here.rename(gone)
    scan = places.scan()
    assert [log.header.sequence for log in scan.logs] == [16]
    assert [error.code for error in scan.unusable] == [2002]
    gone.rename(here)
    assert (len(places.scan().logs), places.scan().unusable) == (2, ())


def test_a_mount_that_does_not_answer_at_first_is_waited_for(
    logs: RealLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then no other place is read: this one may have a redo thread that nobody knows yet."""
    logs.put("here/15", logs.first)
    logs.put("there/16", logs.second)
    here = logs.folder / "here"
    places, scandir = LogPlaces([str(here), str(logs.folder / "there")]), os.scandir

    def stale(path: str) -> object:
        if path == str(here):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return scandir(path)

    monkeypatch.setattr("olr_pg.capture.logs.os.scandir", stale)
    scan = places.scan()
    assert [(one.code, one.detail) for one in scan.unusable] == [(2002, os.strerror(errno.ESTALE))]
    assert scan.logs == ()
    monkeypatch.setattr("olr_pg.capture.logs.os.scandir", scandir)
    assert (len(places.scan().logs), places.scan().unusable) == (2, ())


@pytest.mark.parametrize("pattern", ["*.arc", "**/*", "[ab]/log"])
def test_a_glob_in_a_directory_that_is_not_there_is_no_empty_one(
    logs: RealLogs, pattern: str
) -> None:
    assert error_of(str(logs.folder / "gone" / pattern)).code == 2002
    assert error_of(str(logs.folder / pattern)).code == 2001


@pytest.mark.parametrize("pattern", ["", "*.arc"])
def test_a_mount_that_is_gone_is_no_empty_directory(
    logs: RealLogs, tmp_path: Path, pattern: str
) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    logs.put("15.arc", logs.first)
    here, bare = tmp_path / "here", Path(tempfile.mkdtemp(dir=memory))
    here.symlink_to(logs.folder)
    places = LogPlaces([str(here / pattern)])
    try:
        assert len(places.scan().logs) == 1
        here.unlink()
        here.symlink_to(bare)
        (problem,) = places.scan().unusable
        assert (problem.code, problem.where["file"]) == (2002, str(here / pattern))
        shutil.copy(logs.folder / "15.arc", bare)
        assert (len(places.scan().logs), places.scan().unusable) == (1, ())
        (bare / "15.arc").unlink()  # it is not needed any more
        assert places.scan().unusable == ()
    finally:
        shutil.rmtree(bare)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read(logs: RealLogs) -> None:
    closed = logs.folder / "closed"
    closed.mkdir(mode=0)
    try:
        assert error_of(str(logs.folder)).code == 2002
    finally:
        shutil.rmtree(closed)


def test_a_file_that_is_replaced_is_looked_at_again(logs: RealLogs) -> None:
    path = logs.put("15", logs.first)
    places = LogPlaces([str(logs.folder)])
    (first,) = places.scan().logs
    assert places.scan().logs == (first,)

    Path(path).unlink()
    logs.put("15", logs.second)
    (second,) = places.scan().logs

    assert second.header.sequence == first.header.sequence + 1


def test_a_second_copy_that_changes_is_compared_again(logs: RealLogs) -> None:
    logs.put("15", logs.first)
    copy = logs.put("15_again", logs.first)
    places = LogPlaces([str(logs.folder)])
    assert len(places.scan().logs) == 1

    changed = bytearray(logs.first)
    changed[50_000] ^= 1
    Path(copy).unlink()
    logs.put("15_again", bytes(changed))
    with pytest.raises(OlrPgError) as caught:
        places.scan()
    assert caught.value.code == 2012


@pytest.mark.parametrize("name", ["0", "z"])
def test_a_part_of_a_log_beside_the_whole_log_is_ignored(logs: RealLogs, name: str) -> None:
    """Whichever of both is looked at first; at every look, and told of once."""
    logs.put("15", logs.first)
    whole = logs.put("16", logs.second)
    logs.put(name, logs.second[:4096])
    places = LogPlaces([str(logs.folder)])
    with capture_logs() as said:
        for _ in range(2):
            scan = places.scan()
            assert scan.unusable == ()
            assert [log.header.sequence for log in scan.logs] == [15, 16]
            assert scan.logs[1].path == whole
    assert [line["event"] for line in said] == [
        "ignoring an incomplete copy of a log: another file contains the complete log"
    ]
    Path(whole).unlink()
    assert [error.code for error in places.scan().unusable] == [Code.LOG_TRUNCATED]

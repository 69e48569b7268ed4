"""Fetches beside the appliance: what waits, what is told, what is tried again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport.log_fetching import LogFetching

if TYPE_CHECKING:
    from pathlib import Path


def listed(thread: int, sequence: int) -> ListedLog:
    return ListedLog(1, thread, sequence, 1, 2, 1, f"{thread}_{sequence}", "")


class Transport:
    """Brings a log when it is let to, or fails."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.fails = False
        self.begun: list[str] = []

    def fetch(self, one: ListedLog, into: Path) -> None:
        self.begun.append(one.name)
        assert self.let.wait(60)
        if self.fails:
            raise OlrPgError(Code.LOG_NOT_BROUGHT, "the line is down")
        into.write_text(one.name)

    def close(self) -> None:
        self.fails = True
        self.let.set()


def code_of(fetching: LogFetching, one: ListedLog, folder: Path) -> Code | None:
    try:
        fetching.fetch(one, folder / one.name)
    except OlrPgError as error:
        return error.code
    return None


def until_over(fetching: LogFetching, one: ListedLog, folder: Path) -> Code | None:
    """What comes of a fetch that is on its way."""
    while (code := code_of(fetching, one, folder)) == Code.LOG_ON_ITS_WAY:
        threading.Event().wait(0.001)
    return code


def check_nothing(_listed: ListedLog, _file: Path) -> None:
    """Any file is a log."""


def test_no_thread_takes_all_places_and_a_failure_is_told_while_it_is_tried_again(
    tmp_path: Path,
) -> None:
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    wanted = [listed(thread, sequence) for thread in (1, 2) for sequence in (5, 6, 7)]
    codes = [code_of(fetching, one, tmp_path) for one in wanted]
    assert codes == [Code.LOG_ON_ITS_WAY] * 6
    transport.fails = True
    transport.let.set()
    assert until_over(fetching, wanted[0], tmp_path) == Code.LOG_NOT_BROUGHT
    assert sorted(transport.begun) == ["1_5", "1_6", "2_5", "2_6"]
    transport.let.clear()
    again = [code_of(fetching, wanted[0], tmp_path) for _ in range(2)]
    assert set(again) == {Code.LOG_ON_ITS_WAY, Code.LOG_NOT_BROUGHT} or set(again) == {
        Code.LOG_NOT_BROUGHT
    }
    transport.fails = False
    transport.let.set()
    while code_of(fetching, wanted[0], tmp_path) is not None:
        threading.Event().wait(0.001)
    assert (tmp_path / "1_5").read_text() == "1_5"
    fetching.close()


def test_what_is_no_whole_log_is_not_gone_on_with(tmp_path: Path) -> None:
    transport = Transport()
    transport.let.set()

    def refuse(_listed: ListedLog, file: Path) -> None:
        assert file.exists()
        raise OlrPgError(Code.BLOCK_CORRUPT, "the checksum is wrong")

    fetching = LogFetching(transport, refuse)
    assert until_over(fetching, listed(1, 5), tmp_path) == Code.BLOCK_CORRUPT
    assert not (tmp_path / "1_5").exists()
    fetching.close()


def test_closing_gives_up_what_is_on_its_way(tmp_path: Path) -> None:
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    assert code_of(fetching, listed(1, 5), tmp_path) == Code.LOG_ON_ITS_WAY
    fetching.close()
    with pytest.raises(RuntimeError):
        fetching.fetch(listed(1, 6), tmp_path / "1_6")


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_and_nobody_asks_for_any_more_takes_no_place(
    tmp_path: Path, fails: bool
) -> None:
    """Its redo was read online meanwhile: two such logs would keep all others from coming."""
    transport = Transport()
    fetching = LogFetching(transport, check_nothing)
    old, wanted = [listed(1, 5), listed(1, 6)], listed(1, 7)
    for one in (*old, wanted):
        assert code_of(fetching, one, tmp_path) == Code.LOG_ON_ITS_WAY
    transport.fails = fails
    fetching.drop_unwanted({wanted.stream_position})
    transport.let.set()
    code: Code | None = Code.LOG_ON_ITS_WAY
    while code == Code.LOG_ON_ITS_WAY:
        fetching.drop_unwanted({wanted.stream_position})
        code = code_of(fetching, wanted, tmp_path)
        threading.Event().wait(0.001)
    assert code == (Code.LOG_NOT_BROUGHT if fails else None)
    fetching.close()
    assert (tmp_path / wanted.name).exists() != fails

"""Logs that a command puts here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psutil
import pytest

from olr_pg.config.source_section import CommandTransport
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport.command_transport import LogCommand

if TYPE_CHECKING:
    from pathlib import Path

LISTED = ListedLog(1, 2, 3, 4, 5, 1, "/arch/1_3.arc", "/arch/1_3.arc")


def command(*words: str, seconds: float = 60.0) -> LogCommand:
    section = {"kind": "command", "command": [*words], "timeout-seconds": seconds}
    return LogCommand(CommandTransport.model_validate(section))


def failure(words: list[str], into: Path, seconds: float = 60.0) -> str:
    with pytest.raises(OlrPgError) as caught:
        command(*words, seconds=seconds).fetch(LISTED, into)
    error = caught.value
    assert error.code == Code.LOG_NOT_BROUGHT
    assert (error.where["name"], error.where["sequence"]) == (LISTED.name, 3)
    return error.detail


def test_its_output_is_the_log_unless_it_names_the_file(tmp_path: Path) -> None:
    into = tmp_path / "log"
    into.write_bytes(b"of a try before")
    command("sh", "-c", "printf '%s %s-%s' {name} {thread} {sequence}").fetch(LISTED, into)
    assert into.read_bytes() == b"/arch/1_3.arc 2-3"
    command("sh", "-c", "echo said; printf there > {file}").fetch(LISTED, into)
    assert into.read_bytes() == b"there"


def test_what_went_wrong_is_told_in_its_words_without_secrets(tmp_path: Path) -> None:
    into = tmp_path / "log"
    told = failure(["sh", "-c", "echo 'asmcmd: no such file password=geheim' >&2; exit 3"], into)
    assert told.startswith("exit code 3: asmcmd: no such file")
    assert "geheim" not in told
    assert "No such file" in failure([str(tmp_path / "nothing")], into)
    assert "without writing log" in failure(["sh", "-c", "true {file}"], into)


@pytest.mark.parametrize("then", ["wait", "exit 0"])
def test_one_that_takes_too_long_is_ended_with_what_it_has_started(
    then: str, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $! > {pids}; {then}"
    for seconds in (1.0, 5.0, 60.0):  # until the machine was quick enough to start it
        assert "had not ended" in failure(["sh", "-c", script], tmp_path / "log", seconds=seconds)
        if pids.is_file() and pids.read_text():
            break
    try:
        started = psutil.Process(int(pids.read_text()))
        # Nobody may have asked for its end.
        assert started.status() == psutil.STATUS_ZOMBIE or started.wait(60) is None
    except psutil.NoSuchProcess:
        return


def test_closing_ends_what_runs_and_begins_nothing_more(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    transport = command("sh", "-c", f"echo > {begun}; exec sleep 600")
    errors: list[OlrPgError] = []

    def fetch() -> None:
        with pytest.raises(OlrPgError) as caught:
            transport.fetch(LISTED, tmp_path / "log")
        errors.append(caught.value)

    thread = threading.Thread(target=fetch)
    thread.start()
    while not begun.exists():
        thread.join(0.01)
        assert thread.is_alive()
    transport.close()
    thread.join(60)
    fetch()
    assert [error.code for error in errors] == [Code.LOG_NOT_BROUGHT] * 2
    assert "the appliance is terminating" in errors[1].detail

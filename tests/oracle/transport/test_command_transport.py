"""Logs that a command puts here."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import json5
import psutil
import pytest

from olr_pg.config.source_section import CommandTransport
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog
from olr_pg.oracle.transport.command_transport import LogCommand, RangeCommand
from olr_pg.oracle.transport.local_copy import LocalCopy

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


def test_what_it_prints_is_stored_nowhere_as_a_whole(tmp_path: Path) -> None:
    into = tmp_path / "log"
    told = failure(["sh", "-c", "yes | head -c 3000000 >&2; echo last >&2; exit 3"], into)
    assert told.startswith("exit code 3: ")
    assert told.endswith("last")
    assert len(told) < 500
    assert "ended by signal 9" in failure(["sh", "-c", "kill -9 $$"], into)
    # A command that prints the whole file, or without an end.
    section = {"kind": "command", "command": ["true"], "range-command": ["yes"]}
    ranges = RangeCommand(CommandTransport.model_validate(section))
    with pytest.raises(OlrPgError, match="more than 512 bytes from offset 1024"):
        ranges.read("log", 1, 1024, 512)


def test_one_that_prints_without_an_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its output is always there before it can be written."""
    monkeypatch.setattr(LocalCopy, "write", lambda *_: time.sleep(0.01))
    told = failure(["sh", "-c", "yes | head -c 30000000"], tmp_path / "log", seconds=0.5)
    assert "0.5 s passed, and the command had not ended" in told


def test_the_commands_of_the_page_read_a_log_of_any_name(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "transport.md").read_text("utf-8")
    named = tmp_path / "$HOME of 'today'; $(touch taken-over) '; exit 1 # {sequence} a log.arc"
    named.write_bytes(bytes(range(256)) * 600)
    lines = re.findall(r'"(command|range-command)": (\["ssh".*\])', page)
    assert [kind for kind, _ in lines] == ["command", "command", "range-command"]
    for kind, text in lines:
        _, _, there = json5.loads(text)
        # What sshd does with it.
        section = {"kind": "command", "command": ["true"], kind: ["sh", "-c", there]}
        transport = CommandTransport.model_validate(section)
        if kind == "command":
            into = tmp_path / "log"
            LogCommand(transport).fetch(LISTED._replace(name=str(named)), into)
            assert into.read_bytes() == named.read_bytes()
        else:
            found = RangeCommand(transport).read(str(named), 1, 70_000, 66_000)
            assert found == named.read_bytes()[70_000:136_000]
            assert (
                RangeCommand(transport).read(str(named), 1, 153_500, 4_096)
                == (named.read_bytes()[153_500:])
            )


@pytest.mark.parametrize("form", ["cat '{name}'", "cat '/{name}'", "cat '/'/'{name}'"])
def test_a_name_ends_no_literal_of_a_shell(tmp_path: Path, form: str) -> None:
    named = tmp_path / "today's $(touch taken-over); exit 1 #'log"
    named.write_bytes(b"redo")
    transport = CommandTransport.model_validate({"kind": "command", "command": ["sh", "-c", form]})
    LogCommand(transport).fetch(LISTED._replace(name=str(named)), tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == b"redo"


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

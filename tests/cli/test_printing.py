"""Progress is for terminals only; tables are whole everywhere."""

from __future__ import annotations

import io
import os
import pty
import sys

import pytest

from olr_pg.cli.printing import (
    byte_progress,
    print_json,
    print_line,
    print_table,
    report_console,
    report_table,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.advised_commands import failure_record, format_failure
from olr_pg.observability.wording import visible
from tests.hostile import TEXTS


def test_nothing_is_shown_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with byte_progress("reading") as advance:
        advance(5, 10)
    assert stream.getvalue() == ""


def read_to_the_end(screen: int) -> str:
    """All that was written to a terminal that nobody holds open any more."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # how Linux says that the other side was closed
            part = b""
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


def test_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with byte_progress("reading") as advance:
            advance(5_000, 10_000)
    shown = read_to_the_end(screen)
    os.close(screen)
    assert "reading" in shown
    assert "5.0/10.0 kB" in shown
    assert capfd.readouterr().out == ""


NAME = "A_SCHEMA_OF_SOMEBODY.A_TABLE_WITH_A_LONG_NAME"


def shown(width: int | None) -> str:
    stream = io.StringIO()
    table = report_table("Table", numbers=("Rows", "Seconds"), title="Loaded")
    table.add_row(NAME, "1,234,567", "1 min 20 s")
    options = {} if width is None else {"width": width, "force_terminal": True}
    print_table(report_console(file=stream, color_system=None, **options), table)
    return stream.getvalue()


def test_a_pipe_cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    (line,) = [line for line in shown(None).splitlines() if NAME in line]
    assert "1 min 20 s" in line


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_a_terminal_cuts_nothing(width: int) -> None:
    text = shown(width)
    assert "…" not in text
    # Numbers stay on one line; a name goes on in the next one.
    assert "1,234,567" in text
    assert "1 min 20 s" in text
    letters = iter(text)
    assert all(letter in letters for letter in NAME)


def test_names_of_tables_are_printed_as_they_are_and_nothing_in_them_is_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = "S.A[/b]", "S.[red]B", "S.:smile:", "S.C\x1b[2J\n\x9b1mD"
    table = report_table("Table")
    for name in names:
        table.add_row(name)
    print_table(report_console(), table)
    report_console().print(names[0])
    print_line(names[3])
    print_json(names[3])
    printed = capsys.readouterr().out
    assert all(name in printed for name in names[:3])
    assert printed.count("S.C\\x1b[2J\\n\\x9b1mD") == 2  # in the table, and as a line
    assert '"S.C\\u001b[2J\\n\x9b1mD"' in printed  # JSON is for programs
    assert "\x1b" not in printed


@pytest.mark.parametrize("hostile", TEXTS.values(), ids=list(TEXTS))
def test_a_name_adds_no_line_and_controls_no_terminal(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_line(f"S.{hostile}: equal")
    error = OlrPgError(Code.TABLE_UNKNOWN, f"no S.{hostile}", action=f"a {hostile}", table=hostile)
    told = format_failure(failure_record(error))
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert told.count("\n") == 2  # what, where, and what to do
    for line in (*shown.splitlines(), *visible(told).splitlines()):
        assert not {"\x1b", "\x9b", "\r", "\u202e", "\u2028", "\x85"} & set(line)

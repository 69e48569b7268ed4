"""Progress is for terminals only."""

from __future__ import annotations

import io
import os
import pty
import sys

import pytest

from olr_pg.cli.printing import byte_progress


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

"""Help as it is read: on a terminal of 80 and 120 columns, of every command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from olr_pg.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON: Final = re.compile(
    r"<\w[\w .\[\]|]*>|\b(?:list|tuple|dict|Optional)\[|\bNone\b|\bTrue\b|\bFalse\b|Path\b(?=\])"
)
"""What only somebody who knows Python would write."""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


ALL: Final = list(commands(get_command(app)))


def help_of(words: tuple[str, ...], columns: int) -> str:
    result = CliRunner().invoke(
        app, [*words, "--help"], prog_name="olr-pg", env={"COLUMNS": str(columns)}
    )
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "olr-pg")
def test_help_of_every_command_is_readable(words: tuple[str, ...]) -> None:
    for columns in (80, 120):
        lines = help_of(words, columns).splitlines()
        text = " ".join(" ".join(line.strip("│ ") for line in lines).split())
        assert PYTHON.findall(text) == []
        assert "…" not in re.sub(r"s3://…", "", text)  # no name is cut
        assert max(map(len, lines)) <= columns
        options = [line for line in lines if re.match(r"│ (\*| )? *--", line)]
        assert options
        # What an option does has room: more than a third of the line.
        rooms = [
            len(line) - line.rindex("  ", 0, line.rstrip("│ ").rindex(" ")) for line in options
        ]
        assert max(rooms) > columns / 3


def test_ranges_and_contraries_are_among_the_words() -> None:
    text = " ".join(help_of(("simulate",), 200).split())
    assert "Number of redo threads, as in RAC; default: 1 (1 to 8)." in text
    assert "switch logs after this time (at least 0.1)." in text
    assert "Byte order of the logs. Default: chosen by the seed. Opposite: --little-endian." in text
    assert "lobs always write it. Disable with --no-truth." in text
    assert "Usage: olr-pg decode [OPTIONS] LOG..." in help_of(("decode",), 80)
    assert "Usage: olr-pg dump [OPTIONS] [LOG...]" in help_of(("dump",), 80)


def test_the_contrary_of_a_switch_is_still_taken() -> None:
    words = ["simulate", "--no-truth", "--little-endian", "--workload", "none", "--seed", "1"]
    result = CliRunner().invoke(app, [*words, "--out", "/dev/null/x"])
    assert "No such option" not in result.output


def test_a_wrong_call_names_arguments_as_the_help_does() -> None:
    result = CliRunner().invoke(app, ["decode"], prog_name="olr-pg", env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert "Usage: olr-pg decode [OPTIONS] LOG..." in result.output
    assert "{" not in result.output

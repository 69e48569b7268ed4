"""The commands on the pages are commands: they exist, and so does each of their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from typer.main import get_command

from olr_pg.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PROGRAM: Final = re.compile(r"(?:^|&& |\| |; )(?:uv run |python3 -m uv run )?olr-pg( [^|;&]*)?")


class Typed(NamedTuple):
    """A command line of a page."""

    page: str
    words: tuple[str, ...]


PROGRAM_TREE: Final[Any] = get_command(app)
"""All commands; to build it takes a tenth of a second."""


def typed() -> Iterator[Typed]:
    for page in PAGES:
        for block in BLOCK.findall(page.read_text("utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                for words in PROGRAM.findall(line.strip()):
                    yield Typed(page.name, tuple(shlex.split(words, comments=True)))


def unknown(words: tuple[str, ...]) -> str | None:
    """What of a command line there is not; None where all of it is."""
    command = PROGRAM_TREE
    options = {name for param in command.params for name in param.opts}
    for word in words:
        if word.startswith("-") and not re.fullmatch(r"-?\d+", word):
            if word.partition("=")[0] not in options | {"--help", "-h"}:
                return f"{command.name} has no {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"{command.name} has no command {word}"
            command = command.commands[word]
            options |= {
                name for param in command.params for name in (*param.opts, *param.secondary_opts)
            }
    return None


def described() -> Iterator[Typed]:
    """The command lines of the table of commands; each alternative by itself."""
    text = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for line in re.findall(r"^\| `olr-pg (.*?)` \|", text, re.MULTILINE):
        name, _, rest = line.partition(" ")
        below = getattr(PROGRAM_TREE.commands[name], "commands", None)
        if below is None:
            yield Typed("commands.md", (name, *re.findall(r"--[a-z-]+", rest)))
            continue
        for part in re.sub(r"\\\| (?=--)", "", rest).split(r"\|"):
            words = [word for word in part.split() if word in below]
            yield Typed(
                "commands.md", (name, *words[:1], *re.findall(r"--(?!config|json)[a-z-]+", part))
            )


def test_the_table_of_commands_has_all_of_them_and_their_options() -> None:
    found = list(described())
    assert [one for one in found if unknown(one.words)] == []
    named = {one.words[0] for one in found}
    assert named == set(PROGRAM_TREE.commands)


def test_there_are_commands_on_the_pages() -> None:
    assert len({one.words[0] for one in typed() if one.words}) > 10


@pytest.mark.parametrize("one", sorted(set(typed())), ids=lambda one: " ".join(one.words)[:60])
def test_a_command_of_a_page_exists(one: Typed) -> None:
    assert unknown(one.words) is None, one


@pytest.mark.parametrize("words", [("runn",), ("run", "--onse"), ("errors", "lst")])
def test_what_does_not_exist_is_noticed(words: tuple[str, ...]) -> None:
    assert unknown(words) is not None

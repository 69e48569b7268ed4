"""What the pages for developers name is there: modules, what they define, files, links."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "olr_pg"
PAGES: Final = [*sorted((ROOT / "docs" / "internals").glob("*.md")), ROOT / "CONTRIBUTING.md"]

ROOMS: Final = {
    path.stem
    for path in PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
} - {"__init__", "__main__"}
"""The folders of the package, and the modules beside them."""

DOTTED: Final = re.compile(r"(?:\w+\.)+(?!(?:json|jsonl|md|py|sql)$)\w+")
FILE: Final = re.compile(r"(?:olr_pg|tests|tools|docs|sql|configs|\.ci)/[\w./-]*")
CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK: Final = re.compile(r"\]\(([^)\s]*)\)")
KEY: Final = re.compile(r"`([a-z][\w-]*(?:\.[\w-]+)+)`")
HEADING: Final = re.compile(r"^#+ (.*)$", re.MULTILINE)


def without_blocks(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


@cache
def configuration_keys() -> frozenset[str]:
    """Keys of the configuration, some of whose sections have a room's name (``spark.master``)."""
    return frozenset(KEY.findall((ROOT / "docs" / "configuration.md").read_text("utf-8")))


def names(page: str) -> Iterator[str]:
    """What a page has in backticks that begins with a room's name and a dot."""
    for code in CODE.findall(without_blocks(page)):
        if DOTTED.fullmatch(code) and code.partition(".")[0] in ROOMS:
            yield code


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def defined(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """What the statements of a module or a class define, with the statements of classes.

    Statements below an ``if`` count too.
    """
    found: dict[str, list[ast.stmt]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node.body if isinstance(node, ast.ClassDef) else []
        elif isinstance(node, ast.If):
            found |= defined(node.body) | defined(node.orelse)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = []
        elif isinstance(node, ast.Assign):
            found |= {one.id: [] for one in node.targets if isinstance(one, ast.Name)}
    return found


def is_there(name: str) -> bool:
    """Whether a name is a module of the package, or something that a module defines."""
    at, parts = PACKAGE, name.split(".")
    while parts and (at / parts[0] / "__init__.py").exists():
        at /= parts.pop(0)
    if not parts:
        return True
    module = at / f"{parts.pop(0)}.py"
    if not module.exists():
        return False
    body = tree(module).body
    for part in parts:
        names = defined(body)
        if part not in names:
            return False
        body = names[part]
    return True


def layers() -> list[str]:
    """The layers that import-linter holds, from high to low."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rooms, *_ = project["tool"]["importlinter"]["contracts"]
    found: list[str] = rooms["layers"]
    return found


def anchors(page: str) -> set[str]:
    """The fragments that the headings of a page have."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(without_blocks(page))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_modules_are_there(page: Path) -> None:
    found = set(names(page.read_text("utf-8"))) - configuration_keys()
    assert sorted(name for name in found if not is_there(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_are_there(page: Path) -> None:
    codes = CODE.findall(without_blocks(page.read_text("utf-8")))
    files = {code for code in codes if FILE.fullmatch(code)}
    assert sorted(name for name in files if not (ROOT / name).exists()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(without_blocks(page.read_text("utf-8"))):
        path, _, fragment = link.partition("#")
        if ":" in path:
            continue
        target = (page.parent / path) if path else page
        assert target.exists(), link
        if fragment:
            assert fragment in anchors(target.read_text("utf-8")), link


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("ordering.merger", True),
        ("ordering.merger.Merger.feed", True),
        ("errors.Code.NO_LOGS", True),
        ("ordering.merger.Merger.eat", False),
        ("ordering.sorting", False),
        ("decoding.split.SplitResult.watermark", True),
        ("replicator.feed.Feed.start_scn", True),
    ],
)
def test_a_name_is_looked_up(name: str, there: bool) -> None:
    assert is_there(name) is there


def test_only_names_of_rooms_count() -> None:
    text = "`redo.walk` `spark.master` `dictionary.json` `olr_pg.ledger` ``redo.no``\n"
    text += "```\n`redo.no`\n```\n"
    assert list(names(text)) == ["redo.walk", "spark.master"]


def test_the_layers_are_those_of_the_project() -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text("utf-8")
    assert "```\n" + "\n".join(layers()) + "\n```" in page


def test_every_room_is_told() -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text("utf-8")
    table = page[page.index("## The rooms") : page.index("## Threads and processes")]
    firsts = {name for line in table.split("\n| ") for name in CODE.findall(line.partition("|")[0])}
    assert firsts >= ROOMS

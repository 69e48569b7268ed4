"""Structures as tables, and what holds for all that are written down."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.redo import format as written_down
from olr_pg.redo.dump.vector_text import write_members
from olr_pg.redo.format.structure import WIDTHS, Member, RedoStructure, structure

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "internals" / "redo-format.md"
KERNELS: Final = sorted(
    [*(ROOT / "olr_pg" / "redo").glob("*.py"), ROOT / "olr_pg" / "redo" / "dump" / "stats.py"]
)
READERS: Final = frozenset({"u16", "u32", "scn8", "read_xid", "read_scn"})


def values_of(module: str) -> Iterator[tuple[str, object]]:
    for name, value in vars(importlib.import_module(module)).items():
        if not name.startswith("_"):
            yield name, value


def all_structures() -> list[RedoStructure]:
    """Every structure of the room, those in tables by code too."""
    found: dict[int, RedoStructure] = {}
    for module in pkgutil.iter_modules(written_down.__path__, f"{written_down.__name__}."):
        for _, value in values_of(module.name):
            for one in value.values() if isinstance(value, dict) else (value,):
                if isinstance(one, RedoStructure):
                    found[id(one)] = one
    return list(found.values())


STRUCTURES: Final = all_structures()
IDS: Final = [f"{one.name}@{one.section}" for one in STRUCTURES]


def test_a_table_becomes_members() -> None:
    made = structure(
        "name",
        "4.2",
        8,
        """
        0   u2     siz          bytes of it
        4   (x4)   prev_dba
        """,
    )
    assert made.members == (
        Member("siz", 0, "u2", "bytes of it"),
        Member("prev dba", 4, "x4", "", shown=False),
    )
    assert made.shown == made.members[:1]
    assert (made.at("prev dba"), made.end("prev dba")) == (4, 8)


@pytest.mark.parametrize(("big", "number"), [(False, 0x0201), (True, 0x0102)])
def test_a_member_is_read_in_the_byte_order(big: bool, number: int) -> None:
    made = structure("name", "4.2", 4, "2 u2 siz")
    assert made.number(b"\xff\xff\1\2\xff", "siz", big=big) == number


def test_there_are_structures_of_all_layers() -> None:
    assert {one.section.partition(".")[0] for one in STRUCTURES} >= set("1234568")


@pytest.mark.parametrize("one", STRUCTURES, ids=IDS)
def test_members_lie_inside_their_structure(one: RedoStructure) -> None:
    assert all(0 <= member.at <= member.end <= one.size for member in one.members)


@pytest.mark.parametrize("one", STRUCTURES, ids=IDS)
def test_members_do_not_overlap(one: RedoStructure) -> None:
    ordered = sorted(one.members, key=lambda member: member.at)
    assert all(a.end <= b.at for a, b in pairwise(ordered))
    assert len({member.name for member in ordered}) == len(ordered)


@pytest.mark.parametrize("one", STRUCTURES, ids=IDS)
def test_its_section_is_a_heading(one: RedoStructure) -> None:
    assert re.search(rf"^### {re.escape(one.section)} ", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("one", STRUCTURES, ids=IDS)
def test_a_dump_can_write_it(one: RedoStructure) -> None:
    text = write_members(bytes(one.size), one.shown, big=False)
    assert all(f"{member.name}: " in text for member in one.shown)
    assert all(WIDTHS[member.kind] > 0 for member in one.shown)


def _numbers_of(source: str) -> Iterator[str]:
    """Opcodes and offsets that stand as bare numbers in the source of kernels."""
    for node in ast.walk(ast.parse(source)):
        is_read = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        places: list[ast.expr] = []
        if is_read and isinstance(node, ast.Call) and ast.unparse(node.func) in READERS:
            places = node.args[1:2]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("payload"):
            places = [node.slice]
        elif isinstance(node, ast.Compare):
            places = [side for side in node.comparators if _is_opcode(side)]
        for place in places:
            is_sum = isinstance(place, ast.BinOp) and isinstance(place.right, ast.Constant)
            if is_sum or isinstance(place, ast.Constant):
                yield ast.unparse(node)


def _is_opcode(side: ast.expr) -> bool:
    return (
        isinstance(side, ast.Constant)
        and isinstance(side.value, int)
        and 0x0401 <= side.value <= 0x1FFF
    )


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_kernel_has_a_number_of_the_format(path: Path) -> None:
    # An SCN slot and the list of fields are read by their one reader each.
    allowed = {"integers": 2, "vectors": 0, "stats": 1}.get(path.stem, 0)
    assert len(list(_numbers_of(path.read_text("utf-8")))) == allowed


@pytest.mark.parametrize(
    "source",
    ["u16(payload, f1 + 4, big)", "payload[at + 21] & 0x80", "op == 0x0501", "walk.payload[7]"],
)
def test_a_number_of_the_format_would_be_found(source: str) -> None:
    assert list(_numbers_of(source))

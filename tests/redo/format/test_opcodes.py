"""Opcodes: numbers, names, and what kernels know of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from olr_pg.redo.format import opcodes
from olr_pg.redo.format.opcodes import (
    CLUSTER_STRUCTURE,
    HARMLESS,
    LEAF_STRUCTURE,
    UNEXPLAINED,
    Layer,
    Opcode,
    RowOperation,
    opcode_name,
)

PAGE: Final = Path(__file__).parents[3] / "docs" / "internals" / "redo-format.md"


@pytest.mark.parametrize(
    ("opcode", "name"), [(0x0401, "4.1 block cleanout"), (0xFE07, "254.7 unknown")]
)
def test_an_opcode_has_its_number_and_a_name(opcode: int, name: str) -> None:
    assert opcode_name(opcode) == name


def test_codes_of_one_layer_have_the_layers_name_at_least() -> None:
    assert not opcode_name(0x0D7F).endswith("unknown")


def test_row_changes_are_never_harmless() -> None:
    assert 11 not in HARMLESS
    assert 19 not in HARMLESS


def test_every_opcode_that_a_kernel_handles_has_a_name() -> None:
    handled = {name: value for name, value in vars(opcodes).items() if name.startswith("OP_")}
    assert handled
    for name, value in handled.items():
        assert Opcode(value).name.removeprefix("TRANSACTION_") == name.removeprefix("OP_")
        assert Opcode(value).title
    for name in ("IRP", "DRP", "LKR", "URP", "ORP", "CFA", "QMI", "QMD", "LMN", "CMP"):
        assert RowOperation[name] == getattr(opcodes, name)
    assert {*CLUSTER_STRUCTURE, *UNEXPLAINED} <= set(RowOperation)


def test_every_opcode_is_of_a_known_layer() -> None:
    assert {opcode >> 8 for opcode in Opcode} <= set(Layer)


def test_what_changes_only_the_structure_of_an_index_is_harmless() -> None:
    assert set(LEAF_STRUCTURE) <= set(HARMLESS[Layer.INDEX])
    leaf_rows = {opcode & 0xFF for opcode in Opcode if opcode >> 8 == Layer.INDEX} - {8, 31}
    assert not leaf_rows & set(HARMLESS[Layer.INDEX])


def test_the_page_has_the_abbreviations_of_row_operations() -> None:
    section = PAGE.read_text("utf-8").partition("### 5.2 ")[2].partition("### 5.3 ")[0]
    told = {name: int(code) for code, name in re.findall(r"\| (\d+) \| ([A-Z]{3})\b", section)}
    assert told == {operation.name: operation for operation in RowOperation}

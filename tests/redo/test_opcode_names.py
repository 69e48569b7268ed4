"""Names of operations: known codes, known layers, and what is neither."""

from __future__ import annotations

import pytest

from olr_pg.redo.opcode_names import HARMLESS, opcode_name


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

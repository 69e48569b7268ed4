"""BOOLEAN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.datatypes.boolean import (
    boolean_to_bool,
    decode_boolean,
    flag_numbers,
    flag_texts,
    no_flag,
)
from olr_pg.datatypes.columns import column_of
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_values_and_columns(judge: Callable[..., list[str | None]]) -> None:
    assert [decode_boolean(raw) for raw in (b"\x01", b"\x00")] == [True, False]
    values = boolean_to_bool(column_of([b"\x01", None, b"\x00"]))
    assert values.values() == [b"\x01", None, b"\x00"]
    assert judge("boolean", values) == ["true", None, "false"]


@pytest.mark.parametrize("raw", [b"\x02", b"\x01\x01"])
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(OlrPgError, match="OLR-02050"):
        decode_boolean(raw)
    with pytest.raises(OlrPgError, match="OLR-02050") as caught:
        boolean_to_bool(column_of([b"\x01", raw]))
    assert caught.value.where["row"] == 1


def test_flags_stand_for_true_and_false() -> None:
    pairs = (("Y", "N"), ("-1", "0"))
    assert flag_texts(pairs) == {"Y": True, "N": False, "-1": True, "0": False}
    assert flag_numbers(pairs) == {-1: True, 0: False}
    assert flag_numbers((("Y", "N"),)) == {1: True, 0: False}
    assert "Y/N, -1/0" in no_flag(pairs, row=3).detail
    assert no_flag(pairs, row=3).where == {"row": 3}

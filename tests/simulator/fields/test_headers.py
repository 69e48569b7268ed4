from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulator.laws import broken_headers
from tests.simulator.reader import parse_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("place", [40, 512 + 16, 512 + 60, 512 + 150, 512 + 233, 512 + 400])
def test_a_byte_of_a_header_that_no_field_explains_is_found(shared_dir: Path, place: int) -> None:
    path = shared_dir / "real" / "oracle-free-23ai" / "arch1_16_1224959854.dbf"
    data = bytearray(path.read_bytes())
    assert list(broken_headers(parse_log(bytes(data)))) == []
    data[place] ^= 1
    faults = list(broken_headers(parse_log(bytes(data))))
    assert faults == [f"block {place // 512}: another layout"]

from __future__ import annotations

import pytest

from olr_pg.simulator.oracle_net.ttc import TtcReader, TtcWriter


@pytest.mark.parametrize("value", [0, 1, -1, 127, 255, 256, 65_536, 2**40, -(2**62)])
def test_integers_are_read_as_they_were_written(value: int) -> None:
    assert TtcReader(bytes(TtcWriter().integer(value).data)).integer() == value

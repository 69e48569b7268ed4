"""The kernels' integers and addresses are those of `RedoFormat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.scalars import pack_xid
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named import put

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints

FORMATS = st.builds(RedoFormat, st.sampled_from(sorted(COMPATIBLE.values())), st.booleans())
SCNS = st.one_of(st.integers(0, (1 << 47) - 1), st.integers(1 << 48, 1 << 62))
SEED = 88_172_645_463_325_252


def memory(redo: RedoFormat) -> tuple[Ints, Bytes]:
    m = np.zeros(at.FIXED, np.int64)
    m[at.BIG_ENDIAN], m[at.LONG_SCN], m[at.RANDOM] = redo.big_endian, redo.long_scn, SEED
    return m, np.zeros(16, np.uint8)


@given(redo=FORMATS, scn=SCNS, long=st.booleans())
def test_scns_have_the_bytes_of_the_format(redo: RedoFormat, scn: int, *, long: bool) -> None:
    m, d = memory(redo)
    interpreted(put.put_scn8)(m, d, 4, scn, long)
    assert d.tobytes() == bytes(4) + redo.scn8(scn, long=long) + bytes(4)


@given(redo=FORMATS, scn=st.integers(0, (1 << 47) - 1))
def test_short_scns_have_the_bytes_of_the_format(redo: RedoFormat, scn: int) -> None:
    m, d = memory(redo)
    interpreted(put.put_scn6r)(m, d, 4, scn)
    assert d.tobytes()[4:10] == redo.scn6r(scn)


@given(redo=FORMATS, dba=st.integers(0, (1 << 32) - 1), seq=st.integers(0, 65_535))
def test_addresses_and_ids_have_the_bytes_of_the_format(
    redo: RedoFormat, dba: int, seq: int
) -> None:
    m, d = memory(redo)
    interpreted(put.put_uba)(m, d, 0, interpreted(put.pack_uba)(dba, seq, 7))
    interpreted(put.put_xid)(m, d, 8, pack_xid(9, 30, dba))
    assert d.tobytes() == redo.uba(dba, seq, 7) + redo.xid(9, 30, dba)


def test_draws_are_below_their_limit_and_the_same_for_a_seed() -> None:
    first, second = memory(RedoFormat())[0], memory(RedoFormat())[0]
    below = interpreted(put.below)
    drawn = [int(below(first, 10)) for _ in range(400)]
    assert drawn == [int(below(second, 10)) for _ in range(400)]
    assert set(drawn) == set(range(10))

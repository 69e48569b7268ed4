from __future__ import annotations

import numpy as np

from olr_pg.scalars import format_rowid
from olr_pg.simulator.sessions.row_shape import IDENTITY
from olr_pg.simulator.stamping.marks import Steps
from olr_pg.simulator.stamping.template import TextCopies, put_rowid_blocks

STEPS = Steps(
    first_scn=90, scn=7, seconds=1, blocks={72_000: 65}, slots={(3, 4): 2}, incarnations={},
    keys={}, indexes={},
)  # fmt: skip
DBA = (12 << 22) + 4_000


def lines(scn: int, sequence: int, dba: int, key: int) -> bytes:
    rowid = format_rowid(72_000, dba, 1)
    head = f'"scn":{scn},"commit_scn":{scn + 2},"xid":"3.4.{sequence}"'
    return (
        f'{{"op":"begin",{head}}}\n'
        f'{{"op":"insert",{head},"table":"A.T","rowid":"{rowid}","after":'
        f'{{"ID":{key},"N":5,"S":"\\"ID\\":10000000001"}}}}\n'
        f'{{"op":"commit",{head}}}\n'
    ).encode()


def test_numbers_get_longer_and_keys_do_not() -> None:
    text = TextCopies(
        lines(95, 99, DBA, 10_000_000_001), STEPS, {"T": {"ID": IDENTITY}}, {"T": 72_000}
    )
    for copy in (0, 1, 3, 500):
        expected = lines(
            95 + 7 * copy, 99 + 2 * copy, DBA + 65 * copy, 10_000_000_001 + 1_000_000 * copy
        )
        assert text.text(copy).tobytes() == expected


def test_blocks_in_rowids() -> None:
    rowid = np.frombuffer(format_rowid(1, DBA, 9).encode(), np.uint8).copy()
    put_rowid_blocks(rowid, np.array([9]), np.array([0x3FFFFF]))
    assert rowid.tobytes().decode() == format_rowid(1, (12 << 22) + 0x3FFFFF, 9)

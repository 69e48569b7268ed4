"""Index entries: the keys of a row's indexes, and the redo and undo of putting them in and out.

Facts: redo-format §6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.kernels.compile import part
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.instance_memory import KEY, NULL, REDO, UNDO
from olr_pg.simulator.named.put import copy, put16, put32, put_be32
from olr_pg.simulator.named.records import add_field, open_area
from olr_pg.simulator.named.stored_cells import add_cell

if TYPE_CHECKING:
    from olr_pg.simulator.named.put import Bytes, Ints


@part
def prepare_index(
    m: Ints, d: Bytes, blocks: Ints, rows: Ints, cells: Ints, row: int, index: int
) -> bool:
    """Prepare what `change` needs of an index entry; keys of nothing but NULLs are in no index."""
    first = rows[row, at.R_CELLS]
    open_area(m, KEY)
    key, size, known = m[at.AREA_AT + KEY], 0, False
    for i in range(m[at.X_COLUMNS + index]):
        column = m[at.X_COLUMN + index * at.INDEX_COLUMNS_MAX + i]
        cell, length = cells[first + column], 0
        m[at.AREA_END + KEY] = key + size + 1
        if cell != NULL:
            length = add_cell(m, d, KEY, m[at.TB_COLUMN + m[at.K_TABLE]] + column, cell) - 1
            known = True
        d[key + size] = length or 0xFF
        size += length + 1
    d[key + size] = 6
    put_be32(d, key + size + 1, blocks[rows[row, at.R_BLOCK], at.B_DBA])
    slot = rows[row, at.R_SLOT]
    d[key + size + 5] = slot >> 8
    d[key + size + 6] = slot & 0xFF
    if not m[at.X_UNIQUE + index]:
        size += 7
    total = 0
    for i in range(size):
        total = total * 31 + int(d[key + i]) & 0xFFFFFF
    m[at.K_INDEX] = index
    m[at.K_KEY_SIZE] = size
    m[at.K_KEY_SUM] = total
    m[at.K_BLOCK] = m[at.X_BLOCK + index] + total % m[at.X_BLOCKS + index]
    m[at.K_OBJ] = m[at.K_DATAOBJ] = m[at.X_OBJ + index]
    return known


@part
def add_index_fields(m: Ints, d: Bytes, blocks: Ints, area: int, insert: bool) -> None:
    """Add the fields of an index change after its KTB redo."""
    index, size, key = m[at.K_INDEX], m[at.K_KEY_SIZE], m[at.AREA_AT + KEY]
    unique = m[at.X_UNIQUE + index]
    if area == UNDO:
        p = add_field(m, d, UNDO, 20)
        d[p] = 3 if insert else 5
        d[p + 1] = m[at.CLAIM_ITLI]
        d[p + 2] = 1
        put32(m, d, p + 4, m[at.X_SEGMENT + index])
        put32(m, d, p + 8, blocks[m[at.K_BLOCK], at.B_DBA])
        put32(m, d, p + 12, 0x7FFE)
    else:
        p = add_field(m, d, REDO, 6)
        d[p] = m[at.CLAIM_ITLI]
        put16(m, d, p + 2, m[at.K_KEY_SUM] & 0x1FF)
        put16(m, d, p + 4, size + (10 if unique else 4))
    if area == UNDO or insert:
        copy(d, add_field(m, d, area, size), key, size)
    if unique and insert is (area == REDO):
        copy(d, add_field(m, d, area, 6), key + size + 1, 6)

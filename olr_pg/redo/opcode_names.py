"""The operation codes by name, and which of them are known to change no row.

Facts: redo-format §4.7, §5.12, §6, §8, §12; those of the harmless ones that real logs of 19c and
23ai have stand there beside changes that LogMiner shows whole.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = {
    (4, 1): "block cleanout",
    (4, 6): "block cleanout at commit",
    (5, 1): "undo record",
    (5, 2): "transaction begin",
    (5, 4): "transaction end",
    (5, 6): "undo applied",
    (5, 7): "transaction begin in undo",
    (5, 8): "dead transaction",
    (5, 11): "undo applied, header",
    (5, 12): "transaction state",
    (5, 19): "session attributes",
    (5, 20): "session attributes, continued",
    (5, 23): "transaction note",
    (5, 24): "local undo logged again",
    (10, 2): "insert leaf row",
    (10, 4): "delete leaf row",
    (10, 5): "restore leaf row",
    (10, 8): "initialize leaf block",
    (10, 18): "update leaf data",
    (10, 30): "update leaf row",
    (10, 35): "update leaf columns",
    (11, 2): "insert row piece",
    (11, 3): "delete row piece",
    (11, 4): "lock row piece",
    (11, 5): "update row piece",
    (11, 6): "overwrite row piece",
    (11, 8): "change forwarding address",
    (11, 10): "cluster key links",
    (11, 11): "insert rows",
    (11, 12): "delete rows",
    (11, 16): "log minimal",
    (11, 17): "LOB operation",
    (11, 22): "compressed block",
    (19, 1): "block image",
    (19, 2): "invalidated block range",
    (19, 4): "invalidated block range logged again",
    (24, 1): "DDL",
    (24, 4): "transaction marker",
    (24, 6): "direct load transaction",
    (24, 8): "XML",
    (24, 10): "session marker",
    (26, 2): "LOB redo",
    (26, 6): "LOB direct write",
}
"""Of (layer, code)."""

LAYERS: Final = {
    4: "block cleanout",
    5: "transaction",
    10: "index",
    11: "row",
    13: "segment space",
    14: "extents",
    17: "recovery",
    18: "hot backup",
    19: "direct load",
    22: "tablespace bitmap",
    23: "written blocks",
    24: "LogMiner",
    25: "queue",
    26: "LOB",
}

_ALL: Final = range(256)

HARMLESS: Final = {
    # Who holds a row, and since when its transaction is over; never what is in it.
    4: _ALL,
    # The state of transactions and undo blocks; what of it concerns rows is interpreted.
    5: _ALL,
    # Blocks of an index are split, merged, linked and emptied; their rows stay what they are. The
    # operations on rows (10.2, 10.4, 10.5, 10.18, 10.30, 10.35) are not among them.
    10: (*range(6, 18), 19, 20, 21, 22, 31),
    # High-water marks, free space and extents of segments.
    13: _ALL,
    14: _ALL,
    # Markers of checkpoints and of the backup of files.
    17: _ALL,
    # Images of blocks before a change during a backup: what is in them is known already.
    18: _ALL,
    # Space of locally managed tablespaces.
    22: _ALL,
    # Which blocks were written to disk.
    23: _ALL,
    # Notes for LogMiner on what other vectors do; DDL and direct loads are interpreted.
    24: (2, 4, 5, 6, 10),
}
"""The codes by layer, each for the reason above it. Not listed, hence a warning: 12 (old clusters),
19.3, 20, 25 (queues), 24.8 (XML) and whatever is new."""


def opcode_name(opcode: int) -> str:
    """``4.1 block cleanout``.

    Args:
        opcode: ``layer << 8 | code``.
    """
    layer, code = opcode >> 8, opcode & 0xFF
    name = NAMES.get((layer, code)) or LAYERS.get(layer, "unknown")
    return f"{layer}.{code} {name}"

"""LOB columns: what LOB$ and its relatives say of them, and in which form their values travel.

Facts: dictionary §2.7, values-and-lobs §15.4, §17.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LobSegment:
    """The place of the LOB values of a table or of one of its partitions.

    Attributes:
        obj, dataobj: OBJ# and DATAOBJ# of the LOB segment (or of the partition's fragment).
        index_obj, index_dataobj: of the LOB index; None where the dictionary does not tell.
        block_size: of the segment's tablespace, in bytes; None where not known.
    """

    obj: int
    dataobj: int | None = None
    index_obj: int | None = None
    index_dataobj: int | None = None
    block_size: int | None = None


@dataclass(frozen=True, slots=True)
class Lob:
    """The storage of the values of a LOB column; None = not known.

    Attributes:
        segments: the table's own, and one per partition that holds rows.
        securefile: False for BASICFILE.
        chunk_blocks: blocks of a BASICFILE page.
        nologging: page data may be missing from redo.
        compressed, deduplicated: SECUREFILE options.
        encrypted: the bytes are cipher text: the column cannot be replicated.
        encrypted_in: the encrypted tablespaces of its segments, in words; empty if there are none,
            or if the dictionary does not say.
    """

    segments: tuple[LobSegment, ...] = ()
    securefile: bool | None = None
    chunk_blocks: int | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""

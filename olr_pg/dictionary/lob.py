"""LOB columns: their storage from LOB$ and related tables, and the form in which values are
delivered.

Facts: dictionary §2.7, values-and-lobs §15.4, §17.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LobSegment:
    """The storage of the LOB values of a table or of one of its partitions.

    Attributes:
        obj, dataobj: OBJ# and DATAOBJ# of the LOB segment (or of the partition's fragment).
        index_obj, index_dataobj: of the LOB index; None if unknown.
        block_size: of the segment's tablespace, in bytes; None if unknown.
    """

    obj: int
    dataobj: int | None = None
    index_obj: int | None = None
    index_dataobj: int | None = None
    block_size: int | None = None


@dataclass(frozen=True, slots=True)
class Lob:
    """The storage of a LOB column's values; None for unknown properties.

    Attributes:
        segments: the table's own, and one per partition with rows.
        securefile: False for BASICFILE.
        chunk_blocks: blocks of a BASICFILE page.
        nologging: whether redo may lack page data.
        compressed, deduplicated: SECUREFILE options.
        encrypted: the bytes are encrypted, so the column cannot be replicated.
        encrypted_in: the names of its segments' encrypted tablespaces; empty if there are none or
            it is unknown.
    """

    segments: tuple[LobSegment, ...] = ()
    securefile: bool | None = None
    chunk_blocks: int | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""

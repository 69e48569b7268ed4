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
        obj, dataobj: OBJ# and DATAOBJ# of the LOB segment, or of a partition's part of it
            (LOBFRAG$).
        index_obj, index_dataobj: OBJ# and DATAOBJ# of the LOB index; None if unknown.
        block_size: the block size of the segment's tablespace, in bytes; None if unknown.
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
        segments: the segment of the table itself, and one for each partition with rows.
        securefile: True for SECUREFILE, False for BASICFILE.
        chunk_blocks: the number of blocks in a BASICFILE page.
        nologging: whether the redo may lack the data of LOB pages.
        compressed, deduplicated: whether these SECUREFILE options are used.
        encrypted: whether the bytes are encrypted, so that the column cannot be replicated.
        encrypted_in: the names of the encrypted tablespaces that contain its segments; empty if
            there are none, or if this is unknown.
    """

    segments: tuple[LobSegment, ...] = ()
    securefile: bool | None = None
    chunk_blocks: int | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""

"""An archived log as a file: block 0, block 1, data blocks, name.

Facts: redo-format §1.2, §1.4, §1.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.scalars import SCN_NONE
from olr_pg.simulator.fields.block_layout import (
    FIRST_DATA_BLOCK,
    LWN_LENGTH,
    LwnGroup,
    lay_out_group,
    record_images,
    seal_blocks,
)
from olr_pg.simulator.fields.headers import HeaderBlock, OsHeader

if TYPE_CHECKING:
    from olr_pg.simulator.fields.redo_format import RedoFormat

FIRST_CONTROL_SEQUENCE: Final = 1000
GROUPS: Final = 3
UNKNOWN_NAB: Final = 0xFFFFFFFF
"""The number of blocks in use (nab) in the header of a current log."""


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The header values that all logs of one thread and one incarnation share.

    Attributes:
        dbid: DBID of the whole database (the CDB).
        name: at most 8 characters.
        activation: activation id of the incarnation.
        resetlogs: resetlogs id, a redo time.
        resetlogs_scn: SCN of the resetlogs.
        thread: redo thread.
        online_blocks: size of the online log in blocks.
    """

    dbid: int
    name: str
    activation: int
    resetlogs: int
    resetlogs_scn: int
    thread: int = 1
    online_blocks: int = 409600


@dataclass(slots=True)
class OpenLog:
    """A log that is still written. All times are redo times."""

    redo: RedoFormat
    identity: LogIdentity
    sequence: int
    first_scn: int
    first_time: int
    payloads: list[bytearray] = field(default_factory=list)
    first_offsets: list[np.ndarray[tuple[int], np.dtype[np.uint16]]] = field(default_factory=list)
    blocks: int = 0
    largest_lwn: int = 0

    def write(self, group: LwnGroup, strands: int = 1) -> None:
        """Append one LWN with up to `strands` strands."""
        chunks = [
            lay_out_group(self.redo, record_images(self.redo, chunk))
            for chunk in group.strands(strands)
        ]
        blocks = sum(len(first) for _, first in chunks)
        for payload, first in chunks:
            payload[LWN_LENGTH : LWN_LENGTH + 4] = self.redo.pack("I", blocks)
            self.payloads.append(payload)
            self.first_offsets.append(first)
        self.blocks += blocks
        self.largest_lwn = max(self.largest_lwn, blocks)

    def close(self, next_scn: int, next_time: int) -> bytes:
        """Return the bytes of the archived log, which ends before `next_scn`."""
        return self.headers(next_scn, next_time) + self.sealed(0)

    def sealed(self, first: int, moved: int = 0) -> bytes:
        """Return the data blocks from `first` on (from 0), with headers; `first` begins an LWN.

        `moved` is added to the block numbers in the headers.
        """
        payloads, offsets, block = list[bytearray](), [np.zeros(0, np.uint16)], 0
        for payload, own in zip(self.payloads, self.first_offsets, strict=True):
            if block >= first:
                payloads.append(payload)
                offsets.append(own)
            block += len(own)
        stream = np.frombuffer(b"".join(payloads), np.uint8)
        block = FIRST_DATA_BLOCK + first + moved
        return seal_blocks(
            self.redo, stream, np.concatenate(offsets), self.sequence, block
        ).tobytes()

    @property
    def name(self) -> str:
        """The name of its archived log."""
        return self.header().archived_name

    def headers(self, next_scn: int, next_time: int) -> bytes:
        """Return blocks 0 and 1 of the archived log, which ends before `next_scn`."""
        header = self.closed(next_scn, next_time)
        return OsHeader(header.nab - 1).image(self.redo) + header.image(self.redo)

    def closed(self, next_scn: int, next_time: int) -> HeaderBlock:
        """Return block 1 of the archived log, which ends before `next_scn`."""
        return self._header(FIRST_DATA_BLOCK + self.blocks, next_scn, next_time)

    def header(self) -> HeaderBlock:
        """Return block 1 of the log while it is current."""
        return self._header(UNKNOWN_NAB, SCN_NONE, 0)

    def _header(self, nab: int, next_scn: int, next_time: int) -> HeaderBlock:
        own = self.identity
        return HeaderBlock(
            sequence=self.sequence,
            dbid=own.dbid,
            name=own.name.encode("ascii")[:8],
            control_sequence=FIRST_CONTROL_SEQUENCE + self.sequence,
            online_blocks=own.online_blocks,
            group=1 + self.sequence % GROUPS,
            activation=own.activation,
            nab=nab,
            resetlogs=own.resetlogs,
            resetlogs_scn=own.resetlogs_scn,
            thread=own.thread,
            first_scn=self.first_scn,
            first_time=self.first_time,
            next_scn=next_scn,
            next_time=next_time,
            enabled_scn=own.resetlogs_scn,
            enabled_time=own.resetlogs,
            closed_scn=self.first_scn,
            closed_time=self.first_time,
            largest_lwn=self.largest_lwn,
        )

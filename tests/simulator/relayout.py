"""The blocks of a log, and the same laid out anew from its parsed headers and records."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from olr_pg.simulator.writer.log_file import LWN_LENGTH, lay_out_group, seal_blocks
from tests.simulator.reader import parse_log

Blocks = npt.NDArray[np.uint8]


def laid_out_again(data: bytes) -> tuple[Blocks, Blocks]:
    """(blocks laid out from the fields and records, blocks of the file); (blocks, bytes) each."""
    log = parse_log(data)
    size, header = log.format.block_size, log.header
    groups = [lay_out_group(log.format, [record.raw for record in lwn.records]) for lwn in log.lwns]
    for lwn, (stream, _) in zip(log.lwns, groups, strict=True):
        # The length of an LWN of several strands counts all of them.
        stream[LWN_LENGTH : LWN_LENGTH + 4] = lwn.records[0].raw[LWN_LENGTH : LWN_LENGTH + 4]
    payload = np.frombuffer(b"".join(bytes(stream) for stream, _ in groups), np.uint8)
    firsts = [first for _, first in groups] or [np.zeros(0, np.uint16)]
    blocks = seal_blocks(log.format, payload, np.concatenate(firsts), header.sequence)
    heads = log.os_header.image(log.format) + header.image(log.format)
    ours = np.concatenate((np.frombuffer(heads, np.uint8), blocks.reshape(-1)))
    real = np.frombuffer(data[: header.nab * size], np.uint8)
    return ours.reshape(-1, size), real.reshape(-1, size)

"""Crashes between finished logs: what an instance was writing, and has written again since.

The lost blocks are the first LWNs of the thread's next log, as blocks behind the end of the log
before. Whoever takes them gets what is in no log at that place, and comes again later. In a
workload that is at work (`simulator.live`), a crash takes back transactions as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.simulator.online_redo.written_redo import find_lwns, read_format, read_header
from olr_pg.simulator.writer.log_file import FIRST_DATA_BLOCK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from olr_pg.simulator.online_redo.written_redo import WrittenLog

LWNS_MAX: Final = 3


def with_crashes(logs: Sequence[WrittenLog], rng: Random, chance: float) -> list[WrittenLog]:
    """Let instances crash at the end of some logs.

    Args:
        logs: of all threads, those of each in their order.
        chance: that a log ends with a crash.
    """
    headers = [read_header(log.data) for log in logs]
    keys = [(header.thread, header.resetlogs, header.sequence) for header in headers]
    by_key = dict(zip(keys, logs, strict=True))
    return [
        log._replace(lost=_lost(log, by_key[following], rng))
        if (following := (*key[:2], key[2] + 1)) in by_key and rng.random() < chance
        else log
        for key, log in zip(keys, logs, strict=True)
    ]


def _lost(log: WrittenLog, following: WrittenLog, rng: Random) -> bytes:
    """Return the first LWNs of a log, as they would be behind the end of the one before."""
    redo, header = read_format(log.data), read_header(log.data)
    size, end = redo.block_size, read_header(following.data).nab
    data = following.data[FIRST_DATA_BLOCK * size : end * size]
    lwns = list(find_lwns(redo, data, 0))[: rng.randint(1, LWNS_MAX)]
    if not lwns:
        return b""
    order = ">" if redo.big_endian else "<"
    blocks = np.frombuffer(data[: lwns[-1].end * size], np.uint8).reshape(-1, size).copy()
    words, halves = blocks.view(order + "u4"), blocks.view(order + "u2")
    words[:, 1] = np.arange(header.nab, header.nab + len(blocks))
    words[:, 2] = header.sequence
    halves[:, 7] = 0
    halves[:, 7] = np.bitwise_xor.reduce(halves, axis=1)
    return blocks.tobytes()

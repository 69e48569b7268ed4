"""Compiles the port's kernels before a client connects."""

from __future__ import annotations

import numpy as np

from olr_pg.wire.offsets import message_offsets, message_run

_MESSAGE = bytes((2, 0, 0, 0, 0, 0))
"""The smallest frame: MessageSize and an operation code."""


def warm_port() -> None:
    """Search for messages in read-only bytes, as the ready queue does, to compile the kernels for
    this.
    """
    blob = np.frombuffer(_MESSAGE * 2, np.uint8)
    message_run(blob, 0, False, 2, blob.size)
    message_offsets(blob.copy(), big_endian=False)

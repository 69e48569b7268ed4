"""What a client of the port needs is compiled before one asks."""

from __future__ import annotations

from typing import Any

from olr_pg.server.kernel_warmup import warm_port
from olr_pg.server.queue import TakenBefore, next_messages
from olr_pg.wire import offsets
from tests.server.test_queue import messages_of, transaction


def test_taking_messages_compiles_nothing_more() -> None:
    warm_port()
    kernels: tuple[Any, ...] = (offsets.message_run, offsets.fill_offsets)
    before = [list(kernel.signatures) for kernel in kernels]
    size = sum(map(len, messages_of(1, 10, 20, 4)))
    assert (
        next_messages(transaction(1, 10, 20, 4), TakenBefore(), 2, size, must=False).messages == 2
    )
    assert [list(kernel.signatures) for kernel in kernels] == before
    assert all(before)

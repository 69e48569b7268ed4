"""The room that workers share: it is waited for, unless there is no hope."""

from __future__ import annotations

import threading

from olr_pg.applier.batches.shared_state import UnappliedBound

PATIENCE = 120.0


def test_room_is_waited_for() -> None:
    room = UnappliedBound(10)
    room.take(10)
    room.wait(lambda: False)  # what fills it is not too much
    room.take(1)
    assert room.is_short
    waiter = threading.Thread(target=room.wait, args=(lambda: False,))
    waiter.start()
    room.give_back(1)
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_what_is_hopeless_is_not_waited_for() -> None:
    room, hopeless = UnappliedBound(0), threading.Event()
    room.take(1)
    waiter = threading.Thread(target=room.wait, args=(hopeless.is_set,))
    waiter.start()
    hopeless.set()
    room.wake()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()

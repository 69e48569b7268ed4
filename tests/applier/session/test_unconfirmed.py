"""What the server has to keep for a client, as the client counts it."""

from __future__ import annotations

from olr_pg.applier.session.unconfirmed import Unconfirmed
from olr_pg.wire.protocol import TRANSACTION_BYTES


def test_what_has_ended_counts_until_it_is_durable() -> None:
    unconfirmed = Unconfirmed(3 * TRANSACTION_BYTES)
    unconfirmed.add(1_000_000)
    assert not unconfirmed.is_too_much(1)  # open: its Commit has to come
    unconfirmed.end(1, 10)
    assert unconfirmed.is_too_much(10)
    assert not unconfirmed.is_too_much(11)
    unconfirmed.end(3, 20)
    assert not unconfirmed.is_too_much(20)
    unconfirmed.add(1)
    unconfirmed.end(0, 20)
    assert unconfirmed.is_too_much(20)
    assert not unconfirmed.is_too_much(None)


def test_what_comes_again_does_not_count() -> None:
    unconfirmed = Unconfirmed(10)
    unconfirmed.add(5)
    unconfirmed.end(1, 10)
    unconfirmed.add(5)
    assert unconfirmed.is_too_much(10)
    unconfirmed.forget()
    unconfirmed.end(0, 20)
    assert not unconfirmed.is_too_much(1)

"""Messages at the head of the queue: as many as fit, one where one must be, and their order."""

from __future__ import annotations

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.ready_transactions import joined
from olr_pg.server.queue import TakenBefore, check_commit_order, next_messages
from tests.server.test_queue import messages_of, transaction

SIZES = [len(message) for message in messages_of(1, 10, 20, 4)]
HEAD = transaction(1, 10, 20, 4)


def test_all_that_is_left_or_as_many_as_fit() -> None:
    part = next_messages(HEAD, TakenBefore(), 10, sum(SIZES), must=False)
    assert (part.first, part.end, part.messages) == (0, sum(SIZES), 4)
    begun = TakenBefore(1, SIZES[0])
    part = next_messages(HEAD, begun, 10, sum(SIZES[1:3]) + 1, must=False)
    assert (part.first, part.end, part.messages) == (SIZES[0], sum(SIZES[:3]), 2)
    part = next_messages(HEAD, begun, 1, sum(SIZES), must=False)
    assert (part.end, part.messages) == (sum(SIZES[:2]), 1)


def test_a_message_that_is_too_large_comes_only_where_it_must() -> None:
    begun = TakenBefore(1, SIZES[0])
    assert next_messages(HEAD, begun, 2, SIZES[1] - 1, must=False).messages == 0
    part = next_messages(HEAD, begun, 2, SIZES[1] - 1, must=True)
    assert (part.end, part.messages) == (sum(SIZES[:2]), 1)


@pytest.mark.parametrize(("scns", "last"), [((20, 21, 21), 20), ((20,), 0)])
def test_commits_in_order(scns: tuple[int, ...], last: int) -> None:
    check_commit_order(joined([transaction(n, 1, scn) for n, scn in enumerate(scns)]), last)


@pytest.mark.parametrize(("scns", "last"), [((20, 22, 21), 20), ((20, 21), 21)])
def test_commits_out_of_order_are_refused(scns: tuple[int, ...], last: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        check_commit_order(joined([transaction(n, 1, scn) for n, scn in enumerate(scns)]), last)
    assert caught.value.code == Code.OUT_OF_COMMIT_ORDER

"""What was learnt of the dictionary is handed on from run to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from olr_pg.replicator.decoding_run import FollowerPool


@dataclass(eq=False)
class Follower:
    """A follower of `snapshot` that has come as far as `done`."""

    snapshot: object
    done: int = 0


def test_the_one_that_has_come_furthest_is_taken_over() -> None:
    made: list[object] = []

    def make(snapshot: Any) -> Any:
        made.append(snapshot)
        return Follower(snapshot)

    pool, dictionary = FollowerPool(make), object()
    first: Any = pool.take(dictionary)  # type: ignore[arg-type]
    assert made == [dictionary]
    further, behind = Follower(dictionary, 9), Follower(dictionary, 4)
    for one in (first, further, behind, Follower(object(), 99)):
        pool.give_back(one)  # type: ignore[arg-type]
    taken: Any = pool.take(dictionary)  # type: ignore[arg-type]
    assert taken is further
    assert made == [dictionary]


def test_those_of_an_earlier_dictionary_are_forgotten() -> None:
    pool = FollowerPool(Follower)  # type: ignore[arg-type]
    old, new = object(), object()
    follower: Any = pool.take(old)  # type: ignore[arg-type]
    pool.give_back(follower)
    assert pool.take(new).snapshot is new  # type: ignore[arg-type]
    assert pool.take(old) is not follower  # type: ignore[arg-type]

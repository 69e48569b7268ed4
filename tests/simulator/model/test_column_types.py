"""Random values of declarations are drawn as the standard library draws them."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from olr_pg.simulator.model import column_types
from olr_pg.simulator.model.column_types import nvarchar, varchar

LETTERS: Final = column_types._LETTERS, column_types._LETTERS + column_types._BEYOND_ASCII


def drawn_letter_by_letter(rng: Random, size_max: int, codec: str) -> bytes:
    """Words whose letters `Random.choice` draws, one after the other."""
    letters = LETTERS[rng.random() >= 0.7]
    limit = rng.choice((4, 12, 12, 40, size_max))
    width = len("a".encode(codec))
    room = max(rng.randint(1, max(1, min(limit, size_max))), width)
    words = b""
    while room >= width:
        letter = rng.choice(letters).encode(codec)
        words += letter if len(letter) <= room else "x".encode(codec)
        room -= min(len(letter), room) if len(letter) <= room else width
    return words


@pytest.mark.parametrize("seed", range(40))
def test_words_are_those_of_a_choice_for_each_letter(seed: int) -> None:
    """Databases of a seed stay what they were: the seeds that found something still do."""
    ours, choices = Random(seed), Random(seed)
    value = varchar(200).make(ours)
    assert value.raw == drawn_letter_by_letter(choices, 200, "utf-8")
    assert ours.getstate() == choices.getstate()


@pytest.mark.parametrize("seed", range(20))
def test_words_of_two_bytes_a_letter_have_room_for_them(seed: int) -> None:
    assert 0 < len(nvarchar(30).make(Random(seed)).raw.decode("utf-16-be")) <= 30

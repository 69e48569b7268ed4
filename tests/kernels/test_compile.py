"""The decorators: kernels of parts, and the same code as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import int64
from numba.core.caching import NullCache

from olr_pg.kernels.compile import inlined, inlined_for, inlined_kernel, interpreted, kernel, part


@inlined
def _twice(value: int) -> int:
    return 2 * value


@part
def _sum_of_twice(values: Any) -> int:
    total = 0
    for value in values:
        total += _twice(value)
    return total


@kernel
def _answer(values: Any) -> int:
    return _sum_of_twice(values) + 1


@inlined_kernel
def _plus_one(value: int) -> int:
    return value + 1


@kernel
def _plus_two(value: int) -> int:
    return _plus_one(_plus_one(value))


def test_a_kernel_is_compiled_with_its_parts() -> None:
    assert _answer(np.array([1, 2, 3])) == 13
    assert _plus_one(3) == 4
    assert _plus_two(3) == 5


@inlined_for(int64(int64))
def _plus_three(value: Any) -> Any:
    return value + 3


@kernel
def _plus_six(value: int) -> Any:
    return _plus_three(np.uint8(_plus_three(value)))


def test_a_part_for_some_signatures_is_compiled_with_the_first_kernel_that_asks() -> None:
    compiled: Any = _plus_three
    assert not compiled.signatures
    whole: Any = _plus_six
    # What is found on disk is not put together anew.
    whole.dispatcher._cache = NullCache()
    assert _plus_six(250) == 256
    assert compiled.signatures == [(int64,)]


def test_plain_python_gives_the_same_and_takes_what_numba_does_not() -> None:
    plain = interpreted(_answer)
    assert plain(np.array([1, 2, 3])) == 13
    assert plain(np.array([10**30], object)) == 2 * 10**30 + 1


def test_a_part_can_be_replaced_in_plain_python() -> None:
    assert interpreted(_answer, {_twice: lambda value: value})(np.array([1, 2, 3])) == 7


def test_a_kernel_cannot_allocate() -> None:
    @kernel
    def allocates(size: int) -> int:
        return np.empty(size).size

    with pytest.raises(Exception, match=r"(?i)nrt|allocat"):
        allocates(3)

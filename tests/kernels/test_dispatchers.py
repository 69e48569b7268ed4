"""Parts of kernels are compiled no further than the kernels need them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba.core.caching import NullCache
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.kernels.dispatchers import PartLibrary


def triple(value: int) -> int:
    """Return three times a value."""
    return 3 * value


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="kernels are not compiled")
def test_a_part_has_no_machine_code_of_its_own_and_works_in_a_kernel() -> None:
    part: Any = inlined(triple)

    def nine_times(value: int) -> int:
        return part(part(value))  # type: ignore[no-any-return]

    whole: Any = kernel(nine_times)
    # What is found on disk is not put together anew.
    whole.dispatcher._cache = NullCache()
    assert whole(5) == 45
    (own,) = part.overloads.values()
    assert isinstance(own.library, PartLibrary)
    assert own.library.get_pointer_to_function("triple") == 0
    (compiled,) = whole.overloads.values()
    assert not isinstance(compiled.library, PartLibrary)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="kernels are not compiled")
def test_a_part_has_no_copy_of_the_parts_that_it_calls() -> None:
    low: Any = inlined(triple)

    def nine_times(value: int) -> int:
        return low(low(value))  # type: ignore[no-any-return]

    middle: Any = inlined(nine_times)

    def more(value: int) -> int:
        # The kernel calls the lowest part first, and also through the middle one.
        return low(value) + middle(value) + low(middle(value))  # type: ignore[no-any-return]

    whole: Any = kernel(more)
    whole.dispatcher._cache = NullCache()
    assert whole(2) == 6 + 18 + 54
    (own,) = middle.overloads.values()
    assert len(list(own.library.get_defined_functions())) == 1
    (lowest,) = low.overloads.values()
    assert [one for one in own.library.needed if isinstance(one, PartLibrary)] == [lowest.library]
    (compiled,) = whole.overloads.values()
    parts = [one for one in compiled.library.needed if isinstance(one, PartLibrary)]
    assert parts == [own.library, lowest.library]  # callers come first


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="kernels are not compiled")
def test_python_code_whose_compilation_steps_are_left_out_is_an_error() -> None:
    def squares(values: Any) -> int:
        return len([one * one for one in values])

    whole: Any = kernel(squares)
    whole.dispatcher._cache = NullCache()
    with pytest.raises(NumbaError):
        whole(np.zeros(3, np.int64))


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="kernels are not compiled")
def test_llvm_is_asked_once_for_the_size_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = kernel(triple)
    whole.dispatcher._cache = NullCache()
    assert whole(2) == 6
    members = [ir.IntType(8), ir.IntType(64)]
    structures = [ir.LiteralStructType(members, packed=packed) for packed in (False, True)]
    types = [*members, *structures, ir.ArrayType(ir.IntType(16), 5), ir.IntType(8).as_pointer()]
    context = cpu_target.target_context
    assert list(map(context.get_abi_sizeof, types)) == [1, 8, 16, 9, 10, 8]
    monkeypatch.setattr("llvmlite.binding.parse_assembly", None)
    assert list(map(context.get_abi_sizeof, types)) == [1, 8, 16, 9, 10, 8]
    with pytest.raises(TypeError):
        context.get_abi_sizeof(ir.ArrayType(ir.IntType(16), 6))

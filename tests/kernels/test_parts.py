"""Parts of kernels are compiled no further than the kernels need them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from numba.core.caching import NullCache

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.kernels.parts import PartLibrary


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

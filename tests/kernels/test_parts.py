"""Parts of kernels are compiled no further than the kernels need them."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.kernels.parts import PartLibrary


@inlined
def triple(value: int) -> int:
    """Return three times a value."""
    return 3 * value


@kernel
def nine_times(value: int) -> int:
    """Return nine times a value."""
    return triple(triple(value))


@pytest.mark.skipif(not hasattr(nine_times, "overloads"), reason="kernels are not compiled")
def test_a_part_has_no_machine_code_of_its_own_and_works_in_a_kernel() -> None:
    compiled: Any = nine_times
    assert compiled(5) == 45
    part: Any = triple
    (own,) = part.overloads.values()
    assert isinstance(own.library, PartLibrary)
    assert own.library.get_pointer_to_function("triple") == 0
    (whole,) = compiled.overloads.values()
    assert not isinstance(whole.library, PartLibrary)

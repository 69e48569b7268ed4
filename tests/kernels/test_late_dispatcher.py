"""A kernel of which nothing is made before it is needed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from olr_pg.kernels import late_dispatcher
from olr_pg.kernels.compile import inlined_kernel, kernel
from olr_pg.kernels.late_dispatcher import interpret_first

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING_OF_NUMBA = """
import sys
from olr_pg.datatypes.outcomes import byte_at
import olr_pg.{module}
assert "numba" not in sys.modules
"""


@inlined_kernel
def _one_more(value: int) -> int:
    """Add one."""
    return value + 1


@kernel
def _two_more(value: int) -> int:
    return _one_more(_one_more(value))


def test_it_looks_like_its_function() -> None:
    assert _one_more.__doc__ == "Add one."
    assert (_one_more.__module__, _one_more.__name__) == (__name__, "_one_more")


def test_it_is_made_when_it_is_called_and_only_then() -> None:
    late: Any = kernel(_one_more.py_func)  # type: ignore[attr-defined]
    first = late.__call__
    assert not isinstance(first, Dispatcher)
    assert late(1) == 2
    assert isinstance(late.__call__, Dispatcher)
    assert first(2) == 3  # who has taken it before


def test_it_is_made_for_a_kernel_that_it_is_part_of() -> None:
    whole: Any = _two_more
    # What is found on disk is not put together anew.
    whole.dispatcher._cache = NullCache()
    assert _two_more(1) == 3
    called: Any = _one_more
    assert called.signatures


def test_threads_make_one() -> None:
    late: Any = kernel(_one_more.py_func)  # type: ignore[attr-defined]
    together = Barrier(4)

    def made(_number: int) -> Any:
        together.wait()
        return late.dispatcher

    with ThreadPoolExecutor(4) as threads:
        assert len(set(map(id, threads.map(made, range(4))))) == 1


def test_it_goes_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(_one_more))(4) == 5


def test_without_compilation_it_is_the_function() -> None:
    script = (
        "from olr_pg.datatypes.outcomes import byte_at\n"
        "from olr_pg.kernels.cache import is_on_disk\n"
        "print(byte_at.dispatcher is byte_at.py_func, is_on_disk(byte_at))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout == "True False\n"


def test_a_module_of_kernels_needs_no_numba() -> None:
    script = NOTHING_OF_NUMBA.format(module="config.model")
    subprocess.run([sys.executable, "-c", script], check=True)


@kernel
def _doubled(value: Any) -> Any:
    return value + value


@pytest.fixture
def interpreting() -> Iterator[None]:
    """Interpret what is not on disk."""
    interpret_first(60)
    yield
    interpret_first(0)


@pytest.mark.usefixtures("interpreting")
def test_a_kernel_that_is_not_on_disk_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    late: Any = kernel(_two_more.py_func)  # type: ignore[attr-defined]
    late.dispatcher._cache = NullCache()
    assert late(1) == 3
    assert not late.signatures
    assert not isinstance(late.__call__, Dispatcher)
    monkeypatch.setattr(late_dispatcher._Interpretation, "seconds", 0)  # all of them are used up
    assert late(1) == 3
    assert late.signatures


@pytest.mark.usefixtures("interpreting")
def test_a_kernel_that_another_process_has_compiled_is_taken_from_the_disk() -> None:
    _doubled(1)
    interpret_first(0)
    _doubled(1)  # compiles it
    interpret_first(60)
    late: Any = kernel(_doubled.py_func)  # type: ignore[attr-defined]
    assert late(2) == 4
    assert isinstance(late.__call__, Dispatcher)


@pytest.mark.usefixtures("interpreting")
def test_interpreted_integers_wrap_around_without_a_warning() -> None:
    late: Any = kernel(_doubled.py_func)  # type: ignore[attr-defined]
    late.dispatcher._cache = NullCache()
    assert late(np.uint64(1 << 63)) == 0
    assert not late.signatures


@pytest.mark.usefixtures("interpreting")
def test_interpreted_calls_use_their_seconds_up() -> None:
    late: Any = kernel(_two_more.py_func)  # type: ignore[attr-defined]
    late.dispatcher._cache = NullCache()
    before = late_dispatcher._Interpretation.seconds
    late(1)
    assert late_dispatcher._Interpretation.seconds < before

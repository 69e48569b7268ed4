"""Compiled kernels on disk: found while the sources are what they were, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import olr_pg
from olr_pg.kernels.cache import imported, sources_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

KERNEL = """
from olr_pg.kernels.compile import kernel
from olr_pg.kernel_test_layout import WIDTH

@kernel
def widened(n: int) -> int:
    return n * WIDTH
"""
CALL = """
from olr_pg.kernel_test_code import widened
print(widened(7), widened.stats.cache_hits[next(iter(widened.stats.cache_hits), None)]
      if widened.stats.cache_hits else 0)
"""


TYPED_KERNEL = """
from olr_pg.kernels.compile import kernel

@kernel
def held(layout):
    return layout.width
"""
TYPED_CALL = """
from olr_pg.kernel_test_code import held
from olr_pg.kernel_test_layout import *
print(held(CURRENT(5)))
"""


def test_a_module_is_known_by_all_that_it_imports() -> None:
    found = imported("olr_pg.wire.encoder")
    assert "olr_pg.kernels.compile" in found
    assert "olr_pg.transactions.finished_columns" in found  # through others
    assert not any(name.startswith("olr_pg.server") for name in found)
    assert "olr_pg.errors" not in found  # which no kernel is made of
    assert sources_digest("olr_pg.wire.encoder") != sources_digest("olr_pg.redo.log_extraction")


def test_a_kernel_is_compiled_anew_when_what_it_imports_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _package(tmp_path, monkeypatch, KERNEL, CALL)
    assert answer("WIDTH = 2") == "14 0"
    assert answer("WIDTH = 2") == "14 1"
    assert answer("WIDTH = 3") == "21 0"
    assert answer("WIDTH = 2") == "14 1"


def test_so_is_a_kernel_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's kernel is made of the package's parts."""
    call = CALL.replace("olr_pg.kernel_test_code", "outside")
    answer = _package(tmp_path, monkeypatch, KERNEL, call)
    (tmp_path / "outside.py").write_text(KERNEL)
    assert answer("WIDTH = 2") == "14 0"
    assert answer("WIDTH = 2") == "14 1"
    assert answer("WIDTH = 3") == "21 0"


def _package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, call: str
) -> Callable[[str], str]:
    """What a kernel answers with a layout, in a package that has nothing but the decorators."""
    package = tmp_path / "olr_pg"
    package.mkdir()
    shutil.copytree(Path(olr_pg.__file__).parent / "kernels", package / "kernels")
    (package / "__init__.py").touch()
    (package / "kernel_test_code.py").write_text(kernel)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def answer(layout: str) -> str:
        (package / "kernel_test_layout.py").write_text(layout + "\n")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        environment.pop("NUMBA_DISABLE_JIT", None)
        return subprocess.run(
            [sys.executable, "-B", "-c", call],
            env=environment,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    return answer


def test_a_kernel_is_compiled_anew_when_the_type_of_its_argument_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its module does not import the type's."""
    answer = _package(tmp_path, monkeypatch, TYPED_KERNEL, TYPED_CALL)
    layout = "from typing import NamedTuple\nclass {0}(NamedTuple):\n    width: int\nCURRENT = {0}"
    assert answer(layout.format("Old")) == "5"
    assert answer(layout.format("New")) == "5"

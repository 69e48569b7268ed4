"""Compiled kernels on disk: found while the sources are what they were, and only then.

The digest of a kernel's sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import olr_pg
from olr_pg.kernels.cache import imported, sources_digest
from olr_pg.kernels.late_dispatcher import MAKERS

if TYPE_CHECKING:
    from collections.abc import Callable


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


def test_a_kernel_is_compiled_anew_when_what_it_imports_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _package(tmp_path, monkeypatch, KERNEL, CALL)
    assert answer("WIDTH = 2") == "14 0"
    assert answer("WIDTH = 2") == "14 1"
    assert answer("WIDTH = 3") == "21 0"
    assert answer("WIDTH = 2") == "14 1"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_kernel_is_compiled_anew_when_its_file_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Nothing syncs these files, so a power failure can cut them."""
    answer = _package(tmp_path, monkeypatch, KERNEL, CALL)
    assert answer("WIDTH = 2") == "14 0"
    (file,) = tmp_path.rglob(f"kernel_test_code.widened*.{suffix}")
    for size in (0, file.stat().st_size // 2):
        os.truncate(file, size)
        assert answer("WIDTH = 2") == "14 0"
    assert answer("WIDTH = 2") == "14 1"


def test_so_is_a_kernel_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's kernel is made of the package's parts."""
    call = CALL.replace("olr_pg.kernel_test_code", "outside")
    answer = _package(tmp_path, monkeypatch, KERNEL, call)
    (tmp_path / "outside.py").write_text(KERNEL)
    assert answer("WIDTH = 2") == "14 0"
    assert answer("WIDTH = 2") == "14 1"
    assert answer("WIDTH = 3") == "21 0"


def test_sources_that_change_while_a_process_runs_leave_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade while it runs: its code is of the old sources, the files are the new ones."""
    change = "open('olr_pg/kernel_test_layout.py', 'w').write('WIDTH = 3\\n')\n"
    late = CALL.replace("print", change + "print", 1)
    old = _package(tmp_path, monkeypatch, KERNEL, late)
    new = _called(tmp_path, CALL)
    assert old("WIDTH = 2") == "14 0"
    assert new("WIDTH = 3") == "21 0", "it was compiled of the new sources"
    assert new("WIDTH = 3") == "21 1"
    assert old("WIDTH = 2") == "14 0", "what was compiled of the new ones is not for the old code"


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
    return _called(tmp_path, call)


def _called(folder: Path, call: str) -> Callable[[str], str]:
    """What a call prints with a layout."""

    def answer(layout: str) -> str:
        (folder / "olr_pg" / "kernel_test_layout.py").write_text(layout + "\n")
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        environment.pop("NUMBA_DISABLE_JIT", None)
        return subprocess.run(
            [sys.executable, "-B", "-c", call],
            env=environment,
            cwd=folder,
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


LOADED = """
import sys
from olr_pg.kernels.cache import is_on_disk
from olr_pg.kernel_test_code import widened
was_there = is_on_disk(widened)
result = widened(7)
(found,) = widened.overloads.values()
print(result, was_there, type(found.library).__name__, "numba.np.arraymath" in sys.modules)
"""
INLINED = """
from numba import njit
from olr_pg.kernel_test_code import widened
widened(7)
(loaded,) = widened.overloads.values()
before = loaded.library._shared_module
several = njit(lambda n: widened(n) + widened(n + 1))
print(several(7), before, loaded.library._shared_module is None)
"""


def test_one_from_the_disk_is_loaded_without_what_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _package(tmp_path, monkeypatch, KERNEL, LOADED)
    assert answer("WIDTH = 2") == "14 False KernelLibrary True"
    assert answer("WIDTH = 2") == "14 True LoadedLibrary False"


def test_one_from_the_disk_is_part_of_one_that_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = _package(tmp_path, monkeypatch, KERNEL, LOADED)
    assert answer("WIDTH = 2") == "14 False KernelLibrary True"
    answer = _called(tmp_path, INLINED)
    assert answer("WIDTH = 2") == "30 None False"


def test_a_user_who_may_write_no_cache_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system user without a home, and a program that root has installed."""
    _package(tmp_path, monkeypatch, KERNEL, CALL)
    shutil.copy(Path(olr_pg.__file__).parent / "errors.py", tmp_path / "olr_pg")
    shutil.rmtree(tmp_path / "olr_pg" / "__pycache__", ignore_errors=True)
    (tmp_path / "olr_pg" / "__pycache__").touch()  # no directory, for root too
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "/dev/null/none")
    answer = _called(
        tmp_path,
        "from olr_pg.errors import OlrPgError\n"
        "from olr_pg.kernel_test_code import widened\n"
        "try:\n    widened(7)\nexcept OlrPgError as error:\n    print(error)",
    )
    assert answer("WIDTH = 2").startswith(
        "OLR-01222: there is no directory for compiled kernels that this user can write: this user"
        " can write neither in NUMBA_CACHE_DIR (/dev/null/none)"
    )


def test_a_module_is_known_by_all_that_it_imports() -> None:
    found = imported("olr_pg.wire.encoder")
    assert "olr_pg.kernels.compile" in found
    assert "olr_pg.transactions.finished_columns" in found  # through others
    assert not any(name.startswith("olr_pg.server") for name in found)
    assert "olr_pg.errors" not in found  # which no kernel is made of
    assert sources_digest("olr_pg.wire.encoder") != sources_digest("olr_pg.redo.log_extraction")


def test_what_compiles_kernels_counts() -> None:
    assert {"olr_pg.kernels.cache", "olr_pg.kernels.dispatchers"} <= {MAKERS, *imported(MAKERS)}

"""How a process of ``olr-pg`` is set: seen in a process that has run a command."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from typing import Any

import pytest

LOOK = """
import ctypes, gc, json, sys, threading
from contextlib import suppress
from pathlib import Path

sys.argv = ["olr-pg", "version"]
from olr_pg.cli.entry import run

with suppress(SystemExit):
    run()

thresholds = [gc.get_threshold()[0]]
gc.collect()
thresholds.append(gc.get_threshold()[0])
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(THREADS)

def allocate():
    together.wait()
    libc.malloc(ctypes.c_size_t(10_000))
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
heaps = 0
if hasattr(libc, "malloc_info"):
    file = ctypes.c_void_p(libc.fopen(MALLOC_FILE.encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    heaps = Path(MALLOC_FILE).read_text().count("<heap nr=")
print(json.dumps({"switch": sys.getswitchinterval(), "heaps": heaps, "thresholds": thresholds}))
"""
THREADS = 16


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("process") / "malloc.xml"
    script = LOOK.replace("THREADS", str(THREADS)).replace("MALLOC_FILE", repr(str(path)))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_threads_ask_for_the_interpreter_soon(seen: dict[str, Any]) -> None:
    assert seen["switch"] == pytest.approx(0.0005)


def test_nothing_looks_for_cycles_before_a_command_has_begun(seen: dict[str, Any]) -> None:
    first, then = seen["thresholds"]
    assert first == 25 * then


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas to bound")
def test_threads_share_their_heaps(seen: dict[str, Any]) -> None:
    """What one thread has freed, the others use: memory does not grow with the threads."""
    assert 0 < seen["heaps"] <= 4

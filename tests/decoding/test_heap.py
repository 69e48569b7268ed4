"""How glibc keeps what a process frees, in processes of their own."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

PROBE = """
import ctypes
from olr_pg.decoding.heap import {function}
libc = ctypes.CDLL(None)
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
libc.mallinfo2.restype = Info
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def mapped(size):
    before = libc.mallinfo2().hblks
    place = libc.malloc(ctypes.c_size_t(size))
    found = libc.mallinfo2().hblks - before
    libc.free(place)
    return found
# By default glibc raises its threshold to the largest that was freed.
mapped(30 << 20)
{function}()
print(mapped(31 << 20), mapped(8 << 20), mapped(1 << 20))
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library is not a recent glibc"
)
@pytest.mark.parametrize(
    ("function", "found"), [("give_back_large_memory", "1 1 0"), ("keep_freed_memory", "0 0 0")]
)
def test_what_is_large_is_mapped_or_kept(function: str, found: str) -> None:
    command = [sys.executable, "-c", PROBE.format(function=function)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found

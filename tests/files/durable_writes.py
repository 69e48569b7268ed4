"""Records the order in which files are synced and renamed: a kill shows nothing of it, since what
a killed process wrote stays in the page cache. Only a power failure loses what was not synced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest


class Writes(NamedTuple):
    """What a test did: ``sync PATH`` and ``rename PATH``, the path after the renaming."""

    done: list[str]

    def keep(self, path: Path) -> bool:
        """Whether a file is there after a power failure: its content was synced, then it got its
        name, and then the directory was synced."""
        synced, named, known = self._last(f"sync {path}"), self._last(f"rename {path}"), -1
        for name in (path.parent, path.parent.resolve()):
            known = max(known, self._last(f"sync {name}"))
        return -1 < synced < known and named < known

    def _last(self, event: str) -> int:
        return max((at for at, one in enumerate(self.done) if one == event), default=-1)


def recorded(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Record from now on."""
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(file: int) -> None:
        sync(file)
        done.append(f"sync {Path(f'/proc/self/fd/{file}').readlink()}")

    def replace(path: Path, target: Path) -> Path:
        new = rename(path, target)
        done[:] = [one.replace(f"sync {path}", f"sync {target}") for one in done]
        done.append(f"rename {target}")
        return new

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return Writes(done)

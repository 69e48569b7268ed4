"""Carries out steps on the files of the online logs and of the archive."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.online_redo.steps import (
    Archived,
    CopyToArchive,
    CreateFile,
    Event,
    ForbidReading,
    OpenResetlogs,
    RemoveFile,
    Write,
    WriteArchive,
)

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.online_redo.steps import Step

_PRIVATE: Final = 0o000
_PUBLIC: Final = 0o644
_ZEROS: Final = 1 << 20


class OnlineFiles:
    """The folders in which steps are carried out; a context manager.

    Args:
        online: folder of the members' files; created if it does not exist.
        archive: folder of the archived logs; created if it does not exist.
        making: folder in which archived logs grow before they are renamed into `archive`; None:
            they grow in `archive`.
    """

    def __init__(self, online: Path, archive: Path, making: Path | None = None) -> None:
        for folder in (online, archive, *(() if making is None else (making,))):
            folder.mkdir(parents=True, exist_ok=True)
        self._online, self._archive, self._making = online, archive, making or archive
        self._open = dict[str, int]()

    def __enter__(self) -> OnlineFiles:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def apply(self, step: Step) -> None:
        """Carry a step out.

        Raises:
            OSError: an operation of the file system failed.
        """
        match step:
            case Write():
                os.pwrite(self._member(step.member), step.data, step.offset)
            case CreateFile():
                self._create(step)
            case RemoveFile():
                self._close(step.member)
                (self._online / step.member).unlink(missing_ok=True)
            case ForbidReading():
                mode = _PRIVATE if step.forbidden else _PUBLIC
                (self._online / step.member).chmod(mode)
            case WriteArchive():
                (self._making / step.name).write_bytes(step.data)
            case CopyToArchive():
                self._copy(step)
            case Archived():
                if self._making != self._archive:
                    (self._making / step.name).rename(self._archive / step.name)
            case Event() | OpenResetlogs():
                pass

    def _create(self, step: CreateFile) -> None:
        """Fill a file with zeros; an existing file is overwritten in place, as by CLEAR LOGFILE."""
        path = self._online / step.member
        path.touch(_PUBLIC)
        file = self._member(step.member)
        os.ftruncate(file, step.size)
        for at in range(0, step.size, _ZEROS):
            os.pwrite(file, bytes(min(_ZEROS, step.size - at)), at)
        os.pwrite(file, step.block_0, 0)

    def _copy(self, step: CopyToArchive) -> None:
        data = os.pread(self._member(step.member), step.size, step.offset)
        with (self._making / step.name).open("r+b", buffering=0) as file:
            file.seek(step.offset)
            file.write(data)

    def _member(self, name: str) -> int:
        """Return the file's descriptor. It stays open, so that it works after the file was made
        unreadable.
        """
        if name not in self._open:
            self._open[name] = os.open(self._online / name, os.O_RDWR)
        return self._open[name]

    def _close(self, name: str) -> None:
        if name in self._open:
            os.close(self._open.pop(name))

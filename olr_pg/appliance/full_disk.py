"""Handles a full disk while the appliance starts. At this time no part of the appliance can wait
for space.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.disk_room import tells_of_full_disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def full_disk_told(data: Path) -> Iterator[None]:
    """Convert the error of a full disk to an error with a code, so that it is not reported as a
    defect.

    Args:
        data: `context.data`.

    Raises:
        OlrPgError: 1160, the disk is full.
    """
    try:
        yield
    except OSError as error:
        if not tells_of_full_disk(error):
            raise
        raise OlrPgError(Code.DATA_DISK_FULL, plain_reason(error), path=str(data)) from error

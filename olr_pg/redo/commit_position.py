"""The order of transactions that commit at one SCN: where their commit records are."""

from __future__ import annotations

from typing import Any, NamedTuple


class CommitPosition(NamedTuple):
    """The position of a commit record in the redo; orders transactions of one commit SCN.

    Attributes:
        delay: by how many SCNs the record is behind the commit SCN: 0, except for the children of
            parallel DML (redo-format §4.4). They come after their coordinator, whichever redo
            threads both are in, because they may have changed rows that it changed before.
        thread, sequence, block, offset: of the record.
    """

    delay: int
    thread: int
    sequence: int
    block: int
    offset: int

    def place(self) -> dict[str, Any]:
        """Return the place of the record, as errors name it."""
        return {name: value for name, value in self._asdict().items() if name != "delay"}

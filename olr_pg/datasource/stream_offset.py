"""The offset of a stream: how far each redo thread was read, as Spark's checkpoint keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.datasource.ownership import Place
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ThreadOffset(NamedTuple):
    """How far a redo thread was read.

    Attributes:
        place: everything that commits in front of it was delivered.
        open_sequence: the log in which the oldest transaction begins that is open there: what goes
            on from here needs the logs from that one on.
    """

    place: Place
    open_sequence: int


class StreamOffset(NamedTuple):
    """How far the redo was read.

    Attributes:
        incarnation: the resetlogs id of the redo; 0: nothing was read.
        scn: of the last commit in front of it; 0: there was none.
        threads: by redo thread; those that are not among them were not begun.
    """

    incarnation: int
    scn: int
    threads: Mapping[int, ThreadOffset]

    def as_json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        threads = {
            str(thread): {
                "sequence": one.place.sequence,
                "block": one.place.block,
                "open": one.open_sequence,
            }
            for thread, one in sorted(self.threads.items())
        }
        return {"incarnation": self.incarnation, "scn": self.scn, "threads": threads}


BEGINNING = StreamOffset(0, 0, {})


def parse_offset(offset: Any) -> StreamOffset:
    """Parse what `StreamOffset.as_json` gave.

    Raises:
        OlrPgError: 6221, it is something else.
    """
    try:
        threads = {
            int(thread): ThreadOffset(
                Place(int(one["sequence"]), int(one["block"])), int(one["open"])
            )
            for thread, one in offset["threads"].items()
        }
        return StreamOffset(int(offset["incarnation"]), int(offset["scn"]), threads)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OlrPgError(Code.STREAM_OFFSET, f"there is no {error}") from error

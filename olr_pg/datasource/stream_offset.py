"""The offset of a stream: the position in each redo thread, as stored in Spark's checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.datasource.ownership import Place
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ThreadOffset(NamedTuple):
    """The position in a redo thread.

    Attributes:
        place: everything that commits before it was delivered.
        open_sequence: the log in which the oldest transaction begins that is open there; continuing
            from here needs the logs from that one on.
    """

    place: Place
    open_sequence: int


class StreamOffset(NamedTuple):
    """The position in the redo.

    Attributes:
        incarnation: the resetlogs id of the redo; 0 if nothing was read.
        scn: of the last commit before it; 0 if there was none.
        threads: by redo thread; missing threads were not begun.
    """

    incarnation: int
    scn: int
    threads: Mapping[int, ThreadOffset]

    def as_json(self) -> dict[str, Any]:
        """Return the offset in the form for Spark."""
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
    """Parse the result of `StreamOffset.as_json`.

    Raises:
        OlrPgError: 6221, it has another form.
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

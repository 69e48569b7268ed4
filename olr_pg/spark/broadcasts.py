"""Broadcasts that outlive the jobs they were made for.

What an appliance's tasks need stays the same from log to log. A broadcast of its own for each call
would leave a file behind every time, until the JVM happens to collect its garbage.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import Broadcast, SparkContext

KEPT: Final = 2
"""Broadcasts that stay while nobody uses them."""

_Key = tuple[str, bytes]


@dataclass(slots=True)
class _Held:
    broadcast: Broadcast[bytes]
    users: int = 0


class Broadcasts:
    """Keeps the broadcasts of this process, the least recently used first; for any thread."""

    def __init__(self) -> None:
        self._held: OrderedDict[_Key, _Held] = OrderedDict()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def borrow(self, context: SparkContext, data: bytes) -> Iterator[Broadcast[bytes]]:
        """Lend the broadcast of `data` for as long as the block runs."""
        key = context.applicationId, hashlib.sha256(data).digest()
        with self._lock:
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(context.broadcast(data))
            held.users += 1
            self._held.move_to_end(key)
        try:
            yield held.broadcast
        finally:
            with self._lock:
                held.users -= 1
                self._drop_unused(key[0])

    def _drop_unused(self, application: str) -> None:
        from py4j.protocol import Py4JError

        unused = [key for key, held in self._held.items() if held.users == 0]
        for key in unused[: max(0, len(self._held) - KEPT)]:
            dropped = self._held.pop(key)
            # What belonged to a session that has ended went with it.
            if key[0] == application:
                with contextlib.suppress(Py4JError, OSError):
                    dropped.broadcast.destroy()


BROADCASTS: Final = Broadcasts()

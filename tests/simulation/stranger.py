"""A second client at the server's port.

The stranger never confirms what it was sent: whatever else it does, no checkpoint moves on account
of it, and where the place is the bundled applier's it gets none. The other client is honest, but
not the applier: what it confirms the target does not have, so that the applier must not believe
the checkpoint that it leaves behind.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from olr_pg.wire.messages import AnswerCode, RequestCode
from tests.simulation.plan import Leaving

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.plan import StrangerFault

ANOTHER_CLIENT: Final = 4008
TAKEN: Final = 60
LOOK_SECONDS: Final = 0.005
HONEST_SECONDS: Final = 20.0
NOTHING_MORE: Final = 5
COMMIT: Final = 2


def foreign_query(query: str) -> str:
    """The tables of a query, in words that tell the honest client from the applier."""
    return f"{query} "


def confirmed_by_foreign(query: str) -> str:
    """What the checkpoint knows the honest client by."""
    return f"tables {hashlib.sha256(foreign_query(query).encode()).hexdigest()}"


class Speaker:
    """Speaks the protocol with `struct` alone.

    Args:
        order: "little" or "big".
    """

    def __init__(self, connected: socket.socket, order: str) -> None:
        self.socket = connected
        self._prefix = "<" if order == "little" else ">"
        self._stream = connected.makefile("rwb")

    def ask(self, code: int, body: bytes = b"") -> tuple[int, bytes]:
        self._stream.write(struct.pack(self._prefix + "IH", 2 + len(body), code) + body)
        self._stream.flush()
        head = self._stream.read(6)
        if len(head) < 6:
            raise ConnectionResetError("the server has ended the connection")
        size, answer = struct.unpack(self._prefix + "IH", head)
        return answer, self._stream.read(size - 2)

    def ask_scn(self, code: int, scn: int) -> tuple[int, bytes]:
        return self.ask(code, struct.pack(self._prefix + "Q", scn))

    def number(self, layout: str, body: bytes, at: int = 0) -> int:
        found: int = struct.unpack_from(self._prefix + layout, body, at)[0]
        return found

    def close(self) -> None:
        with suppress(OSError):  # what was not sent yet has nowhere to go
            self._stream.close()
        self.socket.close()


class Stranger:
    """At work from the start to `end`, in a thread of its own.

    Args:
        address: of the server; OSError while there is none.
        is_kept: whether the place is the bundled applier's.

    Attributes:
        tripped: set when it has come and gone.
        broken: what it got and must not get.
    """

    def __init__(
        self,
        fault: StrangerFault,
        address: Callable[[], tuple[str, int]],
        query: str,
        order: str,
        *,
        is_kept: bool,
    ) -> None:
        self._fault = fault
        self._address = address
        self._query = query
        self._order = order
        self._is_kept = is_kept
        self._over = threading.Event()
        self._connected: socket.socket | None = None
        self.tripped = threading.Event()
        self.broken: str | None = None
        self._thread = threading.Thread(target=self._run, name="stranger", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._connected is not None:
            _shut(self._connected)
        self._thread.join()

    def _run(self) -> None:
        self._over.wait(self._fault.seconds)
        while not self._over.is_set():
            try:
                self._connected = socket.create_connection(self._address(), timeout=30)
            except OSError:
                self._over.wait(LOOK_SECONDS)
                continue
            speaker = Speaker(self._connected, self._order)
            try:
                self._misbehave(speaker)
            except OSError:
                pass  # the server was killed, or has ended it: it has been there
            finally:
                speaker.close()
            self.tripped.set()
            return

    def _misbehave(self, speaker: Speaker) -> None:
        fault = self._fault
        answer, body = speaker.ask(RequestCode.TABLE_LIST, self._query.encode())
        if answer == AnswerCode.ERROR:
            self._expect(speaker.number("I", body) == ANOTHER_CLIENT, f"{body!r}")
            return
        self._expect(not self._is_kept, "the place of the bundled applier")
        speaker.ask_scn(RequestCode.START_SCN, fault.start_scn)
        for claim in fault.claims:
            answer, body = speaker.ask_scn(RequestCode.LAST_COMMITED_SCN, claim)
            if claim:
                self._expect(answer == AnswerCode.ERROR, f"{answer} for the claim {claim}")
        for _ in range(fault.taken):
            speaker.ask_scn(RequestCode.LAST_COMMITED_SCN, 0)
        if fault.back_to is not None:
            speaker.ask_scn(RequestCode.BACK_TO_SCN, fault.back_to)
        self._over.wait(fault.hangs)
        if fault.leaving is Leaving.LOG_OFF:
            speaker.socket.sendall(struct.pack(
                "<IH" if self._order == "little" else ">IH", 2, RequestCode.LOG_OFF
            ))  # fmt: skip

    def _expect(self, is_so: bool, words: str) -> None:
        if not is_so:
            self.broken = f"a stranger at the port got {words}"


def take_and_confirm_all(address: Callable[[], tuple[str, int]], query: str, order: str) -> None:
    """An honest client that is not the applier: takes what there is and confirms it."""
    deadline = time.monotonic() + HONEST_SECONDS
    while True:
        try:
            connected = socket.create_connection(address(), timeout=30)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)
    speaker = Speaker(connected, order)
    try:
        _take_and_confirm(speaker, query, deadline)
    finally:
        speaker.close()


def _take_and_confirm(speaker: Speaker, query: str, deadline: float) -> None:
    answer, body = speaker.ask(RequestCode.GET_SAVED_SCN)
    saved = speaker.number("Q", body, 2)
    speaker.ask(RequestCode.TABLE_LIST, foreign_query(query).encode())
    answer, body = speaker.ask_scn(RequestCode.START_SCN, saved)
    if answer == AnswerCode.ERROR:
        return  # the logs are not there yet
    seen = idle = 0
    while idle < NOTHING_MORE and time.monotonic() < deadline:
        answer, body = speaker.ask_scn(RequestCode.LAST_COMMITED_SCN, seen if idle else 0)
        if answer == AnswerCode.ERROR:
            return
        if answer == AnswerCode.NO_MORE:
            idle += 1
            time.sleep(0.05)
        else:
            idle = 0
            if body[0] == COMMIT:
                seen = speaker.number("Q", body, 9)


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is closed already

"""BFILEs of the stand-in: a session opens and reads files of directory objects.

Source of the facts: what python-oracledb's thin mode sends and accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.ttc_messages import LobOperation, Message, write_status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from olr_pg.simulator.oracle_net.ttc import TtcWriter
    from olr_pg.simulator.oracle_net.ttc_messages import LobRequest
    from olr_pg.simulator.oracle_net.values import Bfile


_WITH_AMOUNT: Final = (LobOperation.LENGTH, LobOperation.READ, LobOperation.OPEN)


class SessionFiles:
    """The open files of a session.

    Args:
        directories: the local folders of directory objects, by name.
    """

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = directories
        self._open: dict[Bfile, Path] = {}

    def answer(self, file: Bfile, request: LobRequest, out: TtcWriter) -> int:
        """Carry out a LOB request on a file; return the number of bytes that were sent.

        Raises:
            OraError: as Oracle reports it.
        """
        operation = LobOperation(request.operation)
        amount = sent = 0
        if operation is LobOperation.OPEN:
            self._open[file] = self._path(file)
        elif operation is LobOperation.CLOSE:
            self._opened(file)
            del self._open[file]
        elif operation is LobOperation.LENGTH:
            amount = self._opened(file).stat().st_size
        elif operation is LobOperation.READ:
            with self._opened(file).open("rb") as content:
                content.seek(request.offset - 1)
                piece = content.read(request.amount)
            out.byte(Message.LOB_DATA).bytes_(piece)
            amount = sent = len(piece)
        out.byte(Message.PARAMETER).raw(request.locator)
        if operation in _WITH_AMOUNT:
            out.integer(amount)
        if operation is LobOperation.IS_OPEN:
            out.byte(int(file in self._open))
        write_status(out)
        return sent

    def _path(self, file: Bfile) -> Path:
        if file.directory not in self._directories:
            raise OraError(22285, "non-existent directory or file for FILEOPEN operation")
        path = self._directories[file.directory] / file.name
        if not path.is_file():
            failed = "file or LOB operation FILEOPEN failed\nNo such file or directory"
            raise OraError(22288, failed)
        return path

    def _opened(self, file: Bfile) -> Path:
        if file not in self._open:
            raise OraError(22289, "cannot perform FILEREAD operation on an unopened file or LOB")
        return self._open[file]

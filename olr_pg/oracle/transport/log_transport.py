"""Defines the interface of a log transport, and creates the configured transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.config.source_section import BfileTransport, CommandTransport

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import LogTransportSection, OracleSource
    from olr_pg.oracle.archive import ListedLog
    from olr_pg.oracle.transport.online_ranges import OnlineRanges

_COMMAND_LOOK_SECONDS: Final = 0.5
"""Interval at which online logs are checked if the transport is a command. This interval is long,
because each range needs a process and usually a connection.
"""


class LogTransport(Protocol):
    """Copies logs from Oracle's host to this host; used by several threads."""

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """Copy a log's bytes into a file.

        Args:
            listed: the log to copy; its attribute `name` is the path in Oracle.
            into: the file to write. The file can contain the beginning of the log from an
                interrupted fetch; this part need not be copied again.

        Raises:
            OlrPgError: 7031 or 7033 the fetch failed; `into` contains the bytes copied so far. 7030
                `into` cannot be written.
        """

    def close(self) -> None:
        """End the fetches in progress with an error, and refuse new fetches."""


def make_transport(section: LogTransportSection, source: OracleSource) -> LogTransport:
    """Return the configured transport.

    Args:
        source: the database with the logs.
    """
    if isinstance(section, CommandTransport):
        from olr_pg.oracle.transport.command_transport import LogCommand

        return LogCommand(section)
    if isinstance(section, BfileTransport):
        from olr_pg.oracle.transport.bfile_transport import DirectoryLogs

        return DirectoryLogs(section, source)
    from olr_pg.oracle.transport.sftp_transport import SftpLogs

    return SftpLogs(section)


def open_ranges(section: LogTransportSection, source: OracleSource) -> OnlineRanges:
    """Return the reader of online logs for the configured transport."""
    from olr_pg.oracle.transport.online_ranges import OnlineRanges

    if isinstance(section, CommandTransport):
        from olr_pg.oracle.transport.command_transport import RangeCommand

        command = RangeCommand(section)
        return OnlineRanges(lambda: command, 4, section.command[0], _COMMAND_LOOK_SECONDS)
    if isinstance(section, BfileTransport):
        from olr_pg.oracle.transport.bfile_transport import DirectoryRanges

        return OnlineRanges(
            lambda: DirectoryRanges(section, source), section.sessions, source.server
        )
    from olr_pg.oracle.transport.sftp_transport import SftpHost, SftpRanges

    host = SftpHost(section)
    return OnlineRanges(lambda: SftpRanges(host), section.sessions, str(host), end=host.close)

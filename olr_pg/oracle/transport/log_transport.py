"""What brings an archived log here, whichever way it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from olr_pg.config.source_section import BfileTransport, CommandTransport

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import LogTransportSection, OracleSource
    from olr_pg.oracle.archive import ListedLog
    from olr_pg.oracle.transport.online_ranges import OnlineRanges

_COMMAND_LOOK_SECONDS: Final = 0.5
"""Between two looks at online logs: a command is a process, and mostly a connection, for each
range."""


class LogTransport(Protocol):
    """A way from where Oracle has its logs to here; used by several threads."""

    def fetch(self, listed: ListedLog, into: Path) -> None:
        """Bring a log's bytes into a file.

        Args:
            listed: the log; its `name` is where Oracle has it.
            into: the file. It may hold the beginning of the log, from a try that broke off, which
                need not be brought again.

        Raises:
            OlrPgError: 7031, 7033, it did not come; `into` has what came of it.
        """

    def close(self) -> None:
        """Let fetches at work end with an error, and take no more."""


def make_transport(section: LogTransportSection, source: OracleSource) -> LogTransport:
    """Make the transport that a configuration describes.

    Args:
        source: the database that has the logs.
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
    """Make what reads online logs over the transport that a configuration describes."""
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
    from olr_pg.oracle.transport.sftp_transport import SftpRanges

    place = f"{section.user}@{section.host}:{section.port}"
    return OnlineRanges(lambda: SftpRanges(section), 4, place)

"""A simulated database and a mounted physical standby of it, each behind a stand-in of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from olr_pg.capture.logs import open_log
from olr_pg.simulator.online_redo.online_files import Archived, Event, OpenResetlogs
from olr_pg.simulator.oracle_net.serve import LOGS, LiveServer, StandIn, read_header
from olr_pg.simulator.oracle_net.state import STANDBY_ARCHIVE, STANDBY_LOGS, OracleState
from olr_pg.simulator.oracle_net.ttc_messages import AuthMode

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.online_redo.online_database import OnlineDatabase
    from olr_pg.simulator.online_redo.online_files import Step
    from olr_pg.simulator.simulated_files import SimulatedFiles
    from tests.oracle.live_source import LiveSource


def mounted_standby(snapshot: Snapshot, dbid: int) -> StandIn:
    """A standby that has not received a log. Its user may log in with SYSDG only."""
    state = OracleState(snapshot, dbid=dbid)
    state.archive = STANDBY_ARCHIVE
    state.mount()
    server = StandIn(state)
    server.privileges = frozenset({AuthMode.SYSDG})
    return server


def standby_section(server: str) -> dict[str, Any]:
    """The configuration's `source.standby`."""
    return {"server": server, "user": "olr", "password": "olr", "mode": "SYSDG"}


class Pair(LiveServer):
    """Serves a live simulation as a primary, and as a standby that receives its redo at once.

    It archives a log when the primary does: Oracle does not use a standby log again before it is
    archived, and both use the same files here. A RESETLOGS is a failover: the primary is gone for
    ever, and the standby goes on instead.

    Attributes:
        standby: of it; mounted until the failover.
    """

    standby: StandIn

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        super().begin(files, database)
        self.standby = mounted_standby(files.start, files.simulation.instance.identity.dbid)
        self._open_things.enter_context(self.standby)
        self.standby.state.show_standby_logs(database.control, STANDBY_LOGS)
        self.standby.state.mount()

    def stepped(self, step: Step) -> None:
        self._receive(step)
        super().stepped(step)

    def _receive(self, step: Step) -> None:
        state = self.standby.state
        if isinstance(step, Event | Archived):
            state.scn = max(state.scn, self._database.current_scn())
        match step:
            case Archived():
                header = read_header(self._directory / LOGS / step.name)
                state.archived(step.name, header, moves_scn=False)
            case OpenResetlogs(header):
                assert self._server is not None
                self._server.refusing = True
                self._server.cut()
                state.show_online_logs(self._database.control, STANDBY_LOGS)
                state.activate(header.resetlogs_scn, header.resetlogs, header.activation)


def both(primary: StandIn, standby: StandIn) -> str:
    """A connect descriptor that leads to whichever of the two is the primary."""
    places = "".join(
        f"(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={one.port}))" for one in (primary, standby)
    )
    service = f"(CONNECT_DATA=(SERVICE_NAME={primary.service}))"
    return f"(DESCRIPTION=(ADDRESS_LIST=(FAILOVER=ON){places}){service})"


class StandbyOf:
    """A mounted standby of a finished simulation; it receives the logs that a test says.

    Attributes:
        changes: of the configuration's `source`. Only the standby's directory is mounted.
    """

    def __init__(self, live: LiveSource) -> None:
        dbid = open_log(str(live.summary.logs[0])).header.dbid
        self.server = mounted_standby(live.summary.snapshot, dbid)
        self.state = self.server.state
        self.changes: dict[str, Any] = {
            "standby": standby_section(self.server.connect_string),
            "path-mapping": [STANDBY_ARCHIVE, str(live.mount)],
        }

    def close(self) -> None:
        self.server.close()
        assert self.server.malformed == []

    def receive(self, *logs: Path) -> None:
        """Logs that the primary has archived arrive."""
        for log in logs:
            self.state.archived(log.name, open_log(str(log)).header)

"""The parts of a round: started, watched, started again after they were killed, ended."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import psycopg

from olr_pg.appliance.target import confirming_applier
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.capture.redo_threads import FILE_NAME as THREADS_FILE
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.config.reading import load_config
from olr_pg.decoding.filters import TargetView
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.replicator.recovery.bounded_recovery import DIRECTORY
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import QueueBounds
from olr_pg.spark.session import SparkSettings
from tests.simulation.children import FAILED, Child, Orders
from tests.simulation.entry import (
    PORT,
    AnnouncedListener,
    applier_of,
    following,
    prepared,
    recovery_at_each_log,
    spill_files,
)
from tests.simulation.full_disk import NO_SPACE, FullDisk
from tests.simulation.laws import LawBrokenError
from tests.simulation.online_arrival import FOLDER as ONLINE
from tests.simulation.plan import (
    Action,
    ConnectionFault,
    DiskFault,
    ForeignFault,
    Layout,
    Match,
    Part,
    Round,
    StrangerFault,
    TargetDiskFault,
)
from tests.simulation.planting import planted
from tests.simulation.proxy import LOOPBACK, Trip
from tests.simulation.stranger import Stranger, take_and_confirm_all
from tests.simulation.tripped_link import TrippedLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.dictionary.model import Snapshot
    from tests.simulation.plan import Fault
    from tests.simulation.proxy import Framing
    from tests.simulation.run import Simulation

PARTS: Final = {
    Layout.HERE: (),
    Layout.APART: (Part.SERVER, Part.APPLIER),
    Layout.APPLIANCE: (Part.APPLIANCE,),
}
KILLS: Final = {
    Action.KILL_SERVER: Part.SERVER,
    Action.KILL_APPLIER: Part.APPLIER,
    Action.KILL_APPLIANCE: Part.APPLIANCE,
}
KILLED: Final = -9
TERMINATED: Final = -15
LIVES_MAX: Final = 30
LAST_BYTES: Final = 4_000
DISK_LOOK_SECONDS: Final = 0.1

TERMINATE_BACKENDS: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'olr_pg applier' AND datname = current_database()
"""


class Here:
    """Server and applier in this process; the applier in a thread of its own."""

    def __init__(self, simulation: Simulation) -> None:
        self.error: BaseException | None = None
        self._stack = ExitStack()
        settings = simulation.plan.settings
        self._stack.enter_context(
            prepared(simulation.folder, settings, simulation.subscription, simulation.spark)
        )
        config = load_config(simulation.folder / "config.json")
        snapshot = load_snapshot(str(simulation.folder / "source" / "dictionary.json"))
        data = simulation.folder / "data"
        storage = spill_files(data / "spill", settings)
        identity = source_identity(snapshot.database)
        checkpoint = Checkpoint(data / FILE_NAME, identity)
        decoder = Decoder(
            self._source(simulation, snapshot),
            SparkSettings(),
            threads_file=data / THREADS_FILE,
            follow=following(data),
            storage=storage,
            recovery=recovery_at_each_log(
                data / DIRECTORY, identity, 1, storage, None, {"": checkpoint.image}
            ),
        )
        delivery = Delivery(
            decoder,
            view=TargetView(settings.byte_order == "big", settings.chunk_size),
            bounds=QueueBounds(transactions_max=settings.transactions_max),
            is_told=simulation.plan.tells,
        )
        assert config.apply is not None
        tells = simulation.plan.tells
        name = confirming_applier(config.apply)
        framing: Framing = "big" if settings.byte_order == "big" else "little"
        listener = self._stack.enter_context(
            AnnouncedListener(
                simulation.folder / PORT,
                delivery,
                checkpoint,
                PortSettings(order=simulation.order),
                applier=name if tells else None,
            )
        )

        def inside() -> TrippedLink:
            return TrippedLink(listener.connect(), framing, lambda: simulation.protocol.armed)

        # Where nothing is to be told it is a client like others, who may come before it.
        self._applier = applier_of(
            config,
            (LOOPBACK, simulation.protocol.port),
            inside if tells else None,
            lambda: tells and checkpoint.confirmed_by == name,
        )
        self._thread = threading.Thread(target=self._apply, name="olr-apply")
        self._thread.start()

    def _source(self, simulation: Simulation, snapshot: Snapshot) -> OfflineDatabase:
        logs = [str(simulation.folder / "logs")]
        if not simulation.plan.online:
            return OfflineDatabase(snapshot, logs)
        online = OnlineLogs(simulation.folder / "data" / ONLINE)
        self._stack.callback(online.close)
        groups = [str(simulation.folder / ONLINE)]
        return OfflineDatabase(snapshot, logs, online=online, online_specs=groups)

    def _apply(self) -> None:
        try:
            self._applier.run()
        except BaseException as error:  # noqa: BLE001 - looked at by the simulation's thread
            self.error = error

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._applier.stop()
        self._thread.join()
        self._stack.close()


class Parts:
    """See the module; a context manager from the first start to the last end."""

    def __init__(self, simulation: Simulation, round_: Round) -> None:
        self._simulation = simulation
        self._round = round_
        self._faults = list(round_.faults)
        self._fault: Fault | None = None
        self._trip: Trip | None = None
        self._stranger: Stranger | None = None
        self._children: dict[Part, Child] = {}
        self._here: Here | None = None
        self._lives = 0
        self._forgiven = False
        self._disk = FullDisk(simulation.postgres_string, simulation.schema)
        self._disk_looked = 0.0

    def __enter__(self) -> Self:
        try:
            self._next_fault()
            self._start_missing()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._disarm()
        finally:  # also where a stranger got what it must not get
            for child in self._children.values():
                child.kill()
            self._children.clear()
            if self._here is not None:
                self._here.end()
                self._here = None
            self._simulation.protocol.settle()

    def look_after(self) -> bool:
        """Bury the dead, arm the next fault, start what is missing; whether anything happened.

        Raises:
            LawBrokenError: a part ended that had no reason to.
        """
        self._fill_disk()
        dead = [part for part, child in self._children.items() if child.exit_code is not None]
        here_ended = self._here is not None and not self._here.is_alive
        if not dead and not here_ended and not self._has_tripped():
            return False
        happened = self._has_tripped()
        for part in dead:
            happened |= self._bury(part)
        if here_ended:
            self._end_here()
        if isinstance(self._fault, DiskFault) and happened:
            self._kill(self._fault.part)
            self._children.pop(self._fault.part, None)
        if happened:
            self._simulation.outcome.tripped += 1
            self._forgiven = True
            self._next_fault()
        self._start_missing()
        return True

    def end(self) -> None:
        """End the round as its plan says, and look at what was sent on the port.

        Raises:
            LawBrokenError: a part does not end well; a stream was wrong.
        """
        self._disarm()
        if not self._round.ends_by_kill:
            may_fail = self._forgiven or self._fault is not None
            # The applier first: it says good-bye to the server.
            for part in sorted(self._children):
                code = self._children.pop(part).end()
                if code not in (0, TERMINATED) and not (may_fail and code in (FAILED, KILLED)):
                    raise LawBrokenError(f"{part} ended with {code}\n{self.last_words()}")
        self.__exit__()
        self._simulation.check_streams()

    def last_words(self) -> str:
        """The end of what the children wrote."""
        words = ""
        for part in Part:
            path = self._simulation.folder / f"{part}.log"
            if path.exists():
                words += f"--- {part}\n{path.read_bytes()[-LAST_BYTES:].decode(errors='replace')}\n"
        return words

    # --- lives ---

    def _start_missing(self) -> None:
        for part in PARTS[self._round.layout]:
            if part not in self._children:
                self._count_life()
                if part is not Part.APPLIER:
                    (self._simulation.folder / PORT).unlink(missing_ok=True)
                self._children[part] = Child(self._orders(part))
        if self._round.layout is Layout.HERE and self._here is None:
            self._count_life()
            self._here = Here(self._simulation)

    def _count_life(self) -> None:
        self._lives += 1
        self._simulation.outcome.lives += 1
        if self._lives > LIVES_MAX:
            raise LawBrokenError(f"{self._lives} starts in one round\n{self.last_words()}")

    def _orders(self, part: Part) -> Orders:
        fault = self._fault
        own = None
        if (
            fault is not None
            and not isinstance(
                fault, ConnectionFault | TargetDiskFault | StrangerFault | ForeignFault
            )
            and fault.part is part
        ):
            own = fault
        simulation = self._simulation
        return Orders(
            part,
            simulation.folder,
            simulation.subscription,
            simulation.plan.settings,
            (LOOPBACK, simulation.protocol.port),
            own,
            planted(),
        )

    def _bury(self, part: Part) -> bool:
        """Look at how a part ended; whether the present fault was at work.

        Raises:
            LawBrokenError: it had no reason to.
        """
        child = self._children.pop(part)
        code = child.exit_code
        armed = child.orders.fault is not None and child.orders.fault is self._fault
        if code == KILLED and armed:
            return True
        if code == KILLED and isinstance(self._fault, ConnectionFault):
            return False  # its trip tells
        if code == FAILED and isinstance(self._fault, DiskFault):
            return True
        if code == FAILED and (self._forgiven or self._has_tripped()):
            return False
        raise LawBrokenError(f"{part} ended with {code}\n{self.last_words()}")

    def _end_here(self) -> None:
        here, self._here = self._here, None
        assert here is not None
        here.end()
        if not isinstance(here.error, OlrPgError) or not (self._forgiven or self._has_tripped()):
            raise LawBrokenError(f"the applier ended: {here.error!r}") from here.error

    def _kill(self, part: Part) -> None:
        child = self._children.get(part)
        if child is not None:
            child.kill()

    # --- faults ---

    def _has_tripped(self) -> bool:
        if self._stranger is not None:
            if self._stranger.broken is not None:
                raise LawBrokenError(self._stranger.broken)
            return self._stranger.tripped.is_set()
        return self._trip is not None and self._trip.tripped.is_set()

    def _disarm(self) -> None:
        self._simulation.protocol.arm(None)
        self._simulation.postgres.arm(None)
        self._disk.free()
        self._trip = None
        if self._stranger is not None:
            self._stranger.end()
            broken, self._stranger = self._stranger.broken, None
            if broken is not None:
                raise LawBrokenError(broken)

    def _next_fault(self) -> None:
        self._disarm()
        self._fault = self._faults.pop(0) if self._faults else None
        if isinstance(self._fault, ConnectionFault):
            self._arm(self._fault)
        elif isinstance(self._fault, TargetDiskFault):
            self._trip = Trip(
                *("answers", lambda message: NO_SPACE in message, self._fault.count, "after"),
                *(self._disk.free, False),
            )
            self._simulation.postgres.arm(self._trip)
        elif isinstance(self._fault, StrangerFault):
            simulation = self._simulation
            self._stranger = Stranger(
                self._fault,
                simulation.server_address,
                simulation.query,
                simulation.order.value,
                is_kept=self._round.layout is Layout.APPLIANCE
                or (self._round.layout is Layout.HERE and simulation.plan.tells),
            )
            # Where it has the place, the applier has none.
            self._forgiven = True
        elif isinstance(self._fault, ForeignFault):
            self._let_another_confirm()
            self._next_fault()
        elif self._fault is not None and self._fault.part in self._children:
            # It has to be there from the start of a life: one more kill.
            self._kill(self._fault.part)
            del self._children[self._fault.part]

    def _let_another_confirm(self) -> None:
        """The appliance ends; a server without an applier serves another client meanwhile."""
        simulation = self._simulation
        for child in self._children.values():
            child.kill()
        self._children.clear()
        (simulation.folder / PORT).unlink(missing_ok=True)
        self._count_life()
        server = Child(self._orders(Part.SERVER))
        try:
            take_and_confirm_all(
                simulation.server_address, simulation.query, simulation.order.value
            )
        finally:
            server.kill()
        simulation.outcome.tripped += 1

    def _fill_disk(self) -> None:
        """Let a full disk begin, where it is due and a table is there that it can begin with."""
        is_due = isinstance(self._fault, TargetDiskFault) and not self._has_tripped()
        now = time.monotonic()
        if not is_due or self._disk.is_full or now < self._disk_looked + DISK_LOOK_SECONDS:
            return
        self._disk_looked = now
        if self._disk.fill():
            # Its connections end with it, which an applier that starts does not survive.
            self._forgiven = True

    def _arm(self, fault: ConnectionFault) -> None:
        simulation = self._simulation
        part = KILLS.get(fault.action)
        act: Callable[[], None]
        if part is not None:
            act = partial(self._kill, part)
        elif fault.action is Action.STALL:
            act = partial(_stall, fault.seconds)
        elif fault.action is Action.TERMINATE:
            act = partial(_terminate, simulation.postgres_string)
        else:
            act = _nothing
        # A killed server does not take the applier's connection to PostgreSQL with it.
        cuts = fault.action is Action.CUT or (
            part is not None and not (fault.postgres and part is Part.SERVER)
        )
        self._trip = Trip(
            fault.direction, _matcher(fault), fault.count, fault.moment, act, cuts=cuts
        )
        (simulation.postgres if fault.postgres else simulation.protocol).arm(self._trip)


def _nothing() -> None:
    """The proxy cuts the connection by itself."""


def _stall(seconds: float) -> None:
    threading.Event().wait(seconds)


def _terminate(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(TERMINATE_BACKENDS)


def _matcher(fault: ConnectionFault) -> Callable[[bytes], bool]:
    match fault.match:
        case Match.COMMIT:
            return lambda message: b"COMMIT" in message
        case Match.COPY:
            return lambda message: message.startswith(b"d")
        case Match.ROWS:
            # size, Data, and an element that is neither Begin nor Commit
            return lambda message: len(message) > 6 and sum(message[4:6]) == 4 and message[6] > 2
        case Match.ANY:
            return lambda message: True

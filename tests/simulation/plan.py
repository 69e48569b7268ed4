"""What a seed decides: the source, the appliance's settings, how logs arrive, and the faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.database_shape import DatabaseShape, choose_shape
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.sessions.workload import DdlUse

if TYPE_CHECKING:
    from tests.simulation.proxy import Direction, Moment

UNLOGGED_SOURCES: Final = 0.25
"""How many of the sources do work without redo."""

DDL_SOURCES: Final = 0.75
"""How many of the sources with the random workload have DDL."""

ALTERING_USES: Final = (
    *(DdlUse.FOLLOWED, DdlUse.FOLLOWED),
    *(DdlUse.COLUMNS, DdlUse.COLUMNS, DdlUse.COLUMNS),
    *(DdlUse.BESIDE, DdlUse.BESIDE, DdlUse.BESIDE),
    *(DdlUse.TABLES, DdlUse.TABLES),
    *(DdlUse.STOPPING, DdlUse.STOPPING),
)
"""The DDL of these sources, each as often as it is here."""

TABLES_SIZE: Final = 3
"""How much more redo there is where tables are made, which takes a lot of it."""

ONLINE_SOURCES: Final = 0.35
"""How many of the appliances read online logs."""

ENCRYPTED: Final = 0.3
"""How many of the appliances encrypt their files with rows."""

MOMENTS: Final[tuple[Moment, ...]] = ("before", "half", "after")


class Layout(StrEnum):
    """Where the parts of a round run.

    HERE: server and applier in this process, decoding on Spark. APART: server and applier in a
    child process each: an applier that is told of no DDL. APPLIANCE: ``olr-pg run`` in one child
    process.
    """

    HERE = "here"
    APART = "apart"
    APPLIANCE = "appliance"


class Part(StrEnum):
    """A process that can be killed."""

    SERVER = "server"
    APPLIER = "applier"
    APPLIANCE = "appliance"


class Action(StrEnum):
    """What a fault on a connection does: kill a part; cut it; hold it up; end the backends."""

    KILL_SERVER = "kill-server"
    KILL_APPLIER = "kill-applier"
    KILL_APPLIANCE = "kill-appliance"
    CUT = "cut"
    STALL = "stall"
    TERMINATE = "terminate"


class Match(StrEnum):
    """Which messages a fault counts."""

    ANY = "any"
    COMMIT = "commit"
    COPY = "copy"
    ROWS = "rows"


@dataclass(frozen=True)
class ConnectionFault:
    """A fault at the `count`-th matching message.

    Attributes:
        postgres: on the connections to PostgreSQL, else on those of the protocol.
        seconds: of a stall.
    """

    postgres: bool
    direction: Direction
    match: Match
    count: int
    moment: Moment
    action: Action
    seconds: float = 0.0


@dataclass(frozen=True)
class CallFault:
    """Kill −9 of a part at the `count`-th call or return of a function of its packages."""

    part: Part
    count: int


@dataclass(frozen=True)
class CheckpointFault:
    """Kill −9 of a part while it writes the checkpoint file for the `count`-th time.

    Attributes:
        step: 0 the new file is half written, 1 written, 2 synced, 3 renamed.
    """

    part: Part
    count: int
    step: int


@dataclass(frozen=True)
class DiskFault:
    """No file of a part can grow past `size` bytes, until it is started again."""

    part: Part
    size: int


@dataclass(frozen=True)
class TargetDiskFault:
    """PostgreSQL's disk is full until it has said so `count` times; for tables without rows."""

    count: int


class Leaving(StrEnum):
    """How a client leaves."""

    LOG_OFF = "log-off"
    RESET = "reset"


@dataclass(frozen=True)
class StrangerFault:
    """A second client that confirms nothing that it was sent.

    Attributes:
        seconds: until it begins to knock at the port; 0 is before there is one.
        claims: SCNs that it confirms, which were never sent to it.
        taken: how many elements it asks for.
        hangs: seconds that it stays then, and asks for nothing.
    """

    seconds: float
    start_scn: int
    claims: tuple[int, ...]
    taken: int
    back_to: int | None
    hangs: float
    leaving: Leaving


@dataclass(frozen=True)
class ForeignFault:
    """An honest client that is not the applier takes and confirms everything meanwhile."""


Fault = (
    ConnectionFault
    | CallFault
    | CheckpointFault
    | DiskFault
    | TargetDiskFault
    | StrangerFault
    | ForeignFault
)


@dataclass(frozen=True)
class Placement:
    """A step of the logs' arrival.

    Attributes:
        log: index among the source's logs.
        name: of the file in the folder that is watched.
        share: how much of the log is there then; 1 = all.
        in_place: the file is written to, else it is replaced.
        has_size: the file has its full size from the start; what is not there yet is zero.
        waits: for the transactions that can be there by now, before the next step.
        holds: a little longer: see `online_arrival.OnlineStep`.
    """

    log: int
    name: str
    share: float
    in_place: bool
    waits: bool
    has_size: bool = False
    holds: bool = False


@dataclass(frozen=True)
class Round:
    """Parts that run until everything that has arrived is applied; the faults come one by one.

    Attributes:
        arrivals: how many steps of the arrival it sees.
        ends_by_kill: its processes are killed at the end, else asked to stop.
    """

    layout: Layout
    arrivals: int
    faults: tuple[Fault, ...]
    ends_by_kill: bool


@dataclass(frozen=True)
class Settings:
    """What the appliance is told, or has in place of its constants.

    Attributes:
        memory_bytes: past which open transactions are spilled.
        spill_bytes_min: from which on one piece goes into a file at once.
    """

    byte_order: str
    workers: int
    batch_changes: int
    batch_ms: int
    transactions_max: int
    memory_bytes: int
    spill_bytes_min: int
    chunk_size: int
    copy_rows: int
    window: int
    split_bytes: int


@dataclass(frozen=True)
class Plan:
    """Everything that a seed decides."""

    seed: int
    workload: str
    size: int
    shape: DatabaseShape
    settings: Settings

    def arrivals(self, threads: list[int]) -> list[Placement]:
        """How the logs arrive; `threads` has the redo thread of each, in order of archiving."""
        return _draw_arrivals(Random(self.seed ^ 0xA441), threads)

    @property
    def online(self) -> bool:
        """Whether online logs are read, too; then they are written instead of `arrivals`."""
        return Random(self.seed ^ 0x0E11).random() < ONLINE_SOURCES

    @property
    def encrypted(self) -> bool:
        """Whether the files with rows of an appliance are encrypted."""
        return Random(self.seed ^ 0x5EA1).random() < ENCRYPTED

    @property
    def tells(self) -> bool:
        """Whether something happens to tables that the applier must be told of beside rows.

        An applier that is told of nothing gets nothing from behind what cannot be decoded.
        """
        has_ddl = self.shape.ddl is not DdlUse.NONE and self.workload == "random"
        return has_ddl or self.shape.unlogged

    @property
    def grows(self) -> bool:
        """Whether tables are made, which only the whole appliance takes into its list."""
        return self.shape.ddl is DdlUse.TABLES and self.workload == "random"

    def rounds(self, steps: int) -> list[Round]:
        """The rounds, which see `steps` arrivals or fewer; the last run of all sees the rest."""
        layouts = tuple(one for one in Layout if not self.tells or one is not Layout.APART)
        if self.grows:
            layouts = (Layout.APPLIANCE,)
        rounds = _draw_rounds(Random(self.seed ^ 0xFA17), steps, layouts)
        rng = Random(self.seed ^ 0x57A6)
        return [_with_others(rng, one) for one in rounds]


def draw_plan(seed: int) -> Plan:
    """The plan of a seed."""
    rng = Random(seed ^ 0x51A4)
    workload = rng.choice(("random", "random", "random", "random", "orders"))
    drawn = choose_shape(seed, workload, threads=rng.choice((1, 1, 1, 2)))
    pace = replace(
        drawn.pace,
        log_blocks=rng.choice((12_000, 25_000, 50_000)) // drawn.redo.block_size,
        commit_new_scn=rng.choice((0.1, 0.6, 1.0)),
    )
    shape = replace(
        drawn,
        logging=rng.choice(((Logging.ALL,), (Logging.ALL, Logging.PRIMARY_KEY))),
        sessions=max(drawn.sessions, drawn.threads),
        pace=pace,
        unlogged=workload == "random" and Random(seed ^ 0x1902).random() < UNLOGGED_SOURCES,
        ddl=_draw_ddl(seed),
    )
    settings = Settings(
        byte_order=rng.choice(("little", "little", "little", "big")),
        workers=rng.randint(1, 4),
        batch_changes=rng.choice((1, 5, 50, 5_000)),
        batch_ms=rng.choice((1, 20, 200)),
        transactions_max=rng.choice((1, 3, 10_000)),
        memory_bytes=rng.choice((2_000, 256 << 20)),
        spill_bytes_min=rng.choice((1, 5_000, 16 << 20)),
        chunk_size=rng.choice((1_024, 1 << 20)),
        copy_rows=rng.choice((1, 5, 2_000)),
        window=rng.choice((1, 16, 2_048)),
        split_bytes=rng.choice((6_000, 20_000, 32 << 20)),
    )
    size = rng.choice((40_000, 80_000, 160_000))
    if shape.ddl is DdlUse.TABLES:
        size *= TABLES_SIZE
    return Plan(seed, workload, size, shape, settings)


def _draw_ddl(seed: int) -> DdlUse:
    rng = Random(seed ^ 0xDD1)
    return rng.choice(ALTERING_USES) if rng.random() < DDL_SOURCES else DdlUse.NONE


def _draw_arrivals(rng: Random, threads: list[int]) -> list[Placement]:
    """The first log of every thread comes first; then some come late, twice or in parts."""
    firsts = [threads.index(thread) for thread in sorted(set(threads))]
    rest = [log for log in range(len(threads)) if log not in firsts]
    disorder = rng.choice((0.0, 0.0, 2.0, 5.0))
    rest.sort(key=lambda log: log + rng.uniform(0, disorder))
    in_parts = rng.choice((0.0, 0.3))
    twice = rng.choice((0.0, 0.2))
    waits = rng.choice((0.0, 0.3, 1.0))
    steps = list[Placement]()
    later = list[Placement]()
    for log in (*firsts, *rest):
        name = f"log{log}.arc"
        whole = Placement(log, name, 1.0, rng.random() < 0.5, rng.random() < waits)
        if log not in firsts and rng.random() < in_parts:
            share = rng.choice((0.0, 0.001, rng.random()))
            has_size = rng.random() < 0.4
            steps.append(Placement(log, name, share, True, rng.random() < waits, has_size))
            later.append(whole)
        else:
            steps.append(whole)
        if rng.random() < twice:
            copy = f"copy/{name}"
            later.append(Placement(log, copy, 1.0, False, rng.random() < waits))
        if later and rng.random() < 0.5:
            steps.append(later.pop(0))
    return steps + later


def _draw_rounds(rng: Random, steps: int, layouts: tuple[Layout, ...]) -> list[Round]:
    count = rng.choice((1, 1, 2))
    rounds = list[Round]()
    left = steps
    for number in range(count):
        layout = rng.choice(layouts)
        last = number == count - 1
        arrivals = left if last and rng.random() < 0.7 else rng.randint(min(1, left), left)
        left -= arrivals
        faults = tuple(_draw_fault(rng, layout) for _ in range(rng.randint(1, 4)))
        rounds.append(Round(layout, arrivals, faults, rng.random() < 0.5))
    return rounds


def _with_others(rng: Random, round_: Round) -> Round:
    """A round with other clients at the port among its faults."""
    faults = list[Fault](round_.faults)
    if rng.random() < 0.7:
        faults.insert(rng.choice((0, 0, len(faults))), _draw_stranger(rng, round_.layout))
    if round_.layout is Layout.APPLIANCE and rng.random() < 0.5:
        faults.insert(rng.choice((0, len(faults))), ForeignFault())
    return replace(round_, faults=tuple(faults))


def _draw_stranger(rng: Random, layout: Layout) -> StrangerFault:
    # Where the server has a time-out it is what ends it.
    longest = 60.0 if layout is Layout.APART else 0.5
    return StrangerFault(
        seconds=rng.choice((0.0, 0.0, 0.3, 1.0)),
        start_scn=rng.choice((0, 1, 10**9, 10**9, 10**15, (1 << 63) + 5, (1 << 64) - 1)),
        claims=rng.choice(((), ((1 << 64) - 1,), (10**15, 1 << 63))),
        taken=rng.choice((0, 1, 5, 60)),
        back_to=rng.choice((None, 0, 10**15)),
        hangs=rng.choice((0.0, 0.05, longest)),
        leaving=rng.choice(tuple(Leaving)),
    )


def _draw_fault(rng: Random, layout: Layout) -> Fault:
    kinds: dict[Layout, tuple[str, ...]] = {
        Layout.HERE: ("protocol", "postgres", "postgres", "target-disk"),
        Layout.APART: (
            "protocol",
            "protocol",
            "postgres",
            "postgres",
            "calls",
            "checkpoint",
            "disk",
            "target-disk",
        ),
        Layout.APPLIANCE: ("postgres", "postgres", "calls", "checkpoint", "disk", "target-disk"),
    }
    kind = rng.choice(kinds[layout])
    writer = Part.SERVER if layout is Layout.APART else Part.APPLIANCE
    if kind == "calls":
        part = rng.choice((Part.SERVER, Part.APPLIER)) if layout is Layout.APART else writer
        return CallFault(part, int(10 ** rng.uniform(1.0, 3.7)))
    if kind == "checkpoint":
        return CheckpointFault(writer, rng.choice((1, 1, 2, 5)), rng.randrange(4))
    if kind == "disk":
        return DiskFault(writer, rng.choice((0, 60, 150)))
    if kind == "target-disk":
        return TargetDiskFault(rng.choice((1, 1, 3)))
    return _draw_connection_fault(rng, layout, postgres=kind == "postgres")


def _draw_connection_fault(rng: Random, layout: Layout, *, postgres: bool) -> ConnectionFault:
    soft = [Action.CUT, Action.CUT, Action.STALL]
    kills = {
        Layout.HERE: [],
        Layout.APART: [Action.KILL_SERVER, Action.KILL_APPLIER, Action.KILL_APPLIER],
        Layout.APPLIANCE: [Action.KILL_APPLIANCE] * 3,
    }[layout]
    if postgres:
        match = rng.choice((Match.ANY, Match.COMMIT, Match.COMMIT, Match.COPY))
        action = rng.choice([*soft, Action.TERMINATE, *kills])
        direction: Direction = (
            "answers" if match is Match.ANY and rng.random() < 0.5 else "requests"
        )
    else:
        match = rng.choice((Match.ANY, Match.ROWS))
        direction = "answers" if match is Match.ROWS else rng.choice(("requests", "answers"))
        action = rng.choice([*soft, *kills])
    most = {Match.ANY: 2.0, Match.COMMIT: 1.0, Match.COPY: 0.5, Match.ROWS: 1.7}[match]
    return ConnectionFault(
        postgres,
        direction,
        match,
        int(10 ** rng.uniform(0.0, most)),
        rng.choice(MOMENTS),
        action,
        rng.choice((0.05, 0.3, 1.0)) if action is Action.STALL else 0.0,
    )

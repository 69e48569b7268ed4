"""The child processes of a simulation: what can be killed.

They are forked from a server process that has loaded the kernels (see `warm`), so that each costs
little; they decode without Spark, whose Java would cost seconds each time.
"""

from __future__ import annotations

import faulthandler
import fcntl
import itertools
import multiprocessing
import os
import resource
import signal
import stat
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import olr_pg
from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.schema.followed_steps import step_sql
from tests.simulation.entry import applier_of, prepared
from tests.simulation.plan import CallFault, CheckpointFault, DiskFault, Part, Settings
from tests.simulation.planting import having

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from types import FrameType

ROOT = Path(__file__).parents[2]
FAILED = 3
"""Exit code of an `OlrPgError`, which may be what the faults had to cause."""

_PACKAGES = {
    Part.SERVER: ("server", "wire", "replicator"),
    Part.APPLIER: ("applier", "wire"),
    Part.APPLIANCE: ("server", "applier", "replicator"),
}


@dataclass(frozen=True)
class Orders:
    """What a child is to do.

    Attributes:
        folder: of the seed.
        address: where the applier finds the server.
        fault: of its own, armed from the start.
        bug: that is planted in it.
    """

    part: Part
    folder: Path
    subscription: str
    settings: Settings
    address: tuple[str, int]
    fault: CallFault | CheckpointFault | DiskFault | None = None
    bug: str | None = None


class Child:
    """A running child, which a proxy's thread may kill while another looks how it is.

    Its exit code comes through a pipe, once: of two threads that read it, one would see the end of
    the file, which `multiprocessing` takes for the code 255. So it is read under a lock alone, and
    what waits does not read.
    """

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self._lock = threading.Lock()
        self._process: BaseProcess = _forks().Process(target=run, args=(orders,), daemon=True)
        self._process.start()

    @property
    def exit_code(self) -> int | None:
        with self._lock:
            return self._process.exitcode

    def kill(self) -> None:
        """Kill −9 and wait until it is gone."""
        with self._lock:
            self._process.kill()
        wait([self._process.sentinel])

    def end(self) -> int | None:
        """Ask it to stop."""
        with self._lock:
            self._process.terminate()
        wait([self._process.sentinel], 30)
        code = self.exit_code
        if code is None:
            self.kill()
        return code


def _forks() -> Any:
    context = multiprocessing.get_context("forkserver")
    # A namespace package is found by the path alone; the fork server starts only once.
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    package = str(Path(olr_pg.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([package, *paths]))
    context.set_forkserver_preload(["tests.simulation.warm"])
    return context


def run(orders: Orders) -> None:
    """A child's life."""
    _say_into(orders.folder / f"{orders.part}.log")
    faulthandler.enable()
    with nullcontext() if orders.bug is None else having(orders.bug):
        _live(orders)


def _live(orders: Orders) -> None:
    _arm(orders)
    config = load_config(orders.folder / "config.json")
    try:
        with prepared(orders.folder, orders.settings, orders.subscription, None):
            if orders.part is Part.APPLIER:
                applier = applier_of(config, orders.address)
                signal.signal(signal.SIGTERM, lambda *_: applier.stop())
                applier.run()
            else:
                signal.signal(signal.SIGTERM, _leave)
                run_appliance(
                    config,
                    once=False,
                    apply=orders.part is Part.APPLIANCE,
                    translate=step_sql,
                )
    except OlrPgError as error:
        with suppress(OSError):  # no disk has room for it where that is the fault
            sys.stderr.write(f"{error.label}: {error}\n")
        raise SystemExit(FAILED) from error


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _say_into(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(orders: Orders) -> None:
    match orders.fault:
        case CallFault(count=count):
            _die_at_call(count, _PACKAGES[orders.part])
        case CheckpointFault(count=count, step=step):
            _die_at_checkpoint(count, step)
        case DiskFault(size=size):
            # Set last: the log of this process is a file too. EFBIG stands for ENOSPC.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        case None:
            return


def _die_at_call(count: int, packages: tuple[str, ...]) -> None:
    root = Path(olr_pg.__file__).parent
    prefixes = tuple(str(root / package) + os.sep for package in packages)
    calls = itertools.count(1)

    def profile(frame: FrameType, event: str, _: object) -> None:
        if (
            event in ("call", "return")
            and frame.f_code.co_filename.startswith(prefixes)
            and next(calls) == count
        ):
            _die()

    threading.setprofile(profile)
    sys.setprofile(profile)


def _die_at_checkpoint(count: int, step: int) -> None:
    syncs, renames = itertools.count(1), itertools.count(1)
    sync, rename = os.fsync, Path.replace

    def fsync(file: int) -> None:
        # Each write syncs the new file, then the directory.
        is_due = stat.S_ISREG(os.fstat(file).st_mode) and next(syncs) == count
        # What was synced before stays: a file that only grows loses no more than its last write,
        # and a file that is only read loses nothing.
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        is_new = flags & os.O_ACCMODE != os.O_RDONLY and not flags & os.O_APPEND
        if is_due and step == 0 and is_new:
            os.ftruncate(file, os.fstat(file).st_size // 2)
        if is_due and step <= 1:
            _die()
        sync(file)
        if is_due and step == 2:
            _die()

    def replace(path: Path, target: Path) -> Path:
        new = rename(path, target)
        if Path(target).name == "checkpoint.json" and next(renames) == count and step == 3:
            _die()
        return new

    os.fsync = fsync  # type: ignore[assignment]
    Path.replace = replace  # type: ignore[method-assign,assignment]

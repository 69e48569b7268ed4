"""Faults planted in the decoder's kernels, and whether the scenarios of `olr-pg prove` find them.

    uv run python -m tests.proving.faults record CASES --shape 1   # runs scenarios on the stand-in
    uv run python -m tests.proving.faults plant CASES --count 100  # plants faults, judged by replay

`record` keeps what the judge is given: dictionary, logs, and rows at each commit. With `--shape`
the stand-in is a database of another version, block size and byte order: a decoder has branches
that no other one reaches. `plant` draws faults (tools/planted_faults.py), one at a time in a forked
process, with nothing compiled. It decodes scenarios that call the kernel, the quickest first, until
one has another verdict. A fault that no scenario notices is decoded from simulated databases, too:
if those differ, it changes a result, and the rest of the scenarios is asked. What the quick ones of
both do not notice is taken to change nothing.
"""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import pickle
import resource
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if __name__ == "__main__" and "plant" in sys.argv:
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports Numba

from olr_pg.errors import OlrPgError
from olr_pg.observability.logging_setup import configure_logging
from olr_pg.proving.logminer import LOST, decoded_events
from olr_pg.proving.prove_run import chosen_scenarios
from olr_pg.proving.replay import check_replay
from olr_pg.simulator.database_shape import choose_shape
from tools.planted_faults import ROOT, faults, forked, kernels, plant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.proving.replay import Moment
    from tools.planted_faults import Fault

CPU_FACTOR: Final = 5
CPU_SECONDS: Final = 10
"""A case that takes so many times its own time, and so many seconds more, is in an endless loop."""

QUICK_SECONDS: Final = 1.5
"""What the scenarios may take that are asked first, and then the simulated databases."""

CASE_BYTES: Final = 100_000
"""Of a scenario's logs: what is larger takes long uncompiled."""

FOUND, UNSEEN, MISSED = "found", "changes nothing", "missed"


class Case(NamedTuple):
    """What the judge is given of a scenario; or, without moments, a simulated database.

    Attributes:
    """

    name: str
    snapshot: Snapshot
    tables: tuple[Table, ...]
    logs: tuple[str, ...]
    start: Moment | None
    moments: tuple[Moment, ...]

    @property
    def size(self) -> int:
        """Of its logs, in bytes."""
        return sum(Path(log).stat().st_size for log in self.logs)

    def verdict(self) -> str:
        """Decode, and judge: the same text means that nobody would notice anything."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                events = decoded_events(self.snapshot, self.logs, self.tables, Path(folder))
            except OlrPgError as error:
                return error.label
            except Exception as error:  # noqa: BLE001 - a fault may break anything
                return type(error).__name__
        if self.start is None:
            return hashlib.sha256("\n".join(map(_text, events)).encode()).hexdigest()
        lost = sum(one["op"] == LOST for one in events)
        return f"{lost} {check_replay(self.start, self.moments, events)}"


def _text(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, default=str)


# --- recording ---


def record(folder: Path, patterns: Sequence[str], number: int | None) -> None:
    """Run scenarios on the stand-in, and keep what the judge is given."""
    from tests.simulator.sql.databases import RENAMES, SHAPES, recorded

    shape = None if number is None else choose_shape(number, "random", threads=1, containers=1)
    for scenario in chosen_scenarios(patterns):
        own = folder / f"{scenario.name.replace('/', '.')}@{'usual' if number is None else number}"
        if scenario.is_large or set(scenario.needs) - set(SHAPES):
            continue
        if any(RENAMES.search(step.text) for step in scenario.steps):
            continue  # the judge goes by names: tests follow such a table
        own.mkdir(parents=True, exist_ok=True)
        try:
            judged = recorded(own, scenario, shape).end()
        except OlrPgError as error:
            sys.stdout.write(f"{own.name}: {error}\n")
            continue
        case = Case(own.name, *judged)
        own.with_name(f"{own.name}.case").write_bytes(pickle.dumps(tuple(case)))
        verdict = case.verdict()
        if not verdict.endswith(" []"):
            sys.stdout.write(f"{own.name} differs without a fault: {verdict}\n")


class Known(NamedTuple):
    """What is known of a case without a fault: its verdict, its CPU seconds, whom it calls."""

    case: Case
    verdict: str
    seconds: float
    calls: frozenset[tuple[str, str]]


def known_cases(folder: Path, largest: int = CASE_BYTES) -> list[Known]:
    """Read what was recorded, without what is larger; the quickest first.

    What is known of a case stands beside it, once it was asked for.
    """
    found = []
    for path in sorted(folder.glob("*.case")):
        case = Case(*pickle.loads(path.read_bytes()))
        if case.size > largest:
            continue
        beside = path.with_name(f"{path.name}.known")
        if not beside.exists():
            beside.write_bytes(pickle.dumps(_looked_at(case)))
        found.append(Known(case, *pickle.loads(beside.read_bytes())))
    return sorted(found, key=lambda one: one.seconds)


def _looked_at(case: Case) -> tuple[str, float, frozenset[tuple[str, str]]]:
    """Decode a case; (verdict, seconds, functions that were called, by module and name)."""
    seen: set[Any] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    began = time.process_time()
    sys.setprofile(note)
    try:
        verdict = case.verdict()
    finally:
        sys.setprofile(None)
    seconds = (time.process_time() - began) / 2  # without a profile
    calls = set()
    for code in seen:
        if "/olr_pg/" in code.co_filename:
            path = Path(code.co_filename).with_suffix("").parts
            at = len(path) - 1 - path[::-1].index("olr_pg")
            calls.add((".".join(path[at:]), code.co_name))
    return verdict, seconds, frozenset(calls)


def simulate_cases(folder: Path, seeds: Sequence[int]) -> None:
    """Simulate databases, small, as nothing is compiled: what decoding prints is the verdict."""
    from olr_pg.capture.logs import discover_logs
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.dictionary.selection import user_tables
    from olr_pg.simulator.simulation import simulate

    folder.mkdir(exist_ok=True)
    for seed in seeds:
        own = folder / f"{seed:04}"
        if own.with_suffix(".case").exists():
            continue
        workload = "lobs" if seed % 3 == 0 else "random"
        simulate(seed, own, workload=workload, size=60_000)
        snapshot = load_snapshot(str(own / "dictionary.json"))
        logs = tuple(log.path for log in discover_logs([str(own / "logs")]))
        tables = user_tables(snapshot).tables
        case = Case(f"{workload} {seed}", snapshot, tables, logs, None, ())
        own.with_suffix(".case").write_bytes(pickle.dumps(tuple(case)))


# --- planting ---


class Drawn(NamedTuple):
    """A fault, and the module it is planted in."""

    module: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.module}:{self.fault.line} {self.fault.kernel}: {self.fault.what}"


def drawn_faults(rooms: Sequence[str], each: int, seed: int) -> list[Drawn]:
    """Draw faults of all kernels of rooms, in random order."""
    found = []
    for room in rooms:
        for path in sorted((ROOT / "olr_pg" / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for kernel in kernels(ast.parse(path.read_text())):
                found += [Drawn(name, fault) for fault in faults(kernel, each)]
    Random(seed).shuffle(found)
    return found


def notices(drawn: Drawn, known: Sequence[Known]) -> str:
    """Return the name of the first case whose verdict is another one with a fault; or nothing."""

    def work(pipe: int) -> int:
        try:
            plant(importlib.import_module(drawn.module), drawn.fault)
        except Exception:  # noqa: BLE001 - it is no kernel any more
            return 1
        for one in known:
            os.write(pipe, f"{one.case.name}\n".encode())
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime + CPU_FACTOR * one.seconds + CPU_SECONDS)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            if one.case.verdict() != one.verdict:
                return 1
        return 0

    status, tried = forked(work)
    return (tried.splitlines()[-1] if tried else "the kernel itself") if status else ""


def _parted(known: Sequence[Known], key: tuple[str, str]) -> tuple[list[Known], list[Known]]:
    """Part the cases that call a kernel: those that are asked first, and the rest."""
    of_it = [one for one in known if key in one.calls]
    spent = accumulate(one.seconds for one in of_it)
    quick = sum(so_far <= QUICK_SECONDS for so_far in spent)
    return of_it[:quick], of_it[quick:]


def campaign(
    cases: Sequence[Known], simulated: Sequence[Known], count: int, rooms: Sequence[str], seed: int
) -> dict[str, list[str]]:
    """Plant faults until so many change a result; return them by what came of each."""
    results: dict[str, list[str]] = {FOUND: [], MISSED: [], UNSEEN: []}
    gc.freeze()  # a forked process copies none of it
    for drawn in drawn_faults(rooms, 2, seed):
        if len(results[FOUND]) + len(results[MISSED]) >= count:
            break
        key = drawn.module, drawn.fault.kernel
        (quick, rest), others = _parted(cases, key), _parted(simulated, key)[0]
        word, by = FOUND, notices(drawn, quick)
        if not by:
            effect = notices(drawn, others)
            by = notices(drawn, rest) if effect else ""
            word, by = (FOUND, by) if by else (MISSED, effect) if effect else (UNSEEN, "")
        called = "" if quick or rest else " (no scenario calls it)"
        line = f"{word}: {drawn}{called}{f', by {by}' if by else ''}"
        results[word].append(line)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    sys.stdout.write(", ".join(f"{len(lines)} {word}" for word, lines in results.items()) + "\n")
    return results


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "plant"))
    parser.add_argument("cases", type=Path)
    parser.add_argument("--scenario", action="append", default=[], help="only these, to record")
    parser.add_argument("--shape", type=int, help="record another database, drawn by this seed")
    parser.add_argument("--count", type=int, default=100, help="faults that change a result")
    parser.add_argument("--room", action="append", help="default: redo, transactions, datatypes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=CASE_BYTES, help="bytes of a case's logs")
    options = parser.parse_args()
    if options.what == "record":
        record(options.cases, options.scenario, options.shape)
        return 0
    configure_logging(0)
    rooms = options.room or ["redo", "transactions", "datatypes"]
    simulate_cases(options.cases / "simulated", range(1, 13))
    simulated = known_cases(options.cases / "simulated", 1 << 20)
    cases = known_cases(options.cases, options.largest)
    found = campaign(cases, simulated, options.count, rooms, options.seed)
    return 1 if found[MISSED] else 0


if __name__ == "__main__":
    sys.exit(main())

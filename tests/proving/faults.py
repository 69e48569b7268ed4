"""Faults planted in the decoder's kernels, and whether the scenarios of `olr-pg prove` find them.

    uv run python -m tests.proving.faults record CASES             # runs scenarios on the stand-in
    uv run python -m tests.proving.faults plant CASES --count 100  # plants faults, judged by replay

`record` keeps what the judge is given: dictionary, logs, and rows at each commit. `plant` draws
faults (tools/planted_faults.py), one at a time in a forked process, with nothing compiled. It
decodes the scenarios that call the kernel, the smallest first, until one differs. A fault that no
scenario notices is decoded from simulated databases, too: if those differ, it changes a result, and
the scenarios have missed it. What neither notices is taken to change nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import pickle
import resource
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if __name__ == "__main__" and "plant" in sys.argv:
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports Numba

from olr_pg.errors import OlrPgError
from olr_pg.observability.logging_setup import configure_logging
from olr_pg.proving import prove_run
from olr_pg.proving.decoded import decoded_events
from olr_pg.proving.prove_run import ProveOptions, prove
from olr_pg.proving.replay import check_replay
from olr_pg.proving.verdicts import Judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.proving.rows_as_of import Moment
    from tools.planted_faults import Fault

CPU_SECONDS: Final = 180
"""For all cases: a fault that makes an endless loop is found."""

CASE_BYTES: Final = 1 << 20
"""Of a scenario's logs: what is larger takes long uncompiled."""

FOUND, UNSEEN, MISSED = "found", "changes nothing", "missed"


class Case(NamedTuple):
    """What the judge is given of a scenario; or, without moments, a simulated database.

    Attributes:
        expected: what decoding prints, where rows are not known.
    """

    name: str
    snapshot: Snapshot
    tables: tuple[Table, ...]
    logs: tuple[str, ...]
    start: Moment | None
    moments: tuple[Moment, ...]
    expected: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its logs."""
        return sum(Path(log).stat().st_size for log in self.logs)

    def differs(self) -> bool:
        """Decode; tell whether the judge notices anything."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                events = decoded_events(self.snapshot, self.logs, self.tables, Path(folder))
            except OlrPgError:
                return True
            except Exception:  # noqa: BLE001 - a fault may break anything
                return True
        if self.start is None:
            return tuple(map(_text, events)) != self.expected
        return bool(check_replay(self.start, self.moments, events))


def _text(event: dict[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, default=str)


# --- recording ---


class _NoTarget:
    """Takes the place of the judge that goes the whole way: here only decoding is judged."""

    def __init__(self, *_: object) -> None: ...

    def clear(self) -> None: ...

    def load(self, _tables: object) -> None: ...

    def judge(self, *_: object) -> Any:
        from olr_pg.proving.verdicts import Verdict, Word

        return Verdict(Word.UNTRIED, "not asked")


def record(folder: Path, patterns: Sequence[str]) -> None:
    """Run scenarios on the stand-in, and keep what the judge is given."""
    from tests.proving.served import served_source

    folder.mkdir(parents=True, exist_ok=True)
    last: dict[str, Any] = {}

    def decoding(snapshot: Any, logs: Any, tables: Any, incidents: Any) -> Any:
        last.update(snapshot=snapshot, logs=logs, tables=tables)
        return decoded_events(snapshot, logs, tables, incidents)

    def replaying(start: Any, moments: Any, events: Any) -> Any:
        own = folder / f"{len(list(folder.glob('*.case'))):03}"
        own.mkdir(exist_ok=True)
        logs = [str(shutil.copy(log, own)) for log in last["logs"]]
        case = Case("", last["snapshot"], last["tables"], tuple(logs), start, tuple(moments))
        last["case"] = case
        own.with_suffix(".case").write_bytes(pickle.dumps(tuple(case)))
        return check_replay(start, moments, events)

    judged = prove_run._Trial.judged

    def naming(trial: Any, scenario: Any) -> Any:
        before = set(folder.glob("*.case"))
        result = judged(trial, scenario)
        for path in set(folder.glob("*.case")) - before:
            path.write_bytes(pickle.dumps(tuple(last["case"]._replace(name=scenario.name))))
        return result

    replaced: Any = prove_run
    replaced.WholeWay, replaced.decoded_events, replaced.check_replay = (
        _NoTarget,
        decoding,
        replaying,
    )
    replaced._Trial.judged = naming
    with tempfile.TemporaryDirectory() as place, served_source(Path(place) / "source") as served:
        config = served.config("host=127.0.0.1")
        proof = prove(config, ProveOptions(patterns, Path(place) / "out"), lambda: last["none"])
        for one in proof.results:
            if one.verdicts[Judge.REPLAY].word.value != "right":
                sys.stdout.write(f"{one.name}: {one.verdicts[Judge.REPLAY]}\n")


def cases_in(folder: Path, largest: int = CASE_BYTES) -> list[Case]:
    """Read what was recorded, the smallest first, without what is larger."""
    found: list[Case] = [Case(*pickle.loads(path.read_bytes())) for path in folder.glob("*.case")]
    return sorted((one for one in found if one.size <= largest), key=lambda one: one.size)


def simulated_cases(seeds: Sequence[int]) -> Iterator[Case]:
    """Simulate databases whose truth is known; small, as nothing is compiled."""
    from olr_pg.capture.logs import discover_logs
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.dictionary.selection import user_tables
    from olr_pg.simulator.simulation import simulate

    for seed in seeds:
        folder = Path(tempfile.mkdtemp(prefix="olr-faults-"))
        workload = "lobs" if seed % 3 == 0 else "random"
        simulate(seed, folder, workload=workload, size=60_000)
        snapshot = load_snapshot(str(folder / "dictionary.json"))
        logs = tuple(log.path for log in discover_logs([str(folder / "logs")]))
        tables = user_tables(snapshot).tables
        case = Case(f"{workload} {seed}", snapshot, tables, logs, None, ())
        with tempfile.TemporaryDirectory() as place:
            events = decoded_events(snapshot, logs, tables, Path(place))
        yield case._replace(expected=tuple(map(_text, events)))


# --- planting ---


class Drawn(NamedTuple):
    """A fault, and the module it is planted in."""

    module: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.module}:{self.fault.line} {self.fault.kernel}: {self.fault.what}"


def drawn_faults(rooms: Sequence[str], each: int, seed: int) -> list[Drawn]:
    """Draw faults of all kernels of rooms, in random order."""
    from tools.planted_faults import ROOT, faults, kernels

    found = []
    for room in rooms:
        for path in sorted((ROOT / "olr_pg" / room).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for kernel in kernels(ast.parse(path.read_text())):
                found += [Drawn(name, fault) for fault in faults(kernel, each)]
    Random(seed).shuffle(found)
    return found


def callers(cases: Sequence[Case]) -> dict[tuple[str, str], list[int]]:
    """Tell which cases call each kernel: by module and name, their numbers."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, case in enumerate(cases):
        seen: set[Any] = set()

        def note(frame: Any, event: str, _: object, seen: set[Any] = seen) -> None:
            if event == "call":
                seen.add(frame.f_code)

        sys.setprofile(note)
        try:
            differs = case.differs()
        finally:
            sys.setprofile(None)
        assert not differs, f"{case.name} differs without a fault"
        for code in seen:
            if "/olr_pg/" in code.co_filename:
                path = Path(code.co_filename).with_suffix("").parts
                at = len(path) - 1 - path[::-1].index("olr_pg")
                found[".".join(path[at:]), code.co_name].append(number)
    return found


def notices(drawn: Drawn, cases: Sequence[Case]) -> str:
    """Return the name of the first case that differs with a fault; empty where none does."""
    from tools.planted_faults import plant

    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        try:
            plant(importlib.import_module(drawn.module), drawn.fault)
            for case in cases:
                os.write(theirs, f"{case.name}\n".encode())
                if case.differs():
                    os._exit(1)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours) as file:
        tried = file.read().splitlines()
    status = os.waitpid(child, 0)[1]
    return (tried[-1] if tried else "the kernel itself") if status else ""


def campaign(
    cases: Sequence[Case], count: int, rooms: Sequence[str], seed: int, seeds: Sequence[int]
) -> dict[str, list[str]]:
    """Plant faults until so many change a result; return them by what came of each."""
    configure_logging(0)
    simulated = list(simulated_cases(seeds))
    known, others = callers(cases), callers(simulated)
    results: dict[str, list[str]] = {FOUND: [], MISSED: [], UNSEEN: []}
    for drawn in drawn_faults(rooms, 2, seed):
        if len(results[FOUND]) + len(results[MISSED]) >= count:
            break
        key = drawn.module, drawn.fault.kernel
        by = notices(drawn, [cases[number] for number in known[key]])
        word = FOUND
        if not by:
            by = notices(drawn, [simulated[number] for number in others[key]])
            word = MISSED if by else UNSEEN
        called = "" if known[key] else " (no scenario calls it)"
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
    parser.add_argument("--count", type=int, default=100, help="faults that change a result")
    parser.add_argument("--room", action="append", help="default: redo, transactions, datatypes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=CASE_BYTES, help="bytes of a case's logs")
    options = parser.parse_args()
    if options.what == "record":
        record(options.cases, options.scenario)
        return 0
    rooms = options.room or ["redo", "transactions", "datatypes"]
    found = campaign(
        cases_in(options.cases, options.largest), options.count, rooms, options.seed, range(1, 13)
    )
    return 1 if found[MISSED] else 0


if __name__ == "__main__":
    sys.exit(main())

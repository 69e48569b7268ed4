"""Histories of a database whose online logs are not mounted, read over lines that are cut.

A tool draws them at random, with redo threads, RESETLOGS, crashes and members that fail. With
``--kills`` the reader is a process that is killed again and again, at random moments:

    python -m tests.oracle.transport.far_histories --count 20 --kind bfile --kills
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.online_logs import MemberWay, OnlineLogs
from olr_pg.config.source_section import OracleSource
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.online_checks import check_online
from olr_pg.oracle.redo_source import read_once
from olr_pg.oracle.transport.log_transport import make_transport, open_ranges
from olr_pg.oracle.vault import LogVault
from olr_pg.simulator.oracle_net.serve import LiveServer
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA, STANDBY_ARCHIVE, STANDBY_LOGS
from tests.oracle.standby_pair import Pair, both, standby_section
from tests.oracle.test_live_online import OPTIONS, Working, all_of, names
from tests.oracle.transport.conftest import SshHost, breaking
from tests.replicator.scripted_source import PATIENCE_SECONDS, SHOP, Delivered, Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.live import LiveOptions

KINDS = ("bfile", "sftp", "command", "standby")
SHORT = replace(OPTIONS, seconds=0.8)
RANGE = 'tail -c +$(($2 + 1)) "$0/$(basename "$1")" | head -c "$3"'
WHOLE = 'cat "$0/$(basename "$1")"'


def far(
    stack: ExitStack,
    kind: str,
    working: Working,
    ssh_host: SshHost,
    vault: Path,
    cut: int | Callable[[], int],
) -> OracleSource:
    """The source of a database whose files are not mounted, over a line that is cut."""
    common: dict[str, Any] = {"path-mapping": [], "vault": {"directory": str(vault)}}
    folder = working.folder
    if kind == "command":
        command = {
            "kind": "command",
            "command": ["sh", "-c", WHOLE, str(folder / "logs"), "{name}"],
            "range-command": [
                *("sh", "-c", RANGE, str(folder / "online")),
                *("{name}", "{offset}", "{size}"),
            ],
        }
        return working.source(**common, transport=command)
    if kind == "bfile":
        working.source()
        port = stack.enter_context(breaking(working.server.port, cut))
        server = f"127.0.0.1:{port}/{working.server.service}"
        return working.source(**common, server=server, transport={"kind": "bfile"})
    port = stack.enter_context(breaking(ssh_host.port, cut))
    ssh_host.known_at(port, ssh_host.port)
    root = f"/backup/{folder.parent.name}/source"
    mapping = [ARCHIVE, f"{root}/logs", ORADATA, f"{root}/online"]
    if kind == "standby":
        working.source()
        standby = working.watch.standby
        common["server"] = both(working.server, standby)
        at = stack.enter_context(breaking(standby.port, cut))
        common["standby"] = standby_section(f"127.0.0.1:{at}/{standby.service}")
        # Nothing of the primary can be read.
        mapping = [STANDBY_ARCHIVE, f"{root}/logs", STANDBY_LOGS, f"{root}/online"]
    section = ssh_host.section(port=port, **{"path-mapping": mapping})
    return working.source(**common, transport=section)


def check_all_comes(
    folder: Path,
    ssh_host: SshHost,
    kind: str,
    options: LiveOptions,
    threads: int = 1,
    cut: int | Callable[[], int] = 150_000,
    kills: random.Random | None = None,
) -> None:
    """Read a database at work to its end: everything comes once and in order.

    Args:
        kills: draws when the process that reads is killed; None: this one reads.
    """
    with ExitStack() as stack:
        home = tempfile.mkdtemp(dir=ssh_host.archive)
        serve = Pair if kind == "standby" else LiveServer
        working = Working(Path(home) / "source", options, threads, serve)
        stack.callback(working.end)
        source = far(stack, kind, working, ssh_host, folder / "vault", cut)
        assert source.transport is not None
        assert source.vault is not None
        found = read_once(source, "testing", lambda _, redo: check_online(redo, source))
        assert found == []
        if kills is None:
            database = _open_database(stack, source, folder)
            got = all_of(working, stack.enter_context(Reader(database, query=SHOP)))
        else:
            got = _killed(working, source, folder, kills)
        truth = working.truth()
        assert truth
        assert names(got) == truth


def _open_database(
    stack: ExitStack, source: OracleSource, folder: Path, scn: int = 0
) -> LiveDatabase:
    assert source.transport is not None
    assert source.vault is not None
    ranges = open_ranges(source.transport, source)
    online = OnlineLogs(
        folder / "spool",
        way=MemberWay(ranges.open, ranges.look_seconds, ranges.close),
    )
    database = LiveDatabase(
        source,
        Lineage(folder / "lineage"),
        start_scn=lambda: scn,
        dictionary=folder / "dictionary.json",
        online=online,
        vault=LogVault(source.vault, lambda: None, make_transport(source.transport, source)),
    )
    stack.callback(database.close)
    return database


def _killed(
    working: Working, source: OracleSource, folder: Path, chance: random.Random
) -> list[Delivered]:
    """What processes write that read one after the other; all but the last are killed."""
    got = folder / "got"
    got.touch()
    context = multiprocessing.get_context("forkserver")
    end = time.monotonic() + PATIENCE_SECONDS
    killed = 0
    while len(read := _written(got)[0]) < len(working.truth()) or working.works:
        assert time.monotonic() < end, (len(read), len(working.truth()))
        assert working.failure is None
        process = context.Process(target=_read_on, args=(source, folder))
        process.start()
        size, early = got.stat().st_size, chance.random() < 0.3
        while not early and got.stat().st_size == size and process.is_alive():
            assert time.monotonic() < end
            time.sleep(0.005)
        process.join(chance.uniform(0, 1.5 if early else 0.4) if working.works else 5.0)
        assert process.exitcode is None, process.exitcode
        process.kill()
        process.join()
        killed += 1
    sys.stdout.write(f"  killed {killed} times, {len(read)} transactions\n")
    return read


def _written(got: Path) -> tuple[list[Delivered], int]:
    """The transactions that processes have written, each once, and where the next one begins."""
    text = got.read_text("utf-8")
    found, scn = dict[Delivered, None](), 0
    for line in text[: text.rfind("\n") + 1].splitlines():
        begin, commit, xid, *rest = map(int, line.split())
        if rest:
            scn = rest[0]
        else:
            found[Delivered(begin, commit, xid)] = None
    return list(found), scn


def _read_on(source: OracleSource, folder: Path) -> None:
    """Read until killed; what was delivered is written before where the next process begins."""
    got = folder / "got"
    _, scn = _written(got)
    text = got.read_bytes()
    with ExitStack() as stack:
        database = _open_database(stack, source, folder, scn)
        reader = stack.enter_context(Reader(database, scn, query=SHOP, resumed=scn > 0))
        file = stack.enter_context(got.open("r+b", buffering=0))
        file.seek(text.rfind(b"\n") + 1)
        file.truncate()
        while (failure := reader.failure()) is None:
            opened = reader.delivery.open_scn()
            lines = [f"{one.begin_scn} {one.commit_scn} {one.xid}\n" for one in reader.take()]
            if opened > scn:
                scn = opened
                lines.append(f"0 0 0 {scn}\n")
            file.write("".join(lines).encode())
            time.sleep(0.005)
        sys.stdout.write(f"  {failure}\n")
        sys.exit(2)


def main() -> None:
    """Draw histories, and tell what each was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    parser.add_argument("--kind", choices=KINDS, help="default: drawn")
    parser.add_argument("--kills", action="store_true", help="kill the process that reads")
    asked = parser.parse_args()
    multiprocessing.set_forkserver_preload([__name__, SshHost.__module__])
    for seed in range(asked.first, asked.first + asked.count):
        _check_drawn(seed, asked.kind, kills=asked.kills)


def _check_drawn(seed: int, of_kind: str | None, *, kills: bool) -> None:
    chance = random.Random(seed)
    kind, threads = chance.choice(KINDS), chance.choice((1, 1, 2, 3))
    kind = of_kind or kind
    happens: dict[str, Any] = chance.choice(
        ({}, {"resetlogs_seconds": 0.5}, {"crash_seconds": 0.4}, {"idle_threads": threads - 1})
    )
    sys.stdout.write(f"seed {seed}: {kind}, {threads} redo threads, {happens or 'quiet'}\n")
    sys.stdout.flush()
    slow: dict[str, Any] = {"rate": 50_000, "seconds": 8.0} if kills else {}
    options = replace(OPTIONS, **happens | slow)
    with tempfile.TemporaryDirectory(prefix="olr-pg-far-") as folder:
        (Path(folder) / "ssh").mkdir()
        host = SshHost(Path(folder) / "ssh")
        try:
            check_all_comes(
                *(Path(folder), host, kind, options, threads),
                lambda: chance.randrange(20_000, 600_000),
                random.Random(seed) if kills else None,
            )
        finally:
            host.close()


if __name__ == "__main__":
    main()

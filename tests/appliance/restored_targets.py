"""Targets that PostgreSQL's own programs copy, restore and fail over, in drawn histories.

    uv run python -m tests.appliance.restored_targets --count 20 --first 1
    uv run python -m tests.appliance.restored_targets --only base --count 20

A live source has drawn changes. At a drawn moment, before or during a run, the target is copied
with a program of PostgreSQL's (`COPIES`). The source goes on; tables stop, are loaded again or get
DDL. At a later drawn moment, the target or a part of it is restored from the copy (`Way`), so that
rows, ledger and the files of `context.data` can be of different times. Then an operator follows
what the errors and docs/operations.md ("The target was restored to an earlier state") advise. In
the end each table must be equal to the source, or an error or a warning must have told that it may
not be; then `repair` or a load must correct it.

`PROGRAMS` has PostgreSQL's client and server applications, each with the reason if it is not drawn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres import embedded
from tests.appliance.changed_configurations import Changed
from tests.appliance.changed_targets import (
    ROLE,
    STRANGERS,
    BrokenError,
    Course,
    in_this_process,
    lived,
    new_target,
)
from tests.appliance.target_acts import ACTS, NEXT
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import served_source
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.postgres.embedded import EmbeddedPostgres

COPIES: Final = "dump", "base"
_IN_PLACE: Final = (
    "vacuumdb --full -d {target}",
    "vacuumdb --analyze --freeze -d {target}",
    "reindexdb --concurrently -d {target}",
    "clusterdb -d {target}",
    "pg_amcheck --install-missing -d {target}",
)
"""Programs that keep the rows. They run in the place of a restore, or besides."""


class Way(NamedTuple):
    """A way to restore a target from a copy.

    Attributes:
        do: programs and statements, one after another. A program begins with ``pg_`` or the like;
            in the texts, ``{target}`` is the connection string, ``{admin}`` that of the database
            ``postgres``, ``{copy}`` the file of the copy, ``{now}`` the file of a dump that is made
            just before the restore, ``{t}`` a target table, and ``{n}`` its name.
        is_whole: whether rows and ledger are of one time afterwards.
    """

    do: str
    is_whole: bool = True


_NEW_DATABASE: Final = (
    "DROP DATABASE target WITH (FORCE);;CREATE DATABASE target;;"
    f"GRANT ALL ON DATABASE target TO {ROLE}"
)
_RESTORE: Final = "pg_restore --exit-on-error -d {target}"
_EMPTY_LEDGER: Final = (
    "@DO $d$BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg('olr_pg.' || tablename, ',')"
    " FROM pg_tables WHERE schemaname = 'olr_pg'); END$d$"
)
_CLEAN: Final = "pg_restore --clean --if-exists --single-transaction -d {target}"
DUMP_WAYS: Final = {
    "whole": Way(f"{_NEW_DATABASE};;{_RESTORE} {{copy}}"),
    "whole, parallel": Way(f"{_NEW_DATABASE};;{_RESTORE} -j 2 {{copy}}"),
    "whole, other owner": Way(f"{_NEW_DATABASE};;{_RESTORE} --no-owner --role={ROLE} {{copy}}"),
    "whole, no owner": Way(f"{_NEW_DATABASE};;{_RESTORE} --no-owner {{copy}}"),
    "whole, no privileges": Way(f"{_NEW_DATABASE};;{_RESTORE} --no-privileges {{copy}}"),
    "sections": Way(
        f"{_NEW_DATABASE};;{_RESTORE} --section=pre-data {{copy}};;"
        f"{_RESTORE} --section=data {{copy}};;{_RESTORE} --section=post-data {{copy}}"
    ),
    "without post-data": Way(
        f"{_NEW_DATABASE};;{_RESTORE} --section=pre-data {{copy}};;"
        f"{_RESTORE} --section=data {{copy}}"
    ),
    "clean": Way(f"{_CLEAN} {{copy}}"),
    "moved": Way(f"{_NEW_DATABASE};;{_RESTORE} {{now}}"),
    "moved in place": Way(f"{_CLEAN} {{now}}"),
    "only app": Way(f"{_CLEAN} -n app {{copy}}", is_whole=False),
    "only olr_pg": Way(f"{_CLEAN} -n olr_pg {{copy}}", is_whole=False),
    "one table": Way(f"{_CLEAN} -n app -t {{n}} {{copy}}", is_whole=False),
    "only data of a table": Way(
        "@TRUNCATE {t};;pg_restore --data-only -n app -t {n} -d {target} {copy}", is_whole=False
    ),
    "only data of olr_pg": Way(
        f"{_EMPTY_LEDGER};;pg_restore --data-only -n olr_pg --single-transaction -d {{target}}"
        " {copy}",
        is_whole=False,
    ),
    "data of all": Way(
        f"{_EMPTY_LEDGER};;@TRUNCATE {{all}};;"
        "pg_restore --data-only --single-transaction -d {target} {copy}",
    ),
    "older rows, newer ledger": Way(
        f"{_NEW_DATABASE};;{_RESTORE} -N olr_pg {{copy}};;{_RESTORE} -n olr_pg {{now}}",
        is_whole=False,
    ),
    "newer rows, older ledger": Way(
        f"{_NEW_DATABASE};;{_RESTORE} -N olr_pg {{now}};;{_RESTORE} -n olr_pg {{copy}}",
        is_whole=False,
    ),
    "without olr_pg": Way(f"{_NEW_DATABASE};;{_RESTORE} -N olr_pg {{copy}}", is_whole=False),
    "only definitions": Way(f"{_NEW_DATABASE};;{_RESTORE} --schema-only {{copy}}", is_whole=False),
    "rows of olr_pg alone": Way(
        f"{_NEW_DATABASE};;{_RESTORE} --schema-only {{copy}};;"
        "pg_restore --data-only -n olr_pg -d {target} {copy}",
        is_whole=False,
    ),
}  # fmt: skip
BASE_WAYS: Final = {"failed over": Way("")}
_FILES: Final = "kept", "kept", "kept", "copied", "no applied.json", "no checkpoint.json", "empty"
"""What happens to the files of `context.data` at a restore."""

_ADVISED: Final = "Start at SCN"
_MOVED: Final = "the ledger comes from another database"
PROGRAMS: Final = {
    **dict.fromkeys(("pg_dump", "pg_restore", "pg_basebackup", "psql"), ""),
    **dict.fromkeys(("vacuumdb", "reindexdb", "clusterdb", "pg_amcheck"), ""),
    **dict.fromkeys(("createdb", "dropdb"), "executes CREATE or DROP DATABASE, which are drawn"),
    **dict.fromkeys(("createuser", "dropuser"), "target_acts draws the roles"),
    "pg_dumpall": "pg_dump of each database, and the roles",
    "pg_rewind": "the result has the rows of the new primary, as a base backup of it",
    "pg_combinebackup": "the result is a base backup",
    "pg_createsubscriber": "the result is a promoted copy, as a base backup",
    "pg_upgrade": "not drawn: it needs an older version (15 to 18 was tried by hand)",
    "pg_resetwal": "not drawn yet: it can lose pages, so that rows and ledger can differ",
    **dict.fromkeys(
        ("pg_config", "pg_controldata", "pg_isready", "pg_test_fsync", "pg_test_timing"),
        "prints",
    ),
    **dict.fromkeys(
        ("pg_receivewal", "pg_recvlogical", "pg_verifybackup", "pg_waldump", "pg_walsummary"),
        "reads",
    ),
    **dict.fromkeys(("ecpg", "pgbench"), "writes no replicated table"),
    **dict.fromkeys(("initdb", "pg_ctl", "postgres", "pg_archivecleanup", "pg_checksums"),
        "starts, stops or checks a server, or removes archived WAL"),
}  # fmt: skip
"""PostgreSQL's client and server applications, as its package has them, with the reason why a
program is not drawn; empty if it is.
"""


class Tools:
    """PostgreSQL's programs, for one cluster."""

    def __init__(self, cluster: EmbeddedPostgres, target: str) -> None:
        self._cluster, self._target = cluster, target

    def run(self, words: str) -> str:
        """Run a program of PostgreSQL's; return its exit code and messages, or nothing if it ends
        without an error.
        """
        program, *arguments = words.split(" ")
        path = embedded.packaged_installation() / "bin" / program
        texts = [self._target if one == "TARGET" else one for one in arguments]
        done = subprocess.run([str(path), *texts], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{done.returncode} {' '.join(done.stderr.split())[-300:]}"
        return ""

    def dump(self, file: Path) -> str:
        """Dump the target in a file."""
        return self.run(f"pg_dump -Fc -d TARGET -f {file}")

    def base(self, folder: Path) -> None:
        """Copy the cluster, while it runs."""
        path = embedded.packaged_installation() / "bin" / "pg_basebackup"
        words = ["-D", str(folder), "-c", "fast", "-X", "stream", "-d"]
        whole = make_conninfo(self._cluster.connect_string, dbname="")
        subprocess.run([str(path), *words, whole], capture_output=True, text=True, check=True)

    def fail_over(self, folder: Path) -> None:
        """Kill the server, and start a copy in its place."""
        data = self._cluster.directory / "data"
        pid = self._cluster.pid
        assert pid is not None
        os.kill(pid, signal.SIGQUIT)
        wait_until(self._cluster.is_gone)
        owner = data.stat()
        shutil.rmtree(data)
        shutil.copytree(folder, data)
        for path in (data, *data.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        data.chmod(0o700)
        self._cluster.revive()


class Restores(Course):
    """A seed at work."""

    def __init__(
        self, seed: int, changed: Changed, target: str, cluster: EmbeddedPostgres,
        only: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(seed, changed, target)
        self._only = [*only] or [*COPIES, "place"]
        self._admin = make_conninfo(cluster.connect_string, dbname="postgres")
        self._tools = Tools(cluster, target)
        self._place = changed.folder / "copies"
        self._place.mkdir()
        self._is_whole = False

    def _round(self) -> None:
        kind = self._rng.choice(self._only)
        if kind == "place":
            program = self._rng.choice(_IN_PLACE).format(target="TARGET")
            self._run(self._drawn.statements(), lambda: self._tell(program))
            return
        copy = self._place / f"copy{len(self.story)}"
        statements = self._drawn.statements()
        if self._rng.random() < 0.5:
            self._run(statements, lambda: self._copy(kind, copy))
        else:
            self._run(statements)
            self._copy(kind, copy)
        if not copy.exists():
            self._copy(kind, copy)
        self._work()
        ways = DUMP_WAYS if kind == "dump" else BASE_WAYS
        name, way = self._rng.choice([*ways.items()])
        self._is_whole = way.is_whole
        self.story.append(f"== {kind}: {name}")
        self.codes[name] += 1
        files = self._rng.choice(_FILES)
        if files == "kept" and self._rng.random() < 0.4:
            self._run(self._drawn.statements(), lambda: self._restore(way, copy))
        else:
            self._restore(way, copy)
            self._change_files(files, copy)
            self._run(self._drawn.statements())
        self._mend()
        for name in STRANGERS:
            self._settle(name)

    def _work(self) -> None:
        """What happens between copy and restore."""
        for _ in range(self._rng.choice((0, 1, 1, 2))):
            drawn = self._rng.random()
            if drawn < 0.25:
                self._load([self._rng.choice(STRANGERS)])
            elif drawn < 0.4:
                act = self._rng.choice(ACTS["ALTER TABLE ADD table_constraint"][:2])
                self.stranger.act(act, self._rng.choice("ABP"))
            elif drawn < 0.5:
                self._command("tables", "pause", f"APP.{self._rng.choice(STRANGERS)}")
            self._run(self._drawn.statements())

    def _copy(self, kind: str, place: Path) -> None:
        data = self._changed.folder / "data"
        if kind == "dump":
            refused = self._tools.dump(place)
            if refused:
                raise BrokenError(f"the dump fails: {refused}")
        else:
            self._tools.base(place)
        shutil.copytree(data, f"{place}.files", dirs_exist_ok=True)
        self.story.append(f"    copied: {kind}")

    def _settle(self, name: str) -> None:
        """Load a table again if a start has told that rows and ledger may be of different times."""
        told = self._changed.told[self._quiet_from[name] :]
        if any(_MOVED in one for one in told) and not self._changed.is_same(name):
            self.codes["moved"] += 1
            self._load([name])
            self._mend()
        super()._settle(name)

    def _tell(self, program: str) -> None:
        self.story.append(f"    {program}: {self._tools.run(program)}")

    def _restore(self, way: Way, copy: Path) -> None:
        self.stranger.leave()
        if not way.do:
            self._tools.fail_over(copy)
            return
        now = Path(f"{copy}.now")
        if "{now}" in way.do:
            self._tools.dump(now)
        table = self._rng.choice(STRANGERS).lower()
        everything = ", ".join(f"app.{name.lower()}" for name in STRANGERS)
        words: dict[str, Any] = {
            "target": "TARGET", "copy": copy, "now": now, "n": table, "t": f"app.{table}",
            "all": everything,
        }  # fmt: skip
        for step in way.do.split(NEXT):
            text = step.format(**words) if "$d$" not in step else step
            if text.startswith("pg_"):
                self._tell(text)
                continue
            place = self._target if text.startswith("@") else self._admin
            with psycopg.connect(place, autocommit=True) as session:
                session.execute("SET lock_timeout = '3s'")
                try:
                    session.execute(text.lstrip("@").encode())
                    self.story.append(f"    {text}")
                except psycopg.Error as error:
                    self.story.append(f"    refused: {text} {error}")

    def _change_files(self, files: str, copy: Path) -> None:
        data = self._changed.folder / "data"
        self.story.append(f"    files: {files}")
        if files.startswith("no "):
            (data / files[3:]).unlink(missing_ok=True)
        elif files == "empty":
            shutil.rmtree(data)
        elif files == "copied":
            shutil.rmtree(data)
            shutil.copytree(f"{copy}.files", data)

    def _follow(self, error: OlrPgError) -> None:
        is_put_back = error.code == Code.TARGET_PUT_BACK and _ADVISED in str(error)
        if not (is_put_back and self._is_whole):
            super()._follow(error)
            return
        self.codes["OLR-05024"] += 1
        Path(str(error.where["file"])).with_name("checkpoint.json").unlink(missing_ok=True)
        start = error.where["start_scn"]
        assert isinstance(start, int)
        self._changed.start_scn = start
        self.story.append(f"    start at {start}")


def live_seed(seed: int, cluster: EmbeddedPostgres, only: Sequence[str] = ()) -> Course:
    """Live through a seed.

    Raises:
        BrokenError: something does not hold.
    """
    target, own = new_target(cluster)
    apply = {"connect-string": own, "retry-seconds": 8, "answer-seconds": 2}
    with (
        tempfile.TemporaryDirectory() as place,
        served_source(Path(place) / "source") as served,
    ):
        return lived(Restores(seed, Changed(served, target, apply), target, cluster, only))


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", action="append", choices=[*COPIES, "place"], default=[])
    options = parser.parse_args()
    bad, codes = 0, Counter[str]()
    with pytest.MonkeyPatch.context() as patch, own_cluster("fsync = off") as cluster:
        in_this_process(patch)
        for seed in range(options.first, options.first + options.count):
            try:
                course = live_seed(seed, cluster, options.only)
            except BrokenError as error:
                bad += 1
                sys.stdout.write(f"seed {seed}: BROKEN {error}\n")
            else:
                codes += course.codes
                sys.stdout.write(f"seed {seed}: right {dict(course.codes)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{bad} broken; {codes}\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())

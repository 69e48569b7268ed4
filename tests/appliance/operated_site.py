"""Two tables of a live source that an operator replicates and repairs, as errors advise."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
from typer.testing import CliRunner

from olr_pg.appliance.appliance import run_appliance
from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import copy_task
from olr_pg.schema.followed_steps import step_sql
from tests.advice import followed
from tests.proving.served import document_of
from tests.simulation.entry import spark_or_not

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.simulator.oracle_net.catalogue import Catalogue
    from tests.proving.served import Served

_LOGGED: Final = "SUPPLEMENTAL LOG DATA (ALL) COLUMNS"


class Site:
    """Two tables of a live source, which are loaded and replicated, and an operator.

    Attributes:
        data: `context.data`.
        apply: the section of the configuration, which the operator edits.
    """

    def __init__(self, served: Served, folder: Path, target: str, number: int) -> None:
        self._served, self._target, self._folder = served, target, folder
        self._row = 0
        self.data = folder / "data"
        self.a, self.b = f"A{number}", f"B{number}"
        self._created = list[str]()
        self.document = document_of(served.folder) | {
            "context": {"data": str(self.data)},
            "status": {"enabled": False},
        }
        self.document.pop("prove", None)
        self.document["source"]["poll-ms"] = 20
        self.apply: dict[str, Any] = {
            "connect-string": target,
            "create-tables": True,
            "tables": [f"APP.{self.a}", f"APP.{self.b}"],
        }
        self.create(self.a, "PRIMARY KEY")
        self.create(self.b)
        self.command("initial-load")
        self.run_with_changes()

    def create(self, name: str, kind: str = "", partitions: str = "") -> None:
        """Create a table in the source, with a row."""
        columns = f"id NUMBER(9) {kind}, x NUMBER(9), {_LOGGED}"
        self._served.execute(f"CREATE TABLE {name} ({columns}) {partitions}")
        self._created.append(name)
        self.change()

    def change(self, *statements: str) -> None:
        """Execute statements, and change each table; the redo is archived."""
        for statement in statements:
            self._served.execute(statement)
        for name in self._created:
            self._row += 1
            self._served.execute(f"INSERT INTO {name} (id, x) VALUES ({self._row}, 1)")
            self._served.execute(f"UPDATE {name} SET x = x + 1 WHERE id = {self._row}")
        self.archive()

    def change_one(self, name: str) -> None:
        """Insert a row into a table, and nothing else; the redo is archived."""
        self._row += 1
        self._served.execute(f"INSERT INTO {name} (id, x) VALUES ({self._row}, 1)")
        self.archive()

    def archive(self) -> None:
        self._served.server.database.switch_logs()

    @property
    def catalogue(self) -> Catalogue:
        return self._served.server.server.state.catalogue

    def current_scn(self) -> int:
        return self._served.server.database.current_scn()

    def run(self) -> None:
        """Start the appliance, which ends when it has applied all redo."""
        run_appliance(load_config(self.config()), once=True, apply=True, translate=step_sql)

    def run_with_changes(self) -> None:
        self.change()
        self.run()
        assert self.differing() == []

    def failure(self) -> OlrPgError:
        """Start the appliance, which ends with an error."""
        with pytest.raises(OlrPgError) as caught:
            self.run()
        return caught.value

    def stopped_by(self) -> int:
        """Start the appliance, which stops a table; return the number of the error."""
        listed = self.next_reason()
        ((number,),) = self.sql("SELECT id FROM olr_pg.error WHERE resolution = 'stopped'")
        assert f"{number} stopped" in listed
        return int(number)

    def error_line(self, number: int) -> OlrPgError:
        """Return the error that `olr-pg errors show` shows."""
        ((code,),) = self.sql(f"SELECT code FROM olr_pg.error WHERE id = {number}")
        return OlrPgError(Code(code), "")

    def leave_out(self, name: str) -> None:
        """Do not replicate a table any more."""
        self._created.remove(name)
        self.apply["tables"].remove(f"APP.{name}")

    def gone(self, name: str) -> None:
        """Drop a table of the source, and change the others."""
        self._created.remove(name)
        self.change(f"DROP TABLE {name}")

    def renamed(self, old: str, new: str) -> None:
        """Rename a table of the source, and change each table."""
        self._created[self._created.index(old)] = new
        self.change(f"ALTER TABLE {old} RENAME TO {new}")

    def next_reason(self) -> str:
        """Start the appliance, which ends with an error, and return what `olr-pg errors list`
        shows.
        """
        followed(self.failure(), Code.TABLES_STOPPED, "See `olr-pg errors list`")
        return self.refused("errors", "list")

    def command(self, *words: str) -> str:
        """Give a command, and return its output; see `refused` for one that fails."""
        code, output = self._command(words)
        assert code == 0, output
        return output

    def refused(self, *words: str) -> str:
        code, output = self._command(words)
        assert code != 0, output
        return output

    def _command(self, words: tuple[str, ...]) -> tuple[int, str]:
        return given(self.config(), words)

    def config(self) -> Path:
        """Write the configuration; return its path."""
        path = self._folder / "olr-pg.json"
        path.write_text(json.dumps(self.document | {"apply": self.apply}), "utf-8")
        return path

    def sql(self, statement: str) -> list[Any]:
        with psycopg.connect(self._target, autocommit=True) as target:
            cursor = target.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def load_anew(self, *names: str) -> None:
        """As several errors advise: `olr-pg initial-load --anew --table OWNER.NAME`."""
        tables = [word for name in names for word in ("--table", f"APP.{name}")]
        self.command("initial-load", "--anew", *tables)

    def begin_anew(self) -> None:
        """Empty `context.data`, start at the present SCN, and load both tables, as errors of a
        changed source advise. Then the target follows again.
        """
        shutil.rmtree(self.data)
        self.apply["start-scn"] = self.current_scn()
        self.load_anew(self.a, self.b)
        self.run()
        assert self.differing() == []
        self.run_with_changes()

    def verify_and_repair(self) -> None:
        """As several errors advise."""
        file = str(self._folder / "differences.json")
        self.refused("verify", "--differences", file)
        self.command("repair", "--differences", file, "--yes")

    def differing(self) -> list[str]:
        """Return the tables of the source whose rows the target has not, or more than once."""
        return [name for name in self._created if self._rows(name) != self._replicated(name)]

    def connected(self) -> oracledb.Connection:
        """Connect to the source."""
        return oracledb.connect(user="app", password="olr", dsn=self._served.dsn)

    def _rows(self, name: str) -> list[tuple[str, ...]]:
        with self.connected() as oracle:
            rows = oracle.cursor().execute(f"SELECT * FROM {name}").fetchall()
        return sorted(tuple(map(str, row)) for row in rows)

    def _replicated(self, name: str) -> list[tuple[str, ...]]:
        return sorted(tuple(map(str, row)) for row in self.sql(f"SELECT * FROM app.{name.lower()}"))


def given(config: Path, words: Sequence[str]) -> tuple[int, str]:
    """Give a command; return its exit code, and its output on one line."""
    result = CliRunner().invoke(app, [*words, "--config", str(config)])
    return result.exit_code, " ".join(result.output.split())


_numbers = iter(range(1, 1000))


def operated_site(
    served: Served, folder: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> Site:
    """Return a site that decodes and loads in this process."""
    spark_or_not(monkeypatch, None)
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    configure = "olr_pg.observability.logging_setup.configure_logging"
    monkeypatch.setattr(configure, lambda *_, **__: None)
    return Site(served, folder, target, next(_numbers))

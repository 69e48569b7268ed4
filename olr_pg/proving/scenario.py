"""Reads scenarios: files of SQL with directives in comments.

Each directive is a line ``-- name: value`` of its own:

- ``-- purpose:`` one line: what the scenario is for (required).
- ``-- others:`` the errors that other tools make in this scenario.
- ``-- covers:`` the forms of change that the scenario tests, as words of the list in
  ``tests/proving``.
- ``-- needs:`` features that the database must have, as words of `NEEDS`. The stand-in (the
  simulated database that executes SQL) has none of these features.
- ``-- large`` the scenario takes minutes: tests leave it out, `olr-pg prove` runs it.
- ``-- stops: NAME OLR-05009`` name of a table that the appliance may stop, and the code of the
  error.
- ``-- start`` from here on, changes are judged. Without this line, changes are judged from the
  first statement on that is not a CREATE.
- ``-- restart`` the appliance of the end-to-end judge replicates up to here and ends before the
  next statement.
- ``-- session: B`` the session that executes the following statements; at the beginning it is
  ``A``.
- ``-- error: ORA-00001`` the next statement must fail with this error; write several possible
  errors with ``or``.
- ``-- binds: [1, "x"]`` a row of binds for the next statement, as JSON. Several such lines make an
  array.
- ``-- same: no`` the statements have another meaning in PostgreSQL; the reason follows.

A statement ends with ``;`` at the end of a line; PL/SQL and a trigger end with a line ``/``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

_DIRECTIVE: Final = re.compile(
    r"--\s*(purpose|others|covers|needs|large|stops|start|restart|session|error|binds|same)\b"
    r":?\s*(.*)"
)
_BLOCK: Final = re.compile(
    r"(DECLARE|BEGIN|CREATE\s+(OR\s+REPLACE\s+)?(TRIGGER|PROCEDURE|FUNCTION|PACKAGE|TYPE))\b",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"ORA-(\d{5})")
FIRST_SESSION: Final = "A"

NEEDS: Final = {
    "clusters": "tables in clusters",
    "compression": "tables that are compressed, which some editions and storages lack",
    "deduplication": "SECUREFILE LOBs that are compressed or deduplicated (Advanced Compression)",
    "drop-column": "redo of DROP COLUMN in a table with rows",
    "encryption": "a wallet, and an encrypted tablespace named OLR_PROVE_ENCRYPTED",
    "extended": "MAX_STRING_SIZE = EXTENDED: VARCHAR2 of 32,767 bytes",
    "hidden-columns": "virtual and invisible columns, and indexes of functions",
    "immutable-tables": "immutable tables, from 21c and 19.11 on",
    "interval-partitions": "partitions that an INSERT makes",
    "iot-overflow": "index-organised tables with an overflow segment",
    "json": "the type JSON, from 21c on",
    "json-transform": "JSON_TRANSFORM of the type JSON, from 21c on",
    "logging-groups": "supplemental logging of unique and foreign keys, and of groups of columns",
    "long": "columns of LONG and LONG RAW",
    "online-ddl": "ALTER TABLE … MOVE ONLINE, of Enterprise Edition",
    "parallel-dml": "parallel DML, of Enterprise Edition",
    "pdb": "a container database; the scenario is run in a PDB",
    "rac": "sessions of several redo threads",
    "row-archival": "tables with ROW ARCHIVAL, from 12.1 on",
    "rowid-type": "columns of ROWID",
    "shrink": "a tablespace with automatic segment space management",
    "subpartitions": "composite partitions",
    "temporary": "global temporary tables",
    "time-zone-regions": "TIMESTAMP WITH TIME ZONE of a region, and WITH LOCAL TIME ZONE",
    "xa": "EXECUTE on DBMS_XA",
    "xml": "XML DB, which has the type XMLTYPE",
}
"""Features that a database may lack. The simulated Oracle lacks all of these features."""


Bind = str | int | float | None


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A statement of a scenario.

    Attributes:
        session: name of the session that executes the statement.
        errors: numbers of ORA errors; the statement must fail with one of these errors. Empty if
            the statement must succeed.
        line: number of the statement's line in the file, from 1.
        binds: the rows of binds; several rows are an array, empty if there are no binds.
    """

    session: str
    text: str
    errors: tuple[int, ...] = ()
    line: int = 0
    binds: tuple[tuple[Bind, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario.

    Attributes:
        name: ``GROUP/NAME``.
        start: the index of the step before which judging begins.
        different: the reason why its statements have another meaning in PostgreSQL; empty if they
            have the same meaning.
        stops: names of tables that the appliance may stop, with the codes of the errors.
        restarts: indexes of the steps before which the appliance of the end-to-end judge is
            restarted.
    """

    name: str
    purpose: str
    others: str
    needs: tuple[str, ...]
    steps: tuple[ScenarioStep, ...]
    start: int
    different: str = ""
    covers: tuple[str, ...] = ()
    stops: tuple[tuple[str, str], ...] = ()
    restarts: tuple[int, ...] = ()
    is_large: bool = False


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file.

    Raises:
        OlrPgError: 8053, the file cannot be read, or is not a scenario.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise OlrPgError(Code.SCENARIO_INVALID, f"{path}: {error.strerror}") from error
    return parse_scenario(text, f"{path.parent.name}/{path.stem}")


def parse_scenario(text: str, name: str) -> Scenario:
    """Parse the text of a scenario.

    Raises:
        OlrPgError: 8053, the text is not a scenario.
    """
    reading = _Reading(name)
    for number, line in enumerate(text.splitlines(), 1):
        reading.take(number, line)
    return reading.finished()


class _Reading:
    """A scenario that is being parsed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: dict[str, str] = {}
        self._session, self._errors = FIRST_SESSION, tuple[int, ...]()
        self._steps: list[ScenarioStep] = []
        self._start: int | None = None
        self._restarts: list[int] = []
        self._binds: list[tuple[Bind, ...]] = []
        self._lines: list[str] = []
        self._first = 0

    def take(self, number: int, line: str) -> None:
        """Parse a line."""
        directive = _DIRECTIVE.match(line.strip()) if not self._lines else None
        if directive is not None:
            self._direct(number, *directive.groups())
            return
        if not self._lines and (not line.strip() or line.lstrip().startswith("--")):
            return
        self._first = self._first if self._lines else number
        if _BLOCK.match("\n".join(self._lines) or line):
            if line.strip() == "/":
                self._end_statement("\n".join(self._lines).strip())
            else:
                self._lines.append(line)
            return
        self._lines.append(line)
        if line.rstrip().endswith(";"):
            self._end_statement("\n".join(self._lines).strip().removesuffix(";"))

    def _end_statement(self, text: str) -> None:
        step = ScenarioStep(self._session, text, self._errors, self._first, tuple(self._binds))
        self._steps.append(step)
        self._lines, self._errors, self._binds = [], (), []

    def _direct(self, number: int, name: str, value: str) -> None:
        value = value.strip()
        if name == "session":
            self._session = value
        elif name == "error":
            self._errors = tuple(int(code) for code in _CODE.findall(value))
            if not self._errors:
                raise self._invalid(f"line {number} contains no error code such as ORA-00001")
        elif name == "start":
            self._start = len(self._steps)
        elif name == "restart":
            self._restarts.append(len(self._steps))
        elif name == "binds":
            self._binds.append(self._row_of_binds(number, value))
        elif name == "large":
            self._said[name] = name
        else:
            self._said[name] = f"{self._said.get(name, '')} {value}".strip()

    def _row_of_binds(self, number: int, value: str) -> tuple[Bind, ...]:
        try:
            row = json.loads(value)
        except ValueError:
            row = None
        if not isinstance(row, list) or any(isinstance(one, list | dict) for one in row):
            raise self._invalid(
                f'line {number} is not a list of bind values such as [1, "x", null]'
            )
        return tuple(row)

    def finished(self) -> Scenario:
        """Return the scenario."""
        if self._lines:
            raise self._invalid(f"the statement of line {self._first} does not end with ; or /")
        if not self._steps:
            raise self._invalid("it contains no statement")
        start = self._start
        if start is None:
            creates = [one.text.upper().startswith("CREATE") for one in self._steps]
            start = creates.index(False) if False in creates else len(creates)
        needs = self._words("needs")
        unknown = sorted(set(needs) - set(NEEDS))
        if unknown:
            raise self._invalid(f"unknown words in `needs`: {', '.join(unknown)}")
        stops = self._words("stops")
        if len(stops) % 2:
            raise self._invalid("`stops` contains a table without an error code such as OLR-03072")
        return Scenario(
            name=self._name,
            purpose=self._said.get("purpose", ""),
            others=self._said.get("others", ""),
            needs=needs,
            steps=tuple(self._steps),
            start=start,
            different=self._said.get("same", "").removeprefix("no").strip(" :,;"),
            covers=self._words("covers"),
            stops=tuple(zip(stops[::2], stops[1::2], strict=True)),
            restarts=tuple(self._restarts),
            is_large="large" in self._said,
        )

    def _words(self, name: str) -> tuple[str, ...]:
        return tuple(self._said.get(name, "").replace(",", " ").split())

    def _invalid(self, reason: str) -> OlrPgError:
        return OlrPgError(Code.SCENARIO_INVALID, f"{self._name}: {reason}")

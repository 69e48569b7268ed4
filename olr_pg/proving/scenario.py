"""Scenarios as files of SQL with directives in comments.

Each directive is a line ``-- name: value`` of its own:

- ``-- purpose:`` one line: what the scenario is for (required).
- ``-- others:`` what other tools got wrong there.
- ``-- needs:`` what the database must have, as words; documentation, and a filter.
- ``-- start`` the start: from here on, changes are judged. Without it, the start is before the
  first statement that is no CREATE.
- ``-- session: B`` the session that the following statements are of; ``A`` at first.
- ``-- error: ORA-00001`` the next statement must fail so; several are parted by ``or``.
- ``-- same: no`` PostgreSQL means something else by these statements, with the reason behind it.

A statement ends with ``;`` at the end of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

_DIRECTIVE: Final = re.compile(r"--\s*(purpose|others|needs|session|error|same|start)\b:?\s*(.*)")
_CODE: Final = re.compile(r"ORA-(\d{5})")
FIRST_SESSION: Final = "A"


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A statement.

    Attributes:
        session: its name.
        errors: the numbers of the ORA errors of which one must come; empty for none.
        line: where it stands in the file, from 1.
    """

    session: str
    text: str
    errors: tuple[int, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario.

    Attributes:
        name: ``GROUP/NAME``.
        start: the number of the step before which judging begins.
        different: why PostgreSQL means something else by its statements; empty where it does not.
    """

    name: str
    purpose: str
    others: str
    needs: tuple[str, ...]
    steps: tuple[ScenarioStep, ...]
    start: int
    different: str = ""


def read_scenario(path: Path) -> Scenario:
    """Read a file.

    Raises:
        OlrPgError: 8053, it cannot be read, or is no scenario.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise OlrPgError(Code.SCENARIO_INVALID, f"{path}: {error.strerror}") from error
    return parse_scenario(text, f"{path.parent.name}/{path.stem}")


def parse_scenario(text: str, name: str) -> Scenario:
    """Read the text of a scenario.

    Raises:
        OlrPgError: 8053, it is none.
    """
    reading = _Reading(name)
    for number, line in enumerate(text.splitlines(), 1):
        reading.take(number, line)
    return reading.finished()


class _Reading:
    """A scenario that is being read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: dict[str, str] = {}
        self._session, self._errors = FIRST_SESSION, tuple[int, ...]()
        self._steps: list[ScenarioStep] = []
        self._start: int | None = None
        self._lines: list[str] = []
        self._first = 0

    def take(self, number: int, line: str) -> None:
        """Read a line."""
        directive = _DIRECTIVE.match(line.strip()) if not self._lines else None
        if directive is not None:
            self._direct(number, *directive.groups())
            return
        if not self._lines and (not line.strip() or line.lstrip().startswith("--")):
            return
        self._first = self._first if self._lines else number
        self._lines.append(line)
        if line.rstrip().endswith(";"):
            text = "\n".join(self._lines).strip().removesuffix(";")
            self._steps.append(ScenarioStep(self._session, text, self._errors, self._first))
            self._lines, self._errors = [], ()

    def _direct(self, number: int, name: str, value: str) -> None:
        value = value.strip()
        if name == "session":
            self._session = value
        elif name == "error":
            self._errors = tuple(int(code) for code in _CODE.findall(value))
            if not self._errors:
                raise self._invalid(f"line {number} names no error such as ORA-00001")
        elif name == "start":
            self._start = len(self._steps)
        else:
            self._said[name] = f"{self._said.get(name, '')} {value}".strip()

    def finished(self) -> Scenario:
        """Return the scenario."""
        if self._lines:
            raise self._invalid(f"the statement of line {self._first} does not end with ;")
        if not self._steps:
            raise self._invalid("it has no statement")
        start = self._start
        if start is None:
            creates = [one.text.upper().startswith("CREATE") for one in self._steps]
            start = creates.index(False) if False in creates else len(creates)
        return Scenario(
            name=self._name,
            purpose=self._said.get("purpose", ""),
            others=self._said.get("others", ""),
            needs=tuple(self._said.get("needs", "").replace(",", " ").split()),
            steps=tuple(self._steps),
            start=start,
            different=self._said.get("same", "").removeprefix("no").strip(" :,;"),
        )

    def _invalid(self, reason: str) -> OlrPgError:
        return OlrPgError(Code.SCENARIO_INVALID, f"{self._name}: {reason}")

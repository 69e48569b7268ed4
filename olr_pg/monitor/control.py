"""Commands over HTTP: off by default, and only for who has a token.

A request is ``POST /control/ACTION`` with the token in the header Authorization, and the action's
arguments as a JSON object. It runs the command of the command line that does the same, in a process
of its own: so there is one implementation of each, a load takes none of the appliance's memory, and
what the command says is the answer. Nothing else can be run: the actions, and the forms of their
arguments, are those of `ACTIONS`.

A token is compared in constant time, is taken from a header only (a page of somebody else cannot
make a browser send it), and names who has it: each action is logged with that name, the address,
and how it ended.
"""

from __future__ import annotations

import hmac
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TOKEN_LENGTH_MIN: Final = 16
JOBS_MAX: Final = 32
"""Jobs that are remembered; the oldest that has ended makes room for a new one."""

RUNNING_MAX: Final = 4
"""Jobs at a time."""

ANSWER_SECONDS: Final = 20.0
"""That a request waits for its job to end; then it is told its number."""

OUTPUT_BYTES_MAX: Final = 64 << 10
_ENDING_SECONDS: Final = 10.0
_NAMES_MAX: Final = 1000
_NAME_LENGTH_MAX: Final = 300

_log = structlog.get_logger(__name__)


class Action(NamedTuple):
    """Says what an action runs.

    Attributes:
        command: the words of the command.
        tables: whether it takes ``tables``, a list of OWNER.NAME.
        numbers: whether it takes ``errors``, a list of numbers.
        flags: keys of booleans, and the option that each stands for.
        is_everything: whether it may be given without tables.
        says_who: whether the command takes who wants it.
    """

    command: tuple[str, ...]
    tables: bool = False
    numbers: bool = False
    flags: Mapping[str, tuple[str, str]] = {}
    is_everything: bool = False
    says_who: bool = False


_ALL: Final = {"all": ("--all", "")}

ACTIONS: Final = {
    "pause": Action(
        ("tables", "pause"), tables=True, flags=_ALL, is_everything=True, says_who=True
    ),
    "resume": Action(
        ("tables", "resume"), tables=True, flags=_ALL, is_everything=True, says_who=True
    ),
    "add": Action(
        ("tables", "add"), tables=True, flags={"load": ("--load", "--no-load")}, says_who=True
    ),
    "remove": Action(("tables", "remove"), tables=True, says_who=True),
    "retry": Action(("errors", "retry"), tables=True, is_everything=True),
    "skip": Action(
        ("errors", "skip"), numbers=True, flags={"transaction": ("--whole-transaction", "")}
    ),
}
"""The actions that run a command, by their names."""

RELOAD: Final = "reload"
"""The action that lets the appliance read its configuration again."""


class RequestRefusedError(Exception):
    """A request that cannot be carried out; its text says why."""


class Control:
    """Runs actions for who has a token.

    Args:
        tokens: the token of each name.
        config: the path of the configuration file.
        reload: lets the appliance read it again; None where it cannot.
        command: that is run, before the action's own words.
        environ: gives what the configuration names of the environment, and this process has not any
            more: the command reads the same configuration.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        config: str,
        reload: Callable[[], None] | None = None,
        command: Sequence[str] = (sys.executable, "-m", "olr_pg"),
        environ: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        for name, token in tokens.items():
            if len(token) < TOKEN_LENGTH_MIN:
                raise OlrPgError(Code.CONTROL_TOKEN_WEAK, f"that of {name!r}")
        self._tokens = {name: token.encode() for name, token in tokens.items()}
        self._config = config
        self._reload = reload
        self._command = tuple(command)
        self._environ = environ
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: OrderedDict[int, Job] = OrderedDict()

    def who(self, authorization: str) -> str | None:
        """Return whose token a header has; None: nobody's.

        Args:
            authorization: the header, ``Bearer TOKEN``.
        """
        kind, _, given = authorization.partition(" ")
        token = given.strip().encode()
        found = None
        for name, known in self._tokens.items():  # all of them, however soon one fits
            if hmac.compare_digest(token, known):
                found = name
        return found if kind.lower() == "bearer" else None

    def start(
        self, action: str, document: Any, who: str, address: str, target: str | None = None
    ) -> Job:
        """Begin an action.

        Args:
            who: has asked, from `address`.
            target: which one, where there are several.

        Raises:
            RequestRefusedError: there is no such action, or its arguments are not its.
        """
        words = [] if action == RELOAD else _words(action, document, who)
        if action == RELOAD and self._reload is None:
            raise RequestRefusedError("this appliance cannot reload its configuration")
        with self._lock:
            if sum(job.code is None for job in self._jobs.values()) >= RUNNING_MAX:
                raise RequestRefusedError(f"{RUNNING_MAX} actions are at work already")
            job = Job(next(self._numbers), action, who)
            self._jobs[job.number] = job
            self._forget_old()
        named = {"action": action, "job": job.number, "by": who, "address": address}
        _log.info("command over HTTP begins", **named, arguments=document or None)
        if action == RELOAD:
            assert self._reload is not None
            self._reload()
            job.end(0, "the configuration is read again; the log says what was taken")
            return job
        config = ["--config", self._config, *(["--target", target] if target else [])]
        # Options first: what follows "--" is never taken for one.
        job.run([*self._command, *words[0], *config, "--", *words[1]], named, self._environ())
        return job

    def job(self, number: int) -> Job | None:
        """Return a job that is remembered."""
        with self._lock:
            return self._jobs.get(number)

    def stop(self) -> None:
        """End what is at work; a load that is interrupted goes on when it is asked for again."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.stop()

    def _forget_old(self) -> None:
        ended = [number for number, job in self._jobs.items() if job.code is not None]
        for number in ended[: max(0, len(self._jobs) - JOBS_MAX)]:
            del self._jobs[number]


def _words(action: str, document: Any, who: str) -> tuple[list[str], list[str]]:
    """Return the command with its options, and its arguments.

    Raises:
        RequestRefusedError: it is not what the action takes.
    """
    kind = ACTIONS.get(action)
    if kind is None:
        raise RequestRefusedError(f"the actions are {', '.join((*ACTIONS, RELOAD))}")
    if not isinstance(document, dict):
        raise RequestRefusedError("the body is a JSON object")
    known = {
        *kind.flags,
        *(["tables"] if kind.tables else []),
        *(["errors"] if kind.numbers else []),
    }
    if not document.keys() <= known:
        raise RequestRefusedError(f"the keys are {', '.join(sorted(known))}")
    options = [*kind.command, *(["--by", who] if kind.says_who else [])]
    for key, (yes, no) in kind.flags.items():
        value = document.get(key)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise RequestRefusedError(f"{key} is true or false")
        options += [option for option in (yes if value else no,) if option]
    arguments = _names(document.get("tables", [])) + _numbers(document.get("errors", []))
    if not arguments and not kind.is_everything:
        raise RequestRefusedError("tables or errors are to be named")
    return options, arguments


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _NAMES_MAX:
        raise RequestRefusedError("tables is a list of OWNER.NAME")
    for name in value:
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_LENGTH_MAX or "\0" in name:
            raise RequestRefusedError("tables is a list of OWNER.NAME")
    return value


def _numbers(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _NAMES_MAX:
        raise RequestRefusedError("errors is a list of numbers")
    if any(type(number) is not int or number < 0 for number in value):
        raise RequestRefusedError("errors is a list of numbers")
    return [str(number) for number in value]


class Job:
    """An action that was begun.

    Attributes:
        code: the exit code of its command; None while it is at work.
        output: what it has said, once it has ended.
    """

    def __init__(self, number: int, action: str, who: str) -> None:
        self.number = number
        self.action = action
        self.who = who
        self.code: int | None = None
        self.output = ""
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, command: Sequence[str], named: Mapping[str, Any], environ: Mapping[str, str]
    ) -> None:
        """Run a command in the background.

        Args:
            named: for the log.
            environ: beside this process's own.
        """
        try:
            self._process = subprocess.Popen(  # noqa: S603 - one of ours, its arguments checked
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **environ, "NO_COLOR": "1", "COLUMNS": "200"},
            )
        except OSError as error:
            self.end(70, plain_reason(error))
            return
        waiting = threading.Thread(
            target=self._follow, args=(self._process, named), name=f"olr-control-{self.number}"
        )
        waiting.daemon = True
        waiting.start()

    def _follow(self, process: subprocess.Popen[bytes], named: Mapping[str, Any]) -> None:
        said = process.communicate()[0]
        code = process.returncode
        _log.info("command over HTTP has ended", **named, exit_code=code)
        self.end(code, said[-OUTPUT_BYTES_MAX:].decode("utf-8", "replace"))

    def end(self, code: int, output: str) -> None:
        """Note the end of the job with its output and exit code."""
        self.output, self.code = output, code
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the job's end; tell whether it has ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """End the job's process."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        if not self._ended.wait(_ENDING_SECONDS):
            process.kill()

    def as_record(self) -> dict[str, Any]:
        """Return the job for JSON."""
        return {
            "job": self.number,
            "action": self.action,
            "by": self.who,
            "state": "at work" if self.code is None else "done" if self.code == 0 else "failed",
            "exit_code": self.code,
            "output": self.output,
        }

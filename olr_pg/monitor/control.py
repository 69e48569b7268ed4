"""Commands over HTTP: disabled by default, and only for clients with a token.

A request is ``POST /control/ACTION`` with the token in the Authorization header, and the action's
arguments as a JSON object. The request runs the corresponding command of ``olr-pg`` in a separate
process. So each action has only one implementation, a load does not use the memory of the
appliance, and the output of the command is the answer. Only the actions in `ACTIONS` can be run,
with arguments in the forms that are defined there.

A token is compared in constant time. A token is accepted only in a header, so that the page of
another site cannot make a browser send it. The token identifies its holder: each action is logged
with the holder's name, the address, and the result.
"""

from __future__ import annotations

import hmac
import itertools
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from olr_pg.config.port_sections import TOKEN_LENGTH_MIN
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.system_errors import unexpected_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

JOBS_MAX: Final = 32
"""Maximum number of jobs that are remembered. For a new job, the oldest job that has ended is
forgotten.
"""

RUNNING_MAX: Final = 4
"""Maximum number of jobs that run at the same time."""

ANSWER_SECONDS: Final = 20.0
"""Seconds that a request waits for the end of its job. If the job takes longer, the answer is the
job's number.
"""

OUTPUT_BYTES_MAX: Final = 64 << 10
_ENDING_SECONDS: Final = 10.0
_NAMES_MAX: Final = 1000
_NAME_LENGTH_MAX: Final = 300

_log = structlog.get_logger(__name__)


class Action(NamedTuple):
    """The command that an action runs.

    Attributes:
        command: the words of the command.
        tables: whether the action accepts ``tables``, a list of OWNER.NAME.
        numbers: whether the action accepts ``errors``, a list of error numbers.
        flags: keys with boolean values; for each key, the options for true and for false.
        is_everything: whether ``tables`` can be omitted.
        says_who: whether the command has an option for the name of the requester.
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
"""The actions that run a command, by the name of the action."""

RELOAD: Final = "reload"
"""The action that makes the appliance reload its configuration."""


class RequestRefusedError(Exception):
    """Raised for a request that cannot be executed; its text is the reason."""


class Control:
    """Runs actions for clients with a token.

    Args:
        tokens: the token of each holder, by the holder's name.
        config: the path of the configuration file.
        reload: makes the appliance reload its configuration; None if this is not possible.
        command: the program to run; the words of the action follow it. With -P, Python does not
            import modules from the working directory, where others may be able to write.
        environ: returns the environment variables that the configuration refers to and that were
            removed from this process; the command needs them to read the configuration.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        config: str,
        reload: Callable[[], None] | None = None,
        command: Sequence[str] = (sys.executable, "-P", "-m", "olr_pg"),
        environ: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        for name, token in tokens.items():
            if len(token) < TOKEN_LENGTH_MIN:
                raise OlrPgError(Code.CONTROL_TOKEN_WEAK, f"the token of {name!r}")
        self._tokens = {name: token.encode() for name, token in tokens.items()}
        self._config = config
        self._reload = reload
        self._command = tuple(command)
        self._environ = environ
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: OrderedDict[int, Job] = OrderedDict()

    def who(self, authorization: str) -> str | None:
        """Return the name of a token's holder; None for an unknown token.

        Args:
            authorization: the Authorization header, ``Bearer TOKEN``.
        """
        kind, _, given = authorization.partition(" ")
        token = given.strip().encode()
        found = None
        # Compare with all tokens, so that the time of the comparison does not reveal which token
        # matches.
        for name, known in self._tokens.items():
            if hmac.compare_digest(token, known):
                found = name
        return found if kind.lower() == "bearer" else None

    def start(
        self, action: str, document: Any, who: str, address: str, target: str | None = None
    ) -> Job:
        """Start an action.

        Args:
            who: the name of the requester at `address`.
            target: the target's name, if there are several.

        Raises:
            RequestRefusedError: the action is unknown, or its arguments are invalid.
        """
        words = [] if action == RELOAD else _words(action, document, who)
        if action == RELOAD and self._reload is None:
            raise RequestRefusedError("this appliance cannot reload its configuration")
        with self._lock:
            if sum(job.code is None for job in self._jobs.values()) >= RUNNING_MAX:
                raise RequestRefusedError(f"{RUNNING_MAX} actions are already in progress")
            job = Job(next(self._numbers), action, who, self._environ())
            self._jobs[job.number] = job
            self._forget_old()
        named = {"action": action, "job": job.number, "by": who, "address": address}
        _log.info("command over HTTP started", **named, arguments=document or None)
        if action == RELOAD:
            assert self._reload is not None
            self._reload()
            job.end(
                0,
                "the appliance was asked to reload its configuration; its log reports the applied"
                " changes",
            )
            return job
        config = ["--config", self._config, *(["--target", target] if target else [])]
        # Options come before "--", because words after it are not options.
        try:
            job.run([*self._command, *words[0], *config, "--", *words[1]], named)
        except RuntimeError as error:  # the system cannot start more threads
            job.fail(error)
        return job

    def job(self, number: int) -> Job | None:
        """Return the job with a number; None if it is not remembered."""
        with self._lock:
            return self._jobs.get(number)

    def stop(self) -> None:
        """End the running jobs. A load that is interrupted in this way continues when it is
        requested again.
        """
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
        RequestRefusedError: the document does not match the action.
    """
    kind = ACTIONS.get(action)
    if kind is None:
        raise RequestRefusedError(
            f"unknown action; the actions are {', '.join((*ACTIONS, RELOAD))}"
        )
    if not isinstance(document, dict):
        raise RequestRefusedError("the body must be a JSON object")
    known = {
        *kind.flags,
        *(["tables"] if kind.tables else []),
        *(["errors"] if kind.numbers else []),
    }
    if not document.keys() <= known:
        raise RequestRefusedError(f"unknown key; the keys are {', '.join(sorted(known))}")
    options = [*kind.command, *(["--by", who] if kind.says_who else [])]
    for key, (yes, no) in kind.flags.items():
        value = document.get(key)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise RequestRefusedError(f"{key} must be true or false")
        options += [option for option in (yes if value else no,) if option]
    arguments = _names(document.get("tables", [])) + _numbers(document.get("errors", []))
    if not arguments and not kind.is_everything:
        raise RequestRefusedError("the request must name tables or errors")
    return options, arguments


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _NAMES_MAX:
        raise RequestRefusedError("tables must be a list of OWNER.NAME")
    for name in value:
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_LENGTH_MAX or "\0" in name:
            raise RequestRefusedError("tables must be a list of OWNER.NAME")
    return value


def _numbers(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _NAMES_MAX:
        raise RequestRefusedError("errors must be a list of numbers")
    if any(type(number) is not int or number < 0 for number in value):
        raise RequestRefusedError("errors must be a list of numbers")
    return [str(number) for number in value]


class OwnCommand:
    """Runs commands one after the other, until `stop` is called from another thread.

    Args:
        environ: environment variables for the process, in addition to those of this process.
        ending_seconds: how long a process may take to end after SIGTERM before it is killed.

    Attributes:
        ended: set by `stop`; no command starts after that.
    """

    def __init__(self, environ: Mapping[str, str], ending_seconds: float) -> None:
        self._environ = {**os.environ, **environ}
        self._ending_seconds = ending_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()

    def run(
        self,
        command: Sequence[str],
        tell: Callable[[bytes], object],
        *,
        with_errors: bool = False,
    ) -> int:
        """Run a command until it ends; return its exit code, or 0 after `stop`.

        Args:
            tell: called with each line of its output.
            with_errors: whether the lines of its standard error also count as output; otherwise
                they are written to the standard error of this process.

        Raises:
            OSError: the process cannot be started.
        """
        with self._lock:
            if self.ended.is_set():
                return 0
            self._process = process = subprocess.Popen(  # noqa: S603 - one of ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if with_errors else None,
                env=self._environ,
                start_new_session=True,
            )
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                tell(line)
        return process.wait()

    def stop(self) -> None:
        """End the running process, and start no further one."""
        with self._lock:
            self.ended.set()
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(self._ending_seconds)
            except subprocess.TimeoutExpired:
                process.kill()


class Job:
    """A started action.

    Attributes:
        code: the exit code of the job's command; None while it runs.
        output: the output of the command, after it has ended.
    """

    def __init__(
        self, number: int, action: str, who: str, environ: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.number = number
        self.action = action
        self.who = who
        self.code: int | None = None
        self.output = ""
        self._ended = threading.Event()
        self._process = OwnCommand({**environ, "NO_COLOR": "1", "COLUMNS": "200"}, _ENDING_SECONDS)

    def run(self, command: Sequence[str], named: Mapping[str, Any]) -> None:
        """Run a command in the background.

        Args:
            named: the fields that identify the job in the log.
        """
        threading.Thread(
            target=self._run, args=(command, named), name=f"olr-control-{self.number}", daemon=True
        ).start()

    def _run(self, command: Sequence[str], named: Mapping[str, Any]) -> None:
        lines: list[bytes] = []
        try:
            code = self._process.run(command, lines.append, with_errors=True)
        except OSError as error:
            self.fail(error)
            return
        _log.info("command over HTTP ended", **named, exit_code=code)
        self.end(code, b"".join(lines)[-OUTPUT_BYTES_MAX:].decode("utf-8", "replace"))

    def fail(self, error: Exception) -> None:
        """Record that the job's command could not be started."""
        failure = unexpected_failure(error)
        self.end(failure.exit_code, f"{failure}\n  to do: {failure.action}")

    def end(self, code: int, output: str) -> None:
        """Record the end of the job with its output and exit code."""
        self.output, self.code = output, code
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait for the job's end; return whether it has ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """End the job's process."""
        self._process.stop()

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

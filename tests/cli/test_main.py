"""The command line as a process: help, exit codes, signals, closed pipes, lazy imports."""

from __future__ import annotations

import ast
import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from tests.replicator.decoded_seeds import simulated

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]

COMMANDS = ("run", "decode", "dump", "demo", "simulate", "config", "version")
HEAVY = ("pyspark", "numba", "numpy", "pandas", "pyarrow", "psycopg", "sqlalchemy", "oracledb")


def test_the_entry_point_is_what_these_tests_run() -> None:
    (script,) = entry_points(group="console_scripts", name="olr-pg")
    assert script.value == "olr_pg.cli.entry:run"


def test_help_names_every_command(cli: Cli) -> None:
    result = cli("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert all(name in result.stdout for name in COMMANDS)


def test_without_a_command_help_is_printed(cli: Cli) -> None:
    result = cli()
    assert "Usage: olr-pg" in result.stdout + result.stderr
    assert result.returncode == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_without_heavy_imports(start_cli: Start, name: str) -> None:
    entry = (
        "import sys\nfrom olr_pg.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    )
    process = start_cli(name, "--help", entry=entry)
    stdout, stderr = process.communicate(timeout=60)
    assert f"Usage: olr-pg {name}" in stdout
    assert stderr == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (("version",), ("pydantic",)),  # typer's option --help
        (("--version",), ("pydantic",)),
        (("--help",), ("rich",)),
        (("version", "--help"), ("pydantic", "rich")),
        (("config", "--help"), ("pydantic", "rich")),
        (("config", "schema"), ("pydantic", "rich", "numpy")),
        (
            ("decode", "-d", "DICTIONARY", "LOG"),
            ("numba", "numpy", "pydantic", "rich", "structlog"),
        ),
        (("dump", "LOG"), ("numba", "numpy", "pydantic", "structlog")),
    ],
    ids=lambda value: " ".join(value) if value and value[0] != "rich" else None,
)
def test_commands_import_what_they_use_and_no_more(
    tmp_path: Path, arguments: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    if "LOG" in arguments:
        folder = simulated(tmp_path, 3, "orders", 30_000).folder
        files = {"LOG": folder / "logs", "DICTIONARY": folder / "dictionary.json"}
        arguments = tuple(str(files.get(one, one)) for one in arguments)
    entry = (
        "import atexit, sys\nfrom olr_pg.cli.entry import run\n"
        "told = lambda: print(sorted(set(sys.modules) & set({!r})), file=sys.stderr)\n"
        "atexit.register(told)\nrun()"
    ).format((*HEAVY, "pydantic", "rich", "structlog", "sqlglot"))
    done = subprocess.run(
        [sys.executable, "-c", entry, *arguments], check=True, capture_output=True, text=True
    )
    imported = set(ast.literal_eval(done.stderr.splitlines()[-1]))
    assert imported <= set(allowed), imported - set(allowed)


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"olr-pg {version('olr-pg')}\n"
    assert cli("version").stdout.startswith(f"olr-pg {version('olr-pg')} (")
    assert json.loads(cli("version", "--json").stdout)["version"] == version("olr-pg")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["bogus"], "No such command"),
        (["run"], "--config"),
        (["decode", "x"], "--dictionary"),
        (["dump"], "LOG"),
        (["dump", "--json", "x"], "--stats"),
        (["run", "--config", "x", "--log-level", "5"], "--log-level"),
        (["run", "--config", "x", "--log-format", "xml"], "--log-format"),
    ],
)
def test_wrong_usage_exits_with_2(cli: Cli, args: list[str], text: str) -> None:
    result = cli(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert text in result.stderr


@pytest.mark.parametrize(
    ("args", "code", "exit_code"),
    [
        (["run", "--config", "missing.json"], "OLR-01001", 2),
        (["run", "--file", "missing.json"], "OLR-01001", 2),
        (["run", "--log-level", "3"], "OLR-01120", 2),
        (["config", "check", "--config", "missing.json"], "OLR-01001", 2),
        (["dump", "--stats", "missing.arc"], "OLR-02002", 3),
        (["dump", "--stats", "*.arc"], "OLR-02001", 3),
    ],
)
def test_an_error_prints_code_what_where_and_what_to_do(
    cli: Cli, args: list[str], code: str, exit_code: int
) -> None:
    result = cli(*args)
    assert (result.returncode, result.stdout) == (exit_code, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"{code}: ")
    assert lines[-1].startswith("  to do: ")
    assert "Traceback" not in result.stderr


def test_an_error_as_json(cli: Cli) -> None:
    result = cli("--json-errors", "config", "check", "--config", "missing.json")
    assert result.returncode == 2
    error = json.loads(result.stderr)
    assert list(error) == ["code", "what", "where", "action"]
    assert error["code"] == "OLR-01001"
    assert error["where"] == {"file": "missing.json"}


def open_for_writing(fifo: Path, reader: subprocess.Popen[str]) -> int:
    """The descriptor of a named pipe, as soon as `reader` has opened its end."""
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        assert reader.poll() is None
        time.sleep(0.002)


def wait_until_it_reads(process: subprocess.Popen[str]) -> None:
    """Until the process sleeps: Python sees no signal that comes between two calls into C."""
    stat = Path(f"/proc/{process.pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        assert process.poll() is None
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_signals_end_a_command_quietly(
    tmp_path: Path, start_cli: Start, number: signal.Signals, exit_code: int
) -> None:
    # A command that waits for its configuration from a pipe that nobody writes to.
    fifo = tmp_path / "c.json"
    os.mkfifo(fifo)
    process = start_cli("config", "check", "--config", fifo)
    writer = open_for_writing(fifo, process)
    try:
        wait_until_it_reads(process)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        os.close(writer)
    assert (process.returncode, stdout) == (exit_code, "")
    assert stderr == ("interrupted\n" if number is signal.SIGINT else "terminated\n")


HELP = [("--help",), ("run", "--help"), ("errors", "--help")]


@pytest.mark.parametrize("args", [("config", "schema"), ("version",), ("--version",), *HELP])
def test_a_reader_who_goes_away_is_no_error(start_cli: Start, args: tuple[str, ...]) -> None:
    process = start_cli(*args)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=60)) == ("", 141)


@pytest.mark.parametrize("args", [("version",), ("version", "--json"), ("config", "schema"), *HELP])
def test_a_full_disk_behind_the_output_is_one_line(start_cli: Start, args: tuple[str, ...]) -> None:
    entry = (
        "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1);"
        "from olr_pg.cli.entry import run; run()"
    )
    process = start_cli(*args, entry=entry)
    _, stderr = process.communicate()
    assert process.returncode == 2
    assert stderr.startswith("OLR-01107: the standard output cannot be written: No space left")
    assert "Traceback" not in stderr


def test_a_closed_standard_output_is_nobody_s_harm(start_cli: Start) -> None:
    process = start_cli(
        entry="import os, sys; os.close(1);"
        "os.execv(sys.executable, [sys.executable, '-m', 'olr_pg', 'version'])",
    )
    _, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")


WITHOUT_STREAM = (
    "import os, sys; os.close({number}); os.execv(sys.executable, [sys.executable, '-c',"
    " 'import olr_pg.cli.entry as e; e.run()', *sys.argv[1:]])"
)


def test_changes_that_no_stream_can_take_are_an_error(tmp_path: Path, start_cli: Start) -> None:
    folder = simulated(tmp_path, 3, "orders", 30_000).folder
    decode = ("decode", "--dictionary", folder / "dictionary.json", folder / "logs")
    process = start_cli(*decode, entry=WITHOUT_STREAM.format(number=1))
    _, stderr = process.communicate()
    assert process.returncode == 2
    assert stderr.startswith("OLR-01107: the standard output cannot be written: Bad file")


@pytest.mark.parametrize("number", [0, 2])
def test_a_command_works_without_standard_input_or_error(start_cli: Start, number: int) -> None:
    process = start_cli("version", entry=WITHOUT_STREAM.format(number=number))
    stdout, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")
    assert stdout.startswith("olr-pg ")


def test_no_opened_file_takes_the_number_of_a_closed_stream() -> None:
    # A library that writes to number 2 would write into the file.
    script = (
        "import os, sys, types; sys.modules['olr_pg.cli.main'] = m = types.ModuleType('m');"
        "m.run = lambda: os._exit(os.open(os.devnull, os.O_RDONLY));"
        "from olr_pg.cli.entry import run; run()"
    )
    closed = f"exec {sys.executable} -c {shlex.quote(script)} <&- >&- 2>&-"
    assert subprocess.run(closed, shell=True, check=False).returncode > 2


def test_ctrl_c_while_modules_are_imported_is_quiet(start_cli: Start) -> None:
    # Nothing tells from outside how far it is: the import itself sends the signal.
    entry = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from olr_pg.cli.entry import run\n"
        "run()\n"
    )
    process = start_cli("version", entry=entry)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (-signal.SIGINT, "", "")


def test_a_defect_says_so_with_its_calls(start_cli: Start) -> None:
    entry = (
        "from olr_pg.cli import version\n"
        "def broken(): raise KeyError('host=h password=hunter2')\n"
        "version.platform_text = broken\n"
        "from olr_pg.cli.main import run\n"
        "run()\n"
    )
    process = start_cli("version", entry=entry)
    _, stderr = process.communicate()
    assert process.returncode == 70
    assert "Traceback" in stderr
    assert "OLR-09001: an internal error: KeyError" in stderr
    assert "hunter2" not in stderr
    process = start_cli("--json-errors", "version", entry=entry)
    _, stderr = process.communicate()
    record = json.loads(stderr)
    assert record["code"] == "OLR-09001"
    assert "broken" in record["traceback"]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_inside_a_callback_is_not_lost(start_cli: Start, name: str, code: int) -> None:
    entry = (
        "import ctypes, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from olr_pg.cli import version\n"
        f"callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.{name}))\n"
        "def compiling():\n"
        "    callback()\n"
        "    time.sleep(3600)\n"
        "version.platform_text = compiling\n"
        "from olr_pg.cli.main import run\n"
        "run()\n"
    )
    process = start_cli("version", entry=entry)
    _, stderr = process.communicate()
    assert process.returncode == code
    assert "Exception ignored" not in stderr


def test_help_is_wrapped_where_the_terminal_ends(cli: Cli) -> None:
    lines = [
        line.strip() for line in cli("initial-load", "--help", COLUMNS="80").stdout.splitlines()
    ]
    assert "`source.tables`. With `apply.create-tables`, the command creates missing" in lines

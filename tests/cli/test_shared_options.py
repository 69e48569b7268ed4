"""What bash, zsh and fish are proposed, asked as their completion scripts ask."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import Code
from olr_pg.replicator.kernel_warmup import unpack_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    Cli = Callable[..., subprocess.CompletedProcess[str]]

TABLES = ["tables", "pause", "--config", "c.json"]


def asked(cli: Cli, shell: str, words: list[str], last: str) -> list[str]:
    """The words that a shell gets for a command line with `last` at its end."""
    line = shlex.join(["olr-pg", *words]) + f" {last}"
    variables = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) + 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    answer = cli(**variables, _OLR_PG_COMPLETE=f"complete_{shell}")
    assert answer.returncode == 0, answer.stderr
    if shell == "zsh":
        return [part.split('"')[1] for part in answer.stdout.splitlines() if part.count('"') >= 2]
    return [part.partition("\t")[0] for part in answer.stdout.splitlines() if part]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    unpack_logs(tmp_path)
    source = {"kind": "offline", "dictionary": "dictionary.json", "logs": "logs"}
    secret = {"connect-string": "password=${NO_SUCH_VARIABLE}"}
    targets = [{"name": "north", "apply": secret}, {"name": "south"}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": source, "target": targets}))
    return path


def tables_of(folder: Path) -> list[str]:
    document = json.loads((folder / "dictionary.json").read_text())
    return sorted(f"{one['owner']}.{one['name']}" for one in document["tables"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_and_codes_in_each_shell(cli: Cli, config: Path, shell: str) -> None:
    tables = tables_of(config.parent)
    assert tables
    assert asked(cli, shell, TABLES, tables[0][:4])[0].startswith(tables[0][:4])
    assert asked(cli, shell, [*TABLES, "--target"], "s") == ["south"]
    assert asked(cli, shell, ["errors", "explain"], "OLR-0122") == [
        "OLR-01220",
        "OLR-01221",
        "OLR-01222",
        "OLR-01223",
    ]
    assert "tables" in asked(cli, shell, [], "t")


def test_all_tables_of_the_dictionary(cli: Cli, config: Path) -> None:
    assert asked(cli, "bash", TABLES, '""') == tables_of(config.parent)
    decode = ["decode", "-d", "dictionary.json", "--table"]
    assert asked(cli, "bash", decode, '""') == tables_of(config.parent)


def test_a_run_has_left_its_dictionary(cli: Cli, config: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "dictionary.json").rename(tmp_path / "state" / "dictionary.json")
    source = {"user": "u", "password": "${NO_SUCH_VARIABLE}", "server": "h:1521/S"}
    config.write_text(json.dumps({"source": source, "context": {"data": "state"}}))
    assert asked(cli, "bash", TABLES, '""') == tables_of(tmp_path / "state")


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"target": "text", "source": 1}', None])
def test_without_a_configuration_there_is_nothing_to_propose(
    cli: Cli, tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "c.json").write_text(text)
    assert asked(cli, "bash", TABLES, '""') == []
    assert asked(cli, "bash", [*TABLES, "--target"], '""') == []


PROPOSED = {
    "bash": "{script}\nCOMP_WORDS=(olr-pg ta); COMP_CWORD=1; _olr_pg_completion olr-pg;"
    ' printf "%s\\n" "${{COMPREPLY[@]}}"; complete -p olr-pg',
    "fish": "{script}\ncomplete -C 'olr-pg ta'",
    "zsh": "autoload -U compinit; compinit -u -D; {script}\necho ${{_comps[olr-pg]}} tables",
}
"""What each shell does with its script; zsh completes on a terminal only."""


@pytest.mark.parametrize("shell", PROPOSED)
def test_a_shell_takes_its_script(cli: Cli, shell: str) -> None:
    """Whatever shell, or none, the program is called by."""
    script = cli("--show-completion", shell)
    assert (script.returncode, script.stderr) == (0, "")
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} takes it where it is installed")
    own = "--norc" if shell == "bash" else "--no-rcs" if shell == "zsh" else "--no-config"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    taken = subprocess.run(
        [program, own, "-c", PROPOSED[shell].format(script=script.stdout)],
        capture_output=True, text=True, check=False, env=os.environ | {"PATH": path},
    )  # fmt: skip
    assert (taken.returncode, taken.stderr) == (0, "")
    assert "tables" in re.split(r"\s", taken.stdout)


def test_what_is_no_shell_is_wrong_usage(cli: Cli) -> None:
    answer = cli("--show-completion", "tcsh")
    assert answer.returncode == 2
    assert "'bash', 'zsh', 'fish'" in answer.stderr


def test_a_code_is_explained(cli: Cli) -> None:
    code = Code.KERNEL_PACK_UNFIT
    told = cli("errors", "explain", "olr-01221")
    assert told.stdout.splitlines() == [
        f"OLR-01221: {code.title}",
        f"  to do: {code.action}",
        f"  exit code: {code.exit_code}",
    ]
    assert json.loads(cli("errors", "explain", "1221", "--json").stdout)["code"] == "OLR-01221"


@pytest.mark.parametrize("code", ["OLR-99999", "nothing", "", "-1"])
def test_what_is_no_code_is_wrong_usage(cli: Cli, code: str) -> None:
    refused = cli("errors", "explain", "--", code)
    assert refused.returncode == 2
    assert "is not an error code" in refused.stderr

"""The Oracle in containers: its files fit each other, the SQL scripts and the commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
import yaml  # type: ignore[import-untyped]

from olr_pg.cli.main import app
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource
from olr_pg.proving import scratch_schema
from olr_pg.proving.scenario import parse_scenario
from tests.simulator.sql.databases import Recorded

ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = ROOT / "docker" / "compose.oracle.yaml"
CONFIG: Final = ROOT / "docker" / "oracle" / "olr-pg.json"
INITDB: Final = ROOT / "docker" / "oracle" / "initdb"
SQL: Final = ROOT / "sql" / "oracle"
WORKFLOW: Final = ROOT / ".github" / "workflows" / "prove.yml"
PAGE: Final = ROOT / "docs" / "oracle-free.md"
SCRIPTS: Final = sorted(INITDB.glob("*.sh"))
DOCUMENT: Final[dict[str, Any]] = yaml.safe_load(COMPOSE.read_text("utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = DOCUMENT["services"]
JOB: Final[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["prove"]
SECRETS: Final = set(re.findall(r"\$\{(\w+_PASSWORD)", COMPOSE.read_text("utf-8")))


def test_what_is_mounted_is_there() -> None:
    named = set()
    for service in SERVICES.values():
        for mount in service["volumes"]:
            source = mount.partition(":")[0]
            if source.startswith("."):
                assert (COMPOSE.parent / source).exists(), source
            else:
                named.add(source)
    assert named == set(DOCUMENT["volumes"])


@pytest.mark.parametrize("name", ["compose.yaml", "compose.oracle.yaml"])
def test_quick_failures_do_not_lock_the_account(name: str) -> None:
    """A wrong password is one failed login per start, and Oracle's default profile has ten."""
    services = yaml.safe_load((COMPOSE.parent / name).read_text("utf-8"))["services"]
    policy, _, starts = services["olr-pg"]["restart"].partition(":")
    assert (policy, int(starts) < 10) == ("on-failure", True)


def environment(**given: str) -> dict[str, str]:
    """The environment that the compose file gives to the appliance."""

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        return given.get(name, default or "x")

    variable = re.compile(r"\$\{(\w+):[-?]?([^}]*)\}")
    variables = SERVICES["olr-pg"]["environment"]
    return {name: variable.sub(value, text) for name, text in variables.items()}


@pytest.mark.parametrize("given", [{}, {"ORACLE_PDB": "XEPDB1"}])
def test_the_appliance_connects_to_the_pdb(given: dict[str, str]) -> None:
    source = load_config(CONFIG, environment(**given)).source
    assert isinstance(source, OracleSource)
    assert source.server == f"oracle:1521/{given.get('ORACLE_PDB', 'FREEPDB1')}"


def test_logs_are_read_where_oracle_writes_them() -> None:
    """Under both names: that of the volume in one container, and that in the other."""
    places = {
        name: mount.split(":")[1]
        for name, service in SERVICES.items()
        for mount in service["volumes"]
        if mount.startswith("oracle-data:")
    }
    config = load_config(CONFIG, environment())
    source = config.source
    assert isinstance(source, OracleSource)
    assert source.path_mapping == ((places["oracle"], places["olr-pg"]),)
    archive = (INITDB / "10_archivelog.sh").read_text("utf-8")
    assert f"LOCATION={places['oracle']}/" in archive
    assert source.redo == "online"  # a PDB switches no logs


def test_every_variable_is_set() -> None:
    oracle, own = (set(SERVICES[name]["environment"]) for name in ("oracle", "olr-pg"))
    overriding = {name for name in own if name.startswith("OLR_PG_")}
    assert set(re.findall(r"\$\{(\w+)\}", CONFIG.read_text("utf-8"))) == own - overriding
    for script in SCRIPTS:
        text = script.read_text("utf-8")
        known = oracle | set(re.findall(r"^\s*(?:local )?(\w+)=", text, re.MULTILINE))
        assert set(re.findall(r"\$\{?([A-Za-z_]\w*)", text)) <= known, script.name
    (step,) = [one for one in JOB["steps"] if one["name" if "name" in one else "uses"]
               == "Passwords of this run"]  # fmt: skip
    names = re.search(r"for name in (.*); do", step["run"])
    assert names is not None
    made = {f"{name}_PASSWORD" for name in names[1].split()}
    assert made == SECRETS
    assert set(re.findall(r"^\s*(\w+_PASSWORD)=", PAGE.read_text("utf-8"), re.MULTILINE)) == SECRETS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.name)
def test_scripts_are_programs(script: Path) -> None:
    assert os.access(script, os.X_OK)
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_script_of_sql_gets_its_arguments() -> None:
    text = (INITDB / "20_accounts.sh").read_text("utf-8")
    calls = re.findall(r'^run "[^"]+" "\$scripts/(\w+\.sql)" (.*)$', text, re.MULTILINE)
    assert {name for name, _ in calls} == {"user_pdb.sql", "grants.sql", "prove.sql",
                                           "load_grants.sql"}  # fmt: skip
    for name, arguments in calls:
        wanted = re.findall(r"^DEFINE \w+ = &(\d)$", (SQL / name).read_text("utf-8"), re.MULTILINE)
        assert len(arguments.split()) == len(wanted), name


_FAKES: Final = {
    "sqlplus": '#!/bin/bash\nprintf "%s\\n" "$*" >>"$RECORD/arguments"\ncat >>"$RECORD/input"\n',
    **dict.fromkeys(
        ("createAppUser", "psql", "curl"),
        '#!/bin/bash\nprintf "%s\\n" "$*" >>"$RECORD/arguments"\n',
    ),
}


def test_no_password_is_an_argument_of_a_program(tmp_path: Path) -> None:
    for name, text in _FAKES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "20_accounts.sh"
    text = (INITDB / script.name).read_text("utf-8")
    script.write_text(text.replace("/opt/oracle/oradata", str(tmp_path)))
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RECORD": str(tmp_path),
        "ORACLE_PDB": "PDB",
        **{f"{name}_PASSWORD": f"{name}@secret $x" for name in ("ORACLE", "OLR", "PROVE", "SHOP")},
    }
    subprocess.run(["bash", script], env=environment, check=True, capture_output=True)
    assert set((tmp_path / "arguments").read_text().splitlines()) == {"-s /nolog"}
    lines = (tmp_path / "input").read_text().splitlines()
    assert [line for line in lines if not line.startswith("WHENEVER")] == [
        "CONNECT / as sysdba",
        '@/opt/olr-pg/sql/user_pdb.sql "PDB" "OLR" "OLR@secret $x"',
        'CONNECT sys/"ORACLE@secret $x"@localhost:1521/PDB as sysdba',
        '@/opt/olr-pg/sql/grants.sql "OLR"',
        'CONNECT sys/"ORACLE@secret $x"@localhost:1521/PDB as sysdba',
        '@/opt/olr-pg/sql/prove.sql "OLR_PG_PROVE" "PROVE@secret $x" "OLR"',
        'CONNECT sys/"ORACLE@secret $x"@localhost:1521/PDB as sysdba',
        f'@{tmp_path}/shop_user.txt "SHOP" "SHOP@secret $x"',
        'CONNECT SHOP/"SHOP@secret $x"@localhost:1521/PDB',
        f"@{tmp_path}/shop.txt",
        'CONNECT sys/"ORACLE@secret $x"@localhost:1521/PDB as sysdba',
        '@/opt/olr-pg/sql/load_grants.sql "OLR" "SHOP"',
    ]
    assert (tmp_path / "olr-pg-is-ready").exists()


def test_prove_sql_gives_what_prove_gives_and_no_more() -> None:
    text = (SQL / "prove.sql").read_text("utf-8")
    granted = re.search(
        r"^GRANT (CREATE SESSION.*?) TO &prove_user;", text, re.DOTALL | re.MULTILINE
    )
    assert granted is not None
    rights = [one.strip() for one in granted[1].split(",")]
    assert rights == [one.strip() for one in scratch_schema._RIGHTS.split(",")]
    statements = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    assert "ANY" not in statements
    assert "ALTER SYSTEM" not in statements
    assert f" {scratch_schema.MADE_USER} " in text


def test_the_sample_table_is_valid_sql(tmp_path: Path) -> None:
    made = Recorded(tmp_path)
    for step in parse_scenario((INITDB / "shop.txt").read_text("utf-8"), "sample").steps:
        made.run(step.text)
    assert made.rows("SELECT COUNT(*), SUM(amount) FROM orders")[0][0] == 2


def test_images_are_the_same_everywhere() -> None:
    default = re.search(r"ORACLE_IMAGE:-([^}]+)", SERVICES["oracle"]["image"])
    assert default is not None
    images = {one["pdb"]: one["image"] for one in JOB["strategy"]["matrix"]["include"]}
    assert images["FREEPDB1"] == default[1]
    for text in (COMPOSE.read_text("utf-8"), PAGE.read_text("utf-8")):
        assert images["XEPDB1"] in text


COMMANDS: Final = sorted({
    (command, tuple(re.findall(r"--[\w-]+", options)))
    for path in (PAGE, WORKFLOW, COMPOSE)
    for command, options in re.findall(
        r"(?:--rm|--no-deps)(?: --\w[\w-]*)* olr-pg\s+([a-z-]+)( [^\n`]*)?",
        path.read_text("utf-8"),
    )
})  # fmt: skip


def test_there_are_commands() -> None:
    assert {name for name, _ in COMMANDS} == {"doctor", "initial-load", "prove", "verify"}


@pytest.mark.parametrize(("name", "options"), COMMANDS)
def test_commands_and_their_options_exist(name: str, options: tuple[str, ...]) -> None:
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    known = {option for one in command.params for option in one.opts}
    assert set(options) <= known

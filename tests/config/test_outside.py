"""What a configuration names outside its file.

What the configuration refers to is not in the environment of what this process starts.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from olr_pg.config.outside import Environment, check_outside, load_for_work
from olr_pg.config.reading import ConfigError, parse_config
from tests.server.certificates import PASSWORD, Authority

OFFLINE = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}
DESCRIPTION = "(DESCRIPTION=(ADDRESS=(PROTOCOL=TCP)(HOST=h)(PORT=1521))(CONNECT_DATA=(SID=S)))"
TNSNAMES = f"PROD, OTHER.EXAMPLE.COM = {DESCRIPTION}\n"


def check(folder: Path, **sections: Any) -> None:
    check_outside(parse_config({"source": OFFLINE, **sections}, folder, {}), "c.json")


def check_server(server: str, **keys: Any) -> None:
    source = {"user": "u", "password": "p", "server": server, **keys}
    check(Path("/nowhere"), source=source)


def problems(folder: Path, **sections: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check(folder, **sections)
    assert (caught.value.code, caught.value.where) == (4030, {"file": "c.json"})
    assert PASSWORD not in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "server",
    ["h/S", "h:1521/S", "//h:1521/S", "h:1521/", "[::1]:1521/S", "h,g:1521/S:dedicated/one",
     "tcps://h:2484/S?ssl_server_dn_match=off",
     DESCRIPTION,
     f"(DESCRIPTION_LIST={DESCRIPTION}{DESCRIPTION})"],
)  # fmt: skip
def test_forms_of_a_server(server: str) -> None:
    check_server(server)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("h", "neither TNS_ADMIN nor ORACLE_HOME is set"),
        ("h:1521", "neither TNS_ADMIN"),
        ("h 1/S", ""),
        (":1521/S", "the host is missing"),
        ("h:99999/S", "the port is not from 1 to 65535"),
        ("http://h/S", ""),
        ("ldap://h/cn=S", "LDAP names require `source.thick-mode`"),
        ("(DESCRIPTION=(ADDRESS", ""),
        ("(A=1)", ""),
    ],
)
def test_a_server_that_the_driver_cannot_find(
    server: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oracledb.defaults.config_dir", None)
    with pytest.raises(ConfigError) as caught:
        check_server(server)
    assert caught.value.code == 7013
    (problem,) = caught.value.problems
    assert (problem.key, reason in problem.expected) == ("source.server", True)
    shown = "a string (not shown)" if "://" in server else json.dumps(server)
    assert problem.found == shown


def test_the_server_of_a_standby_is_looked_at_too() -> None:
    standby = {"server": "(A=1)", "user": "u", "password": "p"}
    with pytest.raises(ConfigError) as caught:
        check_server("h:1521/S", standby=standby)
    assert [problem.key for problem in caught.value.problems] == ["source.standby.server"]


def test_client_libraries_find_names_in_more_ways() -> None:
    for server in ("h", "ldap://h/cn=S"):
        check_server(server, **{"thick-mode": True})


def test_a_name_of_tnsnames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oracledb.defaults.config_dir", str(tmp_path))
    with pytest.raises(ConfigError, match=r"has no tnsnames\.ora"):
        check_server("prod")
    (tmp_path / "tnsnames.ora").write_text(TNSNAMES)
    check_server("prod")
    check_server("other.example.com")
    with pytest.raises(ConfigError, match=r"tnsnames\.ora does not contain this name"):
        check_server("test")


def test_files_of_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, locked = authority.issue("server"), authority.issue("locked", PASSWORD)
    good = {"certificate": pair.certificate.name, "key": pair.key.name}
    check(
        tmp_path, target={"tls": {**good, "client-ca": authority.file.name}}, status={"tls": good}
    )
    found = problems(
        tmp_path,
        target=[
            {"name": "one", "tls": good},
            {"name": "two", "tls": {"certificate": "gone", "key": ".", "client-ca": "lost"}},
        ],
        status={"tls": {"certificate": locked.certificate.name, "key": locked.key.name}},
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "target[1].tls.certificate",
        "target[1].tls.key",
        "target[1].tls.client-ca",
        "status.tls",
    ]
    assert f'"{tmp_path}/gone"' in found[0]
    assert "No such file" in found[0]
    assert "Is a directory" in found[1]
    (of_another,) = problems(tmp_path, target={"tls": {**good, "key": locked.key.name}})
    assert of_another.startswith("target.tls: ")


def test_a_page_that_is_not_served_needs_no_certificate(tmp_path: Path) -> None:
    page = {"enabled": False, "tls": {"certificate": "gone", "key": "gone"}}
    check(tmp_path, status=page)


def test_both_at_once(tmp_path: Path) -> None:
    source = {"user": "u", "password": "p", "server": "(A=1)"}
    target = {"tls": {"certificate": "gone", "key": "gone"}}
    with pytest.raises(ConfigError) as caught:
        check(tmp_path, source=source, target=target)
    assert (caught.value.code, len(caught.value.problems)) == (1002, 3)


@pytest.mark.parametrize(
    ("code", "sections", "key"),
    [
        (1002, {"target": {"address": ":9"}, "status": {"address": ":9"}}, "status.address"),
        (1002, {"status": {"address": ":9700"}}, "status.address"),
        (
            1002,
            {
                "target": [{"name": "a"}, {"name": "b", "address": ":9"}],
                "status": {"address": ":9"},
            },
            "status.address",
        ),
        (1190, {"context": {"encryption-key": "c2hvcnQ="}}, "context.encryption-key"),
        (8017, {"status": {"control": {"tokens": {"bob": "0123"}}}}, "status.control.tokens.bob"),
    ],
)
def test_what_would_only_fail_when_it_runs(code: int, sections: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(Path("/nowhere"), **sections)
    (problem,) = caught.value.problems
    assert (caught.value.code, problem.key) == (code, key)
    assert "c2hvcnQ=" not in str(caught.value)
    assert "0123" not in str(caught.value)


def test_ports_that_do_not_meet() -> None:
    targets = [{"name": "a"}, {"name": "b"}]
    check(Path("/nowhere"), target=targets, status={"address": "127.0.0.1:0"})
    page = {"enabled": False, "address": ":9"}
    check(Path("/nowhere"), target={"address": ":9"}, status=page)


CONFIG = {
    "context": {"data": "data"},
    "source": {"user": "u", "password": "${H_PASSWORD}", "server": "${HOME}/x"},
    "target": {"address": "127.0.0.1:0"},
}


def test_children_get_no_variable_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "s3cret")
    monkeypatch.setenv("OTHER", "kept")
    environment = Environment()
    assert environment["SECRET_OF_MINE"] == "s3cret"
    environment.withhold()
    printed = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert "SECRET_OF_MINE" not in printed
    assert "OTHER=kept" in printed
    assert environment["SECRET_OF_MINE"] == "s3cret"


def test_what_programs_need_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    environment = Environment()
    assert environment["HOME"] == "/home/me"
    environment.withhold()
    assert os.environ["HOME"] == "/home/me"


def test_a_file_is_read_and_its_secrets_are_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("H_PASSWORD", "s3cret")
    path = tmp_path / "config.json"
    source = {"user": "u", "password": "${H_PASSWORD}", "server": "db:1521/orcl"}
    path.write_text(json.dumps({**CONFIG, "source": source}), "utf-8")
    environment = Environment()
    load_for_work(path, environment)
    assert "H_PASSWORD" not in os.environ
    # The file can be read again, as after SIGHUP.
    again = load_for_work(path, environment)
    assert again.source.password.get_secret_value() == "s3cret"  # type: ignore[union-attr]

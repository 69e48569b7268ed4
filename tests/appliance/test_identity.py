"""Who this is, without any secret."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from olr_pg.appliance.identity import identity_of, server_place
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OracleSource, Standby
from olr_pg.dictionary.model import Database

SECRET = "hunter2-secret"


def test_it_names_source_and_target_and_nobody(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    connect = f"postgresql://scott:{SECRET}@pg1:5433/shop"
    path.write_text(
        '{"source": {"user": "scott", "password": "' + SECRET + '", "server": "db1:1521/pdb"},'
        f' "apply": {{"connect-string": "{connect}", "tables": ["A.B"]}}}}'
    )
    config = load_config(path)
    found = identity_of(config, Database("FREE", con_name="PDB1"), connect)
    assert found.instance == socket.gethostname()
    assert (found.config, found.source, found.container) == (str(path), "FREE", "PDB1")
    assert found.source_place == "db1:1521/pdb"
    assert found.target == "pg1:5433, database shop"
    assert found.subscription == "olr_pg"
    assert SECRET not in str(found)
    assert "scott" not in str(found)
    assert identity_of(config, Database("FREE"), "").target == ""
    assert isinstance(config.source, OracleSource)
    standby = Standby.model_validate({"server": "db2:1521/stby", "user": "u", "password": SECRET})
    source = config.source.model_copy(update={"standby": standby})
    found = identity_of(config.model_copy(update={"source": source}), Database("FREE"), "")
    assert found.source_place == "db2:1521/stby"


@pytest.mark.parametrize(
    ("server", "place"),
    [
        ("db1:1521/svc", "db1:1521/svc"),
        ("tcps://db1:2484/svc?wallet_location=/w&x=y", "tcps://db1:2484/svc"),
        ("scott/tiger@db1/svc", "db1/svc"),
        ("PROD", "PROD"),
        (
            (
                "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=db1)(PORT=2484))"
                "(CONNECT_DATA=(SERVICE_NAME=svc))(SECURITY=(MY_WALLET_DIRECTORY=/w)))"
            ),
            "db1:2484/svc",
        ),
        ("(description=(address=(host = db1))(connect_data=(sid=X)))", "db1/X"),
    ],
)
def test_a_server_is_named_without_what_it_was_given(server: str, place: str) -> None:
    assert server_place(server) == place

"""The privileges of the applier's role: the minimal ones are enough."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psycopg

from olr_pg.applier.target.grants import LEDGER_PRIVILEGES, check_ledger
from olr_pg.load.steps_done import forget_steps, note_step, read_steps
from olr_pg.postgres.embedded import packaged_installation
from tests.applier.seen import fails, rows

Replication = Any  # tests/applier/conftest.py


SQL = Path(__file__).parents[3] / "sql" / "postgres"


def run_script(target: str, script: str, **variables: str) -> None:
    """What an administrator does with one of our scripts."""
    psql = str(packaged_installation() / "bin" / "psql")
    values = [f"--set={name}={value}" for name, value in variables.items()]
    options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *values]
    done = subprocess.run(
        [psql, target, *options, f"--file={SQL / script}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_role_with_the_minimal_grants(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    run_script(r.target, "ledger.sql")
    for _ in range(2):  # running it again does no harm
        run_script(r.target, "role.sql", role="applier", target_schema="s")
    r.execute("ALTER ROLE applier PASSWORD 'secret'")
    target = psycopg.conninfo.make_conninfo(r.target, user="applier", password="secret")
    try:
        r.apply(connect_string=target)
        r.transaction(r.update({"ID": 1}, {"N": 5}), r.insert({"ID": 2}))
        r.serve()
        r.apply(connect_string=target)
        assert rows(r) == [(1, 5, None), (2, None, None)]
        with psycopg.connect(target) as connection:
            query = "SELECT tablename FROM pg_tables WHERE schemaname = 'olr_pg'"
            assert {name for (name,) in connection.execute(query)} == set(LEDGER_PRIVILEGES)
            assert not list(check_ledger(connection, "applier"))
            note_step(connection, "olr_pg", "quiet", "done", {})
            assert list(read_steps(connection, "olr_pg")) == ["quiet"]
            forget_steps(connection, "olr_pg")
        # Of the release before: it is not the role's to alter.
        r.execute("UPDATE olr_pg.version SET version=6")
        r.transaction(r.insert({"ID": 3}))
        r.serve()
        assert fails(r, connect_string=target).code == 5015
        run_script(r.target, "ledger.sql")
        r.serve()
        r.apply(connect_string=target, dbid=11)
        assert len(rows(r)) == 3
        # Somebody revokes it while it replicates: the error names the right, not a missing ledger.
        r.execute("REVOKE UPDATE ON olr_pg.ledger FROM applier")
        r.transaction(r.insert({"ID": 4}))
        r.serve()
        revoked = fails(r, connect_string=target)
        assert (revoked.code, revoked.where["table"]) == (5004, "S.T")
        assert "permission denied for table ledger" in revoked.detail
        r.execute("GRANT UPDATE ON olr_pg.ledger TO applier")
        r.serve()
        r.apply(connect_string=target)
        assert len(rows(r)) == 4
        r.execute("REVOKE SET ON PARAMETER session_replication_role FROM applier")
        assert fails(r, connect_string=target).code == 5004
    finally:
        r.execute("DROP OWNED BY applier; DROP ROLE applier")

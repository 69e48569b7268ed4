"""The cut-over: what each step finds, where it stops, and how it goes on.

Constraints and triggers of a target's tables, in PostgreSQL.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest
import typer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.target import data_directory
from olr_pg.applier.target.connection import connect
from olr_pg.capture.logs import open_log
from olr_pg.cli.errors import retry
from olr_pg.cli.migration.cutover import cutover
from olr_pg.cli.tables import resume
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.cutover.cut_over import (
    APPLICATION,
    STEPS,
    Checked,
    application_grants,
    check_constraints,
)
from tests.advice import followed
from tests.applier.test_target_checks import run_script
from tests.load.test_initial import fetch
from tests.load.test_kills import CHANGES, FINISHED, KILLED, PARTS, killed_at
from tests.load.test_simulator_output import builder_of
from tests.load.verification.test_verification import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.load.conftest import Project
    from tests.load.table_data import Source

NAMES = [step.name for step in STEPS]


@pytest.fixture
def project(
    shop: Source, loads: Any, shared_session: Any, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A shop as of the start of its logs, and the tests' Spark session for the command."""
    monkeypatch.setattr(
        "olr_pg.cli.migration.cutover.spark_session_of", lambda *_: shared_session()
    )
    monkeypatch.setattr("olr_pg.spark.session.stop_session", lambda: None)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )
    project: Project = loads(shop)
    return project


@pytest.fixture
def ready(project: Project) -> Project:
    """The shop, loaded."""
    project.load(builder=builder_of(project))
    return project


@pytest.fixture
def cut(project: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs the command: what it prints, or (the same, its error's code)."""
    final = project.source.folder / "final"
    # A load alone makes no checks and no triggers (`test_structure_check`).
    given: dict[str, Any] = {
        "tables": final,
        "dictionary": [final / "dictionary.json"],
        "accept": ["check *", "trigger *", "index *"],
    }

    def run(**options: Any) -> Any:
        code = None
        try:
            cutover(project.write(), **{**given, "as_json": True, **options})
        except OlrPgError as error:
            code = error.code
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        return printed if code is None else (printed, code)

    return run


def states(printed: Any) -> dict[str, str]:
    return {step["step"]: step["state"] for step in printed["steps"]}


def test_a_paused_table_is_called_paused(ready: Project, cut: Callable[..., Any]) -> None:
    execute(
        ready,
        "UPDATE olr_pg.ledger SET paused = true, stopped = true WHERE source_table = 'SHOP.STOCK'",
    )
    stopped, code = cut()
    assert code == Code.TABLE_PAUSED
    assert states(stopped)["applied"] == "failed"
    words = "`olr-pg tables resume OWNER.NAME`, then start the same command again"
    followed(OlrPgError(Code.TABLE_PAUSED, ""), Code.TABLE_PAUSED, words)
    resume(ready.write(), table=["SHOP.STOCK"])
    assert states(cut(until="applied"))["applied"] == "done"


def test_every_step_and_going_on_where_it_stopped(
    ready: Project, cut: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    begun = cut(until="archived")
    assert states(begun) == {"quiet": "done", "archived": "done"}
    assert "olr-pg run" in begun["way_back"]

    execute(ready, "CREATE SEQUENCE shop.own OWNED BY shop.orders.order_id")
    execute(ready, "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'")
    for name, state in (("audit", "DISABLE"), ("copy", "ENABLE ALWAYS")):
        execute(
            ready, f"CREATE TRIGGER {name} AFTER UPDATE ON shop.stock EXECUTE FUNCTION nothing()"
        )
        execute(ready, f"ALTER TABLE shop.stock {state} TRIGGER {name}")
    execute(ready, "ALTER TABLE shop.stock DISABLE TRIGGER copy")
    stopped, code = cut()
    assert code == 5127
    assert states(stopped) == {**dict.fromkeys(NAMES[:5], "done"), "constraints": "failed"}
    reason = stopped["steps"][-1]["detail"]["reason"]
    assert reason == ("shop.stock: trigger audit is disabled; shop.stock: trigger copy is disabled")
    assert stopped["steps"][:2] == begun["steps"]
    verified = stopped["steps"][3]["detail"]
    assert verified == {"tables": 9, "rows": sum(ready.source.summary.rows.values())}

    words = "enable the trigger, or drop what you do not need. Then start `olr-pg cutover` again"
    followed(OlrPgError(Code.CONSTRAINTS_NOT_READY, ""), Code.CONSTRAINTS_NOT_READY, words)
    execute(ready, "DROP TRIGGER audit ON shop.stock")
    execute(ready, "ALTER TABLE shop.stock ENABLE TRIGGER copy")
    done = cut()
    assert done["finished"]
    assert states(done) == dict.fromkeys(NAMES, "done")
    assert done["steps"][:5] == stopped["steps"][:5]
    # Validated already when the triggers stopped the step.
    assert len(done["steps"][5]["detail"]["checked"]) == 7
    assert fetch(ready, "SELECT DISTINCT convalidated FROM pg_constraint WHERE contype = 'f'") == [
        (True,)
    ]
    for table, key in (("orders", "order_id"), ("payments", "payment_id")):
        ahead = f"SELECT nextval('shop.{table}_seq') > max({key}) FROM shop.{table}"
        assert fetch(ready, ahead) == [(True,)]
    ahead = "SELECT nextval('shop.own') = max(order_id) + 1 FROM shop.orders"
    assert fetch(ready, ahead) == [(True,)]
    assert cut(status=True) == done
    cutover(ready.write(), status=True)
    text = capsys.readouterr().out
    assert "done     report       applications can use the target" in text
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE " in text
    assert "The cut-over ended at " in text
    assert "Do not start olr-pg run again" in text

    kept = ready.source.folder.rename(ready.source.folder.with_name("shut down"))
    assert cut() == done  # once more: nothing has changed, and the source is not needed
    kept.rename(ready.source.folder)
    # The cut-over was a rehearsal: applications have used the source again, with replication.
    execute(ready, "UPDATE olr_pg.ledger SET commit_scn = commit_scn + 1000000000")
    again, code = cut()
    assert (again, code) == (done, Code.SOURCE_CHANGED_AFTER_CUTOVER)


def test_an_appliance_that_runs_is_found_before_the_end_scn_is_recorded(
    ready: Project, cut: Callable[..., Any]
) -> None:
    with hold_data_lock(data_directory(ready.config())):
        refused, code = cut()
        assert (refused["steps"], code) == ([], Code.ANOTHER_APPLIANCE)
        assert states(cut(until="archived")) == {"quiet": "done", "archived": "done"}


def test_a_difference_stops_it_and_is_mended(ready: Project, cut: Callable[..., Any]) -> None:
    execute(ready, "UPDATE shop.settings SET value = value || '!' WHERE name <> ''")
    stopped, code = cut()
    assert code == 5124
    assert states(stopped)["verified"] == "failed"
    assert "SHOP.SETTINGS" in stopped["steps"][-1]["detail"]["reason"]
    ready.tables = ready.source.folder / "final"
    words = "list the rows", "correct them with `olr-pg repair", "start the same command again"
    followed(OlrPgError(Code.SOURCE_AND_TARGET_DIFFER, ""), Code.SOURCE_AND_TARGET_DIFFER, *words)
    ready.repair(ready.verify())
    assert states(cut(until="verified"))["verified"] == "done"


def test_a_table_that_cannot_be_compared_stops_it(ready: Project, cut: Callable[..., Any]) -> None:
    """Although no table that can be compared differs."""
    execute(ready, "ALTER TABLE shop.settings ALTER value TYPE integer USING 1")
    stopped, code = cut()
    assert code == 5007
    assert states(stopped)["verified"] == "failed"


def test_a_broken_foreign_key_is_found_also_where_it_is_valid(
    ready: Project, cut: Callable[..., Any]
) -> None:
    execute(ready, "ALTER TABLE shop.stock VALIDATE CONSTRAINT stock_warehouses_fk")
    cut(until="sequences")
    with psycopg.connect(ready.database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE shop.stock SET warehouse_id = -warehouse_id WHERE item_id = 1")
        connection.execute("UPDATE shop.payments SET customer_id = -1")
    stopped, code = cut()
    assert code == 5127
    reason = stopped["steps"][-1]["detail"]["reason"]
    payments = ready.source.summary.rows["SHOP.PAYMENTS"]
    assert (
        f"payments_customers_fk: {payments} rows refer to missing rows in shop.customers" in reason
    )
    assert "stock_warehouses_fk: 4 rows refer to missing rows in shop.warehouses" in reason


def test_the_role_with_the_minimal_grants(ready: Project, cut: Callable[..., Any]) -> None:
    for script in ("ledger.sql", "role.sql"):
        run_script(ready.database, script, role="mover", target_schema="shop")
    execute(ready, "ALTER ROLE mover PASSWORD 'secret'")
    owner, ready.database = (
        ready.database,
        make_conninfo(ready.database, user="mover", password="secret"),
    )
    try:
        stopped, code = cut()
        assert code == 5004
        assert states(stopped) == {**dict.fromkeys(NAMES[:5], "done"), "constraints": "failed"}
        assert "must be owner" in stopped["steps"][-1]["detail"]["reason"]
        with psycopg.connect(owner) as connection:
            connection.execute("GRANT postgres TO mover")
        assert states(cut()) == dict.fromkeys(NAMES, "done")
    finally:
        with psycopg.connect(owner) as connection:
            connection.execute("DROP OWNED BY mover; DROP ROLE mover")


class ManagedRole(NamedTuple):
    """The role that a managed service gives its customers, as far as it concerns replication.

    Attributes:
        group: what the role is a member of.
        attributes: its own.
        may_replicate: whether the group may set session_replication_role.
    """

    group: str
    attributes: str
    may_replicate: bool


MANAGED: Final = {
    "RDS": ManagedRole("rds_superuser", "CREATEROLE CREATEDB", may_replicate=True),
    "Cloud SQL": ManagedRole("cloudsqlsuperuser", "CREATEROLE CREATEDB", may_replicate=False),
    "Azure": ManagedRole("azure_pg_admin", "CREATEROLE CREATEDB REPLICATION", may_replicate=False),
    "an application's": ManagedRole("app_owners", "", may_replicate=False),
}


@pytest.fixture(params=list(MANAGED))
def managed(project: Project, request: pytest.FixtureRequest) -> Iterator[ManagedRole]:
    """The project's target is used by such a role, which is no superuser."""
    role = MANAGED[request.param]
    owner = project.database
    name = conninfo_to_dict(owner)["dbname"]
    with psycopg.connect(owner) as connection:
        connection.execute(f"CREATE ROLE {role.group} NOLOGIN".encode())
        made = f"CREATE ROLE managed LOGIN {role.attributes} PASSWORD 'secret' IN ROLE {role.group}"
        connection.execute(made.encode())
        connection.execute(f'GRANT CREATE ON DATABASE "{name}" TO managed'.encode())
        if role.may_replicate:
            grant = f"GRANT SET ON PARAMETER session_replication_role TO {role.group}"
            connection.execute(grant.encode())
    project.database = make_conninfo(owner, user="managed", password="secret")
    yield role
    with psycopg.connect(owner) as connection:
        connection.execute("DROP OWNED BY managed CASCADE; DROP ROLE managed")
        connection.execute(f"DROP OWNED BY {role.group}; DROP ROLE {role.group}".encode())


def add_trigger(project: Project, event: str) -> None:
    """Add a trigger that raises an error before each such event."""
    execute(
        project,
        "CREATE FUNCTION shop.fired() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE ''fired''; END';"
        f"CREATE TRIGGER fired BEFORE {event} FOR EACH ROW EXECUTE FUNCTION shop.fired()",
    )


def test_a_role_of_a_managed_service(
    project: Project, cut: Callable[..., Any], managed: ManagedRole
) -> None:
    """It may make tables, and nothing that only a superuser may."""
    if not managed.may_replicate:
        with pytest.raises(OlrPgError) as caught:
            project.load(builder=builder_of(project))
        assert caught.value.code == 5004
        project.apply = {"triggers": "disable"}
    project.load(builder=builder_of(project))
    foreign_keys = fetch(project, "SELECT count(*) FROM pg_constraint WHERE contype = 'f'")
    assert (foreign_keys == [(0,)]) is not managed.may_replicate
    add_trigger(project, "UPDATE ON shop.stock")
    done = cut()
    assert states(done) == dict.fromkeys(NAMES, "done")
    detail = done["steps"][5]["detail"]
    put_back = [] if managed.may_replicate else detail["put_back"]
    assert len(put_back) == (0 if managed.may_replicate else 8)
    assert ("trigger fired of shop.stock" in put_back) is not managed.may_replicate
    assert len(detail["validated"]) == 7
    with pytest.raises(psycopg.errors.RaiseException, match="fired"):
        execute(project, "UPDATE shop.stock SET quantity = quantity")


@pytest.mark.parametrize("managed", ["Cloud SQL"], indirect=True)
def test_such_a_role_whose_commands_are_killed(
    project: Project, cut: Callable[..., Any], managed: ManagedRole
) -> None:
    """What was set aside stays so from one attempt to the next, and comes back at the end."""
    assert not managed.may_replicate
    project.apply = {"triggers": "disable"}
    codes = [killed_at(project, PARTS.format(1), "initial-load")]
    add_trigger(project, "INSERT OR UPDATE ON shop.order_lines")
    codes.append(killed_at(project, FINISHED.format(2), "initial-load", "--resume"))
    project.load(resume=True, builder=builder_of(project))
    codes.append(killed_at(project, CHANGES.format(20), "run", "--once"))
    assert KILLED in codes
    done = cut()
    assert states(done) == dict.fromkeys(NAMES, "done")
    detail = done["steps"][5]["detail"]
    assert "trigger fired of shop.order_lines" in detail["put_back"]
    assert len(detail["validated"]) == 7
    with pytest.raises(psycopg.errors.RaiseException, match="fired"):
        execute(project, "UPDATE shop.order_lines SET quantity = quantity")


@pytest.mark.parametrize("managed", ["an application's"], indirect=True)
def test_a_foreign_key_that_does_not_hold_stops_it_again_and_again(
    project: Project, cut: Callable[..., Any], managed: ManagedRole
) -> None:
    """It is that of a table which nobody replicates: of it the first attempt leaves no line."""
    assert not managed.may_replicate
    project.apply = {"triggers": "disable"}
    project.load(builder=builder_of(project))
    execute(
        project,
        "CREATE TABLE shop.notes (warehouse_id integer); INSERT INTO shop.notes VALUES (-1);"
        "ALTER TABLE shop.notes ADD CONSTRAINT of_warehouse FOREIGN KEY (warehouse_id)"
        " REFERENCES shop.warehouses NOT VALID",
    )
    for _ in range(2):
        stopped, code = cut()
        assert code == 5127
        assert "of_warehouse" in stopped["steps"][-1]["detail"]["reason"]
    execute(project, "DELETE FROM shop.notes")
    assert states(cut()) == dict.fromkeys(NAMES, "done")
    valid = "SELECT convalidated FROM pg_constraint WHERE conname = 'of_warehouse'"
    assert fetch(project, valid) == [(True,)]


def test_a_sequence_that_ends_too_early_fails_its_step(
    ready: Project, cut: Callable[..., Any]
) -> None:
    execute(ready, "ALTER SEQUENCE shop.orders_seq MAXVALUE 2")
    stopped, code = cut()
    assert code == 5129
    assert states(stopped)["sequences"] == "failed"
    assert "out of bounds" in stopped["steps"][-1]["detail"]["reason"]
    words = "correct the problem", "then start the same command again"
    followed(OlrPgError(Code.CUTOVER_STEP_REFUSED, ""), Code.CUTOVER_STEP_REFUSED, *words)
    execute(ready, "ALTER SEQUENCE shop.orders_seq NO MAXVALUE")
    assert cut()["finished"]


def test_a_sequence_that_nobody_may_create_is_reported(
    ready: Project, cut: Callable[..., Any]
) -> None:
    execute(ready, "DROP SEQUENCE shop.orders_seq")
    ready.apply["create-tables"] = False
    done = cut(until="sequences", unverified=True)
    assert done["steps"][-1]["detail"]["not_in_the_target"] == ["SHOP.ORDERS_SEQ"]
    assert fetch(ready, "SELECT to_regclass('shop.orders_seq')") == [(None,)]


def test_a_source_that_was_not_quiet_and_one_that_is_not_archived(
    ready: Project, cut: Callable[..., Any]
) -> None:
    logs = [str(log) for log in ready.source.summary.logs]
    _, code = cut(final_scn=1 << 40)
    assert code == 5122
    # A commit at the SCN that ends the last log is not in it.
    _, code = cut(restart=True, final_scn=max(o.next_scn for o in map(open_log, logs)))
    assert code == 5122
    start = ready.source.summary.snapshot.scn
    stopped, code = cut(restart=True, final_scn=start + 1)
    assert code == 5123
    assert states(stopped) == {"quiet": "done", "archived": "done", "applied": "failed"}
    # The end SCN is recorded: another one is not ignored.
    assert cut(final_scn=start + 1)[1] == 5123
    assert cut(final_scn=start + 2)[1] == 5135


def test_what_must_be_given(ready: Project, cut: Callable[..., Any], tmp_path: Path) -> None:
    ready.tables = None
    refused, code = cut(tables=None)
    assert code == 5125
    assert states(refused) == {}  # before the first step
    begun = cut(tables=None, until="archived")  # which needs no rows
    assert states(begun) == {"quiet": "done", "archived": "done"}
    execute(ready, "UPDATE olr_pg.ledger SET commit_scn = commit_scn + 1000000000")
    refused, code = cut()
    assert code == 5111
    assert states(refused) == states(begun)
    execute(ready, "UPDATE olr_pg.ledger SET commit_scn = commit_scn - 1000000000")
    skipped, code = cut(tables=None, unverified=True, dictionary=[])
    assert code == 5126
    assert states(skipped)["verified"] == "skipped"
    with pytest.raises(typer.BadParameter):
        cutover(ready.write(), until="tomorrow")
    execute(ready, "UPDATE olr_pg.ledger SET stopped = true WHERE source_table = 'SHOP.ORDERS'")
    final = ready.source.folder / "final" / "dictionary.json"
    stopped, code = cut(dictionary=[final])
    assert code == Code.TABLE_STOPPED
    assert states(stopped)["report"] == "failed"
    words = "correct the cause, run `olr-pg errors retry`, then start `olr-pg cutover` again"
    followed(OlrPgError(Code.TABLE_STOPPED, ""), Code.TABLE_STOPPED, words)
    retry(ready.write())
    assert cut(dictionary=[final])["finished"]


def test_the_grants_are_all_that_an_application_needs(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute('CREATE TABLE shop."Orders" (id int PRIMARY KEY, n int)')
        connection.execute("CREATE TABLE shop.other (id int)")
        connection.execute("CREATE SEQUENCE shop.s")
        statements = application_grants(connection, [("shop", "Orders")], [("shop", "s")])
        role = "app_" + connection.info.dbname
        connection.execute(f'CREATE ROLE "{role}"')
        try:
            for statement in statements:
                connection.execute(statement.replace(f"TO {APPLICATION};", f'TO "{role}"'))
            connection.execute(f'SET ROLE "{role}"')
            connection.execute("INSERT INTO shop.\"Orders\" VALUES (nextval('shop.s'), 1)")
            connection.execute('UPDATE shop."Orders" SET n = 2')
            assert connection.execute('SELECT n FROM shop."Orders"').fetchall() == [(2,)]
            connection.execute('DELETE FROM shop."Orders"')
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT FROM shop.other")
        finally:
            connection.execute("RESET ROLE")
            connection.execute(f'DROP OWNED BY "{role}"')
            connection.execute(f'DROP ROLE "{role}"')
    assert len(statements) == 3


TABLES = """
CREATE SCHEMA s;
CREATE TABLE s.parent (id int PRIMARY KEY);
CREATE TABLE s.child (id int, parent int);
ALTER TABLE s.child ADD CONSTRAINT small CHECK (id < 100) NOT VALID;
ALTER TABLE s.child ADD CONSTRAINT fk FOREIGN KEY (parent) REFERENCES s.parent NOT VALID;
INSERT INTO s.parent VALUES (1);
INSERT INTO s.child VALUES (1, 1), (2, NULL);
"""


def checked(database: str, change: str) -> Checked:
    with connect(database) as connection:
        connection.execute(TABLES.encode())
        connection.execute(change.encode())
        rows = connection.execute("SELECT 's.parent'::regclass::oid, 's.child'::regclass::oid")
        row = rows.fetchone()
        assert row is not None
        return check_constraints(connection, row)


def test_what_holds_is_validated(postgres_database: str) -> None:
    found = checked(postgres_database, "SELECT 1")
    assert found.validated == ["s.child: fk", "s.child: small"]
    assert found.problems == found.checked == found.remarks == []


def test_rows_that_break_a_constraint_are_counted(postgres_database: str) -> None:
    broken = (
        "SET session_replication_role = replica; INSERT INTO s.child VALUES (3, 7), (4, 8);"
        " SET session_replication_role = origin;"
        " ALTER TABLE s.child DROP CONSTRAINT small;"
        " UPDATE s.child SET id = 200 WHERE id = 1;"
        " ALTER TABLE s.child ADD CONSTRAINT c CHECK (id < 100) NOT VALID"
    )
    found = checked(postgres_database, broken)
    assert found.problems == [
        "s.child: c: rows violate this check",
        "s.child: fk: 2 rows refer to missing rows in s.parent",
    ]


def test_a_key_that_is_valid_in_name_only_is_found(postgres_database: str) -> None:
    broken = (
        "ALTER TABLE s.child VALIDATE CONSTRAINT fk; SET session_replication_role = replica;"
        " DELETE FROM s.parent; SET session_replication_role = origin"
    )
    assert checked(postgres_database, broken).problems == [
        "s.child: fk: 1 row refers to a missing row in s.parent"
    ]


def test_triggers_that_do_not_fire_as_usual(postgres_database: str) -> None:
    triggers = """
        CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER a BEFORE INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.f();
        CREATE TRIGGER b BEFORE INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.f();
        ALTER TABLE s.child DISABLE TRIGGER a; ALTER TABLE s.child ENABLE ALWAYS TRIGGER b
    """
    found = checked(postgres_database, triggers)
    assert found.problems == ["s.child: trigger a is disabled"]
    assert found.remarks == ["s.child: trigger b fires always, also for replicated changes"]


def test_a_constraint_that_is_not_enforced_is_a_remark(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        if connection.info.server_version < 180_000:
            pytest.skip("PostgreSQL 18 has them")
    change = (
        "ALTER TABLE s.child ADD CONSTRAINT loose FOREIGN KEY (id) REFERENCES s.parent NOT ENFORCED"
    )
    found = checked(postgres_database, change)
    assert found.problems == []
    assert found.remarks == ["s.child: loose is NOT ENFORCED: PostgreSQL does not check it"]

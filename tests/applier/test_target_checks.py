"""What is wrong with a target, and that its SQL mends it.

Target columns that may refuse rows of the source are told before they do.

The privileges of the applier's role: the minimal ones are enough.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import olr_pg
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target_checks import LEDGER_PRIVILEGES, check_ledger, check_target
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.convert import DEFAULT_FACTS
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.dictionary.structure import Index, LeftOut, Structure, UniqueKey
from olr_pg.errors import OlrPgError
from olr_pg.load.cutover_steps import forget_steps, note_step, read_steps
from olr_pg.load.load_progress import TableLoadProgress
from olr_pg.observability.findings import Severity
from olr_pg.postgres.embedded import packaged_installation
from olr_pg.wire.elements import ColumnValue
from tests.applier.seen import fails, rows

if TYPE_CHECKING:
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.observability.findings import Finding

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)


def table_r(*columns: Column, owner: str = "S") -> Table:
    return Table(owner, "R", 1, 1, (_ID, *columns), key_kind=KeyKind.PRIMARY, key=(1,))


def found_in_target(replication: Replication, table: Table) -> list[Finding]:
    return check_target(replication.settings(), [table])


def mend_target(replication: Replication, findings: list[Finding]) -> None:
    for finding in findings:
        for line in finding.mend:
            replication.execute(line)


@pytest.mark.parametrize("exists", [False, True])
def test_a_mapping_that_has_changed(replication: Replication, *, exists: bool) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY)")
    with connect(r.target) as connection:
        ensure_ledger(connection)
    ledger = "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
    r.execute(f"{ledger} VALUES ('{r.settings().subscription}', 'S.R', 's.r', 7)")
    r.execute("CREATE SCHEMA moved")
    if exists:
        r.execute("CREATE TABLE moved.r (id int PRIMARY KEY)")
    settings = r.settings(schema_names={"S": "moved"})
    (found,) = check_target(settings, [table_r()])
    assert (found.check, found.severity) == ("postgres.tables", Severity.ERROR)
    assert "OLR-05025" in found.what
    assert "target table s.r, but the configuration maps it to moved.r" in found.what
    r.execute("DROP TABLE IF EXISTS moved.r")
    r.execute("ALTER TABLE s.r SET SCHEMA moved")
    assert check_target(settings, [table_r()]) == []


def test_a_subscription_whose_name_has_changed(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int PRIMARY KEY)")
    with connect(r.target) as connection:
        ensure_ledger(connection)
    ledger = "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
    r.execute(f"{ledger} VALUES ('before', 'S.R', 's.r', 7)")
    (found,) = check_target(r.settings(subscription="now"), [table_r()])
    assert (found.check, found.severity) == ("postgres.tables", Severity.WARNING)
    assert "before has applied changes to s.r, and now has not" in found.what
    assert check_target(r.settings(subscription="before"), [table_r()]) == []
    r.execute(f"{ledger} VALUES ('now', 'S.R', 's.r', 0)")
    assert check_target(r.settings(subscription="now"), [table_r()]) == []


def test_missing_tables_in_a_missing_schema(replication: Replication) -> None:
    settings = replication.settings(create_tables=False, schema_names={"S": "new one"})
    tables = [table_r(), replace(table_r(), name="R2")]
    found = check_target(settings, tables)
    assert [one.check for one in found] == ["postgres.tables"] * 2
    mend_target(replication, found)
    assert check_target(settings, tables) == []


def test_a_character_set_without_a_decoder_is_mended_by_no_type(replication: Replication) -> None:
    column = Column("X", 2, 2, 2, OracleType.VARCHAR2, 10, charset_id=18, charset_form=1)
    replication.execute("CREATE TABLE s.r (id int PRIMARY KEY, x varchar(10))")
    settings = replication.settings(facts=replace(DEFAULT_FACTS, charset="NL7DEC"))
    (found,) = check_target(settings, [table_r(column)])
    assert "no decoder for Oracle character set" in found.what
    assert [line for line in found.mend if not line.startswith("--")] == []
    assert "filter.columns" in found.mend[0]


def test_an_identity_that_lets_nobody_update_it(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
    found = found_in_target(r, table_r())
    assert [(one.severity, one.check) for one in found] == [(Severity.ERROR, "postgres.identity")]
    mend_target(r, found)
    assert found_in_target(r, table_r()) == []
    identity = "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 's.r'::regclass"
    assert r.rows(f"{identity} AND attname = 'id'") == [("d",)]


def test_a_key_that_is_deferrable(replication: Replication) -> None:
    r = replication
    r.execute(
        'CREATE TABLE s.r (id int CONSTRAINT "The Key" PRIMARY KEY DEFERRABLE INITIALLY DEFERRED,'
        " x int UNIQUE DEFERRABLE, y int UNIQUE)"
    )
    found = found_in_target(r, table_r())
    assert [(one.severity, one.check) for one in found] == [(Severity.WARNING, "postgres.keys")] * 2
    mend_target(r, found)
    assert found_in_target(r, table_r()) == []
    r.execute("INSERT INTO s.r VALUES (1)")
    r.transaction(r.insert({"ID": 1}, "R"))
    with pytest.raises(OlrPgError):
        r.apply([table_r()])


def test_a_unique_key_that_the_source_has_may_be_deferrable(replication: Replication) -> None:
    """As a load makes it: a statement of the source may exchange values between rows."""
    r = replication
    r.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY, a int, b int, UNIQUE (b, a) DEFERRABLE,"
        " UNIQUE (a, b) DEFERRABLE)"
    )
    columns = [
        Column(name, place, place, place, OracleType.NUMBER, 22, 9, 0)
        for place, name in enumerate("AB", 2)
    ]
    key = UniqueKey(owner="S", table="R", name="RU", columns=("B", "A"))
    elsewhere = UniqueKey(owner="S", table="Q", name="QU", columns=("A", "B"))
    structure = Structure(unique_keys=(key, elsewhere))
    (found,) = check_target(r.settings(), [table_r(*columns)], structure)
    assert (found.severity, found.check) == (Severity.WARNING, "postgres.keys")
    assert "r_a_b_key" in found.what


def test_a_table_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int)")
    found = found_in_target(r, table_r())
    assert [(one.severity, one.check) for one in found] == [(Severity.WARNING, "postgres.keys")]
    assert "without an error" in found[0].what
    mend_target(r, found)
    assert found_in_target(r, table_r()) == []


@pytest.mark.parametrize("schema", ["a b", "Abc", 'q"'])
def test_schemas_that_have_to_be_quoted(replication: Replication, schema: str) -> None:
    r = replication
    r.execute("CREATE SCHEMA abc")
    settings = r.settings(create_tables=True, schema_names={"S": schema})
    assert check_target(settings, [table_r()]) == []
    r.apply([table_r()], create_tables=True, schema_names={"S": schema})
    assert r.rows("SELECT nspname FROM pg_namespace WHERE nspname ~ '[A-Z \"]'") == [(schema,)]
    assert check_target(settings, [table_r()]) == []


def test_a_domain_over_a_domain(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE DOMAIN s.d1 AS varchar(20); CREATE DOMAIN s.d2 AS s.d1 CHECK (VALUE <> '');"
        "CREATE TABLE s.r (id int PRIMARY KEY, x s.d2)"
    )
    text = Column("X", 2, 2, 2, OracleType.VARCHAR2, 20, charset_id=873, charset_form=1)
    assert found_in_target(r, table_r(text)) == []
    value = ColumnValue("X", OracleType.VARCHAR2, charset_id=873, charset_form=1, value=b"x")
    r.transaction(r.insert({"ID": 1, "X": value}, "R"), r.update({"ID": 1}, {"X": value}, "R"))
    r.apply([table_r(text)])
    assert r.rows("SELECT * FROM s.r") == [(1, "x")]


def test_flags_for_their_type_alone_are_named(replication: Replication) -> None:
    grade, done = (
        Column(name, at, at, at, OracleType.CHAR, 4, char_length=1, charset_id=873, charset_form=1)
        for at, name in ((2, "GRADE"), (3, "DONE"))
    )
    left_out = [
        LeftOut(owner="S", table="R", name=name, kind="check constraint", reason="none is made",
                definition=f"ALTER TABLE R ADD CHECK ({name} IN ({values}))")
        for name, values in (("GRADE", "'A', 'Y'"), ("DONE", "'Y', 'N'"))
    ]  # fmt: skip
    settings = replication.settings(choices=Choices(flags=("CHAR(1)",)), create_tables=True)
    table = table_r(grade, done)
    (found,) = check_target(settings, [table], Structure(left_out=tuple(left_out)))
    assert found.severity is Severity.WARNING
    assert "S.R.GRADE becomes boolean" in found.what
    assert "its check constraint allows A;" in found.what
    assert '"columns": {"S.R.GRADE": {"type": "char(1)"}}' in found.mend[0]
    unknown = [one.what for one in check_target(settings, [table])]
    assert len(unknown) == 2
    assert all("any other value stops the table" in what for what in unknown)
    chosen = {"S.R.GRADE": ColumnChoice("char(1)"), "S.R.DONE": ColumnChoice("boolean")}
    named = Choices(flags=("CHAR(1)",), columns=chosen)
    assert check_target(replication.settings(choices=named, create_tables=True), [table]) == []


def test_choices_that_do_not_fit_are_told_before_a_table_is_made(replication: Replication) -> None:
    day = Column("DAY", 2, 2, 2, OracleType.DATE, 7)
    chosen = {"S.R.DAY": ColumnChoice("bigint", "id")}
    settings = replication.settings(choices=Choices(columns=chosen), create_tables=True)
    found = check_target(settings, [table_r(day)])
    assert [one.check for one in found] == ["postgres.names", "postgres.types"]
    assert "DAY" in found[0].what
    assert "DATE to bigint" in found[1].what
    total = Column("TOTAL", 3, 3, 3, OracleType.NUMBER, 22, 10, 4)
    chosen = {"S.R.TOTAL": ColumnChoice("numeric(12,2)")}
    settings = replication.settings(choices=Choices(columns=chosen), create_tables=True)
    (told,) = check_target(settings, [table_r(total)])
    assert "the target keeps only 2 digits after the decimal point of 4" in told.what
    fits = {"S.R.DAY": ColumnChoice("date", "on_day")}
    settings = replication.settings(choices=Choices(columns=fits), create_tables=True)
    assert check_target(settings, [table_r(day)]) == []


def test_a_key_of_more_digits_than_postgresql_keeps_is_warned_of(replication: Replication) -> None:
    """Of the primary key, a unique key and a unique index; not where the column is kept as text."""
    columns = [
        Column(name, number, number, number, OracleType.TIMESTAMP, 11, scale=scale)
        for number, name, scale in ((2, "P", 9), (3, "U", 9), (4, "X", 7), (5, "M", 6), (6, "N", 9))
    ]
    table = replace(table_r(*columns), key=(1, 2))
    structure = Structure(
        unique_keys=(UniqueKey(owner="S", table="R", name="U", columns=("U", "M")),),
        indexes=(Index(owner="S", table="R", name="X", columns=("X",), unique=True),),
    )
    settings = replication.settings(create_tables=True)
    found = check_target(settings, [table], structure)
    assert [one.severity for one in found] == [Severity.WARNING] * 3
    assert [one.what.split(",")[0] for one in found] == [
        "S.R: the key's column P (TIMESTAMP) has 9 digits of fractional seconds",
        "S.R: the key's column U (TIMESTAMP) has 9 digits of fractional seconds",
        "S.R: the key's column X (TIMESTAMP) has 7 digits of fractional seconds",
    ]
    assert '"columns": {"S.R.P": {"type": "text"}}' in found[0].mend[0]
    kept = Choices(columns={f"S.R.{name}": ColumnChoice("text") for name in "PUX"})
    assert check_target(replace(settings, choices=kept), [table], structure) == []


def test_a_target_with_another_key_than_the_source(replication: Replication) -> None:
    r = replication

    def keys(table: Table) -> list[Finding]:
        return [one for one in found_in_target(r, table) if one.check == "postgres.keys"]

    number = Column("N", 2, 2, 2, OracleType.NUMBER, 22, 9, 0)
    r.execute("CREATE TABLE s.r (id int, n int PRIMARY KEY)")
    (found,) = keys(table_r(number))
    assert found.severity is Severity.WARNING
    assert "s.r has the primary key (n), but S.R has (id)" in found.what
    (found,) = keys(replace(table_r(number), key=(), key_kind=KeyKind.NONE))
    assert "S.R has no key, but s.r has the primary key (n)" in found.what
    assert 'ADD SUPPLEMENTAL LOG GROUP "OLR_PG_KEY_1" ("N") ALWAYS' in found.mend[0]
    r.execute("ALTER TABLE s.r DROP CONSTRAINT r_pkey, ADD PRIMARY KEY (id, n)")
    assert keys(table_r(number)) == []


_TEXT = Column(
    "X", 2, 2, 2, OracleType.VARCHAR2, 40, charset_id=873, charset_form=1, char_length=40
)


def _number(precision: int | None, scale: int | None) -> Column:
    return Column("X", 2, 2, 2, OracleType.NUMBER, 22, precision, scale)


def _told(
    replication: Replication, column: Column, **settings: Any
) -> list[tuple[str, str, tuple[str, ...]]]:
    table = Table("S", "R", 1, 1, (_ID, column), key_kind=KeyKind.PRIMARY, key=(1,))
    found = check_target(replication.settings(**settings), [table])
    return [(one.severity.name, one.what.partition(": ")[2], one.mend) for one in found]


@pytest.mark.parametrize(
    ("column", "kind", "reason"),
    [
        (_TEXT, "varchar(5)", "VARCHAR2(40) may have 40 characters, but the target accepts only 5"),
        (_TEXT, "char(39)", "VARCHAR2(40) may have 40 characters, but the target accepts only 39"),
        (
            _number(12, 2),
            "numeric(11,2)",
            (
                "NUMBER(12,2) may have 10 digits before the decimal point, but the target"
                " accepts only 9"
            ),
        ),
        (
            _number(12, 2),
            "int",
            "NUMBER(12,2) may have a fraction, which an integer column cannot store",
        ),
        (
            _number(None, None),
            "bigint",
            "NUMBER may have a fraction, which an integer column cannot store",
        ),
        (
            _number(10, 0),
            "int",
            (
                "NUMBER(10,0) may have 10 digits before the decimal point, but the target"
                " accepts only 9"
            ),
        ),
        (_TEXT, "uuid", "VARCHAR2(40) may have text that is not a UUID"),
        (_TEXT, "jsonb", "VARCHAR2(40) may have text that is not JSON"),
    ],
)
def test_a_column_that_is_too_small_is_told_until_it_is_large_enough(
    replication: Replication, column: Column, kind: str, reason: str
) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    ((severity, what, mend),) = _told(replication, column)
    assert (severity, what) == (Severity.WARNING.name, reason)
    for line in mend:
        replication.execute(line)
    assert _told(replication, column) == []


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (_TEXT, "varchar(40)"),
        (_TEXT, "varchar"),
        (_TEXT, "text"),
        (_number(12, 2), "numeric(14,3)"),
        (_number(12, 2), "numeric"),
        (_number(9, 0), "int"),
        (_number(4, 0), "bigint"),
    ],
)
def test_a_column_that_takes_all_is_not(
    replication: Replication, column: Column, kind: str
) -> None:
    replication.execute(f"CREATE TABLE s.r (id int PRIMARY KEY, x {kind})")
    assert _told(replication, column) == []


def test_a_type_that_was_chosen_is_not(replication: Replication) -> None:
    replication.execute("CREATE TABLE s.r (id int PRIMARY KEY, x bigint)")
    choices = Choices(columns={"S.R.X": ColumnChoice("bigint")})
    assert _told(replication, _number(None, None), choices=choices) == []


def test_columns_that_take_no_null(replication: Replication) -> None:
    replication.execute("CREATE DOMAIN s.filled AS int DEFAULT 7 NOT NULL")
    replication.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY, x varchar(40) NOT NULL, extra int NOT NULL,"
        " known int NOT NULL DEFAULT 1, counted int GENERATED ALWAYS AS IDENTITY,"
        " summed int GENERATED ALWAYS AS (id + 1) STORED NOT NULL, domain s.filled)",
    )
    table = Table("S", "R", 1, 1, (_ID, _TEXT), key_kind=KeyKind.PRIMARY, key=(1,))
    nullable, extra = check_target(replication.settings(), [table])
    assert (nullable.severity, nullable.what) == (
        Severity.WARNING,
        "s.r.x is NOT NULL, but S.R.X allows NULL",
    )
    assert extra.severity is Severity.ERROR
    assert (
        extra.what
        == "s.r.extra is NOT NULL without a default, and S.R has no such column, so no row"
        " can be inserted"
    )
    for line in nullable.mend + extra.mend:
        replication.execute(line)
    assert check_target(replication.settings(), [table]) == []


def test_a_generated_column_in_place_of_one_of_the_source(replication: Replication) -> None:
    replication.execute(
        "CREATE TABLE s.r (id int PRIMARY KEY, x varchar(40) GENERATED ALWAYS AS ('a') STORED)"
    )
    table = Table("S", "R", 1, 1, (_ID, _TEXT), key_kind=KeyKind.PRIMARY, key=(1,))
    (found,) = check_target(replication.settings(), [table])
    assert found.severity is Severity.WARNING
    assert "are not stored in it and not compared" in found.what


SQL = Path(__file__).parents[2] / "sql" / "postgres"


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


def _ledger_findings(settings: ApplierSettings) -> list[str]:
    return [one.what for one in check_target(settings, []) if one.check == "postgres.ledger"]


def test_tables_that_the_ledger_lacks(replication: Replication) -> None:
    r = replication
    assert _ledger_findings(r.settings()) == []
    run_script(r.target, "ledger.sql")
    assert _ledger_findings(r.settings()) == []
    for name in LEDGER_PRIVILEGES:
        r.execute(f"DROP TABLE olr_pg.{name} CASCADE")
        found = check_target(r.settings(), [])
        assert any(f"olr_pg.{name}" in one.what for one in found), (name, found)
        run_script(r.target, "ledger.sql")
        assert _ledger_findings(r.settings()) == []
    r.execute("DROP TABLE olr_pg.held CASCADE; UPDATE olr_pg.version SET version = 1")
    assert _ledger_findings(r.settings()) == [], "the next start creates it"
    r.execute("DROP SCHEMA olr_pg CASCADE")
    assert _ledger_findings(r.settings()) == []


_WRITES = {"INSERT INTO": "INSERT", "COPY": "INSERT", "UPDATE": "UPDATE", "DELETE FROM": "DELETE"}


def test_the_minimal_grants_allow_each_statement() -> None:
    """Also those of commands that change the list of tables, and load tables again."""
    texts = [file.read_text("utf-8") for file in Path(olr_pg.__path__[0]).rglob("*.py")]
    found = {
        (_WRITES[verb], name)
        for text in texts
        for verb, name in re.findall(rf"\b({'|'.join(_WRITES)}) olr_pg\.(\w+)", text)
    }
    assert len(found) > 30
    assert [(verb, name) for verb, name in found if verb not in LEDGER_PRIVILEGES[name]] == []


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
            assert _ledger_findings(r.settings(connect_string=target)) == []
            note_step(connection, "olr_pg", "quiet", "done", {})
            assert list(read_steps(connection, "olr_pg")) == ["quiet"]
            forget_steps(connection, "olr_pg")
            TableLoadProgress("olr_pg", "S.NONE", "s.none").leave(connection)
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

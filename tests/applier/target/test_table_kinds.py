"""Each kind of target table that loses, hides or refuses rows is named, with SQL against it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.applier.settings import UnloggedPolicy
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.observability.findings import Finding, Severity

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_TABLE = Table("S", "R", 1, 1, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
_PLAIN = "CREATE TABLE s.r (id int PRIMARY KEY);"
_RANGES = "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY RANGE (id);"
_FUNCTION = "CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"


@dataclass(frozen=True)
class Case:
    """SQL that makes ``s.r``, and the finding that is expected."""

    sql: str
    check: str
    severity: Severity
    words: str
    is_mended: bool = True


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
CASES = {
    "an unlogged table": Case(
        "CREATE UNLOGGED TABLE s.r (id int PRIMARY KEY)",
        "postgres.storage", _ERROR, "s.r is UNLOGGED",
    ),
    "an unlogged partition": Case(
        _RANGES + "CREATE UNLOGGED TABLE s.\"p 1\" PARTITION OF s.r DEFAULT",
        "postgres.storage", _ERROR, "s.p 1, of s.r, is UNLOGGED",
    ),
    "a child by inheritance": Case(
        _PLAIN + "CREATE TABLE s.child () INHERITS (s.r)",
        "postgres.kind", _ERROR, "s.child inherits from s.r",
    ),
    "a foreign partition": Case(
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER f FOREIGN DATA WRAPPER w;"
        "CREATE TABLE s.r (id int NOT NULL) PARTITION BY RANGE (id);"
        "CREATE TABLE s.p PARTITION OF s.r (id PRIMARY KEY) FOR VALUES FROM (MINVALUE) TO (5);"
        "CREATE FOREIGN TABLE s.far PARTITION OF s.r FOR VALUES FROM (5) TO (MAXVALUE) SERVER f",
        "postgres.kind", _ERROR, "s.far, of s.r, is a foreign table",
    ),
    "a table that is a child": Case(
        "CREATE TABLE s.base (id int); CREATE TABLE s.r (PRIMARY KEY (id)) INHERITS (s.base)",
        "postgres.kind", _WARNING, "s.r inherits from s.base",
    ),
    "a table that is a partition": Case(
        "CREATE TABLE s.whole (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE s.r PARTITION OF s.whole DEFAULT",
        "postgres.kind", _WARNING, "s.r is a partition of s.whole",
    ),
    "no partition at all": Case(
        _RANGES, "postgres.kind", _ERROR, "s.r has no partition", is_mended=False
    ),
    "a gap between partitions": Case(
        _RANGES
        + "CREATE TABLE s.a PARTITION OF s.r FOR VALUES FROM (2) TO (10);"
        "CREATE TABLE s.b PARTITION OF s.r FOR VALUES FROM (10) TO (20);"
        "CREATE TABLE s.c PARTITION OF s.r FOR VALUES FROM (100) TO (MAXVALUE)",
        "postgres.kind", _WARNING, "no partition that ends at 100", is_mended=False,
    ),
    "a hash partition that is missing": Case(
        "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY HASH (id);"
        "CREATE TABLE s.a PARTITION OF s.r FOR VALUES WITH (MODULUS 4, REMAINDER 0);"
        "CREATE TABLE s.b PARTITION OF s.r FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "postgres.kind", _WARNING, "lacks 1 hash partition", is_mended=False,
    ),
    "a rule that does something else": Case(
        _PLAIN + "CREATE TABLE s.h (id int);"
        "CREATE RULE \"R 1\" AS ON INSERT TO s.r DO INSTEAD INSERT INTO s.h SELECT NEW.*;"
        "ALTER TABLE s.r ENABLE ALWAYS RULE \"R 1\"",
        "postgres.firing", _ERROR, "the rule R 1 of s.r",
    ),
    "a rule for replicas": Case(
        _PLAIN + "CREATE RULE x AS ON DELETE TO s.r DO INSTEAD NOTHING;"
        "ALTER TABLE s.r ENABLE REPLICA RULE x",
        "postgres.firing", _ERROR, "the rule x of s.r",
    ),
    "a rule that also does something": Case(
        _PLAIN + "CREATE RULE x AS ON INSERT TO s.r DO ALSO NOTIFY x;"
        "ALTER TABLE s.r ENABLE ALWAYS RULE x",
        "postgres.firing", _WARNING, "applied twice",
    ),
    "a trigger that may change rows": Case(
        _PLAIN + _FUNCTION
        + "CREATE TRIGGER t BEFORE INSERT ON s.r FOR EACH ROW EXECUTE FUNCTION s.f();"
        "ALTER TABLE s.r ENABLE ALWAYS TRIGGER t",
        "postgres.firing", _WARNING, "the trigger t of s.r fires always; it can change rows",
    ),
    "a trigger behind replicated changes": Case(
        _PLAIN + _FUNCTION
        + "CREATE TRIGGER t AFTER INSERT ON s.r FOR EACH STATEMENT EXECUTE FUNCTION s.f();"
        "ALTER TABLE s.r ENABLE REPLICA TRIGGER t",
        "postgres.firing", _WARNING, "the trigger t of s.r fires on replicated changes, after",
    ),
    "a trigger of one partition": Case(
        _RANGES + "CREATE TABLE s.p PARTITION OF s.r DEFAULT;" + _FUNCTION
        + "CREATE TRIGGER t BEFORE UPDATE ON s.p FOR EACH ROW EXECUTE FUNCTION s.f();"
        "ALTER TABLE s.p ENABLE ALWAYS TRIGGER t",
        "postgres.firing", _WARNING, "the trigger t of s.p",
    ),
    "a foreign key that is checked": Case(
        _PLAIN + "CREATE TABLE s.q (id int REFERENCES s.r);"
        "DO $$ DECLARE t name; BEGIN FOR t IN SELECT tgname FROM pg_trigger"
        " WHERE tgrelid = 's.r'::regclass LOOP"
        " EXECUTE format('ALTER TABLE s.r ENABLE ALWAYS TRIGGER %I', t); END LOOP; END $$",
        "postgres.firing", _WARNING, "the foreign key q_id_fkey is checked on s.r always",
    ),
    "a publication of all tables": Case(
        "CREATE TABLE s.r (id int); CREATE PUBLICATION p FOR ALL TABLES",
        "postgres.publications", _ERROR, "s.r is published by p",
    ),
    "a publication of the schema": Case(
        _PLAIN + "ALTER TABLE s.r REPLICA IDENTITY NOTHING;"
        "CREATE PUBLICATION p FOR TABLES IN SCHEMA s",
        "postgres.publications", _ERROR, "s.r is published by p",
    ),
    "a published partition": Case(
        "CREATE TABLE s.r (id int NOT NULL) PARTITION BY RANGE (id);"
        "CREATE TABLE s.p PARTITION OF s.r DEFAULT; CREATE PUBLICATION p FOR TABLE s.r",
        "postgres.publications", _ERROR, "s.p is published by p",
    ),
    "a row filter": Case(
        "CREATE TABLE s.r (id int PRIMARY KEY, v int);"
        "CREATE PUBLICATION p FOR TABLE s.r WHERE (v > 1 AND id > 0)",
        "postgres.publications", _ERROR, "for s.r uses columns that are not in its replica",
    ),
    "a list without the key": Case(
        "CREATE TABLE s.r (id int PRIMARY KEY, v int); CREATE PUBLICATION p FOR TABLE s.r (v)",
        "postgres.publications", _ERROR, "a list of columns of s.r that does not contain",
    ),
    "a list beside the whole row": Case(
        "CREATE TABLE s.r (id int PRIMARY KEY, v int); ALTER TABLE s.r REPLICA IDENTITY FULL;"
        "CREATE PUBLICATION p FOR TABLE s.r (id)",
        "postgres.publications", _ERROR, "a list of columns of s.r that does not contain",
    ),
    "another access method": Case(
        "CREATE ACCESS METHOD mine TYPE TABLE HANDLER heap_tableam_handler;"
        "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE s.p PARTITION OF s.r DEFAULT USING mine",
        "postgres.kind", _WARNING, "s.p has the access method mine",
    ),
}  # fmt: skip


def _kinds(found: list[Finding]) -> list[Finding]:
    """Without what is said of the key, which some of these tables have not."""
    return [one for one in found if one.check != "postgres.keys"]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_named_and_its_sql_mends_it(replication: Replication, case: Case) -> None:
    replication.execute(case.sql)
    (found,) = _kinds(check_target(replication.settings(), [_TABLE]))
    assert (found.check, found.severity) == (case.check, case.severity)
    assert case.words in found.what
    if not case.is_mended:
        assert all(line.startswith("--") for line in found.mend)
        return
    replication.execute(found.mend[0])
    assert _kinds(check_target(replication.settings(), [_TABLE])) == []


def test_everything_at_once(replication: Replication) -> None:
    """Each kind in a schema of its own, in one database: every one is named, with what helps."""
    r, tables, expected = replication, list[Table](), list[tuple[str, str]]()
    for number, case in enumerate(CASES.values()):
        schema = f"s{number}"
        text = re.sub(r"\bs\.", f"{schema}.", case.sql).replace("SCHEMA s", f"SCHEMA {schema}")
        text = text.replace("PUBLICATION p", f"PUBLICATION p{number}")
        r.execute(f"CREATE SCHEMA {schema}; {text}")
        tables.append(replace(_TABLE, owner=schema.upper(), obj=number + 1))
        words = re.sub(r"\bs\.", f"{schema}.", case.words)
        expected.append((case.check, words.replace("published by p", "published by")))
    r.execute(
        "CREATE FUNCTION s.e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';"
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION s.e();"
        "ALTER EVENT TRIGGER e ENABLE ALWAYS"
    )
    expected.append(("postgres.event-triggers", "the event trigger e"))
    found = check_target(r.settings(), tables)
    unnamed = [
        one
        for one in expected
        if not any(each.check == one[0] and one[1] in each.what for each in found)
    ]
    assert unnamed == []
    assert all(each.mend for each in found)


CLEAN = {
    "an ordinary table": _PLAIN,
    "ranges without a gap": _RANGES
    + "CREATE TABLE s.a PARTITION OF s.r FOR VALUES FROM (2) TO (10);"
    "CREATE TABLE s.b PARTITION OF s.r FOR VALUES FROM (10) TO (MAXVALUE)",
    "lists": "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY LIST (id);"
    "CREATE TABLE s.a PARTITION OF s.r FOR VALUES IN (1, 2)",
    "all hashes": "CREATE TABLE s.r (id int PRIMARY KEY) PARTITION BY HASH (id);"
    "CREATE TABLE s.a PARTITION OF s.r FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
    "CREATE TABLE s.b PARTITION OF s.r FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    "ordinary triggers and rules": _PLAIN
    + _FUNCTION
    + "CREATE TRIGGER t BEFORE INSERT ON s.r FOR EACH ROW EXECUTE FUNCTION s.f();"
    "CREATE RULE x AS ON DELETE TO s.r DO INSTEAD NOTHING;"
    "CREATE TABLE s.q (id int REFERENCES s.r)",
    "published with a key": _PLAIN + "CREATE PUBLICATION p FOR ALL TABLES",
    "published in part": "CREATE TABLE s.r (id int PRIMARY KEY, v int);"
    "CREATE PUBLICATION p FOR TABLE s.r (id) WHERE (id > 1)",
    "published inserts": "CREATE TABLE s.r (id int);"
    "CREATE PUBLICATION p FOR ALL TABLES WITH (publish = insert)",
    "row security for others": _PLAIN + "ALTER TABLE s.r ENABLE ROW LEVEL SECURITY",
}


@pytest.mark.parametrize("sql", CLEAN.values(), ids=CLEAN)
def test_nothing_is_said_of_a_table_as_it_should_be(replication: Replication, sql: str) -> None:
    replication.execute(sql)
    assert _kinds(check_target(replication.settings(), [_TABLE])) == []


def test_an_unlogged_table_may_be_accepted(replication: Replication) -> None:
    replication.execute("CREATE UNLOGGED TABLE s.r (id int PRIMARY KEY)")
    settings = replication.settings(unlogged=UnloggedPolicy.ACCEPT)
    (found,) = check_target(settings, [_TABLE])
    assert (found.check, found.severity) == ("postgres.storage", Severity.WARNING)


@pytest.mark.parametrize("is_owner", [False, True])
def test_row_level_security_that_binds_the_role(replication: Replication, is_owner: bool) -> None:
    r = replication
    database = psycopg.conninfo.conninfo_to_dict(r.target)["dbname"]
    role = f"bound_{database}_{is_owner}".lower()
    r.execute(
        f"{_PLAIN} CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA s TO {role};"
        f"GRANT ALL ON s.r TO {role}; GRANT CREATE ON DATABASE {database} TO {role};"
        f"GRANT SET ON PARAMETER session_replication_role TO {role};"
        "ALTER TABLE s.r ENABLE ROW LEVEL SECURITY;"
        'CREATE POLICY "A b" ON s.r USING (id = 1) WITH CHECK (true);'
    )
    if is_owner:
        r.execute(f"ALTER TABLE s.r OWNER TO {role}; ALTER TABLE s.r FORCE ROW LEVEL SECURITY")
    try:
        settings = r.settings(connect_string=make_conninfo(r.target, user=role, password="x"))
        (found,) = check_target(settings, [_TABLE])
        assert (found.check, found.severity) == ("postgres.row-security", Severity.ERROR)
        assert "the policies A b hide rows" in found.what
        r.execute(found.mend[0])
        assert check_target(settings, [_TABLE]) == []
    finally:
        r.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")

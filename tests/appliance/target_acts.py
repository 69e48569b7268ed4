"""What a DBA does to a target who does not know that olr_pg writes into it.

`ACTS` has the acts by the form of PostgreSQL's commands, as psql's ``\\h`` lists them; for ALTER
TABLE, each of its actions is a form. `test_changed_targets` checks that each form is drawn
or has its reason in `LEFT_OUT`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NEXT: Final = ";;"
"""Separates statements that are executed one after another, not as one transaction."""


class Act(NamedTuple):
    """An act.

    In the texts, ``{t}`` is the target table, ``{n}`` its name, ``{p}`` a partition of it,
    ``{x}`` the type of its column ``x``, ``{k}`` an unused number, ``{role}`` the applier's role,
    ``{db}`` the database, and ``{source}`` the source's name of the table.

    Attributes:
        undo: what corrects the target; empty if the act cannot be undone.
        on: the tables on which the act is possible, by name.
        is_passing: whether the act must be undone before a run can end.
        is_kept: whether the session stays open until it executes `undo`.
        changes_rows: whether it changes rows that olr_pg writes later, so that these rows can
            differ without notice until `verify` finds them.
    """

    do: str
    undo: str = ""
    on: str = "ABP"
    is_passing: bool = False
    is_kept: bool = False
    changes_rows: bool = False


_TRIGGER: Final = (
    "CREATE OR REPLACE FUNCTION public.f{k}() RETURNS trigger LANGUAGE plpgsql AS"
    " $f$BEGIN %s END$f$;;CREATE TRIGGER z{k} BEFORE INSERT OR UPDATE ON {t}"
    " FOR EACH ROW EXECUTE FUNCTION public.f{k}()"
)
_NO_TRIGGER: Final = "DROP TRIGGER z{k} ON {t}"
_RAISES: Final = _TRIGGER % "RAISE EXCEPTION ''no'';".replace("''", "'")
_DROPS: Final = _TRIGGER % "RETURN NULL;"
_CHANGES: Final = _TRIGGER % "NEW.x := 77; RETURN NEW;"
_TRIGGERS: Final = "ALTER TABLE {t} %s TRIGGER z{k}"
_RULE: Final = "CREATE RULE z{k} AS ON INSERT TO {t} DO INSTEAD NOTHING"
_RULES: Final = f"{_RULE};;ALTER TABLE {{t}} %s RULE z{{k}}"
_NO_RULE: Final = "DROP RULE z{k} ON {t}"
_SECURED: Final = (
    "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;;CREATE POLICY z{k} ON {t} USING (id < 3);;"
    "ALTER TABLE {t} FORCE ROW LEVEL SECURITY"
)
_UNSECURED: Final = (
    "ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY;;ALTER TABLE {t} DISABLE ROW LEVEL SECURITY"
)
_RETYPED: Final = "ALTER TABLE {t} ALTER COLUMN x TYPE {x} USING x::text::numeric::{x}"
_TABLESPACE: Final = (
    "SET allow_in_place_tablespaces = on;;CREATE TABLESPACE z{k} LOCATION '';;"
    "GRANT ALL ON TABLESPACE z{k} TO PUBLIC"
)
_TERMINATE: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE usename = '{role}' AND pid <> pg_backend_pid()"
)
_BELOW: Final = (
    "ALTER TABLE {t} RENAME TO {n}_below{k};;CREATE VIEW {t} AS SELECT * FROM app.{n}_below{k};;"
    "GRANT ALL ON {t} TO {role}"
)
_COPIED: Final = (
    "CREATE TABLE app.z{k} (LIKE {t} INCLUDING ALL);;ALTER TABLE app.z{k} OWNER TO {role};;"
    "INSERT INTO app.z{k} SELECT * FROM {t}"
)
_BOUNDS: Final = "FOR VALUES FROM (MINVALUE) TO (50)"
_ATTACHED: Final = f"ALTER TABLE {{t}} ATTACH PARTITION {{p}} {_BOUNDS}"
_CREATED: Final = (
    f"CREATE TABLE {{p}} PARTITION OF {{t}} {_BOUNDS};;ALTER TABLE {{p}} OWNER TO {{role}}"
)
_RELOAD: Final = ";;SELECT pg_reload_conf()"


def _system(setting: str, value: str, *, is_passing: bool = False) -> Act:
    undo = f"ALTER SYSTEM RESET {setting}{_RELOAD}"
    return Act(f"ALTER SYSTEM SET {setting} = {value}{_RELOAD}", undo, is_passing=is_passing)


def _role(setting: str, value: str) -> Act:
    return Act(
        f"ALTER ROLE {{role}} SET {setting} = {value}", f"ALTER ROLE {{role}} RESET {setting}"
    )


def _database(setting: str, value: str) -> Act:
    return Act(
        f"ALTER DATABASE {{db}} SET {setting} = {value}", f"ALTER DATABASE {{db}} RESET {setting}"
    )


def _locked(mode: str) -> Act:
    return Act(f"BEGIN;;LOCK TABLE {{t}} IN {mode} MODE", "ROLLBACK", is_passing=True, is_kept=True)


LEDGER_TABLES: Final = (
    *("version", "ledger", "listed", "paused", "subscription", "incarnation", "held"),
    *("incomplete", "error", "load", "load_part", "cutover", "set_aside", "structure"),
    *("partition", "crash_mark", "crash_watch", "way_back", "unlogged"),
)
_LEDGER: Final = "UPDATE olr_pg.ledger SET %s WHERE source_table = '{source}'"
_LEDGER_ACTS: Final = (
    *(Act(f"DELETE FROM olr_pg.{name}") for name in LEDGER_TABLES),
    *(Act(f"DROP TABLE olr_pg.{name} CASCADE") for name in LEDGER_TABLES),
    Act("DELETE FROM olr_pg.ledger WHERE source_table = '{source}'"),
    Act("DROP SCHEMA olr_pg CASCADE"),
    Act("DROP FUNCTION olr_pg.consistent_scn"),
    Act("ALTER SCHEMA olr_pg RENAME TO z{k}", "ALTER SCHEMA z{k} RENAME TO olr_pg"),
    Act(_LEDGER % "commit_scn = 0, xids = '{{}}'"),
    Act(_LEDGER % "commit_scn = commit_scn - 40"),
    Act(_LEDGER % "commit_scn = commit_scn + 100000"),
    Act(_LEDGER % "xids = '{{}}'"),
    Act(_LEDGER % "commit_scn = NULL"),
    Act(_LEDGER % "stopped = true"),
    Act(_LEDGER % "inserted = 0, deleted = 0"),
    Act(_LEDGER % "target_table = 'app.other'"),
    Act("UPDATE olr_pg.subscription SET complete_scn = complete_scn + 100000"),
    Act("UPDATE olr_pg.subscription SET start_scn = 1"),
    Act("UPDATE olr_pg.version SET version = 3"),
    Act("UPDATE olr_pg.version SET version = 99", "UPDATE olr_pg.version SET version = 22"),
    Act("ALTER TABLE olr_pg.ledger OWNER TO postgres", "ALTER TABLE olr_pg.ledger OWNER TO {role}"),
    Act(
        "ALTER TABLE olr_pg.ledger RENAME COLUMN xids TO z",
        "ALTER TABLE olr_pg.ledger RENAME COLUMN z TO xids",
    ),
    Act("ALTER TABLE olr_pg.ledger DROP COLUMN target_file"),
    Act("ALTER TABLE olr_pg.ledger ADD COLUMN z{k} integer"),
    Act("ALTER TABLE olr_pg.ledger DROP CONSTRAINT ledger_pkey"),
    Act(
        "CREATE FUNCTION public.f{k}() RETURNS trigger LANGUAGE plpgsql AS"
        " $f$BEGIN RETURN NULL; END$f$;;CREATE TRIGGER z{k} BEFORE UPDATE ON olr_pg.ledger FOR EACH"
        " ROW EXECUTE FUNCTION public.f{k}();;ALTER TABLE olr_pg.ledger ENABLE ALWAYS TRIGGER z{k}",
        "DROP TRIGGER z{k} ON olr_pg.ledger",
    ),
    Act(
        "CREATE RULE z{k} AS ON UPDATE TO olr_pg.ledger DO INSTEAD NOTHING;;"
        "ALTER TABLE olr_pg.ledger ENABLE ALWAYS RULE z{k}",
        "DROP RULE z{k} ON olr_pg.ledger",
    ),
    Act(
        "ALTER TABLE olr_pg.ledger ENABLE ROW LEVEL SECURITY;;"
        "ALTER TABLE olr_pg.ledger FORCE ROW LEVEL SECURITY",
        "ALTER TABLE olr_pg.ledger NO FORCE ROW LEVEL SECURITY;;"
        "ALTER TABLE olr_pg.ledger DISABLE ROW LEVEL SECURITY",
    ),
    Act("ALTER TABLE olr_pg.ledger SET UNLOGGED"),
    Act("VACUUM FULL olr_pg.ledger"),
)

_ALTER_TABLE: Final[Mapping[str, tuple[Act, ...]]] = {
    "RENAME column_name TO new_column_name": (
        Act("ALTER TABLE {t} RENAME x TO z{k}", "ALTER TABLE {t} RENAME z{k} TO x"),
        Act("ALTER TABLE {t} RENAME id TO z{k}", "ALTER TABLE {t} RENAME z{k} TO id"),
        Act(
            "ALTER TABLE {t} RENAME x TO z{k};;ALTER TABLE {t} RENAME id TO x;;"
            "ALTER TABLE {t} RENAME z{k} TO id",
            "ALTER TABLE {t} RENAME x TO z{k};;ALTER TABLE {t} RENAME id TO x;;"
            "ALTER TABLE {t} RENAME z{k} TO id",
            changes_rows=True,
        ),
    ),
    "RENAME CONSTRAINT constraint_name TO new_constraint_name": (
        Act("ALTER TABLE {t} RENAME CONSTRAINT {n}_pkey TO z{k}", on="AP"),
    ),
    "RENAME TO new_name": (
        Act("ALTER TABLE {t} RENAME TO z{k}", "ALTER TABLE app.z{k} RENAME TO {n}"),
        Act(
            f"{_COPIED};;ALTER TABLE {{t}} RENAME TO y{{k}};;ALTER TABLE app.z{{k}} RENAME TO {{n}}"
        ),
        Act(_BELOW, "DROP VIEW {t};;ALTER TABLE app.{n}_below{k} RENAME TO {n}"),
    ),
    "SET SCHEMA new_schema": (
        Act("ALTER TABLE {t} SET SCHEMA public", "ALTER TABLE public.{n} SET SCHEMA app"),
    ),
    "ALL IN TABLESPACE name SET TABLESPACE new_tablespace": (
        Act(f"{_TABLESPACE};;ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE z{{k}}"),
    ),
    "ATTACH PARTITION partition_name FOR VALUES partition_bound_spec": (
        Act(
            "CREATE TABLE app.z{k} (LIKE {t}) PARTITION BY RANGE (id);;"
            "ALTER TABLE app.z{k} ATTACH PARTITION {t} FOR VALUES FROM (0) TO (9999999)",
            "ALTER TABLE app.z{k} DETACH PARTITION {t}",
        ),
        Act(
            "CREATE TABLE app.z{k} (LIKE {t});;INSERT INTO app.z{k} (id) VALUES (5000000);;"
            "ALTER TABLE {t} ATTACH PARTITION app.z{k} FOR VALUES FROM (4000000) TO (9000000)",
            on="P",
            changes_rows=True,
        ),
    ),
    "ATTACH PARTITION partition_name DEFAULT": (
        Act("CREATE TABLE app.z{k} (LIKE {t});;ALTER TABLE {t} ATTACH PARTITION app.z{k} DEFAULT",
            on="P"),
    ),
    "DETACH PARTITION partition_name": (
        Act("ALTER TABLE {t} DETACH PARTITION {p}", _ATTACHED, on="P", changes_rows=True),
        Act("ALTER TABLE {t} DETACH PARTITION {p};;DROP TABLE {p}", _CREATED, on="P",
            changes_rows=True),
        Act("ALTER TABLE {t} DETACH PARTITION {p} CONCURRENTLY", _ATTACHED, on="P",
            changes_rows=True),
    ),
    "ADD column_name data_type": (
        Act("ALTER TABLE {t} ADD z{k} integer"),
        Act("ALTER TABLE {t} ADD z{k} integer NOT NULL DEFAULT 7"),
        Act("ALTER TABLE {t} ADD z{k} integer NOT NULL DEFAULT 7;;"
            "ALTER TABLE {t} ALTER z{k} DROP DEFAULT", "ALTER TABLE {t} DROP z{k}"),
        Act("ALTER TABLE {t} ADD z{k} bigint GENERATED ALWAYS AS (id + 1) STORED"),
        Act("ALTER TABLE {t} ADD z{k} bigint GENERATED ALWAYS AS IDENTITY", on="AB"),
        Act("ALTER TABLE {t} ADD z{k} integer UNIQUE DEFAULT 1", "ALTER TABLE {t} DROP z{k}",
            on="AB"),
    ),
    "DROP column_name": (
        Act("ALTER TABLE {t} DROP x CASCADE", "ALTER TABLE {t} ADD x {x}", changes_rows=True),
        Act("ALTER TABLE {t} DROP x CASCADE;;ALTER TABLE {t} ADD x {x}", changes_rows=True),
    ),
    "ALTER column_name TYPE data_type": (
        Act("ALTER TABLE {t} ALTER x TYPE text USING x::text", _RETYPED),
        Act("ALTER TABLE {t} ALTER x TYPE numeric", _RETYPED),
        Act("ALTER TABLE {t} ALTER x TYPE numeric(3, 1)", _RETYPED),
        Act("ALTER TABLE {t} ALTER x TYPE smallint", _RETYPED),
        Act("ALTER TABLE {t} ALTER x TYPE boolean USING x > 3", changes_rows=True,
            undo="ALTER TABLE {t} ALTER x TYPE {x} USING x::integer"),
        Act("ALTER TABLE {t} ALTER x TYPE {x} USING x + 1", changes_rows=True),
        Act("ALTER TABLE {t} ALTER v TYPE varchar(1)", "ALTER TABLE {t} ALTER v TYPE text",
            on="A"),
    ),
    "ALTER column_name SET DEFAULT expression": (Act("ALTER TABLE {t} ALTER x SET DEFAULT 5"),),
    "ALTER column_name DROP DEFAULT": (Act("ALTER TABLE {t} ALTER x DROP DEFAULT"),),
    "ALTER column_name SET NOT NULL": (
        Act("ALTER TABLE {t} ALTER x SET NOT NULL", "ALTER TABLE {t} ALTER x DROP NOT NULL"),
    ),
    "ALTER column_name DROP NOT NULL": (
        Act("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey;;ALTER TABLE {t} ALTER id DROP NOT NULL",
            on="AP"),
    ),
    "ALTER column_name SET EXPRESSION AS (expression)": (
        Act("ALTER TABLE {t} ADD z{k} bigint GENERATED ALWAYS AS (id + 1) STORED;;"
            "ALTER TABLE {t} ALTER z{k} SET EXPRESSION AS (id + 2)"),
    ),
    "ALTER column_name DROP EXPRESSION": (
        Act("ALTER TABLE {t} ADD z{k} bigint GENERATED ALWAYS AS (id + 1) STORED;;"
            "ALTER TABLE {t} ALTER z{k} DROP EXPRESSION"),
        Act("ALTER TABLE {t} DROP x CASCADE;;"
            "ALTER TABLE {t} ADD x {x} GENERATED ALWAYS AS (id + 1) STORED",
            "ALTER TABLE {t} ALTER x DROP EXPRESSION"),
    ),
    "ALTER column_name ADD GENERATED ALWAYS AS IDENTITY": (
        Act("ALTER TABLE {t} ALTER id SET NOT NULL;;"
            "ALTER TABLE {t} ALTER id ADD GENERATED ALWAYS AS IDENTITY",
            "ALTER TABLE {t} ALTER id DROP IDENTITY"),
    ),
    "ALTER column_name ADD GENERATED BY DEFAULT AS IDENTITY": (
        Act("ALTER TABLE {t} ALTER id SET NOT NULL;;"
            "ALTER TABLE {t} ALTER id ADD GENERATED BY DEFAULT AS IDENTITY",
            "ALTER TABLE {t} ALTER id DROP IDENTITY"),
    ),
    "ALTER column_name SET GENERATED ALWAYS": (
        Act("ALTER TABLE {t} ALTER id SET NOT NULL;;"
            "ALTER TABLE {t} ALTER id ADD GENERATED BY DEFAULT AS IDENTITY;;"
            "ALTER TABLE {t} ALTER id SET GENERATED ALWAYS SET START 100 RESTART"),
    ),
    "ALTER column_name DROP IDENTITY": (
        Act("ALTER TABLE {t} ALTER id DROP IDENTITY IF EXISTS"),
    ),
    "ALTER column_name SET STATISTICS integer": (Act("ALTER TABLE {t} ALTER x SET STATISTICS 9"),),
    "ALTER column_name SET (attribute_option = value)": (
        Act("ALTER TABLE {t} ALTER x SET (n_distinct = 5)", on="AB"),
    ),
    "ALTER column_name RESET (attribute_option)": (
        Act("ALTER TABLE {t} ALTER x RESET (n_distinct)", on="AB"),
    ),
    "ALTER column_name SET STORAGE PLAIN": (
        Act("ALTER TABLE {t} ALTER v SET STORAGE EXTERNAL", on="A"),
    ),
    "ALTER column_name SET COMPRESSION compression_method": (
        Act("ALTER TABLE {t} ALTER v SET COMPRESSION pglz", on="A"),
    ),
    "ADD table_constraint": (
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} CHECK (x < 5) NOT VALID",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}"),
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} CHECK (false) NOT VALID",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}"),
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} UNIQUE (x)",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} UNIQUE (x) DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
        Act("CREATE TABLE app.z{k} (id integer PRIMARY KEY);;ALTER TABLE {t} ADD CONSTRAINT z{k}"
            " FOREIGN KEY (id) REFERENCES app.z{k} NOT VALID",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
        Act("CREATE TABLE app.z{k} (id integer REFERENCES {t} ON DELETE CASCADE)", on="AP"),
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} EXCLUDE (x WITH =)",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} PRIMARY KEY (id, x)",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="B"),
    ),
    "ADD table_constraint_using_index": (
        Act("CREATE UNIQUE INDEX z{k} ON {t} (id);;ALTER TABLE {t} ADD CONSTRAINT z{k} UNIQUE"
            " USING INDEX z{k}", "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
    ),
    "ALTER CONSTRAINT constraint_name": (
        Act("CREATE TABLE app.z{k} (id integer PRIMARY KEY);;ALTER TABLE {t} ADD CONSTRAINT z{k}"
            " FOREIGN KEY (id) REFERENCES app.z{k} NOT VALID;;"
            "ALTER TABLE {t} ALTER CONSTRAINT z{k} DEFERRABLE INITIALLY DEFERRED",
            "ALTER TABLE {t} DROP CONSTRAINT z{k}", on="AB"),
    ),
    "VALIDATE CONSTRAINT constraint_name": (
        Act("ALTER TABLE {t} ADD CONSTRAINT z{k} CHECK (x < 900) NOT VALID;;"
            "ALTER TABLE {t} VALIDATE CONSTRAINT z{k}"),
    ),
    "DROP CONSTRAINT constraint_name": (
        Act("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey", on="AP"),
        Act("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey", "ALTER TABLE {t} ADD PRIMARY KEY (id)",
            on="AP"),
    ),
    "DISABLE TRIGGER": (Act("ALTER TABLE {t} DISABLE TRIGGER ALL"),),
    "ENABLE TRIGGER": (Act(f"{_RAISES};;ALTER TABLE {{t}} ENABLE TRIGGER ALL", _NO_TRIGGER),),
    "ENABLE REPLICA TRIGGER trigger_name": (
        Act(f"{_RAISES};;{_TRIGGERS % 'ENABLE REPLICA'}", _NO_TRIGGER),
    ),
    "ENABLE ALWAYS TRIGGER trigger_name": (
        Act(f"{_RAISES};;{_TRIGGERS % 'ENABLE ALWAYS'}", _NO_TRIGGER),
        Act(f"{_DROPS};;{_TRIGGERS % 'ENABLE ALWAYS'}", _NO_TRIGGER),
        Act(f"{_CHANGES};;{_TRIGGERS % 'ENABLE ALWAYS'}", _NO_TRIGGER, changes_rows=True),
    ),
    "DISABLE RULE rewrite_rule_name": (Act(_RULES % "DISABLE"),),
    "ENABLE RULE rewrite_rule_name": (Act(_RULES % "ENABLE"),),
    "ENABLE REPLICA RULE rewrite_rule_name": (Act(_RULES % "ENABLE REPLICA", _NO_RULE),),
    "ENABLE ALWAYS RULE rewrite_rule_name": (Act(_RULES % "ENABLE ALWAYS", _NO_RULE),),
    "DISABLE ROW LEVEL SECURITY": (Act("ALTER TABLE {t} DISABLE ROW LEVEL SECURITY"),),
    "ENABLE ROW LEVEL SECURITY": (Act("ALTER TABLE {t} ENABLE ROW LEVEL SECURITY"),),
    "FORCE ROW LEVEL SECURITY": (Act(_SECURED, _UNSECURED),),
    "NO FORCE ROW LEVEL SECURITY": (Act("ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY"),),
    "CLUSTER ON index_name": (Act("ALTER TABLE {t} CLUSTER ON {n}_pkey", on="A"),),
    "SET WITHOUT CLUSTER": (Act("ALTER TABLE {t} SET WITHOUT CLUSTER", on="AB"),),
    "SET WITHOUT OIDS": (Act("ALTER TABLE {t} SET WITHOUT OIDS"),),
    "SET ACCESS METHOD new_access_method": (
        Act("ALTER TABLE {t} SET ACCESS METHOD heap", on="AB"),
    ),
    "SET TABLESPACE new_tablespace": (
        Act(f"{_TABLESPACE};;ALTER TABLE {{t}} SET TABLESPACE z{{k}}"),
    ),
    "SET LOGGED": (Act("ALTER TABLE {t} SET LOGGED", on="AB"),),
    "SET UNLOGGED": (
        Act("ALTER TABLE {t} SET UNLOGGED", "ALTER TABLE {t} SET LOGGED", on="AB"),
        Act("ALTER TABLE {p} SET UNLOGGED", "ALTER TABLE {p} SET LOGGED", on="P"),
    ),
    "SET (storage_parameter)": (
        Act("ALTER TABLE {t} SET (fillfactor = 20, autovacuum_enabled = off)", on="AB"),
    ),
    "RESET (storage_parameter)": (Act("ALTER TABLE {t} RESET (fillfactor)", on="AB"),),
    "INHERIT parent_table": (
        Act("CREATE TABLE app.z{k} (LIKE {t});;ALTER TABLE {t} INHERIT app.z{k}", on="AB"),
        Act("CREATE TABLE app.z{k} (LIKE {t} INCLUDING ALL);;ALTER TABLE app.z{k} INHERIT {t}",
            "ALTER TABLE app.z{k} NO INHERIT {t}", on="AB"),
        Act("CREATE TABLE app.z{k} () INHERITS ({t});;INSERT INTO app.z{k} (id) VALUES (3)",
            "DROP TABLE app.z{k}", on="AB"),
    ),
    "NO INHERIT parent_table": (
        Act("CREATE TABLE app.z{k} (LIKE {t});;ALTER TABLE {t} INHERIT app.z{k};;"
            "ALTER TABLE {t} NO INHERIT app.z{k}", on="AB"),
    ),
    "OF type_name": (
        Act("CREATE TYPE app.y{k} AS (id {x}, x {x});;ALTER TABLE {t} OF app.y{k}",
            "ALTER TABLE {t} NOT OF", on="B"),
    ),
    "NOT OF": (Act("ALTER TABLE {t} NOT OF", on="AB"),),
    "OWNER TO new_owner": (
        Act("ALTER TABLE {t} OWNER TO postgres", "ALTER TABLE {t} OWNER TO {role}"),
        Act("ALTER TABLE {t} OWNER TO postgres;;GRANT SELECT, INSERT, UPDATE, DELETE ON {t}"
            " TO {role}", "ALTER TABLE {t} OWNER TO {role}"),
    ),
    "REPLICA IDENTITY DEFAULT": (Act("ALTER TABLE {t} REPLICA IDENTITY DEFAULT"),),
    "REPLICA IDENTITY USING INDEX index_name": (
        Act("ALTER TABLE {t} REPLICA IDENTITY USING INDEX {n}_pkey", on="A"),
    ),
    "REPLICA IDENTITY FULL": (Act("ALTER TABLE {t} REPLICA IDENTITY FULL"),),
    "REPLICA IDENTITY NOTHING": (
        Act("CREATE PUBLICATION z{k} FOR TABLE {t};;ALTER TABLE {t} REPLICA IDENTITY NOTHING",
            "DROP PUBLICATION z{k}"),
    ),
}  # fmt: skip
"""The actions of ALTER TABLE."""

_OTHERS: Final[Mapping[str, tuple[Act, ...]]] = {
    "ALTER DATABASE": (
        _database("default_transaction_isolation", "'serializable'"),
        _database("search_path", "'nowhere'"),
        _database("session_replication_role", "'local'"),
        Act("ALTER DATABASE {db} SET TABLESPACE pg_default"),
        Act("ALTER DATABASE {db} CONNECTION LIMIT 1", "ALTER DATABASE {db} CONNECTION LIMIT -1",
            is_passing=True),
        Act("ALTER DATABASE {db} ALLOW_CONNECTIONS false;;" + _TERMINATE,
            "ALTER DATABASE {db} ALLOW_CONNECTIONS true", is_passing=True, is_kept=True),
    ),
    "ALTER DOMAIN": (
        Act("CREATE DOMAIN public.z{k} AS {x};;ALTER TABLE {t} ALTER x TYPE public.z{k};;"
            "ALTER DOMAIN public.z{k} ADD CHECK (VALUE < 5) NOT VALID", _RETYPED),
    ),
    "ALTER INDEX": (Act("ALTER INDEX app.{n}_pkey RENAME TO z{k}", on="AP"),),
    "ALTER POLICY": (
        Act(_SECURED + ";;ALTER POLICY z{k} ON {t} USING (false)", _UNSECURED),
    ),
    "ALTER ROLE": (
        _role("statement_timeout", "'30ms'"),
        _role("lock_timeout", "'50ms'"),
        _role("default_transaction_read_only", "on"),
        _role("session_replication_role", "'origin'"),
        Act("ALTER ROLE {role} NOLOGIN;;" + _TERMINATE, "ALTER ROLE {role} LOGIN",
            is_passing=True),
        Act("ALTER ROLE {role} PASSWORD 'other';;" + _TERMINATE, "ALTER ROLE {role} PASSWORD 'x'",
            is_passing=True),
        Act("ALTER ROLE {role} CONNECTION LIMIT 1", "ALTER ROLE {role} CONNECTION LIMIT -1",
            is_passing=True),
        Act("ALTER ROLE {role} VALID UNTIL '2001-01-01';;" + _TERMINATE,
            "ALTER ROLE {role} VALID UNTIL 'infinity'", is_passing=True),
    ),
    "ALTER RULE": (
        Act(f"{_RULES % 'ENABLE ALWAYS'};;ALTER RULE z{{k}} ON {{t}} RENAME TO y{{k}}",
            "DROP RULE y{k} ON {t}"),
    ),
    "ALTER SCHEMA": (
        Act("ALTER SCHEMA app RENAME TO z{k}", "ALTER SCHEMA z{k} RENAME TO app"),
        Act("ALTER SCHEMA app OWNER TO postgres", "ALTER SCHEMA app OWNER TO {role}"),
    ),
    "ALTER SYSTEM": (
        _system("default_transaction_read_only", "on", is_passing=True),
        _system("statement_timeout", "'30ms'"),
        _system("idle_in_transaction_session_timeout", "'20ms'"),
        _system("lock_timeout", "'20ms'"),
        _system("max_standby_streaming_delay", "1"),
        _system("password_encryption", "'md5'"),
        _system("synchronous_commit", "off"),
    ),
    "ALTER TRIGGER": (
        Act(f"{_RAISES};;ALTER TRIGGER z{{k}} ON {{t}} RENAME TO y{{k}}",
            "DROP TRIGGER y{k} ON {t}"),
    ),
    "ALTER TYPE": (
        Act("CREATE TYPE public.z{k} AS ENUM ('1', '2');;"
            "ALTER TABLE {t} ALTER v TYPE public.z{k} USING NULL;;"
            "ALTER TYPE public.z{k} ADD VALUE '3'", "ALTER TABLE {t} ALTER v TYPE text", on="A"),
    ),
    "ANALYZE": (Act("ANALYZE {t}"),),
    "CLUSTER": (Act("CLUSTER {t} USING {n}_pkey", on="A"),),
    "COMMENT": (Act("COMMENT ON TABLE {t} IS 'z'"),),
    "COPY": (
        Act("COPY (SELECT 3000 + {k} AS id, 1 AS x) TO '/tmp/z{db}{k}.csv';;"
            "COPY {t} (id, x) FROM '/tmp/z{db}{k}.csv';;"
            "SELECT pg_catalog.pg_stat_reset()", changes_rows=True),
    ),
    "CREATE EVENT TRIGGER": (
        Act("CREATE FUNCTION public.f{k}() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $f$BEGIN RAISE EXCEPTION 'no DDL'; END$f$;;"
            "CREATE EVENT TRIGGER z{k} ON ddl_command_start EXECUTE FUNCTION public.f{k}();;"
            "ALTER EVENT TRIGGER z{k} ENABLE ALWAYS", "DROP EVENT TRIGGER z{k}"),
    ),
    "CREATE EXTENSION": (Act("CREATE EXTENSION IF NOT EXISTS plpgsql"),),
    "CREATE INDEX": (
        Act("CREATE INDEX ON {t} (x)"),
        Act("CREATE INDEX CONCURRENTLY ON {t} (x)", on="AB"),
        Act("CREATE UNIQUE INDEX z{k} ON {t} (x)", "DROP INDEX app.z{k}", on="AB"),
        Act("CREATE UNIQUE INDEX z{k} ON {t} (x) NULLS NOT DISTINCT", "DROP INDEX app.z{k}",
            on="AB"),
        Act("CREATE INDEX z{k} ON {t} ((10 / (x - x + id - 4)))", "DROP INDEX app.z{k}"),
    ),
    "CREATE POLICY": (
        Act("CREATE POLICY z{k} ON {t} AS RESTRICTIVE USING (x < 3) WITH CHECK (true);;"
            "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;;ALTER TABLE {t} OWNER TO postgres;;"
            "GRANT ALL ON {t} TO {role}",
            "ALTER TABLE {t} DISABLE ROW LEVEL SECURITY;;ALTER TABLE {t} OWNER TO {role}"),
    ),
    "CREATE PUBLICATION": (Act("CREATE PUBLICATION z{k} FOR ALL TABLES", "DROP PUBLICATION z{k}"),),
    "CREATE RULE": (
        Act(_RULE),
        Act("CREATE RULE z{k} AS ON UPDATE TO {t} DO INSTEAD NOTHING;;"
            "ALTER TABLE {t} ENABLE ALWAYS RULE z{k}", _NO_RULE),
        Act("CREATE RULE z{k} AS ON INSERT TO {t} DO ALSO NOTIFY z;;"
            "ALTER TABLE {t} ENABLE ALWAYS RULE z{k}", _NO_RULE),
    ),
    "CREATE STATISTICS": (Act("CREATE STATISTICS app.z{k} ON id, x FROM {t}"),),
    "CREATE TABLE": (
        Act("DROP TABLE {t} CASCADE;;CREATE TABLE {t} (id integer, x integer, v text);;"
            "ALTER TABLE {t} OWNER TO {role}"),
    ),
    "CREATE TABLE AS": (
        Act("CREATE TABLE app.z{k} AS TABLE {t};;DROP TABLE {t} CASCADE;;"
            "ALTER TABLE app.z{k} RENAME TO {n};;ALTER TABLE {t} OWNER TO {role}"),
    ),
    "CREATE TRIGGER": (Act(_RAISES), Act(_DROPS)),
    "CREATE VIEW": (Act("CREATE VIEW app.z{k} AS SELECT * FROM {t}"),),
    "CREATE MATERIALIZED VIEW": (Act("CREATE MATERIALIZED VIEW app.z{k} AS SELECT * FROM {t}"),),
    "DELETE": (
        Act("DELETE FROM {t} WHERE id % 2 = 0", changes_rows=True),
        Act("DELETE FROM {t}", changes_rows=True),
    ),
    "DROP OWNED": (Act("DROP OWNED BY {role} CASCADE"),),
    "DROP SCHEMA": (Act("DROP SCHEMA app CASCADE"),),
    "DROP TABLE": (
        Act("DROP TABLE {t} CASCADE"),
        Act("DROP TABLE {p} CASCADE", _CREATED, on="P", changes_rows=True),
    ),
    "GRANT": (Act("GRANT ALL ON {t} TO PUBLIC"),),
    "INSERT": (
        Act("INSERT INTO {t} (id, x) SELECT max(id) + 1, 1 FROM {t}", changes_rows=True),
        Act("INSERT INTO {t} (id, x) VALUES (2000 + {k}, 1)", changes_rows=True),
        Act("INSERT INTO {t} (id, x) SELECT id, x FROM {t}", on="B", changes_rows=True),
    ),
    "LISTEN": (Act("LISTEN z", "UNLISTEN *", is_kept=True),),
    "LOCK": tuple(
        _locked(mode) for mode in ("ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE", "ACCESS SHARE")
    ),
    "MERGE": (
        Act("MERGE INTO {t} USING (SELECT 1 AS y) s ON (id = y) WHEN MATCHED THEN UPDATE"
            " SET x = 50 WHEN NOT MATCHED THEN INSERT (id, x) VALUES (1, 50)", changes_rows=True),
    ),
    "NOTIFY": (Act("NOTIFY z"),),
    "PREPARE TRANSACTION": (
        Act("BEGIN;;LOCK TABLE {t} IN SHARE MODE;;PREPARE TRANSACTION 'z{k}'",
            "ROLLBACK PREPARED 'z{k}'", is_passing=True),
        Act("BEGIN;;SELECT FROM olr_pg.ledger FOR UPDATE;;PREPARE TRANSACTION 'z{k}'",
            "ROLLBACK PREPARED 'z{k}'", is_passing=True),
    ),
    "REASSIGN OWNED": (
        Act("REASSIGN OWNED BY {role} TO postgres",
            "REASSIGN OWNED BY postgres TO {role}"),
    ),
    "REFRESH MATERIALIZED VIEW": (
        Act("CREATE MATERIALIZED VIEW app.z{k} AS SELECT * FROM {t};;"
            "REFRESH MATERIALIZED VIEW app.z{k}"),
    ),
    "REINDEX": (Act("REINDEX TABLE {t}"), Act("REINDEX TABLE CONCURRENTLY {t}")),
    "REVOKE": (
        *(Act(f"ALTER TABLE {{t}} OWNER TO postgres;;GRANT ALL ON {{t}} TO {{role}};;"
              f"REVOKE {right} ON {{t}} FROM {{role}}", "ALTER TABLE {t} OWNER TO {role}")
          for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")),
        Act("REVOKE SET ON PARAMETER session_replication_role FROM {role}",
            "GRANT SET ON PARAMETER session_replication_role TO {role}"),
        Act("REVOKE ALL ON SCHEMA app FROM {role};;ALTER SCHEMA app OWNER TO postgres",
            "ALTER SCHEMA app OWNER TO {role}"),
        Act("REVOKE CREATE ON DATABASE {db} FROM {role}",
            "GRANT CREATE ON DATABASE {db} TO {role}"),
        Act("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC"),
    ),
    "SELECT": (
        Act(_TERMINATE),
        Act("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"),
        Act("BEGIN;;SELECT * FROM {t} FOR UPDATE", "COMMIT", is_passing=True, is_kept=True),
        Act("BEGIN;;SELECT FROM olr_pg.ledger FOR UPDATE", "COMMIT", is_passing=True,
            is_kept=True),
        Act("SELECT pg_advisory_lock(key) FROM generate_series(1, 9) key",
            "SELECT pg_advisory_unlock_all()", is_kept=True),
    ),
    "SELECT INTO": (Act("SELECT * INTO app.z{k} FROM {t}"),),
    "TRUNCATE": (
        Act("TRUNCATE {t}"),
        Act("TRUNCATE {t} CASCADE", changes_rows=False),
        Act("TRUNCATE {p}", on="P", changes_rows=True),
    ),
    "UPDATE": (
        Act("UPDATE {t} SET x = x + 1000 WHERE id % 2 = 0", changes_rows=True),
        Act("UPDATE {t} SET id = id + 3000 WHERE id % 3 = 0", changes_rows=True),
        Act("BEGIN;;UPDATE {t} SET x = x + 1000", "ROLLBACK", is_passing=True, is_kept=True),
    ),
    "VACUUM": (Act("VACUUM FULL {t}"), Act("VACUUM (FREEZE, ANALYZE) {t}")),
}  # fmt: skip
"""The other commands."""

ACTS: Final[Mapping[str, tuple[Act, ...]]] = {
    **{f"ALTER TABLE {form}": acts for form, acts in _ALTER_TABLE.items()},
    **_OTHERS,
    "olr_pg": _LEDGER_ACTS,
}
"""The acts by form. The form ``olr_pg`` has those on the schema of the ledger."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "transactions, cursors and settings of a session of its own": (
        "ABORT|BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|START TRANSACTION|RELEASE SAVEPOINT"
        "|ROLLBACK TO SAVEPOINT|ROLLBACK PREPARED|COMMIT PREPARED|SET|SET CONSTRAINTS|SET ROLE"
        "|SET SESSION AUTHORIZATION|SET TRANSACTION|RESET|SHOW|DISCARD|PREPARE|EXECUTE|DEALLOCATE"
        "|DECLARE|FETCH|MOVE|CLOSE|UNLISTEN|LOAD|VALUES|TABLE|WITH|EXPLAIN|CHECKPOINT"
    ),
    "another way to execute an act that is drawn": (
        "ALTER FOREIGN TABLE|ALTER GROUP|ALTER USER|CALL|DO|CREATE GROUP|CREATE ROLE|CREATE USER"
        "|CREATE FUNCTION|CREATE PROCEDURE|CREATE DOMAIN|CREATE SCHEMA|CREATE TABLESPACE"
        "|CREATE TYPE|DROP DOMAIN|DROP EVENT TRIGGER|DROP FUNCTION|DROP INDEX|DROP POLICY"
        "|DROP PUBLICATION|DROP RULE|DROP TRIGGER|DROP TYPE|DROP VIEW|DROP MATERIALIZED VIEW"
        "|ALTER EVENT TRIGGER|ALTER VIEW|ALTER MATERIALIZED VIEW|ALTER PUBLICATION"
        "|ALTER STATISTICS|DROP STATISTICS|ALTER TABLESPACE|DROP TABLESPACE|ALTER EXTENSION"
        "|DROP EXTENSION|ALTER FUNCTION|ALTER PROCEDURE|ALTER ROUTINE|DROP PROCEDURE|DROP ROUTINE"
        "|ALTER DEFAULT PRIVILEGES|CREATE DATABASE"
    ),
    "the server refuses it while the target is in use": (
        "DROP DATABASE|DROP ROLE|DROP USER|DROP GROUP"
    ),
    "tests.simulation.unfit_targets draws it": (
        "CREATE FOREIGN TABLE|CREATE FOREIGN DATA WRAPPER|CREATE SERVER"
    ),
    "no replicated table, no session of the applier and nothing of olr_pg depends on it": (
        "ALTER AGGREGATE|CREATE AGGREGATE|DROP AGGREGATE|ALTER COLLATION|CREATE COLLATION"
        "|DROP COLLATION|ALTER CONVERSION|CREATE CONVERSION|DROP CONVERSION|CREATE CAST|DROP CAST"
        "|ALTER FOREIGN DATA WRAPPER|DROP FOREIGN DATA WRAPPER|DROP FOREIGN TABLE"
        "|IMPORT FOREIGN SCHEMA|ALTER SERVER|DROP SERVER|ALTER USER MAPPING|CREATE USER MAPPING"
        "|DROP USER MAPPING|ALTER LANGUAGE|CREATE LANGUAGE|DROP LANGUAGE|ALTER LARGE OBJECT"
        "|ALTER OPERATOR|ALTER OPERATOR CLASS|ALTER OPERATOR FAMILY|CREATE OPERATOR"
        "|CREATE OPERATOR CLASS|CREATE OPERATOR FAMILY|DROP OPERATOR|DROP OPERATOR CLASS"
        "|DROP OPERATOR FAMILY|ALTER SEQUENCE|CREATE SEQUENCE|DROP SEQUENCE|ALTER SUBSCRIPTION"
        "|CREATE SUBSCRIPTION|DROP SUBSCRIPTION|CREATE TRANSFORM|DROP TRANSFORM"
        "|CREATE ACCESS METHOD|DROP ACCESS METHOD|SECURITY LABEL"
    ) + "".join(
        f"|{verb} TEXT SEARCH {kind}" for verb in ("ALTER", "CREATE", "DROP")
        for kind in ("CONFIGURATION", "DICTIONARY", "PARSER", "TEMPLATE")
    ),
}  # fmt: skip
"""The commands that nobody draws, by the reason, separated by ``|``."""


LEFT_OUT_FORMS: Final = frozenset(
    f"ALTER TABLE {form}"
    for form in (
        *("ALTER column_name RESTART", "ALTER column_name SET sequence_option"),
        "ALTER column_name SET GENERATED BY DEFAULT",
        *(f"ALTER column_name SET STORAGE {one}" for one in ("EXTERNAL", "EXTENDED", "MAIN")),
        *("ALTER column_name SET STORAGE DEFAULT", "ALTER column_name SET STATISTICS DEFAULT"),
        "SET ACCESS METHOD DEFAULT",
        *(f"OWNER TO {one}" for one in ("CURRENT_ROLE", "CURRENT_USER", "SESSION_USER")),
    )
)
"""Forms of ALTER TABLE that differ only in a word from a form that is drawn."""


def left_out() -> set[str]:
    """Return the commands that nobody draws."""
    return {name for names in LEFT_OUT.values() for name in names.split("|")}


def forms_of(synopsis: str) -> set[str]:
    """Return the forms of ALTER TABLE of a synopsis, as psql prints it, without what is optional;
    ``{A | B}`` gives two forms.
    """
    lines = synopsis.partition("Syntax:")[2].partition("and partition_bound_spec")[0]
    whole = re.sub(r"(?m)^ALTER TABLE .*\n +", "  ", lines).replace("where action is one of:", "")
    found = set[str]()
    for line in whole.splitlines():
        found.update(_alternatives(" ".join(line.split())))
    return found - {"", "action"}


def _alternatives(line: str) -> Iterator[str]:
    choice = re.search(r"\{([^{}]*)\}", _without_options(line))
    if choice is None:
        yield re.sub(r" \)", ")", re.sub(r"\( ", "(", " ".join(_without_options(line).split())))
        return
    text = _without_options(line)
    for one in choice[1].split("|"):
        yield from _alternatives(text[: choice.start()] + one + text[choice.end() :])


def _without_options(line: str) -> str:
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", line)) != line:
        line = shorter
    return line


def acts(only: Iterable[str] = ()) -> list[tuple[str, Act]]:
    """Return all acts with their forms, or those of some forms."""
    chosen = list(only) or list(ACTS)
    return [(form, act) for form in chosen for act in ACTS[form]]

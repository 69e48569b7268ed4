"""SQL that brings errors of PostgreSQL about, in a database with `SETUP`; each by its SQLSTATE."""

from __future__ import annotations

import re
from typing import Final

import psycopg

from olr_pg.postgres.embedded import packaged_installation

SETUP: Final = """
CREATE TABLE p (id int PRIMARY KEY, v text);
CREATE TABLE t (id int PRIMARY KEY, v varchar(3), n numeric(3, 1), p int REFERENCES p,
    c int CHECK (c > 0), nn int NOT NULL DEFAULT 0, g int GENERATED ALWAYS AS IDENTITY,
    EXCLUDE (n WITH =));
CREATE TABLE other (id int);
CREATE VIEW on_p AS SELECT id FROM p;
CREATE VIEW checked AS SELECT id FROM other WHERE id > 0 WITH CHECK OPTION;
INSERT INTO p VALUES (1, 'x'), (2, 'y');
INSERT INTO t (id, n, p) VALUES (1, 1, 1);
CREATE SEQUENCE short MAXVALUE 2;
SELECT nextval('short'), nextval('short');
CREATE TYPE mood AS ENUM ('ok');
CREATE FUNCTION deep(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN deep(i + 1); END $$;
CREATE FUNCTION nothing() RETURNS int LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION commits() RETURNS int LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN 1; END $$;
CREATE FUNCTION strictly(w int) RETURNS void LANGUAGE plpgsql AS
    $$ DECLARE r record; BEGIN SELECT * INTO STRICT r FROM p WHERE id > w; END $$;
CREATE FUNCTION two(a int, b bigint) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION two(a bigint, b int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION change_again() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN UPDATE other SET id = 9; RETURN NEW; END $$;
CREATE TRIGGER change_again BEFORE UPDATE ON other FOR EACH ROW WHEN (pg_trigger_depth() < 1)
    EXECUTE FUNCTION change_again();
INSERT INTO other VALUES (1);
"""

_LONG: Final = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i)"
_COLUMNS: Final = ", ".join(f"c{i} int" for i in range(1601))
_ARGUMENTS: Final = ", ".join(["int"] * 101)


def postgresql_codes() -> set[str]:
    """Every code that the driver knows, and the servers that are here; no success or warning."""
    states = (getattr(one, "sqlstate", None) for one in vars(psycopg.errors).values())
    found = {state for state in states if isinstance(state, str)}
    for listed in packaged_installation().parent.glob("*/share/**/errcodes.txt"):
        found |= set(re.findall(r"^([0-9A-Z]{5})\s+E\s", listed.read_text(), re.MULTILINE))
    assert len(found) > 250
    return found


STATEMENTS: Final[dict[str, str]] = {
    "0A000": "SELECT count(*) FROM p FOR UPDATE",
    "0LP01": "GRANT USAGE ON TABLE t TO public",
    "20000": "DO $$ BEGIN CASE 1 WHEN 2 THEN NULL; END CASE; END $$",
    "21000": "SELECT (SELECT generate_series(1, 2))",
    "22001": "INSERT INTO t (id, v) VALUES (9, 'abcd')",
    "22003": "INSERT INTO t (id, n) VALUES (9, 1000)",
    "22004": "SELECT array_fill(1, NULL)",
    "22007": "SELECT 'x'::date",
    "22008": "SELECT '2000-13-01'::date",
    "22011": "SELECT substring('a' FROM 1 FOR -1)",
    "22012": "SELECT 1 / 0",
    "22013": "SELECT count(*) OVER (ROWS -1 PRECEDING)",
    "22014": "SELECT ntile(0) OVER ()",
    "22016": "SELECT nth_value(1, 0) OVER ()",
    "2201B": "SELECT 'a' ~ '('",
    "2201E": "SELECT ln(0)",
    "2201F": "SELECT 0::numeric ^ -1",
    "2201G": "SELECT width_bucket(1, 1, 1, 1)",
    "2201W": "SELECT 1 LIMIT -1",
    "2201X": "SELECT 1 OFFSET -1",
    "22021": r"SELECT convert_from('\xff', 'UTF8')",
    "22023": "SELECT set_config('work_mem', 'x', false)",
    "22025": r"SELECT 'ab' LIKE 'a\'",
    "22033": "SELECT jsonb_path_query('[1]', 'strict $[2]')",
    "2203A": "SELECT jsonb_path_query('{}', 'strict $.a')",
    "2200H": "SELECT nextval('short')",
    "2202E": "SELECT array_cat(ARRAY[1, 2], ARRAY[[[1]]])",
    "2202H": "SELECT FROM p TABLESAMPLE system (-1)",
    "22P02": "SELECT 'x'::int",
    "22P05": "SELECT convert_to('€', 'LATIN1')",
    "23502": "INSERT INTO t (id, nn) VALUES (9, NULL)",
    "23503": "INSERT INTO t (id, p) VALUES (9, 9)",
    "23505": "INSERT INTO t (id) VALUES (1)",
    "23514": "INSERT INTO t (id, c) VALUES (9, 0)",
    "23P01": "INSERT INTO t (id, n) VALUES (9, 1)",
    "25P01": "SAVEPOINT s",
    "26000": "EXECUTE never_prepared",
    "27000": "UPDATE other SET id = 2",
    "2BP01": "DROP TABLE p",
    "2D000": "SELECT commits()",
    "2F005": "SELECT nothing()",
    "34000": "CLOSE never_opened",
    "39P01": "SELECT suppress_redundant_updates_trigger()",
    "3D000": "DROP DATABASE never_made",
    "3F000": "CREATE TABLE never_made.t ()",
    "42501": "SET ROLE nobody; SELECT 1 FROM t",
    "42601": "SELEC 1",
    "42602": "SELECT '1.'::regclass",
    "42701": "ALTER TABLE t ADD id int",
    "42702": "SELECT id FROM t, p",
    "42703": "SELECT x FROM t",
    "42704": "GRANT SELECT ON t TO never_made",
    "42710": "CREATE TRIGGER change_again AFTER UPDATE ON other EXECUTE FUNCTION change_again()",
    "42712": "SELECT FROM t, t",
    "42723": "CREATE FUNCTION nothing() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "42725": "SELECT two(1, 1)",
    "42803": "SELECT id, count(*) FROM other",
    "42804": "ALTER TABLE t ALTER v TYPE int",
    "42809": "INSERT INTO short VALUES (1)",
    "42830": "ALTER TABLE other ADD FOREIGN KEY (id) REFERENCES p (v)",
    "42846": "SELECT '2000-01-01'::date::int",
    "42883": "SELECT never_made()",
    "428C9": "INSERT INTO t (id, g) VALUES (9, 9)",
    "42939": "CREATE SCHEMA pg_mine",
    "42P01": "SELECT FROM never_made",
    "42P04": "CREATE DATABASE postgres",
    "42P05": "PREPARE one AS SELECT 1; PREPARE one AS SELECT 1",
    "42P06": "CREATE SCHEMA public",
    "42P07": "CREATE TABLE t ()",
    "42P10": "SELECT id FROM p ORDER BY 2",
    "42P16": "CREATE TABLE a (b int PRIMARY KEY, c int PRIMARY KEY)",
    "42P17": "CREATE TABLE a (b int) PARTITION BY RANGE ((random()))",
    "42P19": "WITH RECURSIVE a AS (SELECT FROM a) SELECT FROM a",
    "42P20": "SELECT FROM p WHERE rank() OVER () = 1",
    "42P21": "SELECT 'a' COLLATE \"C\" < 'b' COLLATE \"POSIX\"",
    "44000": "INSERT INTO checked VALUES (0)",
    "53200": (
        "DO $$ BEGIN FOR i IN 1..1000000 LOOP PERFORM pg_advisory_xact_lock(i); END LOOP; END $$"
    ),
    "53400": (
        "SET temp_file_limit = 0; SET work_mem = '64kB';"
        " SELECT FROM (SELECT i FROM generate_series(1, 100000) i ORDER BY random()) s"
    ),
    "54000": f"INSERT INTO p VALUES (9, {_LONG}); CREATE INDEX on_v ON p (v)",
    "54001": "SELECT deep(1)",
    "54011": f"CREATE TABLE wide ({_COLUMNS})",
    "54023": f"CREATE FUNCTION many({_ARGUMENTS}) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "55000": "SELECT currval('short')",
    "55006": "BEGIN; DECLARE c CURSOR FOR SELECT FROM t; FETCH c; DROP TABLE t",
    "55P02": "SET max_connections = 7",
    "55P04": "BEGIN; ALTER TYPE mood ADD VALUE 'new'; SELECT 'new'::mood",
    "57014": "SET statement_timeout = 10; SELECT pg_sleep(60)",
    "57P01": "SELECT pg_terminate_backend(pg_backend_pid())",
    "58P01": "LOAD 'never_made'",
    "25001": "BEGIN; VACUUM",
    "25006": "BEGIN READ ONLY; INSERT INTO other VALUES (1)",
    "3B001": "BEGIN; ROLLBACK TO never_made",
    "P0001": "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$",
    "P0002": "SELECT strictly(9)",
    "P0003": "SELECT strictly(0)",
    "P0004": "DO $$ BEGIN ASSERT false; END $$",
    "XX000": "SELECT pg_sequence_last_value(1::oid::regclass)",
}
"""By SQLSTATE: what one session can bring about."""

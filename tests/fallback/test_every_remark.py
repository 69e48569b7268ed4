"""Each remark of `olr-pg fallback report` × each policy: the way back does what the report says.

Every case is a table with one column that has a value which Oracle does not take as it is. Three
times everything is reported, written and brought back: first each policy refuses, then each one
cuts (or writes a blank), then each one makes NULL. What a policy cannot do, it refuses.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import oracledb
import psycopg
import pytest

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.config.reading import parse_config
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.mapping import OracleType, PgKind
from olr_pg.datatypes.policies import Policies
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.fallback.oracle_ledger import OracleLedger, Record
from olr_pg.fallback.oracle_values import Cause, ValueSettings, oracle_column
from olr_pg.fallback.value_report import MISSING_VALUE, TableReport, Unfit, report_values
from olr_pg.load import sources
from olr_pg.load.cutover.cut_back import ways_back
from tests.fallback.made_way import way_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from olr_pg.fallback.way_back import ValueColumn, WayBack
    from tests.proving.served import Served

CHARSET: Final = "WE8MSWIN1252"
"""The stand-in's own one lacks no character."""


class Case(NamedTuple):
    """A value that Oracle does not take as it is.

    Attributes:
        oracle, postgres: the column's types.
        value: an SQL literal of PostgreSQL.
        cut: what Oracle has if the policy is `cut` or `blank`; None if there is nothing to keep.
    """

    oracle: str
    postgres: str
    value: str
    cause: Cause
    cut: object = None

    @property
    def has_room(self) -> bool:
        """Whether the column takes NULL."""
        return "NOT NULL" not in self.oracle


DAY: Final = datetime(2024, 1, 1)  # noqa: DTZ001
UUID_TEXT: Final = "00112233-4455-6677-8899-aabbccddeeff"
E, L, CH, D, I, Y, F, IV, DOC = Cause  # noqa: E741
CASES: Final = (
    Case("VARCHAR2(5)", "text", "''", E, " "),
    Case("VARCHAR2(5) NOT NULL", "text", "''", E, " "),
    Case("NVARCHAR2(5)", "varchar", "''", E, " "),
    Case("RAW(5)", "bytea", "''", E),
    Case("VARCHAR2(5)", "text", "'longer'", L, "longe"),
    Case("VARCHAR2(5) NOT NULL", "text", "'longer'", L, "longe"),
    Case("NVARCHAR2(3)", "text", "'漢漢漢漢'", L, "漢漢漢"),
    Case("CHAR(3)", "text", "'long'", L, "lon"),
    Case("NCHAR(3)", "text", "'long'", L, "lon"),
    Case("RAW(2)", "bytea", "'\\x010203'", L, b"\1\2"),
    Case("RAW(2)", "uuid", "'00112233445566778899aabbccddeeff'", L, b"\0\x11"),
    Case("VARCHAR2(9)", "text", "'a漢b'", CH, "ab"),
    Case("VARCHAR2(9)", "text", "'漢'", CH),
    Case("VARCHAR2(9) NOT NULL", "text", "'a漢b'", CH, "ab"),
    Case("CHAR(2)", "text", "'漢a'", CH, "a "),
    Case("CLOB", "text", "'a漢b'", CH, "ab"),
    Case("NUMBER(5,2)", "numeric", "1.555", D, 1.56),
    Case("NUMBER(5,2) NOT NULL", "numeric", "1.555", D, 1.56),
    Case("NUMBER(5,2)", "numeric", "123456", D),
    Case("NUMBER", "numeric", "1e200", D),
    Case("FLOAT(10)", "float8", "1.23456", D, 1.235),
    Case("BINARY_FLOAT", "float8", "0.1", D, 0.10000000149011612),
    Case("NUMBER(5,2)", "numeric", "'NaN'", I),
    Case("NUMBER(5,2) NOT NULL", "numeric", "'NaN'", I),
    Case("NUMBER", "float8", "'-Infinity'", I),
    Case("DATE", "timestamp", "'infinity'", I),
    Case("DATE", "date", "'-infinity'", I),
    Case("TIMESTAMP(6) WITH TIME ZONE", "timestamptz", "'infinity'", I),
    Case("TIMESTAMP(6)", "timestamp", "'infinity'", I),
    Case("INTERVAL DAY(2) TO SECOND(3)", "interval", "'infinity'", I),
    Case("INTERVAL YEAR(2) TO MONTH", "interval", "'-infinity'", I),
    Case("DATE", "timestamp", "'10000-01-01'", Y),
    Case("DATE", "date", "'1582-10-10'", Y),
    Case("DATE NOT NULL", "date", "'4713-12-31 BC'", Y),
    Case("TIMESTAMP(6)", "timestamp", "'10000-01-01'", Y),
    Case("TIMESTAMP(6) WITH TIME ZONE", "timestamptz", "'20000-01-01'", Y),
    Case("DATE", "timestamp", "'2024-01-01 00:00:00.5'", F, DAY),
    Case("DATE NOT NULL", "timestamp", "'2024-01-01 00:00:00.5'", F, DAY),
    Case("TIMESTAMP(3)", "timestamp", "'2024-01-01 00:00:00.000456'", F, DAY),
    Case("TIMESTAMP(0) WITH TIME ZONE", "timestamptz", "'2024-01-01 00:00:00.5+00'", F, DAY),
    Case("INTERVAL DAY(2) TO SECOND(3)", "interval", "'-1.123456 s'", F, timedelta(seconds=-1.123)),
    Case("INTERVAL DAY(2) TO SECOND(3)", "interval", "'1 mon'", IV),
    Case("INTERVAL DAY(2) TO SECOND(3)", "interval", "'200 days'", IV),
    Case("INTERVAL YEAR(2) TO MONTH", "interval", "'1 day'", IV),
    Case("INTERVAL YEAR(2) TO MONTH NOT NULL", "interval", "'200 years'", IV),
    Case("VARCHAR2(9)", "bytea", "'\\xff'", DOC),
    Case("VARCHAR2(9) NOT NULL", "bytea", "'\\xff'", DOC),
    Case("CHAR(9)", "bytea", "'\\xff'", DOC),
    Case("CLOB", "bytea", "'\\xff'", DOC),
    Case("NCLOB", "bytea", "'\\xff'", DOC),
    Case("BLOB", "text", "'no hex'", DOC),
    Case("RAW(9)", "text", "'no hex'", DOC),
    Case("NUMBER(5,2)", "text", "'no number'", DOC),
    Case("BINARY_FLOAT", "text", "'no number'", DOC),
    Case("BINARY_DOUBLE", "text", "'no number'", DOC),
    Case("DATE", "text", "'no date'", DOC),
    Case("TIMESTAMP(6)", "text", "'no date'", DOC),
    Case("TIMESTAMP(6) WITH TIME ZONE", "text", "'no date'", DOC),
)  # fmt: skip
ROUNDS: Final = (("refuse",), ("cut", "blank"), ("null",))
"""What each policy is to do, as far as it can."""


class Form(NamedTuple):
    """A value that comes back in another form, of which the report has a note."""

    oracle: str
    postgres: str
    value: str
    note: str
    here: object


FORMS: Final = (
    Form("CLOB", "jsonb", """'{"b": 1,  "a": 2}'""", "order of keys", '{"a": 2, "b": 1}'),
    Form("VARCHAR2(36)", "uuid", f"'{UUID_TEXT.upper()}'", "lower case", UUID_TEXT),
    Form("CHAR(1)", "boolean", "true", "true becomes Y", "Y"),
    Form("TIMESTAMP(6) WITH TIME ZONE", "timestamptz", "'2024-01-01 02:00+02'", "in UTC", DAY),
    Form("TIMESTAMP(9)", "timestamp", "'2024-01-01'", "beyond microseconds", DAY),
)  # fmt: skip


class Structure(NamedTuple):
    """A column, or a table, that cannot go back whatever its values are.

    Attributes:
        oracle, postgres: the columns of both tables.
        remark: words of the report.
        code: why the table stops.
    """

    oracle: str
    postgres: str
    remark: str
    code: Code


STRUCTURES: Final = (
    Structure("c NUMBER(4)", "c interval", "interval to NUMBER", Code.COLUMN_NOT_FOR_ORACLE),
    Structure("c NUMBER(4), d NUMBER(4)", "c int", "has no d", Code.FALLBACK_TABLE_CHANGED),
    Structure("c NUMBER(4)", "c int, own int", "omit-columns", Code.FALLBACK_TABLE_CHANGED),
    Structure("c NUMBER(4) NOT NULL", "c int", MISSING_VALUE, Code.VALUE_NOT_FOR_ORACLE),
)
OMITTED: Final = "omitted"
"""A table with a column that Oracle lacks, which the configuration names."""


class Policed:
    """All tables, on both sides."""

    def __init__(self, served: Served, database: str, folder: Path) -> None:
        self.served, self.database, self._folder = served, database, folder
        columns: dict[str, tuple[str, str]] = {}
        for start, group in (("v", CASES), ("f", FORMS)):
            for number, one in enumerate(group):
                oracle, postgres = one[:2]
                columns[f"{start}{number}"] = f"c {oracle}", f"c {postgres}"
        for number, of in enumerate(STRUCTURES):
            columns[f"s{number}"] = of.oracle, of.postgres
        columns[OMITTED] = "c NUMBER(4)", "c int, own int"
        self.tables = list(columns)
        with (
            psycopg.connect(database, autocommit=True) as connection,
            self._oracle() as oracle,
            oracle.cursor() as cursor,
        ):
            ensure_ledger(connection)
            connection.execute("CREATE SCHEMA app")
            # What is served of the tables is made once, not for each of them.
            changed, served.server.database.changed = served.server.database.changed, lambda: None
            for name, (here, there) in columns.items():
                cursor.execute(f"CREATE TABLE {name} (id NUMBER(4) PRIMARY KEY, {here})")
                text = f"CREATE TABLE app.{name} (id int PRIMARY KEY, {there})"
                connection.execute(text.encode())
            served.server.database.changed = changed
            cursor.execute("CREATE TABLE last (id NUMBER(4) PRIMARY KEY)")

    @contextmanager
    def opened(
        self, policies: Mapping[str, str]
    ) -> Iterator[tuple[WayBack, dict[str, TableReport]]]:
        """The way back with these policies, and what the report says before it."""
        document = way_document(
            self.served,
            self._folder / "data",
            self.database,
            *self.tables,
            types={"boolean": ["CHAR(1)"]},
        )
        document["fallback"] |= {"policies": policies, "omit-columns": [f"APP.{OMITTED}.own"]}
        config = parse_config(document, self.served.folder)
        assert config.apply is not None
        with (
            psycopg.connect(self.database, autocommit=True) as connection,
            sources.open_tables(config) as source,
        ):
            (way,) = ways_back(config, source, self.database)
            database = replace(source.snapshot.database, charset=CHARSET)
            values = ValueSettings.of(config.way_back.policies, config.apply, database)

            def value_column(table: str, column: Column, target: Any) -> ValueColumn:
                return oracle_column(table, column, target.kind, values)

            found = report_values(connection, way.tables, way.settings, values, omits=way.omits)
            reports = {one.name.partition(".")[2].lower(): one for one in found}
            yield way._replace(value_column=value_column), reports

    def write(self, number: int) -> None:
        """Write a row into each table, each in a transaction of its own."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            for start, group in (("v", CASES), ("f", FORMS)):
                for at, one in enumerate(group):
                    text = f"INSERT INTO app.{start}{at} VALUES ({number}, {one[2]})"
                    connection.execute(text.encode())
            for name in [f"s{at}" for at in range(len(STRUCTURES))]:
                connection.execute(f"INSERT INTO app.{name} (id) VALUES ({number})".encode())
            connection.execute(f"INSERT INTO app.{OMITTED} VALUES ({number}, 5, 6)".encode())
            connection.execute(f"UPDATE app.{OMITTED} SET own = 7".encode())

    def here(self, number: int) -> dict[str, object]:
        """What Oracle has in the row of a round, by the tables that have it."""
        found = dict[str, object]()
        with self._oracle() as oracle, oracle.cursor() as cursor:
            for name in self.tables:
                cursor.execute(f"SELECT c FROM {name} WHERE id = {number}")
                for (value,) in cursor:
                    found[name] = value.read() if isinstance(value, oracledb.LOB) else value
        return found

    def skip(self, way: WayBack) -> None:
        """Leave out what has stopped tables."""
        with self._oracle() as oracle:
            ledger = OracleLedger(oracle, way.subscription)
            for name in self.tables:
                ledger.resume_table(f"APP.{name.upper()}", skip=True)
            oracle.commit()

    def _oracle(self) -> oracledb.Connection:
        return oracledb.connect(user="app", password="olr", dsn=self.served.dsn)


def policies_of(wanted: tuple[str, ...]) -> dict[str, str]:
    """The policies of a round: what is wanted, where the cause has it, else its refusal."""
    found = {}
    for name, field in FallbackPolicies.model_fields.items():
        choices = get_args(field.annotation)
        found[name.replace("_", "-")] = next((one for one in choices if one in wanted), "refuse")
    return found


def outcome(case: Case, policy: str) -> str:
    """What becomes of a value: the policy, or its refusal where it cannot act."""
    if policy == "null":
        return policy if case.has_room else "refuse"
    return "refuse" if case.cut is None else policy


@pytest.fixture
def policed(served: Served, logical_database: str, tmp_path: Path) -> Policed:
    return Policed(served, logical_database, tmp_path)


def test_the_way_back_does_what_the_report_says(policed: Policed) -> None:
    seen = set[tuple[str, str]]()
    for number, wanted in enumerate(ROUNDS, start=1):
        policies = policies_of(wanted)
        with policed.opened(policies) as (way, _):
            if number == 1:
                prepare(way)
            policed.skip(way)
        policed.write(number)
        with policed.opened(policies) as (way, reports):
            before = status(way).records
            with pytest.raises(OlrPgError) as stopped:
                run(way, once=True)
            assert stopped.value.code == Code.FALLBACK_TABLES_STOPPED
            found = status(way)
            assert found.ledger is not None
            here = policed.here(number)
            for at, case in enumerate(CASES):
                name, policy = f"v{at}", policies[case.cause.key]
                table, done = f"APP.{name.upper()}", outcome(case, policy)
                seen.add((case.cause.key, done))
                where = f"{case}, {policy}"
                (column,) = (one for one in reports[name].columns if one.name == "C")
                said = {one for one in column.unfit if one.rows}
                assert said == {Unfit(case.cause.key, done, number)}, where
                assert reports[name].is_ready == (done != "refuse"), where
                record = Record(table, "C", case.cause.key, policy)
                recorded = found.records.get(record, 0) - before.get(record, 0)
                stop = found.ledger.stops.get(table)
                if done == "refuse":
                    assert name not in here, where
                    assert stop is not None, where
                    assert stop.is_stopped, where
                    assert f"fallback.policies.{case.cause.key}" in str(stop.reason), where
                    assert recorded == 0, where
                else:
                    wanted_value = None if done == "null" else case.cut
                    assert here[name] == wanted_value, where
                    assert stop is None, where
                    assert recorded == 1, where
            judge_others(reports, here, found.ledger.stops)
    choices = {
        (name.replace("_", "-"), one)
        for name, field in FallbackPolicies.model_fields.items()
        for one in get_args(field.annotation)
    }
    assert choices == seen
    with policed.opened({}) as (way, _):
        end(way)


def judge_others(
    reports: Mapping[str, TableReport], here: Mapping[str, object], stops: Mapping[str, Any]
) -> None:
    """Judge what no policy decides: other forms, and columns that cannot go back."""
    for at, form in enumerate(FORMS):
        (column,) = (one for one in reports[f"f{at}"].columns if one.name == "C")
        assert form.note in column.note
        assert reports[f"f{at}"].is_ready
        assert here[f"f{at}"] == form.here, form
    for at, one in enumerate(STRUCTURES):
        report = reports[f"s{at}"]
        words = [f"{each.error} {each.unfit}" for each in report.columns]
        assert any(one.remark in each for each in words), one
        assert not report.is_ready
        stop = stops[f"APP.S{at}"]
        assert stop.is_stopped
        assert f"{one.code:05}" in stop.reason
    assert reports[OMITTED].own == ("own",)
    assert reports[OMITTED].is_ready
    assert here[OMITTED] == 5


# --- the report leaves nothing out ---


ELSEWHERE: Final = {
    *((OracleType.LONG, cause) for cause in (E, CH, DOC)),
    *((OracleType.LONG_RAW, cause) for cause in (E, DOC)),
    *((OracleType.TIMESTAMP_LTZ, cause) for cause in (I, Y, F, DOC)),
    *((OracleType.VECTOR, cause) for cause in (D, DOC)),
    (OracleType.JSON, DOC), (OracleType.BOOLEAN, DOC), (OracleType.ROWID, DOC),
    (OracleType.UROWID, DOC),
}  # fmt: skip
"""What the stand-in has no columns for; `test_oracle_values` converts their values."""

_CODES: Final = {
    **dict.fromkeys(("VARCHAR2", "NVARCHAR2"), OracleType.VARCHAR2),
    **dict.fromkeys(("CHAR", "NCHAR"), OracleType.CHAR),
    **dict.fromkeys(("CLOB", "NCLOB"), OracleType.CLOB),
    **dict.fromkeys(("NUMBER", "FLOAT"), OracleType.NUMBER),
    "INTERVAL YEAR": OracleType.INTERVAL_YM,
    "INTERVAL DAY": OracleType.INTERVAL_DS,
}


def code_of(oracle: str) -> OracleType:
    """The type code of a declaration."""
    words = oracle.replace("(", " ").split()
    if "ZONE" in words:
        return OracleType.TIMESTAMP_TZ
    name = " ".join(words[:2]) if words[0] == "INTERVAL" else words[0]
    return _CODES[name] if name in _CODES else OracleType[name]


def test_every_cause_of_every_type_has_a_case() -> None:
    values = ValueSettings(FallbackPolicies(), Choices(), Policies(), CHARSET)
    possible = set[tuple[OracleType, Cause]]()
    for code in OracleType:
        for kind in PgKind:
            of = Column("C", 1, 1, 1, code, 10, charset_id=178, charset_form=1, char_length=10)
            with suppress(OlrPgError):
                possible |= {(code, one) for one in oracle_column("A.B", of, kind, values).causes}
    judged = {(code_of(case.oracle), case.cause) for case in CASES}
    same = {OracleType.VARCHAR: OracleType.VARCHAR2}
    lacking = {(same.get(code, code), one) for code, one in possible} - judged
    assert lacking == ELSEWHERE

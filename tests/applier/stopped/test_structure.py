"""Histories of indexes and constraints: whenever somebody makes what is pending, the target has
exactly what the source has.

The appliance makes the changes after each statement, or only after some of them; it is killed
before it can note that it has made one; or a person runs the SQL that it reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.structure_maker import make_structure, read_lines
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.schema.followed_steps import step_sql
from tests.applier.stopped.sys_row_ddl import (
    CHECK,
    DELETE,
    FOREIGN,
    INSERT,
    NUMBER,
    PARENT,
    PARENT_KEY,
    SHOP,
    TARGET,
    UNIQUE,
    UPDATE,
    Source,
    T,
    a_constraint,
    a_row,
    gone,
    new,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Connection = psycopg.Connection[Any]

SUBSCRIPTION: Final = "olr_pg"
FOUND: Final = """
SELECT conname || ' ' || replace(pg_get_constraintdef(oid), ' NOT VALID', '') FROM pg_constraint
WHERE conrelid = 'shop.t'::regclass AND contype IN ('c', 'f', 'u')
UNION ALL SELECT relname || CASE WHEN indisunique THEN ' UNIQUE ' ELSE ' ' END
    || substring(pg_get_indexdef(indexrelid) FROM '[(].*')
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid = 'shop.t'::regclass
    AND indisvalid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""


class Step(NamedTuple):
    """A statement: the rows of SYS tables that it changes, and what the source has after it."""

    made: Sequence[Any]
    says: frozenset[str] = frozenset()


def step(*made: Any, says: str = "") -> Step:
    return Step(made, frozenset(filter(None, says.split("; "))))


def index(obj: int, name: str, *columns: int, bits: int = 0) -> Any:
    place = {"obj": obj, "bo": T}
    named = {"owner": SHOP, "obj": obj, "data_obj": obj, "name": name, "type": 1, "flags": 0}
    told = {"data_obj": obj, "type": 1, "flags": 0, "property": bits}
    return (
        (INSERT, a_row("OBJ$", f"o{obj}", **named)),
        (INSERT, a_row("IND$", f"i{obj}", **told, **place)),
        *(
            (INSERT, a_row("ICOL$", f"i{obj}{at}", int_col=one, pos=at, **place))
            for at, one in enumerate(columns, 1)
        ),
    )


def index_gone(obj: int) -> Any:
    rows = ("ICOL$", f"i{obj}1"), ("IND$", f"i{obj}"), ("OBJ$", f"o{obj}")
    return tuple((DELETE, a_row(table, row)) for table, row in rows)


def index_called(obj: int, name: str) -> Any:
    return (UPDATE, a_row("OBJ$", f"o{obj}", name=name))


def check(con: int, condition: str, name: str = "T_CK") -> Any:
    return a_constraint(con, 1, name, (3,), condition=condition)


def called(con: int, name: str) -> Any:
    return (UPDATE, a_row("CON$", f"n{con}", name=name))


def state(con: int, **values: Any) -> Any:
    return (UPDATE, a_row("CDEF$", f"d{con}", **values))


def key(con: int, column: int) -> Any:
    return a_constraint(con, 3, "T_UK", (column,), enabled=170)


def reference(con: int, **other: Any) -> Any:
    return a_constraint(con, 4, "T_FK", (3,), parent=PARENT, parent_con=PARENT_KEY, **other)


def computed(at: int, expression: str) -> Any:
    hidden = {"col": 0, "seg_col": 0, "property": 0x10128}
    return new(at, f"SYS_NC0000{at}$", NUMBER, default_text=expression, **hidden)


TWICE: Final = "t_ix ((((n)::numeric * (2)::numeric)))"
THRICE: Final = "t_ix ((((n)::numeric * (3)::numeric)))"
POSITIVE, SMALL = "t_ck CHECK ((n > 0))", "t_ck CHECK ((n < 50))"
OTHER: Final = "t_other CHECK ((n > 0))"
DEFERRED: Final = "t_uk UNIQUE (n) DEFERRABLE"
FK: Final = "t_fk FOREIGN KEY (n) REFERENCES shop.p(id)"

HISTORIES: Final = {
    "an index, again on another column": (
        step(*index(150, "T_IX", 2), says="t_ix (name)"),
        step(*index_gone(150)),
        step(*index(151, "T_IX", 3), says="t_ix (n)"),
        step(*index_gone(151)),
        step(*index(152, "T_IX", 2), says="t_ix (name)"),
    ),
    "an index that is dropped and made again and again": (
        step(*index(150, "T_IX", 2), says="t_ix (name)"),
        step(*index_gone(150)),
        step(*index(151, "T_IX", 2), says="t_ix (name)"),
        step(*index_gone(151)),
    ),
    "an index, again as a unique one": (
        step(*index(150, "T_IX", 2), says="t_ix (name)"),
        step(*index_gone(150)),
        step(*index(151, "T_IX", 2, bits=1), says="t_ix UNIQUE (name)"),
    ),
    "an index of an expression, again of another one": (
        step(computed(4, '"N"*2'), *index(150, "T_IX", 4, bits=0x10), says=TWICE),
        step((DELETE, a_row("COL$", "c4")), *index_gone(150)),
        step(computed(4, '"N"*3'), *index(151, "T_IX", 4, bits=0x10), says=THRICE),
    ),
    "an index that is unusable for a while": (
        step(*index(150, "T_IX", 2), says="t_ix (name)"),
        step((UPDATE, a_row("IND$", "i150", flags=1))),
        step((UPDATE, a_row("IND$", "i150", flags=0)), says="t_ix (name)"),
    ),
    "an index with other names": (
        step(*index(150, "T_IX", 2, bits=1), says="t_ix UNIQUE (name)"),
        step(index_called(150, "A"), says="a UNIQUE (name)"),
        step(index_called(150, "B"), says="b UNIQUE (name)"),
        step(*index_gone(150)),
    ),
    "an index that takes the name of a dropped one": (
        step(*index(150, "A", 2), says="a (name)"),
        step(*index(151, "B", 3), says="a (name); b (n)"),
        step(*index_gone(150), says="b (n)"),
        step(index_called(151, "A"), says="a (n)"),
        step(*index_gone(151)),
    ),
    "a check, again with another condition": (
        step(*check(CHECK, '"N" > 0'), says=POSITIVE),
        step(*gone(CHECK, 1)),
        step(*check(510, '"N" < 50'), says=SMALL),
        step(*gone(510, 1)),
        step(*check(511, '"N" > 0'), says=POSITIVE),
    ),
    "a check that is dropped and made again": (
        step(*check(CHECK, '"N" > 0'), says=POSITIVE),
        step(*gone(CHECK, 1)),
        step(*check(510, '"N" > 0'), says=POSITIVE),
    ),
    "a check that is disabled for a while": (
        step(*check(CHECK, '"N" > 0'), says=POSITIVE),
        step(state(CHECK, enabled=None)),
        step(state(CHECK, enabled=1), says=POSITIVE),
        step(state(CHECK, enabled=None)),
        step(*gone(CHECK, 1)),
        step(*check(510, '"N" < 50'), says=SMALL),
    ),
    "a check with other names": (
        step(*check(CHECK, '"N" > 0'), says=POSITIVE),
        step(called(CHECK, "T_OTHER"), says=OTHER),
        step(called(CHECK, "THIRD"), says=OTHER.replace("t_other", "third")),
        step(called(CHECK, "T_CK"), says=POSITIVE),
        step(called(CHECK, "T_OTHER"), says=OTHER),
        step(*gone(CHECK, 1)),
    ),
    "a check whose name another one gets": (
        step(*check(CHECK, '"N" > 0'), says=POSITIVE),
        step(called(CHECK, "T_OTHER"), says=OTHER),
        step(*check(510, '"N" < 50'), says=f"{OTHER}; {SMALL}"),
        step(*gone(CHECK, 1), says=SMALL),
    ),
    "a unique key, again on another column": (
        step(*key(UNIQUE, 3), says=DEFERRED),
        step(*gone(UNIQUE, 1)),
        step(*key(510, 2), says=DEFERRED.replace("(n)", "(name)")),
    ),
    "a unique key that becomes deferrable": (
        step(*key(UNIQUE, 3), says=DEFERRED),
        step(state(UNIQUE, state=5), says=DEFERRED),
        step(*gone(UNIQUE, 1)),
    ),
    "a foreign key, again with another rule": (
        step(*reference(FOREIGN), says=FK),
        step(*gone(FOREIGN, 1)),
        step(*reference(510, on_delete=1), says=f"{FK} ON DELETE CASCADE"),
    ),
}


@pytest.fixture
def target(database: str) -> Iterator[Connection]:
    with connect(database) as connection:
        ensure_ledger(connection)
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        yield connection


def by_person(target: Connection) -> None:
    """Run the reported SQL, in its order."""
    for line in read_lines(target, SUBSCRIPTION):
        assert not line.is_due
        for statement in line.statements:
            target.execute(statement.encode())


def by_appliance(target: Connection) -> None:
    while make_structure(target, SUBSCRIPTION):
        pass


def killed(target: Connection) -> None:
    """Make the changes, and be killed before they are noted."""
    for line in read_lines(target, SUBSCRIPTION):
        for statement in line.statements:
            target.execute(statement.encode())


Make = Callable[["Connection"], None]
WAYS: Final[dict[str, tuple[DdlPolicy, Make, Make]]] = {
    "followed": (DdlPolicy.FOLLOW, by_appliance, by_appliance),
    "followed, with kills": (DdlPolicy.FOLLOW, killed, by_appliance),
    "reported": (DdlPolicy.REPORT, by_person, by_person),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HISTORIES)
def test_the_target_comes_to_have_what_the_source_has(
    target: Connection, name: str, way: str
) -> None:
    policy, between, last = WAYS[way]
    ddl = dict.fromkeys((DdlKind.INDEX, DdlKind.CONSTRAINT), policy)
    settings = ApplierSettings("", "", 0, "", ddl=ddl, translate=step_sql)
    steps = HISTORIES[name]
    for until in range(1, len(steps) + 1):
        for since in range(until):
            # What is pending is made behind each statement before `since`, and at the end.
            target.execute(f"DROP SCHEMA IF EXISTS shop CASCADE; {TARGET}".encode())
            target.execute("DELETE FROM olr_pg.ledger; DELETE FROM olr_pg.structure")
            source = Source()
            for number, one in enumerate(steps[:until]):
                event = source.ddl("ALTER", one.made)
                if event is not None:
                    assert apply_event(target, settings, event, source.definition) is None
                if number < since:
                    between(target)
            last(target)
            found = {text for (text,) in target.execute(FOUND).fetchall()}
            assert found == steps[until - 1].says, (until, since)
            assert read_lines(target, SUBSCRIPTION) == []

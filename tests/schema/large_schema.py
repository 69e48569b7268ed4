"""A schema of thousands of tables and views, drawn from a seed, as strangers' schemas are large.

``python -m tests.schema.large_schema FOLDER TARGET`` writes a dictionary, its inventory and a
configuration for it, so that ``olr-pg assess`` and ``olr-pg schema export`` can be measured::

    time olr-pg assess --config FOLDER/config.json --out FOLDER/report
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.inventory import (
    Constraint,
    Grant,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    SchemaObject,
    Trigger,
    UnitSource,
)
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import inventory_path, write_inventory, write_snapshot
from olr_pg.dictionary.structure import Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence as ManyOf

OWNER: Final = "BANK"
WORDS: Final = (
    "ACCOUNT", "BRANCH", "CUSTOMER", "LOAN", "PAYMENT", "RATE", "LIMIT_X", "CARD", "LEDGER", "RISK",
    "ORDER", "USER_", "GROUP_", "Größe", "TRANSFER_OF_SECURITIES_BETWEEN_DEPOSITS",
)  # fmt: skip


class _Type(NamedTuple):
    code: OracleType
    data_type: str
    length: int
    precision: int | None = None
    scale: int | None = None
    char_length: int = 0


TYPES: Final = {
    "text": (
        _Type(OracleType.VARCHAR2, "VARCHAR2", 40, char_length=40),
        _Type(OracleType.VARCHAR2, "VARCHAR2", 400, char_length=400),
    ),
    "char": (_Type(OracleType.CHAR, "CHAR", 3, char_length=3),),
    "number": (
        _Type(OracleType.NUMBER, "NUMBER", 22),
        _Type(OracleType.NUMBER, "NUMBER", 22, 12, 2),
    ),
    "integer": (
        _Type(OracleType.NUMBER, "NUMBER", 22, 9, 0),
        _Type(OracleType.NUMBER, "NUMBER", 22, 3, 0),
    ),
    "date": (_Type(OracleType.DATE, "DATE", 7),),
    "timestamp": (_Type(OracleType.TIMESTAMP, "TIMESTAMP(6)", 11, scale=6),),
    "raw": (_Type(OracleType.RAW, "RAW", 16),),
    "clob": (_Type(OracleType.CLOB, "CLOB", 4000),),
}
"""Of which kind a column is to the templates below → its types."""

VALUES: Final = {
    "text": (
        "{text}", "UPPER({text})", "{text} || '-' || {text}", "SUBSTR({text}, 2, 5)",
        "NVL({text}, 'none')", "DECODE({integer}, 1, 'one', 2, 'two', {text})",
        "TO_CHAR({date}, 'YYYY-MM-DD HH24:MI')", "TO_CHAR({integer})", "TRIM({char})",
        "CASE WHEN {number} > 10 THEN {text} ELSE INITCAP({text}) END", "LPAD({text}, 12, '0')",
        "REPLACE({text}, 'a', NULL)", "REGEXP_REPLACE({text}, '[0-9]+', '#')",
    ),
    "number": (
        "{number}", "{integer} / 7", "ROUND({number} * 1.19, 2)", "NVL({number}, 0)",
        "MOD({integer}, 10)", "{date} - {date}", "LENGTH({text})", "INSTR({text}, 'x')",
        "MONTHS_BETWEEN({date}, {date})", "GREATEST({number}, {integer})", "SIGN({number})",
    ),
    "date": (
        "{date}", "ADD_MONTHS({date}, 3)", "TRUNC({date}, 'MM')", "{date} + 7", "LAST_DAY({date})",
        "NVL({date}, SYSDATE)", "TO_DATE('2026-01-31', 'YYYY-MM-DD')",
    ),
}  # fmt: skip
CONDITIONS: Final = (
    "{number} > 100", "{text} LIKE 'A%'", "{text} = 'x'", "{date} >= TRUNC(SYSDATE) - 30",
    "{text} IS NOT NULL", "{integer} BETWEEN 1 AND 9", "{text} IN ('a', 'b', 'c')",
    "NVL({text}, '-') <> 'y'", "{char} = 'ab'",
)  # fmt: skip


class LargeSchema:
    """Draws tables, and views of all kinds over them.

    Args:
        long_views: how many of the views have more than 1,000 lines.
    """

    def __init__(self, tables: int, views: int, *, seed: int = 1, long_views: int = 10) -> None:
        self._random = Random(seed)
        self._counts = tables, views, long_views
        self._kinds: dict[str, dict[str, list[str]]] = {}
        self.snapshot_tables = list[Table]()

    def inventory(self) -> Inventory:
        """Draw everything; the objects list all of it."""
        tables, views, long_views = self._counts
        made = [self._table(number) for number in range(tables)]
        found = [self._view(number, long=number < long_views) for number in range(views)]
        parts: dict[str, Any] = {
            "tables": tuple(made),
            "views": tuple(found),
            "constraints": tuple(self._constraints(made)),
            "indexes": tuple(self._indexes(made)),
            "triggers": tuple(self._triggers(made)),
            "sources": tuple(self._sources(made)),
            "sequences": (Sequence(owner=OWNER, name="IDS", next=1),),
            "grants": tuple(
                Grant(owner=OWNER, name=one.name, grantee=role, privilege=privilege, kind="TABLE")
                for one in made
                for role in ("TELLER", "AUDITOR")
                for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE")
            ),
        }
        kinds = {
            "tables": "TABLE", "views": "VIEW", "indexes": "INDEX", "triggers": "TRIGGER",
            "sequences": "SEQUENCE",
        }  # fmt: skip
        objects = [
            SchemaObject(owner=OWNER, name=one.name, kind=kind)
            for part, kind in kinds.items()
            for one in parts[part]
        ]
        objects += [SchemaObject(owner=OWNER, name=s.name, kind=s.kind) for s in parts["sources"]]
        return Inventory(owners=(OWNER,), version="19.3.0.0.0", objects=tuple(objects), **parts)

    def snapshot(self) -> Snapshot:
        """Return the dictionary of the tables that were drawn."""
        return Snapshot(scn=1000, database=Database("BANK"), tables=tuple(self.snapshot_tables))

    def _table(self, number: int) -> InventoryTable:
        name = f"{self._random.choice(WORDS)}_{number}"
        columns, kinds = list[InventoryColumn](), dict[str, list[str]]()
        drawn = [("ID", "integer"), ("PARENT_ID", "integer"), ("NAME", "text"), ("CODE", "char")]
        drawn += [("AMOUNT", "number"), ("BOOKED", "date")]
        for at in range(self._random.randrange(2, 9)):
            drawn.append(
                (f"C{at}_{self._random.choice(WORDS)}"[:30], self._random.choice([*TYPES]))
            )
        stored = list[Column]()
        for at, (column, kind) in enumerate(drawn, 1):
            one = self._random.choice(TYPES[kind]) if at > 2 else TYPES[kind][0]
            kinds.setdefault(kind, []).append(column)
            default = "SYSDATE" if kind == "date" and at % 2 else ""
            default = "0" if kind == "number" and at % 2 else default
            columns.append(
                InventoryColumn(
                    name=column, data_type=one.data_type, length=one.length, scale=one.scale,
                    precision=one.precision, char_length=one.char_length, nullable=at > 1,
                    default=default,
                )
            )  # fmt: skip
            is_text = one.char_length > 0 or kind == "clob"
            stored.append(
                Column(
                    name=column, segcol=at, intcol=at, col=at, type_code=one.code,
                    length=one.length, precision=one.precision, scale=one.scale, nullable=at > 1,
                    charset_id=873 if is_text else None, charset_form=1 if is_text else None,
                    char_length=one.char_length or None,
                )
            )  # fmt: skip
        self._kinds[name] = kinds
        self.snapshot_tables.append(
            Table(
                owner=OWNER, name=name, obj=10_000 + number, dataobj=10_000 + number,
                columns=tuple(stored), key_kind=KeyKind.PRIMARY, key=(1,),
            )
        )  # fmt: skip
        return InventoryTable(
            owner=OWNER, name=name, columns=tuple(columns), rows=1000, bytes=65536,
            comment=f"Rows of {name}",
        )  # fmt: skip

    def _constraints(self, tables: ManyOf[InventoryTable]) -> Iterator[Constraint]:
        for at, one in enumerate(tables):
            yield Constraint(
                owner=OWNER, name=f"PK_{at}", table=one.name, kind="primary key", columns=("ID",)
            )
            yield Constraint(
                owner=OWNER, name=f"CK_{at}", table=one.name, kind="check",
                condition="AMOUNT >= 0 AND NVL(CODE, 'ab') <> 'zz'",
            )  # fmt: skip
            if at:
                parent = tables[self._random.randrange(at)].name
                yield Constraint(
                    owner=OWNER, name=f"FK_{at}", table=one.name, kind="foreign key",
                    columns=("PARENT_ID",), parent_owner=OWNER, parent_table=parent,
                    parent_columns=("ID",), delete_rule="NO ACTION",
                )  # fmt: skip

    def _indexes(self, tables: ManyOf[InventoryTable]) -> Iterator[InventoryIndex]:
        for at, one in enumerate(tables):
            upper = IndexPart(text='UPPER("NAME")', expression=True)
            part = upper if at % 3 == 0 else IndexPart(text="NAME")
            yield InventoryIndex(
                owner=OWNER, name=f"IX_{at}", table_owner=OWNER, table=one.name,
                kind="FUNCTION-BASED NORMAL" if part.expression else "NORMAL", parts=(part,),
            )  # fmt: skip

    def _triggers(self, tables: ManyOf[InventoryTable]) -> Iterator[Trigger]:
        for at, one in enumerate(tables[::10]):
            yield Trigger(
                owner=OWNER, name=f"TR_{at}", kind="BEFORE EACH ROW", event="INSERT",
                table_owner=OWNER, table=one.name,
                body="BEGIN\n  IF :NEW.ID IS NULL THEN\n    SELECT IDS.NEXTVAL INTO :NEW.ID"
                " FROM DUAL;\n  END IF;\n  :NEW.BOOKED := SYSDATE;\nEND;",
            )  # fmt: skip

    def _sources(self, tables: ManyOf[InventoryTable]) -> Iterator[UnitSource]:
        for at, one in enumerate(tables[::25]):
            yield UnitSource(
                owner=OWNER, name=f"NAME_OF_{at}", kind="FUNCTION",
                text=f"FUNCTION NAME_OF_{at}(P_ID IN NUMBER) RETURN VARCHAR2 IS\n  V VARCHAR2(400);"
                f'\nBEGIN\n  SELECT NAME INTO V FROM "{one.name}" WHERE ID = P_ID;\n  RETURN V;\n'
                "EXCEPTION WHEN NO_DATA_FOUND THEN RETURN NULL;\nEND;",
            )  # fmt: skip

    def _view(self, number: int, *, long: bool) -> InventoryView:
        makers = (self._joined, self._marked, self._grouped, self._united, self._nested, self._tree)
        text = self._long() if long else self._random.choice(makers)()
        return InventoryView(owner=OWNER, name=f"V_{number}", text=text)

    def _picked(self, count: int) -> list[tuple[str, str]]:
        """Draw tables, each with its alias in some case."""
        names = self._random.sample([*self._kinds], count)
        aliases = ("a", "B", "Cc", '"d"', "e_1", "F", "g", "h")
        return [(name, aliases[at]) for at, name in enumerate(names)]

    def _filled(self, template: str, picked: ManyOf[tuple[str, str]]) -> str:
        text = template
        for kind in ("text", "char", "number", "integer", "date"):
            while f"{{{kind}}}" in text:
                name, alias = self._random.choice(picked)
                column = self._random.choice(self._kinds[name][kind])
                called = f'"{column}"' if column != column.upper() else column
                text = text.replace(f"{{{kind}}}", f"{alias}.{called}", 1)
        return text

    def _value(self, picked: ManyOf[tuple[str, str]], kind: str = "") -> str:
        kind = kind or self._random.choice([*VALUES])
        return self._filled(self._random.choice(VALUES[kind]), picked)

    def _condition(self, picked: ManyOf[tuple[str, str]]) -> str:
        return self._filled(self._random.choice(CONDITIONS), picked)

    def _items(self, picked: ManyOf[tuple[str, str]], count: int = 0) -> str:
        count = count or self._random.randrange(3, 12)
        return ",\n  ".join(f"{self._value(picked)} AS c{at}" for at in range(count))

    @staticmethod
    def _from(picked: ManyOf[tuple[str, str]]) -> str:
        return ", ".join(f'"{name}" {alias}' for name, alias in picked)

    def _joined(self) -> str:
        picked = self._picked(self._random.randrange(1, 6))
        (name, alias), *others = picked
        joins = "".join(
            f'\n{self._random.choice(("", "LEFT ", "INNER ", "FULL OUTER "))}JOIN "{one}" {called}'
            f" ON {called}.id = {alias}.parent_id"
            for one, called in others
        )
        return (
            f'SELECT /*+ FULL({alias}) */ {self._items(picked)}\nFROM "{name}" {alias}{joins}'
            f"\nWHERE {self._condition(picked)} AND {self._condition(picked)}"
        )

    def _marked(self) -> str:
        picked = self._picked(self._random.randrange(2, 6))
        alias = picked[0][1]
        marks = " AND ".join(f"{alias}.PARENT_ID = {one}.ID(+)" for _, one in picked[1:])
        return (
            f"SELECT {self._items(picked)}\nFROM {self._from(picked)}"
            f"\nWHERE {marks} AND {self._condition(picked[:1])}"
        )

    def _grouped(self) -> str:
        picked = self._picked(2)
        (_, one), (_, other) = picked
        key = self._value(picked, "text")
        return (
            f"SELECT {key} k, COUNT(*) n, SUM({one}.amount) s,"
            f" MAX({other}.booked) KEEP (DENSE_RANK LAST ORDER BY {other}.id) m\n"
            f"FROM {self._from(picked)}\nWHERE {one}.id = {other}.parent_id\n"
            f"GROUP BY {key}\nHAVING COUNT(*) > 1\nORDER BY 2 DESC"
        )

    def _united(self) -> str:
        parts = []
        for _ in range(self._random.randrange(2, 5)):
            picked = self._picked(1)
            row = ", ".join(
                f"{self._value(picked, kind)} AS {kind[0]}" for kind in ("text", "number", "date")
            )
            parts.append(f"SELECT {row}\nFROM {self._from(picked)}")
        return f"\n{self._random.choice(('UNION', 'UNION ALL', 'MINUS', 'INTERSECT'))}\n".join(
            parts
        )

    def _nested(self) -> str:
        picked, others = self._picked(2), self._picked(1)
        (name, _), one = others[0], picked[0][1]
        return (
            f"WITH q AS (SELECT {self._items(picked, 4)}, {one}.id AS own\n"
            f"FROM {self._from(picked)}\n"
            f"WHERE {one}.id = {picked[1][1]}.parent_id AND {self._condition(picked)})\n"
            "SELECT q.*, ROW_NUMBER() OVER (PARTITION BY q.own ORDER BY q.own DESC) rn,\n"
            f'  (SELECT MAX(x.name) FROM "{name}" x WHERE x.id = q.own) name\n'
            f'FROM q WHERE EXISTS (SELECT 1 FROM "{name}" y WHERE y.parent_id = q.own)\n'
            f"AND q.own NOT IN (SELECT z.id FROM \"{name}\" z WHERE z.code = 'ab')"
        )

    def _tree(self) -> str:
        name = self._picked(1)[0][0]
        return (
            f"SELECT LEVEL l, id, SYS_CONNECT_BY_PATH(name, '/') p FROM \"{name}\"\n"
            "START WITH parent_id IS NULL CONNECT BY PRIOR id = parent_id"
        )

    def _long(self) -> str:
        parts = []
        for _ in range(4):
            picked = self._picked(4)
            items = ",\n  ".join(
                f"{self._value(picked, [*VALUES][at % 3])} AS c{at}" for at in range(250)
            )
            alias = picked[0][1]
            marks = "\nAND ".join(f"{alias}.parent_id = {one}.id(+)" for _, one in picked[1:])
            parts.append(f"SELECT {items}\nFROM {self._from(picked)}\nWHERE {marks}")
        return "\nUNION ALL\n".join(parts)


def write_files(folder: Path, target: str, drawn: LargeSchema) -> Path:
    """Write what `olr-pg assess` reads; return the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    dictionary = folder / "dictionary.json"
    write_inventory(drawn.inventory(), inventory_path(dictionary))
    write_snapshot(drawn.snapshot(), str(dictionary))
    document = {
        "context": {"data": str(folder / "data")},
        "source": {"kind": "offline", "dictionary": [str(dictionary)], "logs": str(folder)},
        "apply": {
            "connect-string": target,
            "tables": f"SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE OWNER = '{OWNER}'",
        },
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


if __name__ == "__main__":
    counts = [int(one) for one in sys.argv[3:]] or [5000, 3000]
    sys.stdout.write(f"{write_files(Path(sys.argv[1]), sys.argv[2], LargeSchema(*counts[:2]))}\n")

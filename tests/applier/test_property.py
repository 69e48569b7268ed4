"""Any valid history, in any batches, leaves the same tables as the changes one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

Replication = Any  # tests/applier/conftest.py
Row = dict[str, Any]

values = st.none() | st.integers(-(10**12), 10**12)
texts = st.none() | st.text("aé𝄞 '\\\t", min_size=1, max_size=5)


class Model:
    """The source's table, and the transactions that made it."""

    def __init__(self, draw: st.DrawFn, *, keyed: bool) -> None:
        self.draw = draw
        self.keyed = keyed
        self.rows: list[Row] = []
        self.transactions: list[list[tuple[str, Row, Row]]] = []

    def run(self) -> None:
        for _ in range(self.draw(st.integers(1, 6))):
            self.transactions.append([])
            for _ in range(self.draw(st.integers(1, 5))):
                self.change()

    def change(self) -> None:
        taken = {row["ID"] for row in self.rows}
        free = [i for i in range(6) if i not in taken or not self.keyed]
        kinds = (["insert"] if free else []) + (["update", "delete", "move"] if self.rows else [])
        kind = self.draw(st.sampled_from(kinds))
        if kind == "insert":
            row = {"ID": self.draw(st.sampled_from(free)), "N": self.draw(values),
                   "V": self.draw(texts)}  # fmt: skip
            self.rows.append(dict(row))
            self.transactions[-1].append(("insert", {}, row))
            return
        row = self.draw(st.sampled_from(self.rows))
        whole = not self.keyed or self.draw(st.booleans())
        before = dict(row) if whole else {"ID": row["ID"]}
        if kind == "delete":
            self.rows.remove(row)
            self.transactions[-1].append(("delete", before, {}))
            return
        after: Row = {}
        if kind == "move" and free:
            after["ID"] = self.draw(st.sampled_from(free))
        if self.draw(st.booleans()):
            after["N"] = self.draw(values)
        if self.draw(st.booleans()) or not after:
            after["V"] = self.draw(texts)
        if not self.keyed:
            # Oracle's changed rows are particular ones; of equal rows any will do.
            before = dict(row)
        row.update(after)
        self.transactions[-1].append(("update", before, after))


@st.composite
def models(draw: st.DrawFn) -> Model:
    model = Model(draw, keyed=draw(st.booleans()))
    model.run()
    return model


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    model=models(),
    batch=st.sampled_from([1, 3, 1000]),
    copy_rows=st.sampled_from([1, 2, 1000]),
    ties=st.booleans(),
)
def test_set_based_equals_one_by_one(
    postgres_database: str,
    replicate: Callable[[str], Replication],
    model: Model,
    batch: int,
    copy_rows: int,
    ties: bool,
) -> None:
    r = replicate(postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS s, olr_pg CASCADE")
        connection.execute("CREATE SCHEMA s")
        key = "PRIMARY KEY" if model.keyed else ""
        connection.execute(f"CREATE TABLE s.t (id int {key}, n numeric, v text)".encode())
    for number, changes in enumerate(model.transactions):
        r.transaction(
            *(
                r.insert(after) if kind == "insert"
                else r.delete(before) if kind == "delete"
                else r.update(before, after)
                for kind, before, after in changes
            ),
            scn=100 if ties else 100 + number,
        )  # fmt: skip
    r.apply(batch_changes=batch, batch_milliseconds=1, copy_rows=copy_rows, window=8)
    expected = [(row["ID"], row["N"], row["V"]) for row in model.rows]
    assert sorted(r.rows("SELECT * FROM s.t"), key=repr) == sorted(
        [(i, n if n is None else Decimal(n), v) for i, n, v in expected],
        key=repr,
    )
    r.close()

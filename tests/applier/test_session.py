from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.session import Applier, ApplyReport
from olr_pg.applier.settings import Consistency
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import ColumnValue
from olr_pg.wire.frames import ByteOrder

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def _ledger(replication: Replication) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, xids, transactions, inserted, updated, deleted"
        " FROM olr_pg.ledger ORDER BY 1"
    )
    return rows


def test_inserts_updates_and_deletes(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 10, "V": "one"}), r.insert({"ID": 2, "N": 20, "V": None}))
    r.transaction(r.update({"ID": 1}, {"V": "eins"}), r.insert({"ID": 3, "N": None, "V": "three"}))
    last = r.transaction(r.delete({"ID": 2}), xid=10 << 48 | 12 << 32 | 572)
    report = r.apply()
    assert _table(r) == [(1, 10, "eins"), (3, None, "three")]
    assert report.confirmed_scn == last
    assert _ledger(r) == [("S.T", last, ["10.12.572"], 3, 2, 0, 0)]


def test_a_second_run_applies_nothing(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    r.apply()
    before = _ledger(r)
    r.serve()
    r.apply()
    assert _ledger(r) == before
    assert _table(r) == [(1, 1, "x")]


@pytest.mark.parametrize("order", list(ByteOrder))
def test_both_byte_orders(replication: Replication, order: ByteOrder) -> None:
    r = replication
    r.script.order = order
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    r.apply()
    assert _table(r) == [(1, 1, "x")]


def test_redelivered_transactions_are_skipped_one_by_one(replication: Replication) -> None:
    """A checkpoint that is behind: the server sends all again, the ledger knows better."""
    r = replication
    for i in range(1, 6):
        r.transaction(r.insert({"ID": i, "N": i, "V": None}), scn=100 if i in (3, 4, 5) else 10 + i)
    everything = list(r.script.transactions)
    for count in (1, 3, 4, 5):  # ends in the middle of a tie
        r.script.transactions = everything[:count]
        (r.folder / "checkpoint.json").unlink(missing_ok=True)
        r.serve()
        r.apply()
        assert len(_table(r)) == count
    assert _ledger(r)[0][1:4] == (100, ["0.0.3", "0.0.4", "0.0.5"], 5)


def test_confirmation_does_not_reach_an_unseen_tie(replication: Replication) -> None:
    r = replication
    for i in range(1, 200):
        r.transaction(r.insert({"ID": i, "N": i, "V": None}), scn=10 + i // 7)
    report = r.apply(window=3, batch_changes=1, batch_milliseconds=1)
    assert len(_table(r)) == 199
    assert report.confirmed_scn == r.script.transactions[-1].commit_scn
    assert r.listener is not None
    r.serve()
    r.apply()
    assert len(_table(r)) == 199


def test_a_tie_that_comes_late_is_not_confirmed_before_it_is_durable(
    replication: Replication,
) -> None:
    """Several requests of one kind go out at once: the first may bring what the next confirms."""
    r = replication
    r.execute("CREATE TABLE s.o (id int PRIMARY KEY)")
    r.script.queue_transactions = 1
    tied = r.transaction(r.insert({"ID": 1}), scn=50)
    applier = Applier(r.settings())
    thread = threading.Thread(target=applier.run)
    thread.start()
    try:
        r.script.complete.wait()
        queue = r.script._queue
        assert queue.wait_until_confirmed(60)
        assert r.transaction(r.insert({"ID": 1}, "O"), scn=50, xid=2) == tied
        with psycopg.connect(r.target) as connection:
            connection.execute("LOCK TABLE s.o")
            r.script.put_rest()
            r.wait_for("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
            assert queue.status().transmitted == 1
        assert queue.wait_until_confirmed(60)
    finally:
        applier.stop()
        thread.join()
    assert _table(r, "s.o") == [(1,)]


def test_key_changes(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": str(i)}) for i in range(1, 6)))
    r.transaction(r.update({"ID": 1, "N": 1, "V": "1"}, {"ID": 11}))  # whole row known
    r.transaction(r.update({"ID": 2}, {"ID": 12, "V": "zwei"}))  # only the key known
    r.transaction(*(r.update({"ID": i, "N": i, "V": str(i)}, {"ID": i + 1}, rowid=f"row{i}")
                    for i in (3, 4, 5)))  # fmt: skip
    r.apply(batch_changes=1)
    assert _table(r) == [(4, 3, "3"), (5, 4, "4"), (6, 5, "5"), (11, 1, "1"), (12, 2, "zwei")]


def test_a_key_change_keeps_what_the_source_does_not_have(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.e (id int PRIMARY KEY, v varchar(30), note text DEFAULT 'none',"
        " twice int GENERATED ALWAYS AS (id * 2) STORED);"
        "INSERT INTO s.e VALUES (1, 'one', 'own one'), (2, 'two', 'own two'), (7, 'seven', 'own')"
    )
    columns = (
        Column("ID", 1, 1, 1, 2, 22, 9, 0, nullable=False),
        Column("V", 2, 2, 2, 1, 30, charset_id=873, charset_form=1),
    )
    known = Table("S", "E", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    r.transaction(
        r.update({"ID": 1, "V": "one"}, {"ID": 11}, "E"),
        r.update({"ID": 2, "V": "two"}, {"ID": 1, "V": "zwei"}, "E"),
        r.insert({"ID": 2, "V": "new"}, "E"),
        r.update({"ID": 2, "V": "new"}, {"ID": 3, "V": "new"}, "E"),
    )
    r.apply([known])
    assert _table(r, "s.e") == [
        (1, "zwei", "own two", 2),
        (3, "new", "none", 6),
        (7, "seven", "own", 14),
        (11, "one", "own one", 22),
    ]
    # Keys that move over each other go in at least.
    r.execute("DELETE FROM s.e WHERE id > 3; INSERT INTO s.e VALUES (2, 'two')")
    r.transaction(
        *(
            r.update({"ID": i, "V": "x"}, {"ID": i + 1, "V": "x"}, "E", rowid=f"row{i}")
            for i in (1, 2, 3)
        )
    )
    r.serve()
    r.apply([known])
    assert [row[:2] for row in _table(r, "s.e")] == [(2, "x"), (3, "x"), (4, "x")]


def test_composite_key_and_several_column_sets(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.c (v text, n int, a int, b int, UNIQUE (v, n));"
              "ALTER TABLE s.c ALTER v SET NOT NULL, ALTER n SET NOT NULL")  # fmt: skip
    rows = [{"V": v, "N": n, "NA": 0, "NB": 0} for v in ("x", "y") for n in (1, 2)]
    r.execute("ALTER TABLE s.c RENAME a TO na; ALTER TABLE s.c RENAME b TO nb")
    r.transaction(*(r.insert(row, "C") for row in rows))
    r.transaction(
        r.update({"V": "x", "N": 1}, {"NA": 1}, "C"),
        r.update({"V": "x", "N": 2}, {"NB": 2}, "C"),
        r.update({"V": "y", "N": 1}, {"NA": 3, "NB": 3}, "C"),
        r.delete({"V": "y", "N": 2}, "C"),
    )
    r.apply(batch_changes=1)
    assert _table(r, "s.c") == [("x", 1, 1, 0), ("x", 2, 0, 2), ("y", 1, 3, 3)]


def test_tables_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.k (n int, v text)")
    same = {"N": 1, "V": "a"}
    r.transaction(r.insert(same, "K"), r.insert(same, "K"), r.insert({"N": 2, "V": None}, "K"))
    r.transaction(r.delete(same, "K"), r.update({"N": 2, "V": None}, {"V": "b"}, "K"))
    r.transaction(r.insert({"N": 3, "V": "c"}, "K"), r.delete({"N": 3, "V": "c"}, "K"))
    r.apply()
    assert _table(r, "s.k") == [(1, "a"), (2, "b")]


def test_a_table_without_a_key_is_searched_by_bytes(replication: Replication) -> None:
    """Whatever its columns' collation calls equal.

    PostgreSQL as it comes with us is built without ICU, so it has no collation that calls different
    texts equal. One that cannot be used at all tells as well whether it is asked.
    """
    r = replication
    r.execute("CREATE COLLATION s.own (provider = libc, locale = 'C')")
    r.execute("CREATE DOMAIN s.words AS text COLLATE s.own")
    r.execute("CREATE TABLE s.k (n int, v text COLLATE s.own, c char(3) COLLATE s.own, d s.words)")
    r.execute("UPDATE pg_collation SET collcollate = 'x', collctype = 'x' WHERE collname = 'own'")
    rows = [{"N": n, "V": "v", "C": "c", "D": "d"} for n in range(3)]
    r.transaction(*(r.insert(row, "K") for row in rows))
    r.transaction(r.update(rows[1], {"V": "V"}, "K"), r.delete(rows[2], "K"))
    r.apply()
    assert _table(r, "s.k") == [(0, "v", "c  ", "d"), (1, "V", "c  ", "d")]


@pytest.mark.parametrize("batch_changes", [1, 100])
@pytest.mark.parametrize("key", [("ID%",), ("ID%", "N%s"), ()])
def test_names_with_percent_signs(
    replication: Replication, key: tuple[str, ...], batch_changes: int
) -> None:
    """Of columns, types and the table: psycopg takes them for a parameter's."""
    r = replication
    r.execute('CREATE SCHEMA "s%s"; CREATE DOMAIN "s%s"."d%b" AS text')
    primary = ", PRIMARY KEY ({})".format(", ".join(f'"{one}"' for one in key)) if key else ""
    r.execute(f'CREATE TABLE "s%s"."t%t" ("ID%" int, "N%s" int, "v%b" "s%s"."d%b"{primary})')
    rows = [{"ID%": i, "N%s": i, "v%b": f"row {i}"} for i in range(6)]
    r.transaction(*(r.insert(row, "P") for row in rows))
    r.transaction(r.update(rows[1], {"v%b": "new"}, "P"), r.delete(rows[2], "P"))
    r.transaction(r.update({"ID%": 3, "N%s": 3, "v%b": "row 3"}, {"ID%": 9}, "P"))
    r.transaction(r.insert({"ID%": 6, "N%s": 6, "v%b": "z"}, "P"))
    r.apply(
        batch_changes=batch_changes,
        table_names={"S.P": "s%s.t%t"},
        copy_rows=5 if batch_changes == 100 else 1000,
    )
    assert _table(r, '"s%s"."t%t"') == [
        (0, 0, "row 0"), (1, 1, "new"), (4, 4, "row 4"), (5, 5, "row 5"), (6, 6, "z"),
        (9, 3, "row 3"),
    ]  # fmt: skip
    assert r.rows("SELECT count(*) FROM olr_pg.error") == [(0,)]


def test_large_insert_runs_go_by_copy(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "é" * (i % 20)}) for i in range(5000)))
    r.transaction(*(r.update({"ID": i}, {"V": None}) for i in range(0, 5000, 2)))
    r.transaction(*(r.delete({"ID": i}) for i in range(0, 5000, 5)))
    r.apply(copy_rows=100, batch_changes=100)
    assert len(_table(r)) == 4000
    assert _table(r)[:3] == [(1, 1, "é"), (2, 2, None), (3, 3, "ééé")]


def test_a_transaction_larger_than_any_window(replication: Replication) -> None:
    r = replication
    r.transaction(*(r.insert({"ID": i, "N": i, "V": "x" * 20}) for i in range(20_000)))
    r.apply(window=64)
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(20_000, sum(range(20_000)))]


def test_several_workers(replication: Replication) -> None:
    r = replication
    for table in "abcde":
        r.execute(f"CREATE TABLE s.{table} (id int PRIMARY KEY, v text)")
    for i in range(50):
        r.transaction(*(r.insert({"ID": i, "V": table}, table.upper()) for table in "abcde"))
    report = r.apply(workers=3, batch_changes=7)
    assert {name: c.inserted for name, c in report.tables.items()} == {
        f"S.{table}": 50 for table in "ABCDE"
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_table_with_few_changes_does_not_hold_the_others_back(
    replication: Replication, workers: int
) -> None:
    """It would wait for more, and the server keep all that came since, more than it may have."""
    r = replication
    r.execute("CREATE TABLE s.u (LIKE s.t INCLUDING ALL)")
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}, table="U"))
    for number in range(4000):
        r.transaction(r.insert({"ID": number, "N": 1, "V": "x"}))
    r.script.queue_bytes = 800_000
    with capture_logs() as entries:
        r.apply(
            workers=workers, batch_milliseconds=600_000, batch_changes=100, queue_bytes=400_000
        )  # fmt: skip
    assert len(_table(r)) == 4000
    assert len(_table(r, "s.u")) == 1
    assert not [entry for entry in entries if entry["event"] == "held_back"]


def test_triggers_and_foreign_keys_do_not_fire(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.parent (id int PRIMARY KEY);"
        "CREATE TABLE s.child (id int PRIMARY KEY, nparent int REFERENCES s.parent);"
        "CREATE TABLE s.seen (id int);"
        "CREATE FUNCTION s.note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO s.seen VALUES (new.id); RETURN new; END$$;"
        "CREATE TRIGGER note AFTER INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.note()"
    )
    r.transaction(r.insert({"ID": 1, "NPARENT": 99}, "CHILD"))
    r.apply()
    assert _table(r, "s.child") == [(1, 99)]
    assert _table(r, "s.seen") == []


def test_generated_and_identity_columns(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.g (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int,"
        " ndouble int GENERATED ALWAYS AS (n * 2) STORED)"
    )
    r.transaction(r.insert({"ID": 7, "N": 1, "NDOUBLE": 99}, "G"))
    r.transaction(r.insert({"ID": 8, "N": 2}, "G"), r.update({"ID": 7}, {"N": 5, "ID": 7}, "G"))
    r.apply(batch_changes=1)
    assert _table(r, "s.g") == [(7, 5, 10), (8, 2, 4)]


def test_created_tables(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "V": "x", "Mixed": "y"}, "NEW"))
    r.apply(create_tables=True, schema_names={"S": "fresh"})
    assert _table(r, "fresh.new") == [(1, "x", "y")]
    columns = r.rows(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'fresh.new'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert columns == [("id", "numeric"), ("v", "text"), ("Mixed", "text")]


def test_created_from_the_source_dictionary(replication: Replication) -> None:
    r = replication
    columns = (
        Column("ID", 1, 1, 1, 2, 22, 9, 0, nullable=False),
        Column("V", 2, 2, 2, 1, 30, charset_id=873, charset_form=1, nullable=False),
        Column("HIDDEN", 3, 3, 0, 2, 22, hidden=True),
        Column("D", 4, 4, 3, 12, 7),
    )
    known = Table("S", "MADE", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    empty = replace(known, name="EMPTY")
    r.transaction(r.insert({"ID": 1, "V": "x"}, "MADE"), r.update({"ID": 1}, {"V": "y"}, "MADE"))
    r.apply([known, empty], create_tables=True)
    assert _table(r, "s.made") == [(1, "y", None)]
    assert _table(r, "s.empty") == []
    made = r.rows(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = 's.made'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert made == [
        ("id", "integer", True),
        ("v", "character varying(30)", True),
        ("d", "timestamp(0) without time zone", False),
    ]
    r.transaction(r.delete({"ID": 1}, "MADE"))
    r.serve()
    r.apply([known, empty])
    assert _table(r, "s.made") == []


def test_two_tables_of_one_name(replication: Replication) -> None:
    tables = [Table(owner, "T", 1, 1, ()) for owner in ("A", "B")]
    with pytest.raises(OlrPgError) as caught:
        replication.apply(tables, schema_names={"A": "s", "B": "s"})
    assert caught.value.code == 5016
    with pytest.raises(OlrPgError) as caught:
        replication.apply([Table("OLR_PG", "LEDGER", 1, 1, ())])
    assert caught.value.code == 5026


def test_a_second_source_needs_a_subscription_of_its_own(replication: Replication) -> None:
    """Its tables have the same names; their SCNs are not the first one's."""
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.execute("CREATE SCHEMA two; CREATE TABLE two.t (LIKE s.t INCLUDING ALL)")
    r.transaction(r.insert({"ID": 1}), scn=1_000)
    r.apply(tables)
    r.script.transactions.clear()
    r.transaction(r.insert({"ID": 2}), scn=20)
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    other = {"schema_names": {"S": "two"}, "applied_file": r.folder / "other.json"}
    with pytest.raises(OlrPgError) as caught:
        r.apply(tables, **other)
    assert caught.value.code == 5025
    assert "s.t" in caught.value.detail
    r.apply(tables, subscription="two", **other)
    assert [row[0] for row in _table(r, "two.t")] == [2]


def test_a_second_database_does_not_take_the_ledger_of_the_first(
    replication: Replication,
) -> None:
    """Both go into one table: the second one's SCNs are below those of the ledger's line."""
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.transaction(r.insert({"ID": 1}), scn=1_000)
    r.apply(tables)  # of an earlier release, or of a source that did not say its DBID
    assert r.rows("SELECT dbid FROM olr_pg.ledger") == [(None,)]
    r.serve()
    r.apply(tables, dbid=11)
    assert r.rows("SELECT dbid FROM olr_pg.ledger") == [(11,)]
    r.script.transactions.clear()
    r.transaction(r.insert({"ID": 2}), scn=20)
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    other = {"dbid": 22, "applied_file": r.folder / "other.json"}
    # What names no tables meets the line with the first change.
    for known, consistency in ((tables, "table"), ([], "table"), ([], "transaction")):
        with pytest.raises(OlrPgError) as caught:
            r.apply(known, consistency=Consistency(consistency), **other)
        assert (caught.value.code, caught.value.where["table"]) == (5027, "S.T")
        assert "DBID 11" in caught.value.detail
        r.serve()
    r.apply(tables, subscription="two", **other)
    assert [row[0] for row in _table(r)] == [1, 2]
    assert r.rows("SELECT subscription, dbid FROM olr_pg.ledger ORDER BY dbid") == [
        ("olr_pg", 11),
        ("two", 22),
    ]


def test_a_target_table_that_was_renamed_goes_on(replication: Replication) -> None:
    r, tables = replication, [Table("S", "T", 1, 1, ())]
    r.transaction(r.insert({"ID": 1}))
    r.apply(tables)
    r.execute("ALTER TABLE s.t RENAME TO renamed")
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    r.apply(tables, table_names={"S.T": "s.renamed"})
    assert [row[0] for row in _table(r, "s.renamed")] == [1, 2]
    assert r.rows("SELECT target_table FROM olr_pg.ledger") == [("s.renamed",)]


def test_a_seeded_ledger_skips_what_was_loaded(replication: Replication) -> None:
    r = replication
    r.apply()
    r.execute("INSERT INTO s.t VALUES (1, 1, 'loaded');"
              "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
              " VALUES ('olr_pg', 'S.T', 's.t', 10)")  # fmt: skip
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "loaded"}), scn=10)
    r.transaction(r.update({"ID": 1}, {"V": "changed"}), scn=11)
    r.serve()
    r.apply()
    assert _table(r) == [(1, 1, "changed")]


def test_runs_until_it_is_stopped(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    applier = Applier(r.settings(poll_milliseconds=10))
    thread = threading.Thread(target=applier.run)
    thread.start()
    r.wait_for("SELECT count(*) = 1 FROM s.t")
    r.transaction(r.insert({"ID": 2, "N": 2}))
    r.script.put_rest()
    r.wait_for("SELECT count(*) = 2 FROM s.t")
    applier.stop()
    thread.join()


def test_a_server_that_restarts(replication: Replication) -> None:
    r = replication
    for i in range(1_000):
        r.transaction(r.insert({"ID": i, "N": i}))
    settings = r.settings(batch_changes=10, window=16)
    applier = Applier(settings)
    thread = threading.Thread(target=applier.run)
    thread.start()
    for count in (50, 200):
        r.wait_for(f"SELECT count(*) >= {count} FROM s.t")
        r.serve(settings.port)
    r.wait_for("SELECT count(*) = 1000 FROM s.t")
    applier.stop()
    thread.join()
    assert r.rows("SELECT transactions FROM olr_pg.ledger") == [(1_000,)]


def test_table_names_can_be_mapped(replication: Replication) -> None:
    r = replication
    r.execute('CREATE SCHEMA "Other"; CREATE TABLE "Other"."X" (id int PRIMARY KEY)')
    r.transaction(r.insert({"ID": 1}))
    r.apply(table_names={"S.T": "Other.X"})
    assert _table(r, '"Other"."X"') == [(1,)]


def test_two_clients_at_once(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    first = Applier(r.settings(poll_milliseconds=10))
    thread = threading.Thread(target=first.run)
    thread.start()
    r.wait_for("SELECT count(*) = 1 FROM s.t")
    second = Applier(r.settings(subscription="other", retry_seconds=0.2))
    with pytest.raises(OlrPgError) as caught:
        second.run(once=True)
    assert caught.value.code == 5011
    first.stop()
    thread.join()


def test_unusual_targets(replication: Replication) -> None:
    """Dropped and further columns, another order, domains, partitions, reserved names."""
    r = replication
    r.execute(
        "CREATE DOMAIN s.name AS varchar(30) CHECK (value <> 'bad');"
        "CREATE TABLE s.u (gone int, \"limit\" s.name, extra text DEFAULT 'own', id bigint,"
        " n numeric(10, 2), PRIMARY KEY (id)) PARTITION BY RANGE (id);"
        "CREATE TABLE s.u1 PARTITION OF s.u FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE s.u2 PARTITION OF s.u FOR VALUES FROM (10) TO (99);"
        "ALTER TABLE s.u DROP gone"
    )
    r.transaction(*(r.insert({"ID": i, "LIMIT": str(i), "N": i}, "U") for i in (1, 2, 3, 20)))
    r.transaction(
        r.update({"ID": 1, "LIMIT": "1", "N": 1}, {"ID": 11}, "U"),
        r.update({"ID": 2}, {"LIMIT": None}, "U"),
        r.delete({"ID": 20}, "U"),
    )
    r.transaction(r.update({"ID": 3}, {"ID": 13, "N": 7}, "U"))
    r.apply(batch_changes=1)
    assert r.rows('SELECT id, "limit", n, extra FROM s.u ORDER BY 1') == [
        (2, None, 2, "own"),
        (11, "1", 1, "own"),
        (13, "3", 7, "own"),
    ]


def test_partitioned_table_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.p (n int, v text) PARTITION BY RANGE (n);"
        "CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE s.p2 PARTITION OF s.p FOR VALUES FROM (10) TO (20)"
    )
    r.transaction(*(r.insert({"N": n, "V": "x"}, "P") for n in (1, 11)))
    r.transaction(r.delete({"N": 11, "V": "x"}, "P"), r.update({"N": 1, "V": "x"}, {"N": 12}, "P"))
    r.apply()
    assert _table(r, "s.p") == [(12, "x")]


@pytest.mark.parametrize(
    ("column", "key", "other"),
    [
        ("char(5)", ColumnValue("K", 96, charset_id=873, charset_form=1, value=b"ab   "),
         ColumnValue("K", 96, charset_id=873, charset_form=1, value=b"cd   ")),
        ("timestamp(0)", ColumnValue("K", 12, value=bytes.fromhex("787e0307022d28")),
         ColumnValue("K", 12, value=bytes.fromhex("787e0307022d29"))),
        ("numeric", ColumnValue("K", 2, value=bytes.fromhex("c2021744")),
         ColumnValue("K", 2, value=bytes.fromhex("3f5a4d66"))),
        ("bytea", ColumnValue("K", 23, value=b"\x00\xff"), ColumnValue("K", 23, value=b"\x01")),
    ],
)  # fmt: skip
def test_keys_of_other_types(
    replication: Replication, column: str, key: ColumnValue, other: ColumnValue
) -> None:
    r = replication
    r.execute(f"CREATE TABLE s.y (k {column} PRIMARY KEY, n int)")
    r.transaction(*(r.insert({"K": k, "N": 1}, "Y") for k in (key, other)))
    r.transaction(r.update({"K": key}, {"N": 2}, "Y"), r.delete({"K": other}, "Y"))
    r.apply(batch_changes=1)
    assert r.rows("SELECT n FROM s.y") == [(2,)]


def test_nothing_to_apply(replication: Replication) -> None:
    report = replication.apply()
    assert report.tables == {}


def test_server_that_is_not_there(replication: Replication) -> None:
    r = replication
    settings = replace(r.settings(), retry_seconds=0.1)
    r.close()
    with pytest.raises(OlrPgError) as caught:
        Applier(settings).run(once=True)
    assert caught.value.code == 5011


def test_postgres_that_is_not_there(replication: Replication) -> None:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(connect_string="host=127.0.0.1 port=1 connect_timeout=2")
    assert caught.value.code == 5003


def test_draining_applies_and_confirms_what_was_received(replication: Replication) -> None:
    r = replication
    for number in range(200):
        r.transaction(r.insert({"ID": number, "N": number}))
    # It would collect for an hour before it applies anything.
    applier = Applier(
        r.settings(batch_milliseconds=3_600_000, batch_changes=1_000_000, poll_milliseconds=5)
    )
    reports: list[ApplyReport] = []
    runner = threading.Thread(target=lambda: reports.append(applier.run()))
    runner.start()
    while not any(table.waiting or table.commit_scn for table in applier.tables):
        time.sleep(0.005)
    applier.drain()
    runner.join()
    (report,) = reports
    applied = r.rows("SELECT count(*) FROM s.t")[0][0]
    assert 0 < applied <= 200
    last = r.rows("SELECT commit_scn FROM olr_pg.ledger")[0][0]
    # A transaction that was received in part counts as open: what lies below it is confirmed.
    assert last <= report.confirmed_scn < last + 10
    # The answer to the last confirmation may have brought one more, which is not part of it.
    pending = [table.pending for table in applier.tables if table.pending is not None]
    assert all(scn > report.confirmed_scn for scn in pending)
    # The next life begins behind that, and finds nothing missing.
    r.serve()
    r.apply()
    assert r.rows("SELECT count(*), sum(n) FROM s.t") == [(200, sum(range(200)))]

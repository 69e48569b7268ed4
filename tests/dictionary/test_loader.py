from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olr_pg.dictionary import snapshot_file
from olr_pg.dictionary.loader import load_snapshot, parse_schema_checkpoint
from olr_pg.dictionary.model import AddedColumn, Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import dump_snapshot
from olr_pg.errors import OlrPgError


def error_of(path: Path | str) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        load_snapshot(str(path))
    assert caught.value.where["file"] == str(path)
    return caught.value


def test_the_form_is_told_by_the_content(
    shop: Snapshot, real_snapshot: Snapshot, checkpoint_path: str, tmp_path: Path
) -> None:
    ours = tmp_path / "TEST-chkpt-1.json"
    ours.write_bytes(dump_snapshot(shop))
    theirs = tmp_path / "x"
    theirs.write_bytes(Path(checkpoint_path).read_bytes())

    assert load_snapshot(str(ours)) == shop
    assert load_snapshot(str(theirs)) == real_snapshot


def test_a_byte_order_mark_is_tolerated(shop: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(b"\xef\xbb\xbf" + dump_snapshot(shop))

    assert load_snapshot(str(path)) == shop


_LIMITED = """
import resource, sys
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
try:
    load_snapshot(sys.argv[1])
    print(0, sys.argv[1])
except OlrPgError as error:
    print(int(error.code), error.where["file"])
"""


@pytest.mark.parametrize(
    ("begin", "size", "code"),
    [
        (b"{", 800 << 20, 3001),
        (b" ", 800 << 20, 3002),
        (b"{", 2 << 30, 3001),
        (b"x", 2 << 30, 3002),
    ],
)
def test_a_huge_file_is_no_traceback(tmp_path: Path, begin: bytes, size: int, code: int) -> None:
    path = tmp_path / "huge"
    path.write_bytes(begin)
    os.truncate(path, size)
    assert _code_under_a_limit(path) == code


def test_a_dictionary_needs_no_more_address_space_than_its_size(
    shop: Snapshot, tmp_path: Path
) -> None:
    """With vm.overcommit_memory = 2, too, PostgreSQL's usual advice, the space is limited."""
    path = tmp_path / "d.json"
    path.write_bytes(dump_snapshot(shop))
    assert _code_under_a_limit(path) == 0


def test_a_file_of_more_bytes_than_a_dictionary_can_have(
    shop: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(dump_snapshot(shop))
    monkeypatch.setattr(snapshot_file, "_BYTES_MAX", path.stat().st_size)
    assert load_snapshot(str(path)) == shop
    path.write_bytes(path.read_bytes() + b" ")
    assert error_of(path).code == 3001


def test_an_endless_device_is_not_read_to_its_end() -> None:
    assert _code_under_a_limit(Path("/dev/zero")) == 3002


def _code_under_a_limit(path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, path], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    code, file = done.stdout.split()
    assert file == str(path)
    return int(code)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = error_of(tmp_path / "none.json")

    assert error.code == 3001
    assert error.detail == "No such file or directory"


def test_a_directory(tmp_path: Path) -> None:
    assert error_of(tmp_path).code == 3001


def test_an_impossible_path() -> None:
    assert error_of("a\0b").code == 3001


def test_a_file_that_is_not_json_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"scn": 1,\n "database": nope}')
    error = error_of(path)

    assert error.code == 3002
    assert error.where["line"] == 2


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 5000, b'{"scn": NaN}'])
def test_other_bytes_are_not_json(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(data)

    assert error_of(path).code == 3002


def test_a_log_is_not_json(real_log_dir: Path) -> None:
    assert error_of(real_log_dir / "arch1_16_1224959854.dbf").code == 3002


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[1]", "a list of 1 elements"),
        (b"{}", "the keys none"),
        (b'{"version": "1", "source": {}}', "the keys version, source"),
        (b'{"format": 1}', "found 1"),
    ],
)
def test_another_json_file_is_no_dictionary(data: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(data)
    error = error_of(path)

    assert error.code == 3003
    assert found in error.detail


def test_the_decoder_output_is_no_dictionary(real_log_dir: Path) -> None:
    assert error_of(real_log_dir / "logminer-reference.json").code in {3002, 3003}


TEST_CDC = 72726


def parse(document: dict[str, Any]) -> Snapshot:
    return parse_schema_checkpoint(document, "c.json")


def checkpoint_error(document: dict[str, Any]) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        parse(document)
    assert caught.value.where["file"] == "c.json"
    return caught.value


def test_cdc(document: dict[str, Any]) -> Table:
    table = parse(document).find("OLR_TEST", "TEST_CDC")
    assert table is not None
    return table


test_cdc.__test__ = False  # type: ignore[attr-defined]


def column_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in document["sys-col"] if row["obj"] == TEST_CDC]


def tab_row(document: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in document["sys-tab"] if row["obj"] == TEST_CDC)
    return row


def test_the_real_database(real_snapshot: Snapshot) -> None:
    assert real_snapshot.scn == 2266634
    assert real_snapshot.database == Database(
        name="FREE",
        con_id=3,
        con_name="FREEPDB1",
        dbid=1385559638,
        resetlogs=(1224959854, 1222743579),
        activation=1496992686,
        big_endian=False,
        charset="AL32UTF8",
        ncharset="AL16UTF16",
        timezone="+00:00",
    )


def test_the_real_user_table(real_snapshot: Snapshot) -> None:
    assert real_snapshot.find("OLR_TEST", "TEST_CDC") == Table(
        owner="OLR_TEST",
        name="TEST_CDC",
        obj=TEST_CDC,
        dataobj=TEST_CDC,
        columns=(
            Column("ID", 1, 1, 1, 2, 22, nullable=False),
            Column("NAME", 2, 2, 2, 1, 100, charset_id=873, charset_form=1),
        ),
        key_kind=KeyKind.PRIMARY,
        key=(1,),
        row_dependencies=False,
    )


def test_every_real_table_is_there_and_none_refused(real_snapshot: Snapshot) -> None:
    assert len(real_snapshot.tables) == 20
    assert [table.name for table in real_snapshot.tables if table.refusal] == []


def test_the_clustered_tables_of_the_real_dictionary(real_snapshot: Snapshot) -> None:
    tab = real_snapshot.find("SYS", "TAB$")
    cdef = real_snapshot.find("SYS", "CDEF$")
    assert tab is not None
    assert cdef is not None

    assert (tab.obj, tab.dataobj, tab.cluster_columns) == (4, 2, 1)
    # The cluster key comes first in the row though not in the declaration (dictionary §1.3).
    assert [column.name for column in cdef.columns[:2]] == ["OBJ#", "CON#"]
    assert [column.intcol for column in cdef.columns[:2]] == [2, 1]


def test_a_virtual_column_of_the_real_dictionary(real_snapshot: Snapshot) -> None:
    table = next(table for table in real_snapshot.tables if table.name.startswith("X$PT"))
    column = next(column for column in table.columns if column.name == "SYS_NC00003$")

    assert (column.segcol, column.hidden, column.virtual) == (0, True, True)
    assert [column.name for column in table.delivered] == ["PATH", "ID"]


def test_null_precision_and_scale(checkpoint: dict[str, Any]) -> None:
    identity, name = column_rows(checkpoint)
    identity.update(precision=126, scale=-1)
    name.update(precision=-1, scale=0)
    columns = test_cdc(checkpoint).columns

    assert (columns[0].precision, columns[0].scale) == (126, None)
    assert (columns[1].precision, columns[1].scale) == (None, 0)


def test_negative_scales_other_than_null_are_kept(checkpoint: dict[str, Any]) -> None:
    column_rows(checkpoint)[0].update(precision=5, scale=-2)

    assert test_cdc(checkpoint).columns[0].scale == -2


def test_a_guard_column_is_hidden_and_the_row_still_complete(checkpoint: dict[str, Any]) -> None:
    guard = dict(column_rows(checkpoint)[0])
    guard.update({"name": "SYS_NC00003$", "col": 0, "seg-col": 3, "int-col": 3, "type": 23})
    guard["property"] = [0x8000000120, 0]
    checkpoint["sys-col"].append(guard)
    table = test_cdc(checkpoint)

    assert table.refusal is None
    assert table.columns[2].hidden
    assert [column.name for column in table.delivered] == ["ID", "NAME"]


def test_column_properties_may_be_one_number(checkpoint: dict[str, Any]) -> None:
    column_rows(checkpoint)[1]["property"] = 0x4000000

    assert test_cdc(checkpoint).columns[1].encrypted


def test_an_encrypted_key_column_is_no_key(checkpoint: dict[str, Any]) -> None:
    column_rows(checkpoint)[0]["property"] = [0x4000000, 0]
    table = test_cdc(checkpoint)

    assert (table.key_kind, table.key) == (KeyKind.NONE, ())


def test_a_key_of_two_columns_is_in_internal_order(checkpoint: dict[str, Any]) -> None:
    row = next(row for row in checkpoint["sys-ccol"] if row["con"] == 8586)
    checkpoint["sys-ccol"].insert(0, {**row, "int-col": 2})
    table = test_cdc(checkpoint)

    assert table.key == (1, 2)
    assert not any(column.nullable for column in table.columns)


def test_partitions_and_sub_partitions(checkpoint: dict[str, Any]) -> None:
    tab_row(checkpoint).update({"data-obj": 0, "property": [0x20000020, 0]})
    checkpoint["sys-tabpart"] = [
        {"row-id": "", "obj": 9001, "data-obj": 9001, "bo": TEST_CDC},
        {"row-id": "", "obj": 9009, "data-obj": 9009, "bo": 1},
    ]
    checkpoint["sys-tabcompart"] = [{"row-id": "", "obj": 9002, "data-obj": 0, "bo": TEST_CDC}]
    checkpoint["sys-tabsubpart"] = [
        {"row-id": "", "obj": 9003, "data-obj": 9003, "p-obj": 9002},
        {"row-id": "", "obj": 9004, "data-obj": 9004, "p-obj": 9002},
        {"row-id": "", "obj": 9005, "data-obj": 9005, "p-obj": 8000},
    ]
    table = test_cdc(checkpoint)

    assert table.dataobj is None
    assert table.partitions == (9001, 9003, 9004)


def test_refused_by_the_table_bits(checkpoint: dict[str, Any]) -> None:
    tab_row(checkpoint)["property"] = [0x40, 0]

    refusal = (
        "the table is index-organised, and this dictionary does not name the index with its rows"
    )
    assert test_cdc(checkpoint).refusal == refusal


def test_refused_by_the_object_flags(checkpoint: dict[str, Any]) -> None:
    row = next(row for row in checkpoint["sys-obj"] if row["obj"] == TEST_CDC)
    row["flags"] = [0x2, 0]

    assert "temporary" in (test_cdc(checkpoint).refusal or "")


def test_a_missing_column_row_refuses_that_table_only(checkpoint: dict[str, Any]) -> None:
    checkpoint["sys-col"].remove(column_rows(checkpoint)[0])
    table = test_cdc(checkpoint)

    assert table.refusal == (
        "the table's columns in the dictionary are incomplete: SEGCOL# 1 is missing"
    )
    assert table.key == ()
    assert sum(1 for table in parse(checkpoint).tables if table.refusal) == 1


def test_orphaned_incarnations_are_none_of_ours(checkpoint: dict[str, Any]) -> None:
    checkpoint["incarnations"].append(
        {"incarnation": 3, "resetlogs": 99, "prior-incarnation": 1, "status": "ORPHAN"}
    )

    assert parse(checkpoint).database.resetlogs == (1224959854, 1222743579)


def test_incarnations_in_a_circle_end(checkpoint: dict[str, Any]) -> None:
    checkpoint["incarnations"][0]["prior-incarnation"] = 2

    assert parse(checkpoint).database.resetlogs == (1224959854, 1222743579)


def test_without_incarnations_the_current_one_is_known(checkpoint: dict[str, Any]) -> None:
    del checkpoint["incarnations"]

    assert parse(checkpoint).database.resetlogs == (1224959854,)


def test_a_database_without_containers(checkpoint: dict[str, Any]) -> None:
    checkpoint.update({"con-id": -1, "con-name": ""})
    database = parse(checkpoint).database

    assert (database.con_id, database.con_name) == (0, None)


def test_a_fresh_schema_file_has_no_schema_scn(checkpoint: dict[str, Any]) -> None:
    del checkpoint["schema-scn"]
    checkpoint["scn"] = 77

    assert parse(checkpoint).scn == 77


@pytest.mark.parametrize(
    "key",
    ["scn", "resetlogs", "context", "con-id", "big-endian", "nls-character-set", "sys-user",
     "sys-tab", "sys-col", "sys-cdef", "sys-ccol", "sys-tabpart", "sys-tabsubpart"],
)  # fmt: skip
def test_a_missing_key_is_named(checkpoint: dict[str, Any], key: str) -> None:
    del checkpoint[key]
    error = checkpoint_error(checkpoint)

    assert (error.code, error.where["key"]) == (3004, key)


def test_a_missing_key_of_a_row_is_named(checkpoint: dict[str, Any]) -> None:
    del checkpoint["sys-col"][3]["seg-col"]
    error = checkpoint_error(checkpoint)

    assert (error.code, error.where["key"]) == (3004, "sys-col[3].seg-col")


def test_a_damaged_long_number_is_named(checkpoint: dict[str, Any]) -> None:
    checkpoint["sys-tab"][0]["property"] = [1]
    error = checkpoint_error(checkpoint)

    assert (error.code, error.where["key"]) == (3004, "sys-tab[0].property")
    assert "[low 64 bits, high 64 bits]" in error.detail


def test_a_table_without_its_object(checkpoint: dict[str, Any]) -> None:
    checkpoint["sys-obj"] = [row for row in checkpoint["sys-obj"] if row["obj"] != TEST_CDC]
    error = checkpoint_error(checkpoint)

    assert error.code == 3005
    assert error.detail == "sys-tab[0].obj 72726 has no row in sys-obj"


def test_an_object_without_its_owner(checkpoint: dict[str, Any]) -> None:
    checkpoint["sys-user"] = [row for row in checkpoint["sys-user"] if row["user"] != 136]
    error = checkpoint_error(checkpoint)

    assert error.code == 3005
    assert error.detail == "owner of sys-obj TEST_CDC 136 has no row in sys-user"


def test_a_checkpoint_that_refers_to_another_file(checkpoint: dict[str, Any]) -> None:
    small = {key: value for key, value in checkpoint.items() if not key.startswith("sys-")}
    small["schema-ref-scn"] = 2266000
    error = checkpoint_error(small)

    assert error.code == 3006
    assert "2266000" in error.detail


def test_added_columns_lengths_in_characters_and_compression(checkpoint: dict[str, Any]) -> None:
    row = next(row for row in checkpoint["sys-col"] if row["obj"] == 72726 and row["col"] == 2)
    base = {"obj": 72726, "null": 0, "precision": -1, "scale": -1}
    # dictionary §2.4 and values-and-lobs §14: a guard column and an added column of a real 23ai
    checkpoint["sys-col"] += [
        {**row, **base, "col": 0, "seg-col": 3, "int-col": 3, "name": "SYS_NC00003$", "type": 23,
         "length": 513, "charset-form": 0, "charset-id": 0, "property": [0x8000000120, 0]},
        {**row, **base, "col": 3, "seg-col": 4, "int-col": 4, "name": "SCORE", "type": 1,
         "length": 80, "property": [0x40800000, 0]},
    ]  # fmt: skip
    checkpoint["sys-ecol"] = [{"row-id": "", "tab-obj": 72726, "col-num": 4, "guard-id": 0}]
    table = parse(checkpoint).find("OLR_TEST", "TEST_CDC")
    assert table is not None
    assert [column.name for column in table.delivered] == ["ID", "NAME", "SCORE"]
    score = table.delivered[-1]
    assert score.added == AddedColumn(None, 0)
    assert score.char_length == 20
    assert table.guard is not None
    assert table.guard.segcol == 3

    for row in checkpoint["sys-deferredstg"]:
        row["flags-stg"] = [4, 0]
    logged = parse(checkpoint).find("OLR_TEST", "TEST_CDC")
    assert logged is not None
    assert logged.refusal is None  # its supplemental logging of ALL columns
    checkpoint["sys-cdef"] = [row for row in checkpoint["sys-cdef"] if row["type"] != 17]
    checkpoint["supp-log-db-all"] = 0
    refused = parse(checkpoint).find("OLR_TEST", "TEST_CDC")
    assert refused is not None
    assert "compressed" in str(refused.refusal)

"""Each kind of segment in an encrypted tablespace: what is refused, why, and what SQL helps."""

from __future__ import annotations

from typing import Any, Final

import pytest

from olr_pg.dictionary.model import Table
from olr_pg.dictionary.stored_segments import (
    ENCRYPTED,
    Compression,
    StoredSegments,
    is_encryption_known,
)
from olr_pg.dictionary.sys_rows import SysRows
from olr_pg.dictionary.sys_tables import join_tables

OBJ = 700
PLAIN, SECURE, VAULT, UNDO = 4, 5, 6, 2
TABLESPACES: Final = [
    {"ts": 0, "name": "SYSTEM", "block-size": 8192, "state": 1, "flags": 0},
    {"ts": UNDO, "name": "UNDOTBS1", "block-size": 8192, "state": 1, "flags": 0x10},
    {"ts": PLAIN, "name": "USERS", "block-size": 8192, "state": 1, "flags": 0x21},
    {"ts": SECURE, "name": "SECURE", "block-size": 8192, "state": 1, "flags": ENCRYPTED | 0x21},
    {"ts": VAULT, "name": "VAULT", "block-size": 8192, "state": 1, "flags": ENCRYPTED},
]
ORGANISED, PARTITIONED = 0x40, 0x20


def obj(number: int, kind: int, name: str = "T", part: str = "") -> dict[str, Any]:
    return {
        "owner": 9, "obj": number, "data-obj": number, "name": name, "type": kind, "flags": 0,
        "subname": part,
    }  # fmt: skip


def column(number: int, name: str, code: int = 2) -> dict[str, Any]:
    return {
        "obj": OBJ, "col": number, "seg-col": number, "int-col": number, "name": name, "type": code,
        "length": 22, "precision": 10, "scale": 0, "charset-form": 0, "charset-id": 873, "null": 0,
        "property": 0,
    }  # fmt: skip


def tab(ts: int | None = PLAIN, bits: int = 0, data: int = OBJ) -> list[dict[str, Any]]:
    told = {} if ts is None else {"ts": ts}
    own = {"obj": OBJ, "data-obj": data, "clu-cols": 0, "flags": 0, "property": bits}
    return [own | told]


def rows(**sections: list[dict[str, Any]]) -> SysRows:
    """``APP.T (ID, DOC CLOB)``, with other rows in place of or beside its own."""
    objects = sections.pop("sys_obj", [])
    document: dict[str, Any] = {
        name.replace("_", "-"): []
        for name, field in SysRows.model_fields.items()
        if field.is_required()
    } | {
        "sys-user": [{"user": 9, "name": "APP"}],
        "sys-obj": [obj(OBJ, 2), *objects],
        "sys-tab": tab(),
        "sys-col": [column(1, "ID"), column(2, "DOC", 112)],
        "sys-ts": TABLESPACES,
    }
    return SysRows.model_validate(
        document | {name.replace("_", "-"): value for name, value in sections.items()}
    )


def joined(**sections: list[dict[str, Any]]) -> Table:
    (table,) = join_tables(rows(**sections), "d.json")
    return table


def partitions(**tablespaces: int) -> dict[str, list[dict[str, Any]]]:
    """Partitions by name, with the tablespace of each."""
    found = list(enumerate(tablespaces.items(), 711))
    return {
        "sys_tab": tab(0, PARTITIONED, 0),
        "sys_obj": [obj(number, 19, part=name) for number, (name, _) in found],
        "sys_tabpart": [
            {"obj": number, "data-obj": number, "bo": OBJ, "ts": ts} for number, (_, ts) in found
        ],
    }


def index(ts: int, data: int = 705, bits: int = 1) -> dict[str, list[dict[str, Any]]]:
    """The index of an index-organised table."""
    own = {"obj": 705, "data-obj": data, "bo": OBJ, "type": 4, "flags": 0, "property": bits}
    return {
        "sys_ind": [own | {"ts": ts}],
        "sys_icol": [{"obj": 705, "bo": OBJ, "int-col": 1, "pos": 1}],
    }


COMPOSITE: Final = {
    "sys_tab": tab(0, PARTITIONED, 0),
    "sys_tabcompart": [{"obj": 710, "bo": OBJ}],
    "sys_obj": [obj(710, 19, part="P1"), obj(711, 34, part="S1"), obj(712, 34, part="S2")],
}
TO: Final = "TABLESPACE <unencrypted tablespace>;"
CIPHER: Final = "so the redo contains only cipher text"
IN_SECURE: Final = "in the encrypted tablespace SECURE"


def refused(where: str, part: str = "", more: str = "") -> str:
    """The reason for a table, with the SQL that moves its first such segment."""
    move = f'ALTER TABLE "APP"."T" MOVE {part} {TO}'.replace("  ", " ")
    return f"{where}, {CIPHER}; move it into an unencrypted tablespace: {move}{more}"


OF_ROWS: Final[list[tuple[str, dict[str, list[dict[str, Any]]], str]]] = [
    (
        "heap table",
        {"sys_tab": tab(SECURE)},
        refused(f"it is {IN_SECURE}"),
    ),
    (
        "one partition of two",
        partitions(P1=PLAIN, P2=SECURE),
        refused(f'partition "P2" is {IN_SECURE}', 'PARTITION "P2"'),
    ),
    (
        "several partitions",
        partitions(A=VAULT, B=SECURE, C=SECURE, D=VAULT, E=SECURE, F=PLAIN),
        refused(
            'partition "A", partition "B", partition "C" and 2 more are in the encrypted'
            " tablespaces SECURE, VAULT",
            'PARTITION "A"',
            " …",
        ),
    ),
    (
        "a subpartition",
        COMPOSITE
        | {
            "sys_tabsubpart": [
                {"obj": 711, "data-obj": 711, "p-obj": 710, "ts": PLAIN},
                {"obj": 712, "data-obj": 712, "p-obj": 710, "ts": SECURE},
            ]
        },
        refused(f'subpartition "S2" is {IN_SECURE}', 'SUBPARTITION "S2"'),
    ),
    (
        "an index-organised table",
        {"sys_tab": tab(0, ORGANISED, 0), **index(SECURE)},
        refused(f"it is {IN_SECURE}"),
    ),
    (
        "a partition of an index-organised table",
        {
            **partitions(P1=0),
            "sys_tab": tab(0, ORGANISED | PARTITIONED, 0),
            "sys_tabpart": [{"obj": 711, "data-obj": 0, "bo": OBJ, "ts": 0}],
            **index(0, 0, 3),
            "sys_indpart": [{"obj": 715, "data-obj": 715, "bo": 705, "ts": SECURE}],
            "sys_obj": [obj(711, 19, part="P1"), obj(715, 20, "SYS_IOT_TOP_700", "P1")],
        },
        refused(f'partition "P1" is {IN_SECURE}', 'PARTITION "P1"'),
    ),
    (
        "a partition that nothing names",
        partitions(P1=SECURE) | {"sys_obj": []},
        refused(f"partition <OBJ# 711> is {IN_SECURE}", "PARTITION <OBJ# 711>"),
    ),
    (
        "the undo of all",
        {
            "sys_ts": [
                one | ({"flags": ENCRYPTED | 0x10} if one["ts"] == UNDO else {})
                for one in TABLESPACES
            ]
        },
        (
            "the undo tablespace UNDOTBS1 is encrypted, so the redo contains the undo of all"
            " transactions only as cipher text"
        ),
    ),
]


@pytest.mark.parametrize(("sections", "reason"), [one[1:] for one in OF_ROWS], ids=[
    one[0] for one in OF_ROWS
])  # fmt: skip
def test_a_table_with_rows_there_is_refused(
    sections: dict[str, list[dict[str, Any]]], reason: str
) -> None:
    assert joined(**sections).refusal == reason


@pytest.mark.parametrize(
    "sections",
    [
        {},
        partitions(P1=PLAIN, P2=PLAIN),
        {"sys_tab": tab(0, ORGANISED, 0), **index(PLAIN)},
        # An index beside the rows: nothing of it is read.
        {"sys_ind": [index(SECURE)["sys_ind"][0] | {"type": 1}]},
    ],
    ids=["heap", "partitions", "index-organised", "other index"],
)
def test_a_table_elsewhere_is_not_refused(sections: dict[str, list[dict[str, Any]]]) -> None:
    assert joined(**sections).refusal is None


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        ({"state": 1}, True),
        # Offline; dropped: its row stays.
        ({"state": 2}, False),
        ({"state": 3}, False),
    ],
)
def test_only_an_undo_tablespace_that_is_online_counts(
    change: dict[str, int], is_refused: bool
) -> None:
    undo = {"ts": 9, "name": "OLD", "block-size": 8192, "flags": ENCRYPTED | 0x10}
    table = joined(sys_ts=[*TABLESPACES, undo | change])
    assert (table.refusal is not None) is is_refused


def test_a_segment_that_is_none_is_in_no_tablespace() -> None:
    """A partitioned table has TS# 0, which is that of SYSTEM."""
    system = [TABLESPACES[0] | {"flags": ENCRYPTED}, *TABLESPACES[1:]]
    assert joined(**partitions(P1=PLAIN), sys_ts=system).refusal is None
    organised = {"sys_tab": tab(0, ORGANISED, 0), **index(PLAIN)}
    assert joined(**organised, sys_ts=system).refusal is None


def lob(ts: int) -> dict[str, list[dict[str, Any]]]:
    return {"sys_lob": [{"obj": OBJ, "int-col": 2, "l-obj": 720, "ts": ts}]}


def fragment(number: int, ts: int, part: int, parent: int = 720) -> dict[str, Any]:
    return {"frag-obj": number, "parent-obj": parent, "ts": ts, "table-part": part}


OF_LOBS: Final[list[tuple[str, dict[str, list[dict[str, Any]]], str, str]]] = [
    (
        "LOB of a table",
        lob(SECURE),
        "the encrypted tablespace SECURE",
        'MOVE LOB ("DOC") STORE AS',
    ),
    (
        "LOB of a partition",
        partitions(P1=PLAIN, P2=PLAIN)
        | lob(PLAIN)
        | {"sys_lob_frag": [fragment(721, PLAIN, 711), fragment(722, SECURE, 712)]},
        'the encrypted tablespace SECURE (partition "P2")',
        'MOVE PARTITION "P2" LOB ("DOC") STORE AS',
    ),
    (
        "LOB of a subpartition",
        COMPOSITE
        | {"sys_tabsubpart": [{"obj": 712, "data-obj": 712, "p-obj": 710, "ts": PLAIN}]}
        | lob(PLAIN)
        | {
            "sys_lob_comp_part": [{"part-obj": 730, "l-obj": 720}],
            "sys_lob_frag": [fragment(731, SECURE, 712, 730)],
        },
        'the encrypted tablespace SECURE (subpartition "S2")',
        'MOVE SUBPARTITION "S2" LOB ("DOC") STORE AS',
    ),
]


@pytest.mark.parametrize(
    ("sections", "place", "move"), [one[1:] for one in OF_LOBS], ids=[one[0] for one in OF_LOBS]
)
def test_a_column_with_a_lob_segment_there_is_left_out(
    sections: dict[str, list[dict[str, Any]]], place: str, move: str
) -> None:
    table = joined(**sections)
    assert table.refusal is None
    (column,) = table.left_out
    assert column.name == "DOC"
    assert column.unsupported == f"the LOB is stored in {place}, {CIPHER}"
    (segment,) = StoredSegments(rows(**sections)).encrypted_lob(OBJ, 2)
    to = f'LOB ("DOC") STORE AS ({TO[:-1]})'
    assert segment.move("APP", "T", to) == f'ALTER TABLE "APP"."T" {move} ({TO[:-1]});'


def test_the_default_of_a_partitioned_lob_is_no_segment() -> None:
    sections = partitions(P1=PLAIN) | lob(SECURE) | {"sys_lob_frag": [fragment(721, PLAIN, 711)]}
    assert joined(**sections).left_out == ()


def test_rows_that_do_not_tell_refuse_nothing_and_say_so() -> None:
    assert is_encryption_known(rows())
    untold = [{"ts": SECURE, "block-size": 8192}]
    for unknown in (rows(sys_ts=untold), rows(sys_ts=[]), rows(sys_tab=tab(None))):
        assert not is_encryption_known(unknown)
        (table,) = join_tables(unknown, "d.json")
        assert table.refusal is None


def compressed(*objs: int, columnar: bool = False) -> Compression:
    return Compression(frozenset(objs), frozenset(objs if columnar else ()))


SUBPARTITIONS: Final = COMPOSITE | {
    "sys_tabsubpart": [
        {"obj": number, "data-obj": number, "p-obj": 710, "ts": PLAIN} for number in (711, 712)
    ]
}


def deferred(obj: int, flag: int | None) -> dict[str, list[dict[str, Any]]]:
    told = {} if flag is None else {"cmp-flag": flag}
    return {"sys_deferredstg": [{"obj": obj, "flags-stg": 4} | told]}


@pytest.mark.parametrize(
    ("sections", "of", "subject", "part"),
    [
        ({}, (OBJ,), "it {}", ""),
        (partitions(P1=PLAIN, P2=PLAIN), (712,), 'partition "P2" {}', ' PARTITION "P2"'),
        (SUBPARTITIONS, (711,), 'subpartition "S1" {}', ' SUBPARTITION "S1"'),
    ],
    ids=["heap", "partition", "subpartition"],
)
def test_a_compressed_segment_is_named_with_the_sql(
    sections: dict[str, list[dict[str, Any]]], of: tuple[int, ...], subject: str, part: str
) -> None:
    made = rows(**sections)
    logged = "ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;"
    for all_columns_logged, expected in (
        (True, None),
        (
            False,
            subject.format("is")
            + " compressed, and rows are logged without their values: ALTER TABLE"
            + f' "APP"."T" {logged}',
        ),
    ):
        (table,) = join_tables(
            made, "", all_columns_logged=all_columns_logged, compression=compressed(*of)
        )
        assert table.refusal == expected
    (table,) = join_tables(made, "", compression=compressed(*of, columnar=True))
    assert table.refusal == (
        subject.format("has")
        + " hybrid columnar compression, so rows cannot be read from redo; uncompress it:"
        + f' ALTER TABLE "APP"."T" MOVE{part} NOCOMPRESS;'
    )


@pytest.mark.parametrize(
    ("sections", "obj"),
    [({}, OBJ), (partitions(P1=PLAIN, P2=PLAIN), 712), (SUBPARTITIONS, 711)],
    ids=["heap", "partition", "subpartition"],
)
@pytest.mark.parametrize(
    ("flag", "word"),
    [
        # DBA_TABLES.COMPRESS_FOR: BASIC, ADVANCED; QUERY and ARCHIVE; and where nobody told.
        (1, "compressed, and rows"),
        (2, "compressed, and rows"),
        (0, "hybrid columnar"),
        (None, "compressed, and rows"),
    ],
)
def test_a_segment_that_is_not_there_yet_will_be_compressed(
    sections: dict[str, list[dict[str, Any]]], obj: int, flag: int | None, word: str
) -> None:
    made = rows(**sections, **deferred(obj, flag))
    (table,) = join_tables(made, "", all_columns_logged=False)
    assert table.refusal is not None
    assert word in table.refusal


def test_encryption_is_told_before_compression() -> None:
    (table,) = join_tables(
        rows(sys_tab=tab(SECURE)), "", compression=compressed(OBJ, columnar=True)
    )
    assert table.refusal == refused(f"it is {IN_SECURE}")

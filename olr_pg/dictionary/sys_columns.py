"""Maps the columns of the SYS tables that define tables to the fields of the rows in `sys_rows`.

The same mapping is used for rows from queries of a live database and for rows decoded from redo
(dictionary §2, §10).
"""

from __future__ import annotations

from typing import Any, Final

_COMPOSITE: Final = {"obj": "OBJ#", "data_obj": "DATAOBJ#", "bo": "BO#", "part": "PART#"}
_PARTITION: Final = {**_COMPOSITE, "ts": "TS#"}

SYS_COLUMNS: Final[dict[str, dict[str, str]]] = {
    "sys_user": {"user": "USER#", "name": "NAME", "spare1": "SPARE1"},
    "sys_obj": {
        "owner": "OWNER#",
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "name": "NAME",
        "subname": "SUBNAME",
        "type": "TYPE#",
        "flags": "FLAGS",
    },
    "sys_tab": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "ts": "TS#",
        "clu_cols": "CLUCOLS",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_col": {
        "obj": "OBJ#",
        "col": "COL#",
        "seg_col": "SEGCOL#",
        "int_col": "INTCOL#",
        "name": "NAME",
        "type": "TYPE#",
        "length": "LENGTH",
        "precision": "PRECISION#",
        "scale": "SCALE",
        "charset_form": "CHARSETFORM",
        "charset_id": "CHARSETID",
        "null": "NULL$",
        "property": "PROPERTY",
    },
    "sys_cdef": {"con": "CON#", "obj": "OBJ#", "type": "TYPE#", "enabled": "ENABLED"},
    "sys_ccol": {"con": "CON#", "obj": "OBJ#", "int_col": "INTCOL#", "pos": "POS#"},
    "sys_tabpart": _PARTITION,
    "sys_tabcompart": _COMPOSITE,
    "sys_tabsubpart": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "p_obj": "POBJ#",
        "ts": "TS#",
        "part": "SUBPART#",
    },
    "sys_lob": {
        "obj": "OBJ#",
        "int_col": "INTCOL#",
        "l_obj": "LOBJ#",
        "ts": "TS#",
        "ind": "IND#",
        "chunk": "CHUNK",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_lob_comp_part": {"part_obj": "PARTOBJ#", "l_obj": "LOBJ#"},
    "sys_lob_frag": {
        "frag_obj": "FRAGOBJ#",
        "parent_obj": "PARENTOBJ#",
        "table_part": "TABFRAGOBJ#",
        "ts": "TS#",
        "ind": "INDFRAGOBJ#",
    },
    "sys_ts": {
        "ts": "TS#",
        "name": "NAME",
        "block_size": "BLOCKSIZE",
        "state": "ONLINE$",
        "flags": "FLAGS",
    },
    "sys_ecol": {
        "tab_obj": "TABOBJ#",
        "col_num": "COLNUM",
        "guard_id": "GUARD_ID",
        "default": "BINARYDEFVAL",
    },
    "sys_deferredstg": {"obj": "OBJ#", "flags_stg": "FLAGS_STG", "cmp_flag": "CMPFLAG_STG"},
    "sys_ind": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "bo": "BO#",
        "ts": "TS#",
        "type": "TYPE#",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_icol": {"obj": "OBJ#", "bo": "BO#", "int_col": "INTCOL#", "pos": "POS#"},
    "sys_indpart": _PARTITION,
    "sys_con": {"con": "CON#", "owner": "OWNER#", "name": "NAME"},
    "sys_com": {"obj": "OBJ#", "col": "COL#", "text": "COMMENT$"},
}
"""The columns that are queried and decoded. The outer keys are fields of `sys_rows.SysRows`; each
value maps the fields of a row to columns of the SYS table.
"""

TOLD_BY_REDO: Final[dict[str, dict[str, str]]] = {
    "sys_col": {"default_text": "DEFAULT$"},
    "sys_cdef": {
        "parent": "ROBJ#",
        "parent_con": "RCON#",
        "on_delete": "REFACT",
        "state": "DEFER",
        "condition": "CONDITION",
    },
}
"""Further columns, which are only decoded from redo and not queried. So their values are known only
for objects that DDL in the redo has created or altered.
"""

TEXTS: Final = frozenset({"name", "subname", "text", "condition", "default_text"})
"""The fields of rows that contain text in the database's character set."""

_ABSENT: Final[dict[str, Any]] = {
    "precision": -1,
    "scale": -1,
    "guard_id": -1,
    "default": None,
    "cmp_flag": None,
    "subname": "",
    "text": "",
    "condition": "",
    "default_text": "",
    "state": None,
}


def absent(field: str) -> Any:
    """Return the value that represents NULL in a field of a row: 0, unless defined otherwise."""
    return _ABSENT.get(field, 0)

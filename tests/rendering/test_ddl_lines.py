"""DDL statements as JSON lines."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from olr_pg.rendering.ddl_lines import render_ddl
from olr_pg.scalars import pack_xid


def statement(command: int, name: str) -> Any:
    return SimpleNamespace(scn=5, owner="SHOP", name=name, command=command, text=f"… {name}")


def test_wanted_statements_have_a_line_each() -> None:
    transaction: Any = SimpleNamespace(
        commit_scn=9, xid=pack_xid(1, 2, 3), statements=(statement(15, "A"), statement(999, "B"))
    )
    lines = [json.loads(line) for line in render_ddl(transaction, lambda _owner, _name: True)]
    assert [line["command"] for line in lines] == ["ALTER TABLE", 999]
    assert lines[0] == {
        "op": "ddl",
        "scn": 5,
        "commit_scn": 9,
        "xid": "1.2.3",
        "table": "SHOP.A",
        "command": "ALTER TABLE",
        "text": "… A",
    }
    (only,) = render_ddl(transaction, lambda _owner, name: name == "B")
    assert json.loads(only)["table"] == "SHOP.B"

"""``olr-pg fallback``, from its beginning to its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from olr_pg.cli.main import make_app
from tests.fallback.made_way import MadeWay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proving.served import Served


def test_verify_finds_each_kind_of_difference(
    served: Served, logical_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The stand-in tells no sizes; a Spark for three rows would be all that the test takes.
    monkeypatch.setattr("olr_pg.load.part_tasks.HERE_BYTES", 1 << 60)
    made = MadeWay(served, logical_database, "compared")
    config = made.config_file(tmp_path)
    app = make_app(("fallback",))

    def verify() -> tuple[int, dict[str, int]]:
        result = CliRunner().invoke(app, ["fallback", "verify", "--config", str(config), "--json"])
        (found,) = json.loads(result.stdout)["tables"]
        return result.exit_code, found["differences"]

    rows = "(1, 'a', 1, NULL), (2, 'b', 2, NULL), (3, 'é€', NULL, NULL)"
    made.sql(f"INSERT INTO {{t}} VALUES {rows}")
    made.oracle(f"INSERT INTO {{t}} VALUES {rows}")
    assert verify() == (0, {})
    made.oracle("DELETE FROM {t} WHERE id = 1")
    assert verify() == (1, {"extra": 1})
    made.oracle("INSERT INTO {t} VALUES (4, 'd', 4, NULL)")
    assert verify() == (1, {"missing": 1, "extra": 1})
    made.oracle("UPDATE {t} SET v = 'e' WHERE id = 3")
    assert verify() == (1, {"missing": 1, "extra": 1, "different": 1})
    made.sql("ALTER TABLE {t} RENAME TO compared_away")
    result = CliRunner().invoke(app, ["fallback", "verify", "--config", str(config)])
    assert result.exit_code not in (0, 1)
    assert "OLR-" in result.output


def test_a_way_back_from_its_beginning_to_its_end(
    served: Served, logical_database: str, tmp_path: Path
) -> None:
    made = MadeWay(served, logical_database, "commanded")
    config = made.config_file(tmp_path)
    app = make_app(("fallback",))

    def call(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["fallback", *arguments, "--config", str(config)])
        return result.exit_code, result.output

    code, said = call("status")
    assert (code, said) == (0, "The way back has not begun: `olr-pg fallback begin`.\n")
    assert call("run", "--once")[0] == 8
    code, said = call("begin", "--json")
    assert code == 0
    assert json.loads(said)["slot"] == "olr_pg_fallback_olr_pg"
    assert call("begin")[0] == 0
    made.sql("INSERT INTO {t} VALUES (1, 'é', 5, repeat('b', 3000)), (2, '', 6, NULL)")
    code, said = call("run", "--once")
    assert code == 0, said
    assert made.rows()[1] == [(1, "é", 5, "b" * 3000), (2, None, 6, None)]
    found = json.loads(call("status", "--json")[1])
    assert found["ledger"]["transactions"] >= 1
    assert found["slot"]["wal_status"] == "reserved"

    made.sql("UPDATE {t} SET v = repeat('x', 41)")
    code, said = call("run", "--once")
    assert code == 1, said
    assert "OLR-07307" in said
    assert "OLR-07350" in said
    assert "STOPPED" in call("status")[1]
    made.oracle("ALTER TABLE {t} MODIFY v VARCHAR2(100)")
    assert call("resume", "--table", "APP.COMMANDED") == (0, "APP.COMMANDED: catches up\n")
    assert call("run", "--once")[0] == 0
    assert made.rows()[1][0][1] == "x" * 41
    assert call("end")[0] == 0
    assert call("status")[1] == "The way back has not begun: `olr-pg fallback begin`.\n"

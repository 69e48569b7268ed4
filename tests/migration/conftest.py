"""`olr-pg migrate` in this process, with the Spark session that all tests share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.cli.migration.migrate import migrate
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from olr_pg.errors import Code


@pytest.fixture
def migrate_here(
    shared_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Any]:
    """Runs the command with a configuration: what it prints, and its error's code."""
    monkeypatch.setattr(
        "olr_pg.cli.migration.migrate.spark_session_of", lambda *_: shared_session()
    )
    monkeypatch.setattr("olr_pg.replicator.spark_decoding.get_session", lambda _: shared_session())
    # The session is that of all tests: neither the migration nor the appliance in it stops it.
    monkeypatch.setattr("olr_pg.spark.session.stop_session", lambda: None)
    monkeypatch.setattr("olr_pg.appliance.appliance.stop_session", lambda: None)
    monkeypatch.setattr(
        "olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None
    )

    def run(config: Path, **options: Any) -> tuple[Any, Code | int | None]:
        code: Code | int | None = None
        try:
            migrate(config, **{"once": True, "as_json": True, **options})
        except OlrPgError as error:
            code = error.code
        printed = capsys.readouterr().out.splitlines()
        return (json.loads(printed[-1]) if printed else None), code

    return run

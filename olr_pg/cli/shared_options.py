"""Options that several commands share, and access to the configuration that --config names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.completion import table_names

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="OWNER.NAME",
        help="Only this table of `apply.tables`; repeatable.",
        autocompletion=table_names,
    ),
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        metavar="NAME",
        help="Accept that the target lacks these objects of the source, such as 'trigger"
        " SHOP.*'; repeatable.",
    ),
]
FallbackOption = Annotated[
    bool,
    typer.Option(
        "--fallback",
        help="Start the replication back to Oracle before applications write to the target"
        " (section `fallback` of the configuration).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def read_config(path: Path, target: str | None) -> Config:
    """Read the configuration of one target, for a command that prints its own result.

    Raises:
        OlrPgError: 10xx errors of the file, 1105 or 1106 errors of the target.
    """
    from olr_pg.config.environment import load_for_work
    from olr_pg.config.model import secret_texts
    from olr_pg.config.reading import one_target
    from olr_pg.observability.logging_setup import WARNINGS, configure_logging

    config = load_for_work(path)
    level = min(config.log.level, WARNINGS)
    configure_logging(level, config.log.format, secrets=secret_texts(config))
    return one_target(config, target)


def spark_session_of(config: Config, preload: tuple[str, ...]) -> Any:
    """Open the configured Spark session."""
    from olr_pg.appliance.spark_settings import spark_settings
    from olr_pg.spark.session import get_session

    return get_session(spark_settings(config, preload))

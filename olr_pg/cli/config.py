"""``olr-pg config``: check a configuration file, print its JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.output import print_json, print_line

if TYPE_CHECKING:
    from olr_pg.config.model import Config

app = typer.Typer(help="Check a configuration file; print its schema.", no_args_is_help=True)

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config", "-c", metavar="FILE", help="The configuration file (JSON, comments allowed)."
    ),
]


@app.command("check")
def check(
    config: ConfigOption,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object, also for a file with errors.")
    ] = False,
) -> None:
    """Read a configuration file, resolve its secrets and report everything that is wrong.

    Nothing is connected to, and no secret is printed.
    """
    from olr_pg.config.load import ConfigError, load_config

    try:
        loaded = load_config(config)
    except ConfigError as error:
        if as_json:
            problems = [
                {"key": p.key, "found": p.found, "expected": p.expected} for p in error.problems
            ]
            print_json({"valid": False, "code": error.label, "problems": problems})
            raise typer.Exit(error.exit_code) from None
        raise
    summary = summarize(loaded)
    if as_json:
        print_json({"valid": True, **summary})
        return
    print_line(f"{config}: valid")
    for key, value in summary.items():
        print_line(f"  {key}: {value}")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the configuration file, for editors and other tools."""
    from olr_pg.config.load import json_schema

    print_json(json_schema())


def summarize(config: Config) -> dict[str, Any]:
    """What a valid configuration sets up, without its secrets."""
    source, apply = config.source, config.apply
    if source.kind == "oracle":
        origin = {"source": f"oracle {source.server} as {source.user}"}
    else:
        origin = {
            "source": "offline",
            "dictionary": str(source.dictionary),
            "logs": ", ".join(map(str, source.logs)),
        }
        if source.tables is not None:
            origin["tables"] = str(source.tables)
    if apply is None:
        target = "no: only the port is served"
    else:
        target = "to the embedded PostgreSQL" if apply.embedded else "to a PostgreSQL server"
    return {
        **origin,
        "data": str(config.context.data),
        "port": str(config.target.address),
        "apply": target,
        "spark": config.spark.master,
    }

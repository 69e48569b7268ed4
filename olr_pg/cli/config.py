"""``olr-pg config``: checks a configuration file, or prints its JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import USUAL_FILES, target_names, usual_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.config.model import Config
    from olr_pg.config.reading import ConfigError

app = typer.Typer(help="Check a configuration file; print its schema.", no_args_is_help=True)


def _config_option(default: Callable[[], Path | None]) -> Any:
    return typer.Option(
        "--config",
        "--file",  # the name of this option in OLR
        "-c",
        metavar="FILE",
        envvar="OLR_PG_CONFIG",
        default_factory=default,
        show_default=", else ".join(f"./{file.as_posix()}" for file in USUAL_FILES),
        help="The configuration file (JSON, comments allowed).",
    )


ConfigOption = Annotated[Path, _config_option(usual_file)]
LateConfigOption = Annotated[Path | None, _config_option(lambda: None)]
"""For a command that does not always need a configuration. The command gets None if no file is
named, and then calls `usual_file` itself.
"""

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="The name of the target, if the configuration has several.",
        autocompletion=target_names,
    ),
]


@app.command("check")
def check(
    config: ConfigOption,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object, even if the file has errors.")
    ] = False,
) -> None:
    """Read a configuration file, resolve its secrets and report everything that is wrong.

    The command also checks the TLS files, and whether `source.server` is an address, or a name in
    tnsnames.ora. The command opens no connection, looks up no host, and prints no secret.
    """
    from olr_pg.config.outside import check_outside
    from olr_pg.config.reading import ConfigError, load_config

    try:
        loaded = load_config(config)
        check_outside(loaded, str(config))
    except ConfigError as error:
        if as_json:
            print_json(_problems(error))
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
    from olr_pg.config.reading import json_schema

    print_json(json_schema())


def summarize(config: Config) -> dict[str, Any]:
    """Return a summary of a valid configuration, without secrets."""
    source = config.source
    if source.kind == "oracle":
        origin = {"source": f"oracle {source.server} as {source.user}"}
        if source.standby is not None:
            login = source.standby
            origin["redo from"] = f"standby {login.server} as {login.user}, {login.mode}"
    else:
        origin = {
            "source": "offline",
            "dictionary": ", ".join(map(str, source.dictionary)),
            "logs": ", ".join(map(str, source.logs)),
        }
        if source.tables is not None:
            origin["tables"] = str(source.tables)
    parts = [{"port": str(part.port.address), "apply": _applied(part)} for part in config.targets]
    several = {f"target {part.name}": f"{one['port']}, apply {one['apply']}"
               for part, one in zip(config.targets, parts, strict=True)}  # fmt: skip
    return {
        **origin,
        "data": str(config.context.data),
        **(parts[0] if not config.targets[0].name else several),
        "spark": config.spark.master,
    }


def _applied(config: Config) -> str:
    if config.apply is None:
        return "no (the appliance only serves the port)"
    return "to the embedded PostgreSQL" if config.apply.embedded else "to a PostgreSQL server"


def _problems(error: ConfigError) -> dict[str, object]:
    problems = [{"key": p.key, "found": p.found, "expected": p.expected} for p in error.problems]
    return {"valid": False, "code": error.label, "problems": problems}

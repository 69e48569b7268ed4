"""``olr-pg dictionary``: writes the dictionary of a live database to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from olr_pg.cli.config import ConfigOption
from olr_pg.cli.printing import log_to_stderr, print_line
from olr_pg.observability.wording import counted

app = typer.Typer(help="Export the dictionary of the source.", no_args_is_help=True)


@app.callback()
def dictionary() -> None:
    """Read the dictionary of the source."""


@app.command("export")
def export(
    config: ConfigOption,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to which the snapshot is written."
        ),
    ],
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="SQL",
            help="A query that returns owner and name of the tables. Default: `apply.tables`"
            " of the configuration.",
        ),
    ] = None,
    scn: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="SCN",
            show_default=False,
            help="Export the dictionary as of this SCN. Default: the current SCN.",
        ),
    ] = 0,
) -> None:
    """Write the dictionary of a live source as a snapshot for an offline source.

    FILE.inventory.json beside it contains the other objects of the tables' schemas, for assess and
    schema. With several containers, each has its own files, such as FILE.PDB1.json, all as of one
    SCN.
    """
    from olr_pg.appliance.dictionary_export import export_dictionary
    from olr_pg.config.reading import load_config

    log_to_stderr()
    for snapshot, path in export_dictionary(load_config(config), query, scn, out):
        number = counted(len(snapshot.tables), "table")
        print_line(f"{number} as of SCN {snapshot.scn}: {path}")

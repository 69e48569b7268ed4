"""``olr-pg fetch-lobs``: fetches LOB values that the redo did not contain from the live source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import JsonOption, TableOption, read_config

if TYPE_CHECKING:
    from olr_pg.load.lob_fetching import FetchedTable

EXIT_LEFT = 1


def fetch_lobs(
    config: ConfigOption,
    *,
    table: TableOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the LOB values that the target lacks from the live source.

    These are the values that `olr-pg errors list` shows as incomplete. It works with and without a
    running `olr-pg run`. Exit code 1 if some could not be fetched.
    """
    from olr_pg.load.lob_fetching import fetch_lobs as fetch

    done: list[FetchedTable] = []
    for one in fetch(read_config(config, target_name), table or ()):
        done.append(one)
        if not as_json:
            reason = f": {one.failure}" if one.failure else ""
            print_line(f"{one.table}: {one.fetched} values fetched, {one.left} left{reason}")
    if as_json:
        print_json({"tables": [one._asdict() for one in done]})
    elif not done:
        print_line("no table lacks LOB values")
    if any(one.left for one in done):
        raise typer.Exit(EXIT_LEFT)

"""Finds the default configuration file for commands without --config."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from olr_pg.errors import Code, OlrPgError

USUAL_FILES: Final = (Path("olr-pg.json"), Path("configs", "Replicator.json"))
"""The default configuration files, relative to the working directory; the second is the default of
OLR.
"""


def usual_file() -> Path:
    """Return the configuration file to read if neither the command line nor the environment names
    one.

    Raises:
        OlrPgError: 1120, no default configuration file exists.
    """
    for file in USUAL_FILES:
        if file.is_file():
            return file
    places = " or ".join(str(file.absolute()) for file in USUAL_FILES)
    raise OlrPgError(
        Code.NO_CONFIG_FILE, "neither --config nor OLR_PG_CONFIG names a file", file=places
    )

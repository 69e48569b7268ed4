"""``olr-pg version``."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from olr_pg.cli.printing import print_json, print_line


def version_of_package() -> str:
    """Return the installed version of this package."""
    from importlib.metadata import version as installed

    return installed("olr-pg")


def platform_text() -> str:
    """Operating system, machine and Python, for logs and reports."""
    return (
        f"{platform.system()} {platform.release()} {platform.machine()},"
        f" Python {platform.python_version()}"
    )


def print_and_exit(wanted: bool) -> None:
    """Print the version and exit, for the eager ``--version`` option."""
    if wanted:
        print_line(f"olr-pg {version_of_package()}")
        raise typer.Exit


def version(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Print the version and the platform."""
    if as_json:
        print_json({"version": version_of_package(), "platform": platform_text()})
    else:
        print_line(f"olr-pg {version_of_package()} ({platform_text()})")

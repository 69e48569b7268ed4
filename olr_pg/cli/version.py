"""``olr-pg version``: prints the version of the package, and of the platform."""

from __future__ import annotations

import platform
import sysconfig
from pathlib import Path
from typing import Annotated

import typer

from olr_pg.cli.printing import print_json, print_line


def version_of_package() -> str:
    """Return the installed version of this package."""
    from importlib.metadata import version as installed

    return installed("olr-pg")


def shipped_files() -> Path | None:
    """Return the folder with `sql/` and `configs/`; None if they are not installed."""
    installed = Path(sysconfig.get_path("data")) / "share" / "olr-pg"
    checkout = Path(__file__).resolve().parents[2]
    return next((place for place in (installed, checkout) if (place / "sql").is_dir()), None)


def platform_text() -> str:
    """Return operating system, machine and Python version, for logs and reports."""
    return (
        f"{platform.system()} {platform.release()} {platform.machine()},"
        f" Python {platform.python_version()}"
    )


def print_and_exit(wanted: bool) -> None:
    """Print the version and exit; called by the ``--version`` option."""
    if wanted:
        # Typer ends the process after this option, and nothing else flushes stdout.
        print_line(f"olr-pg {version_of_package()}", at_once=True)
        raise typer.Exit


def version(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Print the version, the platform, and the folders of the SQL scripts and the examples."""
    files = shipped_files()
    if as_json:
        print_json(
            {
                "version": version_of_package(),
                "platform": platform_text(),
                "files": None if files is None else str(files),
            }
        )
    else:
        print_line(f"olr-pg {version_of_package()} ({platform_text()})")
        if files is not None:
            print_line(f"sql/ and configs/ are in {files}")

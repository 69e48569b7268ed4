"""``olr-pg prepare``: does the work that the first start would otherwise wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from olr_pg.cli.printing import log_to_stderr, print_json, print_line


def prepare(
    *,
    no_java: Annotated[
        bool,
        typer.Option("--no-java", help="Do not archive Java's classes (about 120 MB)."),
    ] = False,
    export_to: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Also write the compiled kernels to a pack, for machines with the same"
            " processor and the same versions of the software.",
        ),
    ] = None,
    import_from: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Import the kernels from a pack instead of compiling them. A pack contains"
            " machine code: use only a pack that you trust.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Compile the kernels and archive Java's classes, so that commands start quickly.

    The command takes one or two minutes, and about 130 MB in the user's cache directory. If
    everything is up to date, the command takes seconds. Run the command again after an upgrade of
    the package, Java or Spark. Without this command, the first start compiles the kernels, and
    every Spark session starts a few seconds later.
    """
    if export_to is not None and import_from is not None:
        raise typer.BadParameter("--export and --import cannot be used together")
    from olr_pg.kernel_compilation import compile_kernels, export_kernels, import_kernels
    from olr_pg.spark.jobs import archive_classes

    log_to_stderr()
    if import_from is not None:
        done = f"{import_kernels(import_from)} imported from {import_from}"
    elif export_to is not None:
        done = f"compiled, {export_kernels(export_to)} written to {export_to}"
    else:
        compile_kernels()
        done = "compiled"
    if not as_json:
        print_line(f"kernels: {done}")
    archived = not no_java and archive_classes()
    if as_json:
        print_json({"kernels": True, "class_archive": archived})
    elif not no_java:
        done = "archived" if archived else "not archived, because this Java cannot archive classes"
        print_line(f"Java's classes: {done}")

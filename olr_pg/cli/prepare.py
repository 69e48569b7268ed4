"""``olr-pg prepare``: the work that the first start would otherwise wait for."""

from __future__ import annotations

from typing import Annotated

import typer

from olr_pg.cli.printing import log_to_stderr, print_json, print_line


def prepare(
    *,
    no_java: Annotated[
        bool,
        typer.Option("--no-java", help="Leave the archive of Java's classes out (some 120 MB)."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Compile the kernels and archive Java's classes, so that commands start at once.

    Takes a minute or two, and some 130 MB of the user's cache directory; seconds if all is there.
    A new version of the package, of Java or of Spark wants it again. Without it the first start
    compiles the kernels, and every session of Spark takes some seconds longer.
    """
    from olr_pg.kernel_compilation import compile_kernels
    from olr_pg.spark.archiving import archive_classes

    log_to_stderr()
    compile_kernels()
    if not as_json:
        print_line("kernels: compiled")
    archived = not no_java and archive_classes()
    if as_json:
        print_json({"kernels": True, "class_archive": archived})
    elif not no_java:
        print_line(f"Java's classes: {'archived' if archived else 'this Java makes no archive'}")

"""The entry point of ``olr-pg``.

Nothing heavy is imported here or at the top of a command's module: ``--help`` answers at once, and
Spark, Numba and database drivers are loaded by the commands that need them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from olr_pg.cli import (
    bench,
    config,
    decode,
    demo,
    dictionary,
    doctor,
    dump,
    errors,
    init,
    logs,
    prepare,
    prove,
    reload,
    simulate,
    status,
    tables,
    version,
)
from olr_pg.cli import run as run_command
from olr_pg.cli.group import ReportingGroup
from olr_pg.cli.migration import assess, cutover, fetch, load, migrate, schema, verify

app = typer.Typer(
    name="olr-pg",
    cls=ReportingGroup,
    help="Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs.",
    epilog=(
        "Exit codes: 0 done, 1 differences or stopped tables, 2 usage or configuration, 3 logs,"
        " 4 dictionary, 5 server, 6 PostgreSQL, 7 Spark, 8 Oracle, 9 simulator, 10 and 11 findings"
        " of doctor, 12 no appliance to ask, 70 a defect,"
        " 130 interrupted, 143 terminated, 141 nobody reads the output."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    version_wanted: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=version.print_and_exit,
        ),
    ] = False,
    json_errors: Annotated[
        bool,
        typer.Option(
            "--json-errors",
            help="Report an error as one JSON object on stderr: code, what, where, action.",
        ),
    ] = False,
) -> None:
    """Replicates Oracle into PostgreSQL by reading Oracle's binary redo logs."""


app.command("init")(init.init)
app.command("run")(run_command.run)
app.command("status")(status.status)
app.command("reload")(reload.reload)
app.command("initial-load")(load.initial_load)
app.command("logs")(logs.logs)
app.command("verify")(verify.verify)
app.command("repair")(verify.repair)
app.command("fetch-lobs")(fetch.fetch_lobs)
app.add_typer(errors.app, name="errors")
app.add_typer(tables.app, name="tables")
app.command("cutover")(cutover.cutover)
app.command("migrate")(migrate.migrate)
app.command("assess")(assess.assess)
app.add_typer(schema.app, name="schema")
app.command("prove")(prove.prove)
app.command("decode")(decode.decode)
app.command("dump")(dump.dump)
app.command("doctor")(doctor.doctor)
app.add_typer(dictionary.app, name="dictionary")
app.command("demo")(demo.demo)
app.command("prepare")(prepare.prepare)
app.command("simulate")(simulate.simulate)
app.command("bench")(bench.bench)
app.add_typer(config.app, name="config")
app.command("version")(version.version)


def run() -> None:
    """Run the command line of this process; never returns."""
    app(prog_name="olr-pg")

"""``olr-pg decode``: converts logs to JSON Lines or Parquet."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.printing import byte_progress, log_to_stderr, print_json, write_bytes
from olr_pg.cli.shared_options import table_names
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from olr_pg.decoding.split import Decode
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.replicator.decode_once import LogDecoding

SPILL_BYTES: Final = 32 << 20
"""If open transactions exceed this number of bytes, the largest are spilled to the temporary
directory.
"""

SHORT_BYTES: Final = 2 << 20
"""Up to this size of all logs, kernels that are not compiled yet are interpreted, which takes a few
seconds per MB. Compiling them takes half a minute.
"""

_SHORT_SECONDS: Final = 30.0
"""If interpreting takes longer than this, the kernels are compiled."""


class Format(StrEnum):
    """The output formats."""

    JSONL = "jsonl"
    PARQUET = "parquet"


class InvalidDate(StrEnum):
    """What to do with an invalid date; the values are those of `apply.policies.invalid-date`."""

    ERROR = "error"
    NULL = "null"


def parse_log(text: str) -> Path:
    """Parse a LOG argument. An empty text is refused, because it usually comes from an unset
    variable and would mean the current directory.
    """
    return Path(parse_place(text))


def parse_place(text: str) -> str:
    """Parse a LOG argument that can also be a URL; see `parse_log` for other texts."""
    if not text:
        raise typer.BadParameter("the argument is empty; name a file, a directory or a glob")
    return text


def decode(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG",
            help="Archived logs: files, directories or globs, or URLs of them (s3://…).",
            parser=parse_place,
        ),
    ],
    *,
    dictionary: Annotated[
        list[Path],
        typer.Option(
            "--dictionary",
            "-d",
            metavar="FILE",
            help="The dictionary snapshot. If the logs contain several containers (PDBs),"
            " give one for each.",
        ),
    ],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="OWNER.NAME",
            autocompletion=table_names,
            help="Print only this table; repeatable. With several containers, PDB.OWNER.NAME"
            " means the table of one container, and OWNER.NAME the tables of all."
            " Default: all tables except Oracle's own.",
        ),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="JSON Lines on the standard output, or Parquet files in the directory --out,"
            " one file for each table and log.",
        ),
    ] = Format.JSONL,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The directory for the Parquet files."),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="The number of decoding processes; this number does not change the output.",
        ),
    ] = 1,
    session: Annotated[
        bool,
        typer.Option(
            "--session",
            help="Add to each begin line the session of the transaction: redo thread,"
            " transaction name, user, machine and program. Parquet files always contain"
            " the session.",
        ),
    ] = False,
    ddl: Annotated[
        bool,
        typer.Option(
            "--ddl",
            help='Also print DDL statements, as lines with op "ddl", in commit order among'
            " the changes.",
        ),
    ] = False,
    invalid_date: Annotated[
        InvalidDate,
        typer.Option(
            "--invalid-date",
            help="What to do with a date or time that does not exist, such as a month 13."
            " `error` ends the command. `null` replaces the value by null; at the end, a warning"
            " gives the number of these values.",
        ),
    ] = InvalidDate.ERROR,
    account: Annotated[
        bool,
        typer.Option(
            "--account",
            help="Instead of the changes, print one JSON object that counts what happened to"
            " all change vectors and row changes. The command fails if a vector or a"
            " change was lost.",
        ),
    ] = False,
    incident_dir: Annotated[
        Path | None,
        typer.Option(
            "--incident-dir",
            metavar="DIR",
            help="The directory for the incident file of a decoding error, which `olr-pg dump"
            " --incident FILE` prints. Default: the system's temporary directory.",
        ),
    ] = None,
) -> None:
    """Print committed changes as JSON Lines, one element per line, or write them to Parquet files.

    The changes are in delivery order. As JSON Lines, each transaction is a "begin" line, its
    changes, and a "commit" line.
    """
    _check_options(form, out, ddl=ddl, account=account)
    log_to_stderr()
    from olr_pg.decoding.heap import keep_freed_memory
    from olr_pg.decoding.left_out_report import report_invalid_dates
    from olr_pg.decoding.spill import SpillFiles
    from olr_pg.dictionary.loader import load_dictionary
    from olr_pg.kernels.late_dispatcher import interpret_first
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.invalid_dates import InvalidDates
    from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, is_wanted

    keep_freed_memory()
    snapshot = load_dictionary(map(str, dictionary))
    sessions = SessionDirectory() if session or out else None
    accounts: list[Accounting] = []
    invalid = InvalidDates() if invalid_date is InvalidDate.NULL else None
    lines_of = snapshot.database if sessions is None and not account else None
    with _splits_decoded(jobs, lines_of, with_names=session and not out) as decoder:
        decoding = LogDecoding(snapshot, logs, tables=table or None, packed=True)
        if sum(log.used_bytes for log in decoding.logs) <= SHORT_BYTES:
            interpret_first(_SHORT_SECONDS)
        with byte_progress("decoding") as advance:
            runs = decoding.runs(
                DecodingOptions(
                    progress=advance,
                    incidents=incident_dir or Path(gettempdir()),
                    account=accounts.append,
                    sessions=sessions,
                    storage=SpillFiles(Path(gettempdir()), SPILL_BYTES),
                    decode=decoder,
                    ddl=_ddl_printer(
                        partial(is_wanted, table or None, containers=snapshot.database.containers)
                    )
                    if ddl and not account
                    else None,
                ),
            )
            if out is not None and sessions is not None:
                _write_files(runs, decoding, out, sessions, jobs, invalid)
            elif account:
                for _ in runs:
                    pass
            else:
                _print_lines(runs, decoding, sessions, invalid)
    if invalid is not None:
        report_invalid_dates(invalid.count)
    if account:
        print_json(accounts[0].as_json())
        _check(accounts[0])


def _check(accounting: Accounting) -> None:
    if not accounting.closes:
        raise OlrPgError(
            Code.ACCOUNT_DOES_NOT_CLOSE,
            f"lost: {counted(accounting.vectors_missing, 'row vector')},"
            f" {counted(accounting.changes_missing, 'change')}",
        )


def _check_options(form: Format, out: Path | None, *, ddl: bool, account: bool) -> None:
    """Refuse options that cannot be combined."""
    if (form is Format.PARQUET) is not (out is not None):
        raise typer.BadParameter(
            "--format parquet requires --out DIR, and --out DIR requires --format parquet"
        )
    if out is not None and (ddl or account):
        raise typer.BadParameter(
            "--ddl and --account print lines and cannot be used with --format parquet"
        )


@contextmanager
def _splits_decoded(
    jobs: int, lines_of: Database | None, *, with_names: bool
) -> Iterator[Decode | None]:
    """Yield the function that decodes splits, in `jobs` processes, or in this one if `jobs` is 1.

    Args:
        lines_of, with_names: see `ProcessDecoding`.
    """
    from olr_pg.replicator.decode_once import decode_splits

    if jobs == 1:
        yield partial(decode_splits, with_names=with_names)
        return
    from olr_pg.replicator.process_decoding import ProcessDecoding

    with ProcessDecoding(jobs, lines_of=lines_of, with_names=with_names) as processes:
        yield processes.decode


def _ddl_printer(wanted: Callable[[str, str], bool]) -> Callable[[DictionaryTransaction], None]:
    from olr_pg.rendering.json_lines import render_ddl

    def print_ddl(transaction: DictionaryTransaction) -> None:
        for line in render_ddl(transaction, wanted):
            write_bytes(line)

    return print_ddl


def _print_lines(
    runs: Iterable[ReadyRun],
    decoding: LogDecoding,
    sessions: SessionDirectory | None,
    invalid_dates: InvalidDates | None,
) -> None:
    from olr_pg.rendering.json_lines import PackedLines
    from olr_pg.wire.encoder import Form

    lines = PackedLines(decoding.database, sessions, invalid_dates=invalid_dates)
    for run in runs:
        if run.batch.form is Form.LINES:
            write_bytes(run.blob)
            continue
        for piece in lines.pieces(run.blob, decoding.tables):
            write_bytes(piece)


def _write_files(
    runs: Iterable[ReadyRun],
    decoding: LogDecoding,
    out: Path,
    sessions: SessionDirectory,
    jobs: int,
    invalid_dates: InvalidDates | None,
) -> None:
    from olr_pg.rendering.parquet_files import ParquetFiles

    with ParquetFiles(
        out, decoding, sessions, threads=jobs if jobs > 1 else 0, invalid_dates=invalid_dates
    ) as files:
        for run in runs:
            files.take(run)

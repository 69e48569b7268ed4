"""The commands that `tests.appliance.typed_commands` types, by their options.

`test_typed_commands` compares them with the program: each command and each option is in a form, or
in `LEFT_OUT` with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        *("--once", "--once", "--once", "--until-scn {scn}", "--until-time {time}"),
        *("--until-scn {later}", "--no-apply", "--once --no-apply"),
    ),
    "status": ("", "--json", "--check"),
    "reload": ("",),
    "initial-load": (
        *("", "--resume", "--restart", "{--tables}", "--resume {--tables}", "--json"),
        *("--anew {--tables}", "--anew {--tables}", "--restart {--tables}"),
        *("--anew --later-scn {--tables}", "--anew", "--resume --restart"),
    ),
    "logs": ("", "--purgeable", "--json"),
    "verify": (
        *("", "{--tables}", "--differences {differences}", "--sample 50", "--json"),
        *("--at-scn {scn}", "--at-scn {later}", "{--tables} --differences {differences}"),
        "--continuous --share 50",
        "--continuous --mend-per-hour 100 --lag-max 5 --rows-per-second 1000",
    ),
    "repair": (
        *("--differences {differences}", "--differences {differences} --yes"),
        "--differences {differences} --yes --json",
    ),
    "fetch-lobs": ("", "{--tables}", "--json"),
    "cutover": (
        *("--status", "--status --json", "--until quiet", "--until archived", "--until applied"),
        *("--until verified", "", "--unverified", "--restart --status", "--restart --until quiet"),
        *("--restart --unverified --accept constraint*", "--until nothing", "--final-scn {scn}"),
    ),
    "migrate": (
        *("--plan", "--once", "--once --json", "--once --cutover"),
        "--once --cutover --accept constraint*",
    ),
    "doctor": ("", "--load", "--json"),
    "errors list": ("", "--all", "--json"),
    "errors show": ("{error}", "{error} --json"),
    "errors retry": ("", "{tables}", "{tables}", "--json"),
    "errors skip": (
        *("{error}", "{error} --whole-transaction", "{error} {error}", "{error} --json"),
    ),
    "errors explain": ("OLR-05010", "5010 --json", "OLR-1"),
    "tables list": ("", "--json"),
    "tables pause": ("{tables}", "{tables}", "--all", "{tables} --json", "{tables} --by me"),
    "tables resume": ("{tables}", "{tables}", "--all", "{tables} --json", "--all --by me", ""),
    "tables add": (
        *("{tables}", "{tables}", "{tables} --no-load", "{tables} --load --by me"),
        "{tables} --load --no-load",
    ),
    "tables remove": ("{tables}", "{tables} --by me"),
    "schema export": ("--out {folder}", "--out {folder} --owner APP --json"),
    "schema apply": (*("", "--only before-data", "--only after-data", "--owner APP", "--json"),),
    "schema diff": ("", "--owner APP", "--json"),
    "schema put-back": ("", "--json"),
    "dictionary export": ("--out {file}", "--out {file} --scn {scn}"),
    "fallback report": ("", "--no-count", "--json"),
    "fallback begin": ("", "--json"),
    "fallback run": ("--once", "--once --json"),
    "fallback status": ("", "--json"),
    "fallback resume": ("{--table}",),
    "fallback skip": ("{--table}",),
    "fallback verify": ("", "{--table}", "--json"),
    "fallback cutover": ("", "--unverified", "--json"),
    "fallback end": ("",),
    "config check": ("", "--json"),
}
"""The options and arguments of each command. Words in braces are drawn."""

_READS: Final = "changes neither the target nor `context.data`"
_COPIES: Final = "drawn by `tests.load.copied_histories`, which also copies the rows"
_OFFLINE: Final = "of an offline source"
_ELSEWHERE: Final = "drawn by `tests.fallback.histories`, which has a way back"

LEFT_OUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        [
            *("decode", "dump", "demo", "prepare", "simulate", "bench", "version"),
            *("config schema", "assess", "init"),
        ],
        _READS,
    ),
    "prove": "changes a schema of its own in the source only",
    "--certificate": _READS,
    "--key": _READS,
    "--log-level": _READS,
    "--log-format": _READS,
    "--target": "there is one target; every command reads it in the same way",
    "--begin-copy": _COPIES,
    "--end-copy": _COPIES,
    "--since": _COPIES,
    "initial-load --scn": _COPIES,
    "tables add --scn": _COPIES,
    "verify --tables": _OFFLINE,
    "cutover --tables": _OFFLINE,
    "cutover --dictionary": _OFFLINE,
    "cutover --fallback": _ELSEWHERE,
    "migrate --fallback": _ELSEWHERE,
    "dictionary export --query": _READS,
}
"""Why a command, an option, or an option of one command is in no form."""

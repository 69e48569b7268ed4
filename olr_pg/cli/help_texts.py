"""Help as manuals write it: values by their names, never by Python's types, and room for the words.

Typer gives each range, each contrary of a switch and each type of an argument a column of its own,
which leaves a third of a terminal for what an option does. Here ranges and contraries are among the
words, and arguments are what their names say.
"""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, Final

from typer.core import TyperArgument, TyperOption

from olr_pg.cli.printing import unwritten

_VALUE_NAMES: Final = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "N",
    "<path>": "PATH",
    "<str>": "TEXT",
}


class _NamedArgument(TyperArgument):
    """An argument that is shown by its name."""

    def display_type_rich(self, ctx: Any) -> str:
        """Return nothing: what it is its name and its help say."""
        del ctx
        return ""

    def _usage_display_name(self) -> str:
        name = self.display_name_raw if self.nargs == 1 else f"{self.display_name_raw}..."
        return name if self.required else f"[{name}]"


class _NamedOption(TyperOption):
    """An option whose range is among the words of its help."""

    def _get_number_range_help_str(self) -> None:
        return None


def describe(command: Any, ctx: Any) -> None:
    """Let the help of a command, and of those below it, be as manuals are."""
    _unwrap(command)
    for param in command.get_params(ctx):
        _name_value(param, ctx)
    command.format_help = functools.partial(format_help, command)
    for below in getattr(command, "commands", {}).values():
        describe(below, ctx)


def format_help(command: Any, ctx: Any, formatter: Any, kind: Any = None) -> None:
    """Print the help of a command; errors as of `print_line`.

    Args:
        kind: the class in whose form; None: its own.
    """
    try:
        (kind or type(command)).format_help(as_shown(command, ctx), ctx, formatter)
    except OSError as error:
        raise unwritten(error) from error
    except SystemExit as ending:
        if ending.code != 1:
            raise
        # So Rich ends a program that nobody listens to.
        raise BrokenPipeError from None


def as_shown(command: Any, ctx: Any) -> Any:
    """Return a command as its help shows it."""
    shown = copy.copy(command)
    params = command.get_params(ctx)
    for param in params:
        _name_value(param, ctx)
    shown.params = [_without_contrary(param) for param in params]
    shown.add_help_option = False  # it is among them
    return shown


def _unwrap(command: Any) -> None:
    """Make one line of each paragraph: it is wrapped at the terminal's width, not the source's."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _name_value(param: Any, ctx: Any) -> None:
    """Name the value of an option, or of an argument, where its definition does not."""
    if type(param) is TyperArgument:
        param.__class__ = _NamedArgument
    elif type(param) is TyperOption:
        if param.metavar is None:
            kind = param.display_type(ctx)
            is_switch = param.is_flag or param.count
            param.metavar = "" if is_switch else _VALUE_NAMES.get(kind, kind.strip("<>"))
        limits = _limits(param.min, param.max)
        if limits:
            param.help = f"{(param.help or '').removesuffix('.')} ({limits})."
        param.__class__ = _NamedOption


def _limits(least: float | None, most: float | None) -> str:
    """Say a range of numbers in words; empty where there is none."""
    if most is None:
        return "" if least in (None, 0) else f"at least {least:g}"
    return f"at most {most:g}" if least is None else f"{least:g} to {most:g}"


def _without_contrary(param: Any) -> Any:
    """Return an option whose contrary, as --no-load, is among the words."""
    if not getattr(param, "secondary_opts", None):
        return param
    shown = copy.copy(param)
    contrary = ", ".join(param.secondary_opts)
    shown.help = f"{param.help} {'Off with' if param.default is True else 'Else'} {contrary}."
    shown.secondary_opts = []
    shown.show_default = False
    return shown

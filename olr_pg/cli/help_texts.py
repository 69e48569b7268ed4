"""Formats help like a manual: values are shown by their names, not by Python types, with enough
width for the texts.

Typer uses extra columns for ranges, for the opposite of a switch, and for the type of an argument,
which leaves a third of the terminal for the text. Here ranges and opposites are part of the text,
and an argument is shown by its name.
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
        """Return an empty text, because the name and the help describe the argument."""
        del ctx
        return ""

    def _usage_display_name(self) -> str:
        name = self.display_name_raw if self.nargs == 1 else f"{self.display_name_raw}..."
        return name if self.required else f"[{name}]"


class _NamedOption(TyperOption):
    """An option whose help text contains its range."""

    def _get_number_range_help_str(self) -> None:
        return None


def describe(command: Any, ctx: Any) -> None:
    """Format the help of a command, and of its subcommands, like a manual."""
    _unwrap(command)
    for param in command.get_params(ctx):
        _name_value(param, ctx)
    command.format_help = functools.partial(format_help, command)
    for below in getattr(command, "commands", {}).values():
        describe(below, ctx)


def format_help(command: Any, ctx: Any, formatter: Any, kind: Any = None) -> None:
    """Print the help of a command; errors as for `print_line`.

    Args:
        kind: the class whose format is used; None for the command's own.
    """
    try:
        (kind or type(command)).format_help(as_shown(command, ctx), ctx, formatter)
    except OSError as error:
        raise unwritten(error) from error
    except SystemExit as ending:
        if ending.code != 1:
            raise
        # Rich ends the program this way if nobody reads its output.
        raise BrokenPipeError from None


def as_shown(command: Any, ctx: Any) -> Any:
    """Return a command in the form that its help shows."""
    shown = copy.copy(command)
    params = command.get_params(ctx)
    for param in params:
        _name_value(param, ctx)
    shown.params = [_without_contrary(param) for param in params]
    shown.add_help_option = False  # it is among them
    return shown


def _unwrap(command: Any) -> None:
    """Join each paragraph into one line, because help is wrapped at the terminal's width."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _name_value(param: Any, ctx: Any) -> None:
    """Name the value of an option or argument, if its definition does not."""
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
    """Describe a range of numbers; empty if there is none."""
    if most is None:
        return "" if least in (None, 0) else f"at least {least:g}"
    return f"at most {most:g}" if least is None else f"{least:g} to {most:g}"


def _without_contrary(param: Any) -> Any:
    """Return an option whose opposite, such as --no-load, is part of its text."""
    if not getattr(param, "secondary_opts", None):
        return param
    shown = copy.copy(param)
    contrary = ", ".join(param.secondary_opts)
    shown.help = f"{param.help} {'Off with' if param.default is True else 'Else'} {contrary}."
    shown.secondary_opts = []
    shown.show_default = False
    return shown

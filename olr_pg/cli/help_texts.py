"""Formats help like a manual: values are shown by their names and not by Python types, and the
texts have enough width.

Typer uses separate columns for ranges, for the opposite of a switch, and for the type of an
argument, so only a third of the terminal is left for the text. This module makes ranges and
opposites part of the text, and shows an argument by its name.
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
    """An argument whose help shows its name and no type."""

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
    """Change a command and its subcommands so that their help has the format of this module."""
    _unwrap(command)
    for param in command.get_params(ctx):
        _name_value(param, ctx)
    command.format_help = functools.partial(format_help, command)
    for below in getattr(command, "commands", {}).values():
        describe(below, ctx)


def format_help(command: Any, ctx: Any, formatter: Any, kind: Any = None) -> None:
    """Print the help of a command; see `print_line` for the errors.

    Args:
        kind: the class that formats the help; None for the command's own class.
    """
    try:
        (kind or type(command)).format_help(as_shown(command, ctx), ctx, formatter)
    except OSError as error:
        raise unwritten(error) from error
    except SystemExit as ending:
        if ending.code != 1:
            raise
        # Rich raises SystemExit if the reader of its output has closed the pipe.
        raise BrokenPipeError from None


def as_shown(command: Any, ctx: Any) -> Any:
    """Return a copy of a command, changed for its help."""
    shown = copy.copy(command)
    params = command.get_params(ctx)
    for param in params:
        _name_value(param, ctx)
    shown.params = [_without_contrary(param) for param in params]
    shown.add_help_option = False  # `params` contains it already
    return shown


def _unwrap(command: Any) -> None:
    """Join each paragraph of the help into one line, because it is wrapped at the terminal's width
    later.
    """
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _name_value(param: Any, ctx: Any) -> None:
    """Set the displayed name of the value of an option or argument, if its definition has none."""
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
    """Describe a range of numbers; empty if there is no range."""
    if most is None:
        return "" if least in (None, 0) else f"at least {least:g}"
    return f"at most {most:g}" if least is None else f"{least:g} to {most:g}"


def _without_contrary(param: Any) -> Any:
    """Return a copy of an option whose opposite, such as --no-load, is part of its text."""
    if not getattr(param, "secondary_opts", None):
        return param
    shown = copy.copy(param)
    contrary = ", ".join(param.secondary_opts)
    shown.help = (
        f"{param.help} {'Disable with' if param.default is True else 'Opposite:'} {contrary}."
    )
    shown.secondary_opts = []
    shown.show_default = False
    return shown

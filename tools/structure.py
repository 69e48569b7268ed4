"""Says whether the code keeps the shape that CONTRIBUTING.md asks for.

    uv run python tools/structure.py

Prints one line per fact, then what is refused: circles of imports, private parts of libraries
outside of the modules that are named here, errors with a bare number, messages with the number of a
system's error. Exit code 1 if there is any. The other figures are there to be read: a bound of them
would be met by cutting a story into pieces.
"""

from __future__ import annotations

import ast
import gc
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "olr_pg"

PARAMETERS_MAX: Final = 6
"""Of a function that is no kernel: those with more are counted."""
KERNEL_DECORATORS: Final = frozenset({"kernel", "inlined", "part", "inlined_kernel", "inlined_for"})

PRIVATE_PARTS: Final = frozenset(
    {
        *("kernels.cache", "kernels.dispatchers", "kernels.pack"),  # Numba's
        *("spark.session", "spark.jobs"),  # PySpark's
        "oracle.flashback",  # SQLAlchemy's
    }
)
"""Modules that use private parts of a library, each with a test that says what broke."""
PUBLIC_UNDERSCORES: Final = frozenset(
    {"_replace", "_asdict", "_fields", "_make", "_exit", "_value_"}
)
"""Names with an underscore that the standard library documents."""

OWN_ERRORS: Final = frozenset({"OlrPgError", "ConfigError"})
"""Errors of the catalogue, whose first argument is a member of `Code`."""


NOISY: Final = frozenset(
    (
        *("OSError", "KeyError", "TypeError", "AttributeError", "ImportError", "IndexError"),
        *("HTTPException", "ArrowException", "TimeoutExpired"),
    )
)
"""Errors whose own text is not for people: it has numbers, or no more than a name. What of it is a
message, `errors.plain_reason` says."""

NOT_SHOWN: Final = frozenset({"capture.object_storage", "datasource.redo_stream", "spark.jobs"})
"""Modules that look into such a text, or that have a message for the name."""


class Module(NamedTuple):
    """A module of the package.

    Attributes:
        name: without the package's own, such as ``redo.blocks``.
        lines: of its source.
        nodes: of its syntax tree, listed once: to walk the tree takes longer than to parse it.
    """

    name: str
    lines: int
    nodes: list[ast.AST]

    @property
    def folder(self) -> str:
        """The room that it is in; empty for the package's own folder."""
        return self.name.rpartition(".")[0]

    @property
    def base(self) -> str:
        """Its name within its room."""
        return self.name.rpartition(".")[2]


class Fact(NamedTuple):
    """One property of the code.

    Attributes:
        what: that was counted.
        found: the number.
        refused: the places that must not be, where the fact is of such.
    """

    what: str
    found: int
    refused: tuple[str, ...]


def modules() -> list[Module]:
    """Every module of the package but the ``__init__`` of its folders."""
    found = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        if path.name == "__init__.py":
            continue
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(ROOT / PACKAGE).with_suffix("").parts)
        found.append(Module(name, len(text.splitlines()), list(ast.walk(ast.parse(text)))))
    return found


def imported(module: Module, names: frozenset[str]) -> set[str]:
    """Modules of the package that `module` imports, those for type checkers among them."""
    found: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        else:
            continue
        found |= {one.removeprefix(f"{PACKAGE}.") for one in wanted} & names
    return found - {module.name}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Find the groups of nodes that reach one another (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


def sibling_graphs(graph: dict[str, set[str]]) -> dict[str, dict[str, set[str]]]:
    """Of every folder: which of its modules and folders imports which other of them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, others in graph.items():
        for other in others:
            own, its = name.split("."), other.split(".")
            same = next((i for i, (a, b) in enumerate(zip(own, its, strict=False)) if a != b), None)
            if same is not None:
                siblings = found[".".join(own[:same])]
                siblings[own[same]].add(its[same])
                siblings.setdefault(its[same], set())
    return found


def function_lines(found: list[Module]) -> list[int]:
    """Count the lines of every function, without its decorators and its docstring."""
    return [
        _lines(node) - _docstring_lines(node)
        for module in found
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return _lines(node.body[0]) if ast.get_docstring(node, clean=False) is not None else 0


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def bare_errors(found: list[Module]) -> list[str]:
    """Places where an error is made with a number in place of a member of `Code`."""
    return [
        f"{module.name}:{node.lineno}"
        for module in found
        for node in module.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in OWN_ERRORS
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, int)
    ]


def noisy_texts(found: list[Module]) -> list[str]:
    """Places where the text of an error of `NOISY` is put into a message as it is."""
    return [
        f"{module.name}:{line}"
        for module in found
        if module.name not in NOT_SHOWN
        for handler in module.nodes
        if isinstance(handler, ast.ExceptHandler) and NOISY & _caught(handler.type)
        for line in _said(handler)
    ]


def _caught(kind: ast.expr | None) -> set[str]:
    match kind:
        case ast.Tuple(elts=kinds):
            return set().union(*map(_caught, kinds))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
    return set()


def _said(handler: ast.ExceptHandler) -> Iterable[int]:
    """Lines of a handler with ``str(error)`` or ``{error}``."""
    for node in ast.walk(handler):
        match node:
            case (
                ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)])
                | ast.FormattedValue(value=ast.Name(id=name))
            ) if name == handler.name:
                yield node.lineno


def private_parts(found: list[Module]) -> list[str]:
    """Places where a private name of something else is used, outside of `PRIVATE_PARTS`."""
    return [
        f"{module.name}:{line}"
        for module in found
        if module.name not in PRIVATE_PARTS
        for line in _private(module.nodes)
    ]


def _private(nodes: list[ast.AST]) -> Iterable[int]:
    own = PUBLIC_UNDERSCORES | _defined(nodes)
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) if _is_private(name) and name not in own:
                yield node.lineno
            case ast.ImportFrom(module=str(room), names=names) if not room.startswith(PACKAGE):
                if any(map(_is_private, [*room.split("."), *(alias.name for alias in names)])):
                    yield node.lineno


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _defined(nodes: list[ast.AST]) -> set[str]:
    """Names that the module defines: functions, classes, fields, and attributes of ``self``."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return found


def many_parameters(found: list[Module]) -> int:
    """Count the functions outside of kernels with more than `PARAMETERS_MAX` parameters."""
    return sum(
        len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)
        > PARAMETERS_MAX
        for module in found
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_kernel(node)
    )


def _is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {
        part.id
        for one in node.decorator_list
        for part in ast.walk(one)
        if isinstance(part, ast.Name)
    }
    return bool(names & KERNEL_DECORATORS)


def import_lines(found: list[Module]) -> int:
    """Count the lines of all import statements."""
    return sum(
        _lines(node)
        for module in found
        for node in module.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def facts() -> list[Fact]:
    """All of them."""
    found = modules()
    names = frozenset(module.name for module in found)
    graph = {module.name: imported(module, names) for module in found}
    importers = Counter(other for others in graph.values() for other in others)
    folders = Counter(module.folder for module in found)
    lines = sorted(module.lines for module in found)
    bases = Counter(module.base for module in found)
    rings = [
        f"{folder or PACKAGE}: {', '.join(ring)}"
        for folder, siblings in sorted(sibling_graphs(graph).items())
        for ring in circles(siblings)
    ]
    return [
        *_lines_by_room(found),
        _figure("modules", len(found)),
        _figure("lines", sum(lines)),
        _figure("lines of imports", import_lines(found)),
        _figure("lines of a module, median", round(statistics.median(lines))),
        _figure("lines of a module, p95", round(statistics.quantiles(lines, n=20)[-1])),
        _figure(
            "lines of a function, p95",
            round(statistics.quantiles(function_lines(found), n=20)[-1]),
        ),
        _figure("modules per folder, at most", max(folders.values())),
        _figure("modules with one importer", sum(count == 1 for count in importers.values())),
        _figure("module names in two folders", sum(count > 1 for count in bases.values())),
        _figure(f"functions with more than {PARAMETERS_MAX} parameters", many_parameters(found)),
        _refused("circles", rings),
        _refused("private parts of libraries", private_parts(found)),
        _refused("errors with a bare number", bare_errors(found)),
        _refused("messages with the number of an error", noisy_texts(found)),
    ]


def _lines_by_room(found: list[Module]) -> list[Fact]:
    rooms: Counter[str] = Counter()
    for module in found:
        rooms[module.name.partition(".")[0] if module.folder else "(top)"] += module.lines
    return [_figure(f"lines of {room}", count) for room, count in sorted(rooms.items())]


def _figure(what: str, found: int) -> Fact:
    return Fact(what, found, ())


def _refused(what: str, places: list[str]) -> Fact:
    return Fact(what, len(places), tuple(places))


def main() -> int:
    """Run the command line."""
    gc.disable()  # all trees stay to the end: to look for garbage among them takes as long as they
    found = facts()
    for fact in found:
        sys.stdout.write(f"{fact.what}: {fact.found}{'  REFUSED' if fact.refused else ''}\n")
    for fact in found:
        for one in fact.refused:
            sys.stdout.write(f"{fact.what}: {one}\n")
    return 1 if any(fact.refused for fact in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())

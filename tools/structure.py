"""Says whether the code keeps the shape that CONTRIBUTING.md asks for.

    uv run python tools/structure.py

Prints one line per fact with its bound, then what breaks a bound. Exit code 1 if anything does.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "olr_pg"

FILES_PER_FOLDER_MAX: Final = 30
MODULE_LINES_MAX: Final = 500
FUNCTION_LINES_P95_MAX: Final = 27
SHARED_NAMES_MAX: Final = 15
TESTED_SHARE_MIN: Final = 0.8

MAY_BE_LONG: Final = frozenset({"errors", "datatypes.charset_tables"})
"""The error catalogue and generated tables: nobody reads them from top to bottom."""


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

NOT_SHOWN: Final = frozenset(
    {"capture.object_storage", "datasource.stream_offset", "spark.spark_failures"}
)
"""Modules that look into such a text, or that have a message for the name."""


class Module(NamedTuple):
    """A module of the package.

    Attributes:
        name: without the package's own, such as ``redo.blocks``.
        lines: of its source.
        tree: its syntax.
    """

    name: str
    lines: int
    tree: ast.Module

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
        found: the number, as it is printed.
        bound: that it must keep, as it is printed.
        breaks: what does not keep it.
    """

    what: str
    found: str
    bound: str
    breaks: tuple[str, ...]


def modules() -> list[Module]:
    """Every module of the package but the ``__init__`` of its folders."""
    found = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        if path.name == "__init__.py":
            continue
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(ROOT / PACKAGE).with_suffix("").parts)
        found.append(Module(name, len(text.splitlines()), ast.parse(text)))
    return found


def imported(module: Module, names: frozenset[str]) -> set[str]:
    """Modules of the package that `module` imports, those for type checkers among them."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
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
        for node in ast.walk(module.tree)
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
        for node in ast.walk(module.tree)
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
        for handler in ast.walk(module.tree)
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


def untested(found: list[Module]) -> list[str]:
    """Modules without a test module of their name in the room of their name."""
    tests = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    return [
        module.name
        for module in found
        if Path(*module.folder.split("."), f"test_{module.base}.py") not in tests
    ]


def facts() -> list[Fact]:
    """All of them."""
    found = modules()
    names = frozenset(module.name for module in found)
    graph = {module.name: imported(module, names) for module in found}
    folders = Counter(module.folder for module in found)
    crowded = [
        f"{name}: {count}" for name, count in folders.items() if count > FILES_PER_FOLDER_MAX
    ]
    long = [
        f"{module.name}: {module.lines}"
        for module in found
        if module.lines > MODULE_LINES_MAX and module.name not in MAY_BE_LONG
    ]
    sizes = function_lines(found)
    p95 = statistics.quantiles(sizes, n=20)[-1]
    bases = Counter(module.base for module in found)
    shared = sorted(name for name, count in bases.items() if count > 1 and name[0] != "_")
    rings = [
        f"{folder or PACKAGE}: {', '.join(ring)}"
        for folder, siblings in sorted(sibling_graphs(graph).items())
        for ring in circles(siblings)
    ]
    bare, noisy, missing = bare_errors(found), noisy_texts(found), untested(found)
    share = 1 - len(missing) / len(found)
    longest = max(module.lines for module in found if module.name not in MAY_BE_LONG)
    too_long = (f"{p95:.1f}",) if p95 > FUNCTION_LINES_P95_MAX else ()
    too_many = shared if len(shared) > SHARED_NAMES_MAX else ()
    too_few = missing if share < TESTED_SHARE_MIN else ()
    return [
        Fact("modules", str(len(found)), "", ()),
        Fact("lines", str(sum(module.lines for module in found)), "", ()),
        _fact("files per folder", max(folders.values()), FILES_PER_FOLDER_MAX, crowded),
        _fact("lines of a module", longest, MODULE_LINES_MAX, long),
        _fact("lines of a function, p95", round(p95), FUNCTION_LINES_P95_MAX, too_long),
        _fact("circles", len(rings), 0, rings),
        _fact("module names in two folders", len(shared), SHARED_NAMES_MAX, too_many),
        _fact("errors with a bare number", len(bare), 0, bare),
        _fact("messages with the number of an error", len(noisy), 0, noisy),
        Fact("modules with a test of their name", f"{share:.0%}", f"≥ {TESTED_SHARE_MIN:.0%}",
             tuple(too_few)),
    ]  # fmt: skip


def _fact(what: str, found: int, bound: int, breaks: Iterable[str]) -> Fact:
    return Fact(what, str(found), f"≤ {bound}", tuple(breaks))


def main() -> int:
    """Run the command line."""
    found = facts()
    for fact in found:
        bound = f"  ({fact.bound})" if fact.bound else ""
        sys.stdout.write(f"{fact.what}: {fact.found}{bound}{'  BROKEN' if fact.breaks else ''}\n")
    for fact in found:
        for one in fact.breaks:
            sys.stdout.write(f"{fact.what}: {one}\n")
    return 1 if any(fact.breaks for fact in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Bugs planted into this process: the code of functions is exchanged for that of a patch.

So the kernels are loaded once for all bugs, not from a copy of the package for each. Those that a
bug is inside of are plain Python meanwhile, which takes less time than to compile them.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import olr_pg
from olr_pg.kernels.compile import interpreted
from olr_pg.kernels.late_dispatcher import LateDispatcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

BUGS: Final = Path(__file__).parent / "bugs"
ROOT: Final = Path(olr_pg.__file__).parents[1]
_PATCHED: Final = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)

_PLANTED: Final[list[str]] = []


def planted() -> str | None:
    """The bug that this process has."""
    return _PLANTED[-1] if _PLANTED else None


@contextmanager
def having(name: str) -> Iterator[None]:
    """Give this process a bug for a while."""
    before = dict[FunctionType, CodeType]()
    for path, source in patched_sources(name).items():
        for function, code in _exchanges(path, source):
            before[function] = function.__code__
            function.__code__ = code
    kernels = list(_kernels_with(before))
    for module, known_as, kernel in kernels:
        setattr(module, known_as, interpreted(kernel))
    _PLANTED.append(name)
    try:
        yield
    finally:
        _PLANTED.pop()
        for module, known_as, kernel in kernels:
            setattr(module, known_as, kernel)
        for function, code in before.items():
            function.__code__ = code


def _kernels_with(functions: Collection[FunctionType]) -> Iterator[tuple[ModuleType, str, Any]]:
    """Kernels and parts that have one of the functions inside, wherever a module names them."""

    known = dict.fromkeys(functions, True)

    def has_one(kernel: Any) -> bool:
        own = kernel.py_func
        if own not in known:
            known[own] = False  # while it is asked: a name may be that of an attribute as well
            called = (own.__globals__.get(name) for name in own.__code__.co_names)
            known[own] = any(has_one(one) for one in called if isinstance(one, LateDispatcher))
        return known[own]

    for module in list(sys.modules.values()):
        if module.__name__.startswith(f"{olr_pg.__name__}."):
            for name, found in list(vars(module).items()):
                if isinstance(found, LateDispatcher) and has_one(found):
                    yield module, name, found


def patched_sources(name: str) -> dict[Path, str]:
    """The files that a patch changes, below the package's parent, as they are with it."""
    patch = BUGS / f"{name}.patch"
    paths = [Path(found) for found in _PATCHED.findall(patch.read_text("utf-8"))]
    with tempfile.TemporaryDirectory(prefix="olr-pg-bug-") as folder:
        for path in paths:
            copy = Path(folder) / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / path).read_bytes())
        apply_patch(name, Path(folder))
        return {path: (Path(folder) / path).read_text("utf-8") for path in paths}


def apply_patch(name: str, folder: Path) -> None:
    """Patch the package, or some of its files, in `folder`."""
    command = ["git", "apply", "--unsafe-paths", f"--directory={folder}"]
    subprocess.run([*command, str(BUGS / f"{name}.patch")], cwd=folder, check=True)


def _exchanges(path: Path, source: str) -> Iterator[tuple[FunctionType, CodeType]]:
    """The functions of a module that differ in `source`, and the code that they have there."""
    old = dict(_definitions(ast.parse((ROOT / path).read_text("utf-8"))))
    new = dict(_definitions(ast.parse(source)))
    assert old.keys() == new.keys()
    codes = dict(_codes(compile(source, str(ROOT / path), "exec", dont_inherit=True)))
    module = import_module(".".join(path.with_suffix("").parts))
    different = [name for name in old if old[name] != new[name]]
    assert different
    for name in different:
        yield _function(module, name), codes[name]


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Functions of a module and of its classes, by qualified name, without their places."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            yield from _definitions(node, f"{prefix}{node.name}.")


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The code of these functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant.co_qualname, constant
            else:
                yield from _codes(constant)


def _function(module: Any, name: str) -> FunctionType:
    found = module
    for part in name.split("."):
        found = vars(found)[part]
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, LateDispatcher):
        found = found.py_func
    found = inspect.unwrap(getattr(found, "__func__", found))
    assert isinstance(found, FunctionType), f"{name} is no plain function"
    return found

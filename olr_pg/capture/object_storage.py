"""Lists files at URLs and reads ranges of them, through pyarrow's file systems.

Supported are ``s3://BUCKET/PREFIX``, ``gs://``, ``abfs://``, ``hdfs://``, ``file://``, and with
fsspec ``fsspec+SCHEME://``. Options of the storage are in the URL's query, as in
`pyarrow.fs.FileSystem.from_uri`. URLs are logged like paths, so they must not contain secrets:
credentials come from the environment, in the usual way of each storage's own tools.

Except for a missing file, the errors of these file systems have no specific types, so they are
recognised by their texts.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC: Final = re.compile(r"[*\[]")
_SECRET: Final = re.compile(
    r"secret|password|token|signature|credential|access.?key", re.IGNORECASE
)
_ANSWERS: Final = {
    Code.BUCKET_MISSING: ("NO_SUCH_BUCKET", "NoSuchBucket", "ContainerNotFound"),
    Code.STORAGE_DENIED: (
        "ACCESS_DENIED", "AccessDenied", "INVALID_ACCESS_KEY", "InvalidAccessKey",
        "INVALID_CLIENT_TOKEN", "SIGNATURE_DOES_NOT_MATCH", "SignatureDoesNotMatch",
        "MISSING_AUTHENTICATION", "AuthenticationFailed", "EXPIRED_TOKEN", "ExpiredToken",
        "HTTP status 401", "HTTP status 403", "ermission denied", "anonymous",
    ),
    Code.STORAGE_UNREACHABLE: (
        "NETWORK_CONNECTION", "curlCode", "imed out", "imeout", "TIMEOUT", "SLOW_DOWN", "SlowDown",
        "INTERNAL_FAILURE", "InternalError", "SERVICE_UNAVAILABLE", "THROTTLING", "HTTP status 5",
        "onnection", "resolve host",
    ),
}  # fmt: skip
"""For each error code, texts by which the errors of the S3 client and of other clients are
recognised.
"""

CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 20.0
ATTEMPTS: Final = 3
"""Attempts per S3 request. With the two timeouts above, a request fails after at most a minute if
nothing answers.
"""

_PART_BYTES: Final = 4 << 20
"""Bytes per request; several parallel requests are faster than one large request."""

_REQUESTS: Final = 4


class StoredFile(NamedTuple):
    """A file in a listing.

    Attributes:
        name: the part after the last slash.
        modified_ns: time of the last modification, in nanoseconds of Unix time; 0 if unknown.
    """

    url: str
    name: str
    size: int
    modified_ns: int


def is_url(place: str) -> bool:
    """Return whether a place is a URL, not a path."""
    return _URL.match(place) is not None


def list_files(url: str) -> tuple[list[StoredFile], bool]:
    """List the files at a URL, sorted by name.

    Args:
        url: URL of a file, of a folder or prefix (to list all files below it), or a glob: `*` and
            `[…]` match within a name, `**` matches across folders.

    Returns:
        (files, whether the URL names one file). Files in a folder whose names begin with a dot are
        left out.

    Raises:
        OlrPgError: 2002 there is no such file, 2210 to 2213.
    """
    from pyarrow import fs

    plain, question, query = url.partition("?")
    found = _MAGIC.search(plain)
    base = plain if found is None else plain[: plain.rindex("/", 0, found.start())]
    system, path = opened_url(base + question + query)
    path = path.rstrip("/")
    with _coded(url):
        if found is None:
            info = system.get_file_info(path)
            if info.type == fs.FileType.File:
                return [_stored(info, url)], True
        try:
            infos = system.get_file_info(fs.FileSelector(path, recursive=True))
        except FileNotFoundError:
            infos = []
    folder = base.rstrip("/")
    pattern = None if found is None else _compiled(plain[len(folder) + 1 :])
    files = []
    for info in sorted(infos, key=lambda one: str(one.path)):
        rest = info.path[len(path) :].lstrip("/")
        if info.type == fs.FileType.File and _is_wanted(rest, pattern):
            files.append(_stored(info, f"{folder}/{quote(rest)}{question}{query}"))
    if not files and found is None:
        _explain_absence(system, path, url)
    return files, False


def _explain_absence(system: Any, path: str, url: str) -> None:
    """Raise an error that says whether the bucket or the file is missing."""
    from pyarrow import fs

    with _coded(url):
        if system.type_name == "s3":
            system.get_file_info(fs.FileSelector(path.partition("/")[0]))
    raise OlrPgError(Code.LOG_UNREADABLE, "there is no such file and no such prefix", file=url)


def _stored(info: Any, url: str) -> StoredFile:
    modified = info.mtime_ns
    return StoredFile(url, info.base_name, info.size or 0, 0 if modified is None else modified)


def _is_wanted(rest: str, pattern: re.Pattern[str] | None) -> bool:
    """Return whether a file below a folder matches the glob, or lies in a folder that matches
    it.
    """
    names = rest.split("/")
    is_hidden = names[-1].startswith(".")
    if pattern is None:
        return not is_hidden
    if pattern.fullmatch(rest):
        return True
    folders = ("/".join(names[:count]) for count in range(1, len(names)))
    return not is_hidden and any(pattern.fullmatch(folder) for folder in folders)


@lru_cache(maxsize=64)
def _compiled(glob: str) -> re.Pattern[str]:
    """Compile a glob; names that begin with a dot match only patterns that begin with a dot."""
    parts = []
    for name in glob.split("/"):
        if name == "**":
            parts.append(r"(?:(?!\.)[^/]+/)*")
            continue
        text = re.sub(r"\[[^]]*\]|\*|.", lambda found: _translated(found[0]), name)
        parts.append(("" if name.startswith(".") else r"(?!\.)") + text + "/")
    whole = "".join(parts)
    return re.compile(whole.removesuffix("/") if not glob.endswith("**") else whole + "[^/]+")


def _translated(piece: str) -> str:
    if piece == "*":
        return "[^/]*"
    if len(piece) > 1:
        return "[^" + piece[2:] if piece.startswith("[!") else piece
    return re.escape(piece)


class RangeReader:
    """Reads ranges of one file.

    Attributes:
        size: size of the file in bytes.

    Raises:
        OlrPgError: 2002 the file does not exist, 2210 to 2213.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        system, path = opened_url(url)
        with _coded(url):
            self._file = system.open_input_file(path)
            self.size: int = self._file.size()

    def read(self, first: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file.

        Raises:
            OlrPgError: 2002, 2211 to 2213.
        """
        end = min(first + size, self.size)
        with _coded(self._url):
            return bytes(self._file.read_at(end - first, first)) if end > first else b""

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with the file's bytes from offset `first` on, by several parallel requests.

        Raises:
            OlrPgError: 2002 the file is too short, 2211 to 2213.
        """

        def read(at: int) -> None:
            part = self.read(first + at, min(_PART_BYTES, len(out) - at))
            if len(part) < min(_PART_BYTES, len(out) - at):
                raise OlrPgError(Code.LOG_UNREADABLE, "the file has become shorter", file=self._url)
            out[at : at + len(part)] = part

        starts = range(0, len(out), _PART_BYTES)
        if len(starts) < 2:
            for at in starts:
                read(at)
            return
        with ThreadPoolExecutor(_REQUESTS) as requests:
            for _ in requests.map(read, starts):
                pass


@contextmanager
def _coded(url: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise OlrPgError(Code.LOG_UNREADABLE, "there is no such file", file=url) from error
    except (OSError, ValueError) as error:
        text, reason = str(error), plain_reason(error)
        for code, words in _ANSWERS.items():
            if any(word in text for word in words):
                raise OlrPgError(code, reason, file=url) from error
        raise OlrPgError(Code.LOG_UNREADABLE, reason, file=url) from error


def check_url(url: str) -> None:
    """Refuse a URL that contains credentials, because it would be logged.

    Raises:
        OlrPgError: 2210; its detail does not contain the credentials.
    """
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    user = parts.netloc.rpartition("@")[0]
    # In abfs://CONTAINER@ACCOUNT/, the part before the @ is no secret unless it contains a
    # password.
    if ":" in user or (user and not parts.scheme.startswith("abfs")):
        raise OlrPgError(Code.LOG_URL_UNUSABLE, "the URL contains credentials", file=shown)
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET.search(name) or name.lower() in ("sig", "sas"):
            raise OlrPgError(
                Code.LOG_URL_UNUSABLE, f"the URL contains the secret {name!r}", file=shown
            )


def opened_url(url: str) -> tuple[Any, str]:
    """Return (file system, path in it) for a URL."""
    from pyarrow import fs

    check_url(url)
    plain, question, query = url.partition("?")
    parts = urlsplit(plain)
    if parts.scheme == "s3":
        return _s3(parts.netloc, question + query), parts.netloc + unquote(parts.path)
    with _usable(url):
        return fs.FileSystem.from_uri(url)


@cache
def _s3(bucket: str, query: str) -> Any:
    """Return the client of a bucket. One client is created per bucket, and keeps its connections
    open.
    """
    from pyarrow import fs

    url = f"s3://{bucket}/{query}"
    with _usable(url):
        plain: Any = fs.FileSystem.from_uri(url)[0]
        options: dict[str, Any] = dict(parse_qsl(query[1:]))
        options.pop("region", None)
        if not options.keys() <= {"scheme", "endpoint_override"}:
            return plain
        return fs.S3FileSystem(
            region=plain.region,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=REQUEST_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            **options,
        )


@contextmanager
def _usable(url: str) -> Iterator[None]:
    """Convert errors of the storage to ours: the URL cannot be used, or its storage is
    unavailable.
    """
    try:
        yield
    except ImportError as error:
        raise OlrPgError(Code.LOG_URL_UNUSABLE, plain_reason(error), file=url) from error
    except ValueError as error:  # ArrowInvalid
        raise OlrPgError(Code.LOG_URL_UNUSABLE, str(error), file=url) from error
    except OSError:
        with _coded(url):
            raise

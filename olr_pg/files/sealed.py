"""Files with rows: encrypted and authenticated if a key is set, otherwise unencrypted.

All code that writes rows to a file opens it by this module; only this module knows whether there is
a key. The key belongs to the process (`sealing`), like its umask, because logs are read by path in
many places. Readers recognise an encrypted file by its first bytes, so unencrypted files stay
readable.

An encrypted file is a head, and frames one after the other::

    head   magic (8), what tells the key (8), a random number of the file (16)
    frame  nonce (12), up to 64 KiB encrypted, tag (16)

Each file has its own key, derived from the configured key and the file's number by HKDF with
SHA-256. The cipher is AES-256-GCM. The tag covers the number of the frame and whether it is the
last one. So frames cannot be moved, removed, or replaced by those of another file, and a truncated
file is detected even if it ends with a whole frame. A file that grows while it is read (the copy of
an online log) has no marked last frame; its reader knows the required length.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
import struct
import tempfile
import time
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol, Self

from olr_pg.files.durable import sync_directory
from olr_pg.files.owned import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
FRAME_BYTES: Final = 64 << 10
"""Bytes of rows per frame; the last one has fewer, or none."""

NO_PLAIN_FILES: Final = "OLR_PG_NO_PLAIN_FILES"
"""Environment variable for Spark's workers that have no key and must not write rows unencrypted."""

_WHOLE: Final = b"olrpgAE1"
_GROWING: Final = b"olrpgAG1"
_HEAD: Final = struct.Struct("<8s8s16s")
_PLACE: Final = struct.Struct("<QB")
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_FRAME_COST: Final = _NONCE_BYTES + _TAG_BYTES
_SLOT_BYTES: Final = FRAME_BYTES + _FRAME_COST
_ATTEMPTS: Final = 20
_PAUSE_SECONDS: Final = 0.01
"""Pause before a frame is read again, if it is just being written."""


class SealError(OSError):
    """Raised if an encrypted file cannot be read: no key, another key, damaged or truncated."""

    def __init__(self, words: str, path: str | None) -> None:
        super().__init__(errno.EBADMSG, words, path)


class RowKey:
    """The key of an appliance's files.

    Args:
        secret: 32 bytes.

    Attributes:
        fingerprint: identifies the key without revealing it.

    Raises:
        ValueError: the secret has another length.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"{KEY_BYTES} bytes are needed, there are {len(secret)}")
        self._secret = secret
        self.fingerprint = self._derived(b"", b"olr_pg fingerprint", 8)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Make the key from its base64 text.

        Raises:
            ValueError: it is not base64 of 32 bytes; the message does not contain the text.
        """
        try:
            secret = base64.b64decode(text.strip(), validate=True)
        except binascii.Error:
            raise ValueError("it is not base64") from None
        return cls(secret)

    def _derived(self, salt: bytes, info: bytes, size: int) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return HKDF(SHA256(), size, salt, info).derive(self._secret)

    def cipher(self, number: bytes) -> AESGCM:
        """Return the cipher of the file with that number."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._derived(number, b"olr_pg file", KEY_BYTES))


_current: RowKey | None = None


def current_key() -> RowKey | None:
    """Return the key of this process, if there is one."""
    return _current


def use_key(key: RowKey | None) -> None:
    """Set the key of this process, permanently (for a worker)."""
    global _current
    _current = key


@contextmanager
def sealing(key: RowKey | None) -> Iterator[None]:
    """Within the context, encrypt files with rows that this process writes, and read such files."""
    before = current_key()
    use_key(key)
    try:
        yield
    finally:
        use_key(before)


class _Frames:
    """The frames of one file."""

    def __init__(self, key: RowKey, number: bytes, path: str | None = None) -> None:
        self._cipher = key.cipher(number)
        self._path = path

    def seal(self, place: int, data: bytes | bytearray | memoryview, *, last: bool) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, _PLACE.pack(place, last))

    def open(self, place: int, frame: bytes | memoryview, *, last: bool) -> bytes:
        from cryptography.exceptions import InvalidTag

        view = memoryview(frame)
        nonce, rest = view[:_NONCE_BYTES], view[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, rest, _PLACE.pack(place, last))
        except (InvalidTag, ValueError):
            words = "it is encrypted, and damaged or cut off"
            raise SealError(words, self._path) from None


class RowOutput(Protocol):
    """A file to which rows are written sequentially."""

    def write(self, data: memoryview | bytes, /) -> int:
        """Append bytes; return their number."""

    def tell(self) -> int:
        """Return the number of bytes of rows written so far."""


class _SealedOutput:
    """A `RowOutput` with encryption."""

    def __init__(self, file: IO[bytes], key: RowKey) -> None:
        number = os.urandom(16)
        self._file = file
        self._frames = _Frames(key, number)
        self._waiting = bytearray()
        self._done = 0
        file.write(_HEAD.pack(_WHOLE, key.fingerprint, number))

    def write(self, data: memoryview | bytes, /) -> int:
        view = memoryview(data).cast("B")
        self._waiting += view[:FRAME_BYTES]
        at = min(len(view), FRAME_BYTES)
        # Keep at least one frame, because the last one is marked as the last.
        while len(self._waiting) > FRAME_BYTES or at < len(view):
            self._put(self._waiting[:FRAME_BYTES], last=False)
            del self._waiting[:FRAME_BYTES]
            more = view[at : at + FRAME_BYTES]
            self._waiting += more
            at += len(more)
        return len(view)

    def tell(self) -> int:
        return self._done * FRAME_BYTES + len(self._waiting)

    def finish(self) -> None:
        """Write the last frame."""
        self._put(self._waiting, last=True)

    def _put(self, data: bytearray, *, last: bool) -> None:
        self._file.write(self._frames.seal(self._done, data, last=last))
        self._done += not last


@contextmanager
def row_file(path: Path, *, durable: bool = False) -> Iterator[RowOutput]:
    """Open a new file for rows; it is complete when the context ends without an error.

    Args:
        durable: sync it before the context ends.

    Raises:
        OSError: it cannot be written, or the path is not a plain file.
    """
    key = current_key()
    with open_plain(path, "wb") as file:
        if key is None:
            yield file
        else:
            sealed = _SealedOutput(file, key)
            yield sealed
            sealed.finish()
        file.flush()
        if durable:
            os.fsync(file.fileno())


def sealed_bytes(data: bytes) -> bytes:
    """Encrypt the contents of a small file; return `data` unchanged without a key."""
    from io import BytesIO

    key = current_key()
    if key is None:
        return data
    file = BytesIO()
    output = _SealedOutput(file, key)
    output.write(data)
    output.finish()
    return file.getvalue()


def stored_rows(path: Path) -> bytes:
    """Read a small file whole, which may be encrypted.

    Raises:
        OSError: it cannot be read; `SealError`, not with this process's key.
    """
    if not is_sealed(path):
        return path.read_bytes()
    with SealedReader(path) as reader:
        return reader.read(0, reader.size)


def is_sealed(path: str | Path) -> bool:
    """Return whether the file at a path is encrypted; False if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        return os.pread(handle, len(_WHOLE), 0) in (_WHOLE, _GROWING)
    except OSError:
        return False
    finally:
        os.close(handle)


class SealedReader:
    """Reads ranges of an encrypted file; thread-safe.

    Attributes:
        size: bytes of rows.
        close: closes the file; otherwise it is closed with the object.

    Raises:
        SealError: there is no key, or another one; the file is damaged or truncated.
        OSError: it cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.close = weakref.finalize(self, os.close, self._handle)
        try:
            self._frames, self._grows = self._opened()
            self.size = self._check_end()
        except BaseException:
            self.close()
            raise

    def _opened(self) -> tuple[_Frames, bool]:
        head = os.pread(self._handle, _HEAD.size, 0)
        key = current_key()
        if key is None:
            raise SealError("it is encrypted, and no key is set", self._path)
        if len(head) < _HEAD.size:
            raise SealError("it is encrypted, and damaged or cut off", self._path)
        magic, fingerprint, number = _HEAD.unpack(head)
        if fingerprint != key.fingerprint:
            raise SealError("it is encrypted with another key", self._path)
        return _Frames(key, number, self._path), magic == _GROWING

    def _check_end(self) -> int:
        """Return the size; check that the last frame exists."""
        body = os.fstat(self._handle).st_size - _HEAD.size
        count = -(-body // _SLOT_BYTES)
        size = max(body - count * _FRAME_COST, 0)
        if not self._grows:
            self._last = max(count - 1, 0)
            self._frame(self._last)
        return size

    def _frame(self, place: int) -> bytes:
        attempts = _ATTEMPTS if self._grows else 1
        while True:
            frame = os.pread(self._handle, _SLOT_BYTES, _HEAD.size + place * _SLOT_BYTES)
            try:
                is_last = not self._grows and place == self._last
                return self._frames.open(place, frame, last=is_last)
            except SealError:
                attempts -= 1
                if not attempts:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with the bytes from `first` on.

        Raises:
            SealError: the file is shorter, or damaged.
        """
        at = 0
        while at < len(out):
            place, start = divmod(first + at, FRAME_BYTES)
            part = memoryview(self._frame(place))[start : start + len(out) - at]
            if not part:
                raise SealError("it is encrypted, and damaged or cut off", self._path)
            out[at : at + len(part)] = part
            at += len(part)

    def read(self, first: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        out = bytearray(max(min(size, self.size - first), 0))
        self.read_into(memoryview(out), first)
        return bytes(out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def seal_file(path: Path) -> None:
    """Encrypt an unencrypted file in place, durably: at any time either form of it exists.

    Raises:
        OSError: it fails.
    """
    new = path.with_name(f".{path.name}.sealing")
    with path.open("rb") as plain, row_file(new, durable=True) as sealed:
        while piece := plain.read(FRAME_BYTES):
            sealed.write(piece)
    status = path.stat()
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(path)
    sync_directory(path.parent)


class GrowingFile:
    """A file of rows that can be written at any offset while others read it.

    Args:
        path: replaced if it exists.

    Raises:
        OSError: it cannot be created; the methods raise it too.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._handle = os.open(path, flags, 0o600)
        key = current_key()
        self._frames: _Frames | None = None
        self._size = 0
        if key is not None:
            number = os.urandom(16)
            self._frames = _Frames(key, number, str(path))
            self._put(_HEAD.pack(_GROWING, key.fingerprint, number), 0)

    def write(self, data: memoryview, offset: int) -> None:
        """Write bytes at an offset; a gap after the current end is filled with zeros."""
        if self._frames is None:
            self._put(data, offset)
            return
        start = min(offset, self._size)
        end = max(offset + len(data), self._size)
        for place in range(start // FRAME_BYTES, -(-(offset + len(data)) // FRAME_BYTES)):
            first = place * FRAME_BYTES
            frame = bytearray(min(FRAME_BYTES, end - first))
            if first < self._size:
                known = self._known(self._frames, place)
                frame[: len(known)] = known
            low, high = max(offset, first), min(offset + len(data), first + FRAME_BYTES)
            if low < high:
                frame[low - first : high - first] = data[low - offset : high - offset]
            self._put(self._frames.seal(place, frame, last=False), _HEAD.size + place * _SLOT_BYTES)
        self._size = end

    def _known(self, frames: _Frames, place: int) -> bytes:
        frame = os.pread(self._handle, _SLOT_BYTES, _HEAD.size + place * _SLOT_BYTES)
        return frames.open(place, frame, last=False)

    def _put(self, data: bytes | memoryview, at: int) -> None:
        rest = memoryview(data)
        while rest:
            count = os.pwrite(self._handle, rest, at)
            rest, at = rest[count:], at + count

    def close(self) -> None:
        """Close it; can be called only once."""
        os.close(self._handle)


_without_key = 0


@contextmanager
def waiting_rows_sealed(*, are_sealed: bool) -> Iterator[None]:
    """Encrypt unlinked files within the context, although the process has no key for other
    files.
    """
    global _without_key
    _without_key += are_sealed
    try:
        yield
    finally:
        _without_key -= are_sealed


def must_seal() -> bool:
    """Return whether this process must not write rows unencrypted to an unlinked file."""
    return current_key() is not None or _without_key > 0 or NO_PLAIN_FILES in os.environ


class Records:
    """The pieces of an unlinked file, each encrypted separately if files are.

    Only this process reads them. So their key is random, and workers do not need the configured
    key.
    """

    def __init__(self) -> None:
        secret, number = os.urandom(KEY_BYTES), os.urandom(16)
        self._frames = _Frames(RowKey(secret), number) if must_seal() else None

    @property
    def are_sealed(self) -> bool:
        """Return whether pieces are encrypted."""
        return self._frames is not None

    def seal(self, place: int, data: bytes | memoryview) -> bytes | memoryview:
        """Return the bytes to write for a piece; `place` is its number in the file."""
        return data if self._frames is None else self._frames.seal(place, data, last=False)

    def open(self, place: int, data: memoryview) -> memoryview | bytes:
        """Return a piece that was read.

        Raises:
            SealError: it is damaged.
        """
        if self._frames is None:
            return data
        return self._frames.open(place, data, last=False)


def nameless_file(directory: Path | None, prefix: str, buffering: int = -1) -> IO[bytes]:
    """Open a new unlinked file; if needed, rows in it are encrypted by `Records`.

    Args:
        buffering: as for `open`.

    Raises:
        OSError: it cannot be created.
    """
    return tempfile.TemporaryFile(dir=directory, prefix=prefix, buffering=buffering)

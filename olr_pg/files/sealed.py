"""Writes and reads files that contain rows; they are encrypted and authenticated if a key is set.

All code that writes rows to a file opens the file through this module; no other module knows
whether a key is set. The key is set for the whole process (`sealing`), like a umask, because logs
are read by path in many places. Readers recognise an encrypted file by its first bytes, so they can
also read unencrypted files.

An encrypted file consists of a head, followed by frames::

    head   magic (8), fingerprint of the key (8), a random number of the file (16)
    frame  nonce (12), up to 64 KiB encrypted, tag (16)

Each file has its own key, derived from the configured key and the file's number by HKDF with
SHA-256. The cipher is AES-256-GCM. The tag also authenticates the number of the frame and whether
it is the last frame. So a reader detects frames that were moved, removed, or copied from another
file. The reader also detects a truncated file, even if the file ends with a whole frame. A file
that grows while it is read (the copy of an online log) has no frame marked as the last; its reader
knows how long the file must be.
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
from olr_pg.files.positioned import read_at, write_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
FRAME_BYTES: Final = 64 << 10
"""Bytes of rows per frame; the last frame may have fewer, or none."""

NO_PLAIN_FILES: Final = "OLR_PG_NO_PLAIN_FILES"
"""Environment variable that is set for Spark's workers if they have no key but must not write rows
unencrypted.
"""

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
"""Pause before a damaged frame of a growing file is read again, because it may be just being
written.
"""


class SealError(OSError):
    """Raised if an encrypted file cannot be read, because no key or another key is set, or the file
    is damaged or truncated.
    """

    def __init__(self, words: str, path: str | None) -> None:
        super().__init__(errno.EBADMSG, words, path)


class RowKey:
    """The key that encrypts an appliance's files with rows.

    Args:
        secret: the key itself, 32 bytes.

    Attributes:
        fingerprint: identifies the key without revealing it.

    Raises:
        ValueError: the secret does not have 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"{KEY_BYTES} bytes are required, but the key has {len(secret)}")
        self._secret = secret
        self.fingerprint = self._derived(b"", b"olr_pg fingerprint", 8)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Create the key from its base64 text.

        Raises:
            ValueError: the text is not base64 of 32 bytes; the message does not contain the text.
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
        """Return the cipher for the file that has this random number."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._derived(number, b"olr_pg file", KEY_BYTES))


_current: RowKey | None = None


def current_key() -> RowKey | None:
    """Return the key with which this process seals files; None if it does not seal them."""
    return _current


def use_key(key: RowKey | None) -> None:
    """Set the key of this process until it ends; workers call this function."""
    global _current
    _current = key


@contextmanager
def sealing(key: RowKey | None) -> Iterator[None]:
    """Set the key of this process while the context is active: files with rows are encrypted with
    it, and encrypted files are read with it.
    """
    before = current_key()
    use_key(key)
    try:
        yield
    finally:
        use_key(before)


class _Frames:
    """Encrypts and decrypts the frames of one file."""

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
            words = "the file is encrypted, and damaged or cut off"
            raise SealError(words, self._path) from None


class RowOutput(Protocol):
    """A file to which rows are written sequentially."""

    def write(self, data: memoryview | bytes, /) -> int:
        """Append bytes; return their number."""

    def tell(self) -> int:
        """Return the number of bytes of rows written so far."""


class _SealedOutput:
    """A `RowOutput` that encrypts the rows."""

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
        # Do not write the last full frame yet: if no more rows follow, `finish` must mark it as the
        # last.
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
    """Open a new file for rows. The file is complete if the context ends without an error.

    Args:
        durable: whether to sync the file before the context ends.

    Raises:
        OSError: the file cannot be written, or something that is not a regular file exists at the
            path.
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
    """Return the encrypted contents of a small file; return `data` unchanged if no key is set."""
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
    """Return the decrypted contents of a small file, which may be encrypted.

    Raises:
        OSError: the file cannot be read. SealError: the file cannot be decrypted with this
            process's key.
    """
    if not is_sealed(path):
        return path.read_bytes()
    with SealedReader(path) as reader:
        return reader.read(0, reader.size)


def is_sealed(path: str | Path) -> bool:
    """Return whether the file at `path` is encrypted; False if there is no file.

    Raises:
        OSError: the file cannot be read. With "not encrypted" as the answer, a caller would encrypt
            the file a second time, or read the encrypted bytes as rows.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    try:
        return read_at(handle, len(_WHOLE), 0) in (_WHOLE, _GROWING)
    except IsADirectoryError:
        return False
    finally:
        os.close(handle)


class SealedReader:
    """Reads ranges of an encrypted file; thread-safe.

    Attributes:
        size: bytes of rows in the file, decrypted.
        close: closes the file; otherwise it is closed with the object.

    Raises:
        SealError: no key or another key is set, or the file is damaged or truncated.
        OSError: the file cannot be read.
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
        head = read_at(self._handle, _HEAD.size, 0)
        key = current_key()
        if key is None:
            raise SealError("the file is encrypted, and no key is set", self._path)
        if len(head) < _HEAD.size:
            raise SealError("the file is encrypted, and damaged or cut off", self._path)
        magic, fingerprint, number = _HEAD.unpack(head)
        if fingerprint != key.fingerprint:
            raise SealError("the file is encrypted with another key", self._path)
        return _Frames(key, number, self._path), magic == _GROWING

    def _check_end(self) -> int:
        """Return the number of bytes of the file's content, without the bytes that encryption adds.
        Unless the file grows, check that its last frame is present.
        """
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
            frame = read_at(self._handle, _SLOT_BYTES, _HEAD.size + place * _SLOT_BYTES)
            try:
                is_last = not self._grows and place == self._last
                return self._frames.open(place, frame, last=is_last)
            except SealError:
                attempts -= 1
                if not attempts:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def read_into(self, out: memoryview, first: int) -> None:
        """Fill `out` with the bytes from offset `first` on.

        Raises:
            SealError: the file ends before, or is damaged.
        """
        at = 0
        while at < len(out):
            place, start = divmod(first + at, FRAME_BYTES)
            part = memoryview(self._frame(place))[start : start + len(out) - at]
            if not part:
                raise SealError("the file is encrypted, and damaged or cut off", self._path)
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


SEALING: Final = ".sealing"
"""While a file is being encrypted, the name of the new file is a dot, the file's name, and this
ending.
"""


def seal_file(path: Path) -> None:
    """Replace an unencrypted file by its encrypted form, atomically and durably.

    Raises:
        OSError: the file cannot be read or replaced.
    """
    new = path.with_name(f".{path.name}{SEALING}")
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
        path: path of the file; an existing file is overwritten.

    Raises:
        OSError: the file cannot be created; the methods raise OSError too.
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
            write_at(self._handle, _HEAD.pack(_GROWING, key.fingerprint, number), 0)

    def write(self, data: memoryview, offset: int) -> None:
        """Write bytes at an offset. If the offset is after the end of the file, the bytes between
        are zeros.
        """
        if self._frames is None:
            write_at(self._handle, data, offset)
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
            sealed = self._frames.seal(place, frame, last=False)
            write_at(self._handle, sealed, _HEAD.size + place * _SLOT_BYTES)
        self._size = end

    def _known(self, frames: _Frames, place: int) -> bytes:
        frame = read_at(self._handle, _SLOT_BYTES, _HEAD.size + place * _SLOT_BYTES)
        return frames.open(place, frame, last=False)

    def close(self) -> None:
        """Close the file; call it only once."""
        os.close(self._handle)


_without_key = 0


@contextmanager
def waiting_rows_sealed(*, are_sealed: bool) -> Iterator[None]:
    """If `are_sealed`, encrypt unlinked files while the context is active, although the process has
    no key for other files.
    """
    global _without_key
    _without_key += are_sealed
    try:
        yield
    finally:
        _without_key -= are_sealed


def must_seal() -> bool:
    """Return whether rows must be encrypted in the unlinked files of this process."""
    return current_key() is not None or _without_key > 0 or NO_PLAIN_FILES in os.environ


class Records:
    """Encrypts each piece of an unlinked file separately, if `must_seal`.

    Only this process reads the pieces. So the key of the pieces is random, and workers do not need
    the configured key.
    """

    def __init__(self) -> None:
        secret, number = os.urandom(KEY_BYTES), os.urandom(16)
        self._frames = _Frames(RowKey(secret), number) if must_seal() else None

    @property
    def are_sealed(self) -> bool:
        """Whether pieces are encrypted."""
        return self._frames is not None

    def seal(self, place: int, data: bytes | memoryview) -> bytes | memoryview:
        """Return the bytes to write to the file for a piece; `place` is the number of the piece."""
        return data if self._frames is None else self._frames.seal(place, data, last=False)

    def open(self, place: int, data: memoryview) -> memoryview | bytes:
        """Return the contents of a piece from `data`, the bytes that were read from the file.

        Raises:
            SealError: the piece is damaged.
        """
        if self._frames is None:
            return data
        return self._frames.open(place, data, last=False)


def nameless_file(directory: Path | None, prefix: str, buffering: int = -1) -> IO[bytes]:
    """Open a new unlinked file. The caller must pass rows through `Records`, which encrypts them if
    needed.

    Args:
        buffering: as for `open`.

    Raises:
        OSError: the file cannot be created.
    """
    return tempfile.TemporaryFile(dir=directory, prefix=prefix, buffering=buffering)

"""Values of columns encrypted by Transparent Data Encryption, given the table's decrypted key.

A stored value is the cipher text, then the 20-byte integrity code unless the column was encrypted
with NOMAC, then the initialisation vector unless NO SALT. The cipher runs in CBC mode; the clear
text ends in n bytes of value n. The integrity code is not checked: what it is computed over is not
known. Facts: the shared vectors (values of real columns), values-and-lobs §15.1.

Where a table's key comes from – ENC$, encrypted by a master key of a wallet – is outside the
documented facts, so the replicator leaves encrypted columns out by name.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from olr_pg.datatypes.outcomes import printed
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives._cipheralgorithm import CipherAlgorithm

_MAC_BYTES: Final = 20


class ColumnCipher(IntEnum):
    """ENC$.ENCALG; 2 (AES128) is Oracle's default for lack of vectors only inferred."""

    TRIPLE_DES = 1
    AES128 = 2
    AES192 = 3
    AES256 = 4


_KEY_BYTES: Final = {
    ColumnCipher.TRIPLE_DES: 24,
    ColumnCipher.AES128: 16,
    ColumnCipher.AES192: 24,
    ColumnCipher.AES256: 32,
}


def decrypt_column(
    stored: bytes, key: bytes, cipher: ColumnCipher, *, salted: bool, has_mac: bool
) -> bytes:
    """Decrypt a value into its clear form, in Oracle's internal representation.

    Args:
        stored: the column's bytes in the row.
        key: the table's decrypted key.
        cipher: of the table.
        salted: the column is not NO SALT (COL$.PROPERTY bit 29 is clear).
        has_mac: the table's integrity algorithm is SHA-1, not NOMAC.

    Raises:
        OlrPgError: 2080, the bytes are no value encrypted so.
    """
    if len(key) != _KEY_BYTES[cipher]:
        raise OlrPgError(Code.COLUMN_NOT_DECRYPTED, f"a key of {len(key)} bytes for {cipher.name}")
    algorithm: CipherAlgorithm = TripleDES(key) if cipher is ColumnCipher.TRIPLE_DES else AES(key)
    block = 8 if cipher is ColumnCipher.TRIPLE_DES else 16
    tail = (_MAC_BYTES if has_mac else 0) + (block if salted else 0)
    size = len(stored) - tail
    if size < block or size % block:
        raise OlrPgError(
            Code.COLUMN_NOT_DECRYPTED, f"{size} bytes of cipher text: {printed(stored)}"
        )
    vector = stored[-block:] if salted else bytes(block)
    decryptor = Cipher(algorithm, CBC(vector)).decryptor()
    clear = decryptor.update(stored[:size]) + decryptor.finalize()
    padding = clear[-1]
    if not 1 <= padding <= block or clear[-padding:] != bytes([padding]) * padding:
        raise OlrPgError(Code.COLUMN_NOT_DECRYPTED, f"the key does not fit: {printed(stored)}")
    return clear[:-padding]

"""Where the images of a row change stand in its JSON line."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel
from olr_pg.transactions.finished_columns import DmlKind

U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

_INSERT: Final = int(DmlKind.INSERT)
_DELETE: Final = int(DmlKind.DELETE)
_UPDATE: Final = int(DmlKind.UPDATE)
_BEFORE: Final = len('","before":')
_AFTER: Final = len('","after":')
_TAIL: Final = len("}\n")
_QUOTE: Final = ord('"')
_ESCAPE: Final = ord("\\")
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")


@inlined
def _image_end(text: U8, at: int) -> int:
    """Find where the object that begins at `at` ends."""
    depth, is_text = 0, False
    while True:
        byte = text[at]
        if is_text:
            if byte == _ESCAPE:
                at += 1
            elif byte == _QUOTE:
                is_text = False
        elif byte == _QUOTE:
            is_text = True
        elif byte == _OPEN:
            depth += 1
        elif byte == _CLOSE:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1


@kernel
def images_kernel(
    text: U8, first_byte: int, kind: I32, row_id_end: I64, line_end: I64, count: int,
    before: I64, before_size: I64, after: I64, after_size: I64,
) -> int:  # fmt: skip
    """Find the images in lines of `olr_pg.rendering.line_kernel`, those of row changes alone.

    They begin behind the ROWID, and the last one ends where the line does: only the first of an
    update's two is read for its end.

    Args:
        text: the lines.
        first_byte: what is added to where images begin.
        kind: of the answers that they are of, `ElementCode`.
        row_id_end, line_end: as of `olr_pg.rendering.json_lines.Lines`.
        count: the row changes of earlier lines.
        before, before_size: of each row change, where its object begins, its bytes; −1 where it
            has none.
        after, after_size: likewise.

    Returns:
        How many row changes there are, those of earlier lines included.
    """
    for i in range(kind.size):
        code = kind[i]
        if code not in (_INSERT, _DELETE, _UPDATE):
            continue
        before[count], before_size[count] = 0, -1
        after[count], after_size[count] = 0, -1
        begin, end = row_id_end[i] + _BEFORE, line_end[i] - _TAIL
        if code == _INSERT:
            begin = row_id_end[i] + _AFTER
            after[count], after_size[count] = first_byte + begin, end - begin
        elif code == _DELETE:
            before[count], before_size[count] = first_byte + begin, end - begin
        else:
            middle = _image_end(text, begin)
            before[count], before_size[count] = first_byte + begin, middle - begin
            begin = middle + _AFTER - 1
            after[count], after_size[count] = first_byte + begin, end - begin
        count += 1
    return count

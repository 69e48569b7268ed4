"""Where the images of a row change stand in its JSON line."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_OPERATION: Final = len('{"op":"')
_DELETE: Final = ord("d")
_INSERT: Final = ord("i")
_UPDATE: Final = ord("u")
_QUOTE: Final = ord('"')
_ESCAPE: Final = ord("\\")
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_NEWLINE: Final = ord("\n")


@kernel
def images_kernel(text: U8, before: I64, before_size: I64, after: I64, after_size: I64) -> int:
    """Find the images in the lines of `olr_pg.rendering.line_kernel`, those of row changes alone.

    Args:
        text: whole lines.
        before, before_size: of each row change, where its object begins, its bytes; −1 where it
            has none.
        after, after_size: likewise.

    Returns:
        How many row changes there are.
    """
    at, count = 0, 0
    while at < text.size:
        operation = text[at + _OPERATION]
        is_change = operation in (_INSERT, _UPDATE, _DELETE)
        if is_change:
            before[count], before_size[count] = 0, -1
            after[count], after_size[count] = 0, -1
        depth, first, found, is_text = 0, 0, 0, False
        while text[at] != _NEWLINE:
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
                if depth == 2:  # an image, in the line's own object
                    first = at
            elif byte == _CLOSE:
                if depth == 2 and is_change:
                    if operation == _INSERT or found == 1:
                        after[count], after_size[count] = first, at + 1 - first
                    else:
                        before[count], before_size[count] = first, at + 1 - first
                    found += 1
                depth -= 1
            at += 1
        at += 1
        count += is_change
    return count

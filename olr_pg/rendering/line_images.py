"""Where the images of a row change stand in its JSON line."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from olr_pg.kernels.compile import inlined, kernel

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


@inlined
def _image_begin(text: U8, at: int) -> int:
    """Find the next object from `at` on, which is in the line's own; its end, where none comes."""
    is_text = False
    while text[at] != _NEWLINE and (is_text or text[at] != _OPEN):
        if text[at] == _QUOTE:
            is_text = not is_text
        elif is_text and text[at] == _ESCAPE:
            at += 1
        at += 1
    return at


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
def images_kernel(text: U8, before: I64, before_size: I64, after: I64, after_size: I64) -> int:
    """Find the images in the lines of `olr_pg.rendering.line_kernel`, those of row changes alone.

    A line's last image ends where the line does, so that nobody looks at its values: a newline is
    none of theirs.

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
            at = _image_begin(text, at + 1)
        if operation == _UPDATE:
            before[count] = at
            at = _image_end(text, at)
            before_size[count] = at - before[count]
            at = _image_begin(text, at)
        last = at
        while text[at] != _NEWLINE:
            at += 1
        if operation == _DELETE:
            before[count], before_size[count] = last, at - 1 - last
        elif is_change:
            after[count], after_size[count] = last, at - 1 - last
        at += 1
        count += is_change
    return count

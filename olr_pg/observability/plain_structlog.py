"""Structlog without rich, which it imports where it is installed, for tracebacks in colours.

Tracebacks are text here before structlog's renderer sees them (`logging_setup`). Rich would be a
tenth of the time of a short command.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["structlog"]

_modules: dict[str, Any] = sys.modules
_RICH = "rich"

if _RICH in _modules:
    import structlog
else:
    _modules[_RICH] = None  # as if it were not installed
    try:
        import structlog
    finally:
        del _modules[_RICH]

"""Imports structlog without rich, which structlog would import for coloured tracebacks.

Tracebacks are already text when they reach structlog's renderer (`logging_setup`). To import rich
would take a tenth of the run time of a short command.
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
    _modules[_RICH] = None  # pretend that rich is not installed
    try:
        import structlog
    finally:
        del _modules[_RICH]

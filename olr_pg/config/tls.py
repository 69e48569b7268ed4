"""Creates the TLS context of a port from the files that its `tls` section names."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.port_sections import Tls


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context of a listening port. It allows TLS 1.2 and later, the default of
    Python's `ssl`.

    Raises:
        OlrPgError: 4030, a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = tls.key_password.get_secret_value() if tls.key_password else ""
    try:
        # Always pass a password, because otherwise the library would prompt for one at the
        # terminal.
        context.load_cert_chain(tls.certificate, tls.key, password)
    except (OSError, ssl.SSLError) as error:
        raise _unusable(error, tls.certificate) from error
    if tls.client_ca is not None:
        try:
            context.load_verify_locations(tls.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise _unusable(error, tls.client_ca) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _unusable(error: OSError, path: Path) -> OlrPgError:
    return OlrPgError(Code.TLS_FILES_UNUSABLE, system_reason(error), file=str(path))

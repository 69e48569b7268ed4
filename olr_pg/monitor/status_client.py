"""Queries a running appliance for its status, from another process on the same host."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason
from olr_pg.monitor.service import FILE_NAME, INSTANCE_HEADER

if TYPE_CHECKING:
    from email.message import Message

    from olr_pg.config.model import Config
    from olr_pg.config.port_sections import Tls

_SECONDS: Final = 10.0


def ask_status(
    config: Config,
    certificate: Path | None = None,
    key: Path | None = None,
    *,
    page: str = "status.json",
) -> dict[str, Any]:
    """Return the status of the appliance that runs with this configuration, in the form of
    `Status.as_record`.

    Args:
        certificate, key: the certificate of a client and its key, if the page requires one.
        page: the path of the JSON document to return.

    Raises:
        OlrPgError: 9010 no appliance is running, 9011 the appliance does not answer (for the page
            `healthz`: decoding has ended), 4030 the certificates cannot be used.
    """
    file = Path(config.context.data) / FILE_NAME
    try:
        announced = json.loads(file.read_bytes())
        url, instance = announced["url"], announced.get("instance")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unannounced(error, file) from error
    tls = config.status.tls
    context = None if tls is None else _trusting(tls, certificate, key)
    # Connect directly, and do not use a proxy from the environment.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(url + page, timeout=_SECONDS) as answer:
            _check_instance(answer.headers, instance, url)
            record: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            _check_instance(error.headers, instance, url)
            said = error.read().decode("utf-8", "replace")
        raise OlrPgError(
            Code.APPLIANCE_SILENT, f"the answer is HTTP status {error.code}: {said}", address=url
        ) from error
    except urllib.error.URLError as error:
        # If an appliance was killed, this file still exists.
        code = (
            Code.NO_APPLIANCE
            if isinstance(error.reason, ConnectionRefusedError)
            else Code.APPLIANCE_SILENT
        )
        reason = error.reason if isinstance(error.reason, str) else plain_reason(error.reason)
        raise OlrPgError(code, reason, address=url) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        # The appliance may have been killed, and another service may use its port now.
        raise OlrPgError(Code.APPLIANCE_SILENT, plain_reason(error), address=url) from error
    return record


def announced_process(config: Config) -> int:
    """Return the process id that an appliance with this configuration has recorded.

    Raises:
        OlrPgError: 9010 no appliance is running, 9011 its file cannot be read.
    """
    file = Path(config.context.data) / FILE_NAME
    try:
        return int(json.loads(file.read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unannounced(error, file) from error


def _unannounced(error: Exception, file: Path) -> OlrPgError:
    """Return the error if the file in which an appliance announces itself cannot be used."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return OlrPgError(
            Code.NO_APPLIANCE, "no appliance has recorded its address in this file", file=str(file)
        )
    if isinstance(error, PermissionError):
        action = "run the command as the user of the appliance or as root"
        return OlrPgError(
            Code.APPLIANCE_SILENT, system_reason(error), action=action, file=str(file)
        )
    return OlrPgError(Code.APPLIANCE_SILENT, plain_reason(error), file=str(file))


def _check_instance(headers: Message, instance: str | None, url: str) -> None:
    """Check that the answer comes from the appliance that recorded the address."""
    found = headers[INSTANCE_HEADER]
    if found is not None and found != instance:
        detail = "the appliance was killed, and another appliance now uses its address"
        raise OlrPgError(Code.NO_APPLIANCE, detail, address=url)


def _trusting(tls: Tls, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts only the certificate of the page, for any host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(tls.certificate)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        raise OlrPgError(
            Code.TLS_FILES_UNUSABLE, plain_reason(error), file=str(certificate or tls.certificate)
        ) from error
    return context

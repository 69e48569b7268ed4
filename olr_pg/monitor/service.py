"""The status page, its history, `/metrics` and `/healthz`, served over HTTP in a thread.

`starlette` and `uvicorn` were chosen instead of `aiohttp`. `starlette` and `uvicorn` are pure
Python, and with their dependencies they have a third of the size of `aiohttp`. `uvicorn` accepts an
`ssl.SSLContext` and a protocol class of this module. The protocol class closes connections that
uvicorn would keep: connections that do not send a request in time. If all connections are in use, a
connection without a request is closed for the new connection, so that health checks always succeed.

asyncio informs the protocol class of a connection only after the TLS handshake. So the listening
socket (`_Door`) rejects addresses that are not allowed, and limits the number of connections whose
handshake is in progress. Otherwise, clients without a certificate could use up the file descriptors
of the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import socket
import threading
import time
from contextlib import suppress
from importlib import resources
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from olr_pg.config.address import Address, Network, is_allowed, listen
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import replace_file
from olr_pg.files.system_errors import unexpected_failure
from olr_pg.monitor.control import ANSWER_SECONDS, Control, RequestRefusedError
from olr_pg.monitor.history import LEVELS, SERIES, HistoryStore, level_of, series_document
from olr_pg.monitor.status_values import ServedStatus, overall_health
from olr_pg.observability.periodic import Periodic, join_started

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send


DEFAULT_ADDRESS: Final = Address("127.0.0.1", 9701)
FILE_NAME: Final = "status.json"
"""File in `context.data` with the address at which a running appliance serves its status."""

INSTANCE_HEADER: Final = "X-Olr-Pg-Instance"
"""A header of every answer; its value is the `instance` in the file. This header is needed because
the address in the file of a killed appliance may now belong to another process.
"""

EVENT_SECONDS: Final = 1.0
"""Interval at which a new state is sent to the page."""

REQUEST_SECONDS: Final = 10.0
"""Time limit for a client to send a request; also the time after which an idle connection is
closed.
"""

ANNOUNCE_SECONDS: Final = 5.0
"""Interval at which the file with the address is written again if somebody has deleted it."""

CONNECTIONS_MAX: Final = 64
STREAMS_MAX: Final = 32
"""Maximum number of connections that receive events; such a connection ends only when the client
closes it.
"""

_HEADER_BYTES_MAX: Final = 16 << 10
_BODY_BYTES_MAX: Final = 64 << 10
_REFUSAL_SECONDS: Final = 60.0
"""Minimum interval between two log lines about commands without a valid token, or about the same
error of the event loop.
"""

_PORT: Final = re.compile(r":\d*$")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
        " img-src data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_FILES: Final = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, beside this module."""

_log = structlog.get_logger(__name__)


class ServiceSettings(NamedTuple):
    """The address of the service, its TLS settings, and the clients that may connect.

    Attributes:
        address: the address to listen on; None for `DEFAULT_ADDRESS`, or any free port if this
            address is in use.
        tls: the TLS context.
        allow: networks that may connect, in addition to loopback; None for all.
        announcement: a file that contains the address of the service; it exists while the service
            runs.
        hosts: DNS names that the header Host may contain, in addition to addresses and localhost;
            None for no names if the service listens on a loopback address without TLS, and
            otherwise for all names. See `_named`.
    """

    address: Address | None = None
    tls: ssl.SSLContext | None = None
    allow: Sequence[Network] | None = None
    announcement: Path | None = None
    hosts: Sequence[str] | None = None


USUAL_SERVICE: Final = ServiceSettings()


class StatusService:
    """Serves the status between the calls of `start` and `stop`; it is also a context manager.

    Args:
        targets: the status of each target by name; each target has its own page. The name is empty
            if there is only one.
        settings: where to listen.
        history: the history of the targets; without it the page has no charts.
        control: runs commands for clients with a token; without it commands are refused.

    Attributes:
        allow: `settings.allow`. You can set this attribute while the service runs; the new value
            applies to new connections.
    """

    def __init__(
        self,
        targets: Mapping[str, Callable[[], ServedStatus]],
        registry: CollectorRegistry,
        settings: ServiceSettings = USUAL_SERVICE,
        *,
        history: HistoryStore | None = None,
        control: Control | None = None,
    ) -> None:
        self._targets = targets
        self._registry = registry
        self._kept = history
        self._control = control
        self._refused_at = -_REFUSAL_SECONDS
        self._wanted, self._tls = settings.address, settings.tls
        self._announcement = settings.announcement
        self._hosts = settings.hosts
        self._announcing: Periodic | None = None
        self._is_unannounced = False
        self._refused = "", 0.0
        self._instance = secrets.token_hex(8)
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.allow = settings.allow

    def __enter__(self) -> StatusService:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address of the page; available after `start`."""
        assert self._socket is not None
        address = Address(*self._socket.getsockname()[:2])
        return f"{'http' if self._tls is None else 'https'}://{address}/"

    def start(self) -> None:
        """Start listening, and serve in the background.

        Raises:
            OlrPgError: 4009 the address is in use, 4010 the service cannot listen on it.
        """
        self._socket = door = _Door(self._listen(), self)
        routes = [
            Route("/", _served("page.html")),
            *(Route(f"/{name}", _served(name)) for name in _FILES if name != "page.html"),
            Route("/history.json", self._history),
            Route("/metrics", self._metrics),
            Route("/healthz", self._health),
            Route("/status.json", self._json),
            Route("/events", self._events),
        ]
        if self._control is not None:
            routes += [
                Route("/control/{action}", self._command, methods=["POST"]),
                Route("/control/jobs/{number:int}", self._job, methods=["GET"]),
            ]
        tls = self._tls
        app: ASGIApp = Starlette(routes=routes)
        is_here = tls is None and ip_address(self._socket.getsockname()[0]).is_loopback
        if self._hosts is not None or is_here:
            app = _named(app, frozenset(one.lower() for one in self._hosts or ()))
        config = uvicorn.Config(
            app,
            http=_guarded(door),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            headers=[(INSTANCE_HEADER, self._instance)],
            timeout_keep_alive=int(REQUEST_SECONDS),
            # asyncio accepts so many connections at once. If it cannot accept one, it tries so many
            # times each second, and reports each failure.
            backlog=CONNECTIONS_MAX,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="olr-status", daemon=True)
        self._thread.start()
        if self._announcement is not None:
            try:
                self._announce(self._announcement)
            except OSError:
                self.stop()
                raise
            announcing = Periodic("olr-announcement", ANNOUNCE_SECONDS, self._announce_again)
            announcing.start()
            self._announcing = announcing
        _log.info("status page", url=self.url)

    def stop(self) -> None:
        """Close every connection, and wait for the threads."""
        if self._announcing is not None:
            self._announcing.stop()
        if self._announcement is not None:
            self._withdraw(self._announcement)
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            join_started(self._thread)
        if self._socket is not None:
            self._socket.close()

    def _withdraw(self, file: Path) -> None:
        """Delete the file with the address, unless another service has written it. If this fails,
        only log it: the error that ends the appliance must not be lost.
        """
        try:
            if self._is_announced(file):
                file.unlink(missing_ok=True)
        except OSError as error:
            _log.warning(
                "the file with the address of the status page cannot be deleted",
                file=file,
                error=plain_reason(error),
            )

    def _announce(self, file: Path) -> None:
        """Write the file that contains the address of the service.

        Raises:
            OSError: the file cannot be written.
        """
        document = {"url": self.url, "pid": os.getpid(), "instance": self._instance}
        replace_file(file, json.dumps(document).encode() + b"\n")

    def _announce_again(self) -> None:
        """Write the file again if somebody has deleted it. The file of another service stays."""
        file = self._announcement
        assert file is not None
        try:
            if not file.exists():
                self._announce(file)
                _log.warning("the file with the address of the status page was gone", file=file)
            self._is_unannounced = False
        except OSError as error:
            if not self._is_unannounced:  # log it once
                self._is_unannounced = True
                _log.warning(
                    "the file with the address of the status page is gone and cannot be written",
                    file=file,
                    reason=plain_reason(error),
                )

    def _is_announced(self, file: Path) -> bool:
        """Return whether the file still belongs to this service. If an appliance was started during
        a load, it has replaced the file.
        """
        try:
            return bool(json.loads(file.read_bytes())["instance"] == self._instance)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _listen(self) -> socket.socket:
        if self._wanted is not None:
            return listen(self._wanted)
        try:
            return listen(DEFAULT_ADDRESS)
        except OlrPgError as error:
            if error.code != Code.ADDRESS_IN_USE:
                raise
            # The default port can be in use by another appliance. The user did not choose this
            # port, so use another one.
            return listen(Address(DEFAULT_ADDRESS.host, 0))

    def _run(self) -> None:
        assert self._server is not None
        assert self._socket is not None
        try:
            asyncio.run(self._serve(self._server, self._socket))
        except Exception:  # noqa: BLE001 - the thread's outer edge: replication goes on without the page
            _log.exception("the status page failed")

    async def _serve(self, server: uvicorn.Server, listening: socket.socket) -> None:
        asyncio.get_running_loop().set_exception_handler(self._log_refusal)
        await server.serve(sockets=[listening])

    def _log_refusal(self, _loop: object, context: Mapping[str, Any]) -> None:
        """Log an error of the event loop, such as a connection for which the system has no file
        descriptor. The loop repeats it many times a second, so log the same error once a minute.
        """
        error = context.get("exception")
        failure = unexpected_failure(error or RuntimeError(context["message"]))
        now = time.monotonic()
        if (str(failure), True) == (self._refused[0], now < self._refused[1] + _REFUSAL_SECONDS):
            return
        self._refused = str(failure), now
        _log.error(
            "the status page could not serve a connection",
            code=failure.label,
            reason=str(failure),
            action=failure.action,
            exc_info=error if failure.code == Code.INTERNAL else None,
        )

    # --- answers to requests ---

    # These run in threads, because the status of many tables takes long, and the event loop must
    # answer health checks meanwhile.

    def _metrics(self, _request: Request) -> Response:
        text = generate_latest(self._registry)
        return Response(text, headers={**_HEADERS, "Content-Type": CONTENT_TYPE_LATEST})

    def _health(self, _request: Request) -> Response:
        document = self._overview(whole=False)
        return _json(document, 503 if document["health"] == "failed" else 200)

    def _json(self, request: Request) -> Response:
        name = request.query_params.get("target")
        if name is None and len(self._targets) > 1:
            return _json(self._overview(whole=True))
        status = self._status_of(name)
        if status is None:
            return _json({"error": f"there is no target {name!r}"}, 404)
        return _json(status.as_record())

    def _history(self, request: Request) -> Response:
        """Answer a request for a time range, in a separate thread, because it reads a file."""
        asked = request.query_params
        level = level_of(asked.get("range", LEVELS[0].name))
        what = asked.get("what", ",".join(SERIES)).split(",")
        if level is None or not set(what) <= SERIES.keys():
            ranges = ", ".join(one.name for one in LEVELS)
            reason = (
                f"range must be one of {ranges}; what must contain only names from"
                f" {', '.join(SERIES)}"
            )
            return _json({"error": reason}, 400)
        target, table = asked.get("target", next(iter(self._targets))), asked.get("table", "")
        status = self._status_of(target)
        if status is None or self._kept is None:
            return _json({"error": "no history is kept for this target"}, 404)
        series = self._kept.read(status.at, target, table, level)
        told = {"range": LEVELS[level].name, "target": target, "table": table}
        return _json({**told, **series_document(series, what)})

    async def _command(self, request: Request) -> Response:
        control, who = self._control, self._who(request)
        assert control is not None
        if who is None:
            return self._refuse(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _BODY_BYTES_MAX:
                return _json({"error": f"the body has more than {_BODY_BYTES_MAX} bytes"}, 413)
        address = request.client.host if request.client is not None else "unknown"
        action, target = request.path_params["action"], request.query_params.get("target")
        try:
            document = json.loads(body) if body.strip() else {}
            job = control.start(action, document, who, address, target)
        except ValueError:
            return _json({"error": "the body must be a JSON object"}, 400)
        except RequestRefusedError as error:
            return _json({"error": str(error)}, 400)
        is_over = await run_in_threadpool(job.wait, ANSWER_SECONDS)
        code = 202 if not is_over else 200 if job.code == 0 else 409
        return _json(job.as_record(), code)

    async def _job(self, request: Request) -> Response:
        assert self._control is not None
        if self._who(request) is None:
            return self._refuse(request)
        job = self._control.job(request.path_params["number"])
        return (
            _json({"error": "there is no such job"}, 404) if job is None else _json(job.as_record())
        )

    def _who(self, request: Request) -> str | None:
        assert self._control is not None
        return self._control.who(request.headers.get("Authorization", ""))

    def _refuse(self, request: Request) -> Response:
        now = time.monotonic()
        if now - self._refused_at >= _REFUSAL_SECONDS:  # limit the lines in the log
            self._refused_at = now
            host = request.client.host if request.client is not None else "unknown"
            _log.warning("rejected a command over HTTP without a valid token", address=host)
        answer = _json(
            {
                "error": "the request needs the header `Authorization: Bearer TOKEN` with a token"
                " of status.control.tokens"
            },
            401,
        )
        answer.headers["WWW-Authenticate"] = "Bearer"
        return answer

    async def _events(self, request: Request) -> Response:
        name = request.query_params.get("target")
        if name is not None and name not in self._targets:
            return _json({"error": f"there is no target {name!r}"}, 404)
        assert self._server is not None
        open_now = self._server.server_state.connections
        if sum(isinstance(one, _Asked) and one.is_streaming for one in open_now) > STREAMS_MAX:
            return _json({"error": f"{STREAMS_MAX} status pages are already open"}, 503)
        return StreamingResponse(
            self._stream(name, request.query_params.get("wanted", "")),
            media_type="text/event-stream",
            headers=_HEADERS,
        )

    async def _stream(self, name: str | None, wanted: str) -> AsyncIterator[bytes]:
        assert self._server is not None
        while not self._server.should_exit:
            yield await run_in_threadpool(self._event, name, wanted)
            await asyncio.sleep(EVENT_SECONDS)

    def _event(self, name: str | None, wanted: str) -> bytes:
        status = self._status_of(name)
        assert status is not None  # the target exists since the stream began
        return b"data: " + _dumps(status.as_shown(wanted)) + b"\n\n"

    def _status_of(self, name: str | None) -> ServedStatus | None:
        """Return the status of a target, or of the first target if `name` is None. Return None if
        there is no such target.
        """
        status = self._targets.get(next(iter(self._targets)) if name is None else name)
        return None if status is None else status()

    def _overview(self, *, whole: bool) -> dict[str, Any]:
        """Return the health of all targets, and for each target its whole status or a summary."""
        statuses = {name: status() for name, status in self._targets.items()}
        found = {
            name: status.as_record()
            if whole
            else {
                "health": status.health,
                "state": status.state.name,
                "problems": status.problems,
            }
            for name, status in statuses.items()
        }
        if len(found) == 1:
            return next(iter(found.values()))
        return {"health": overall_health(list(statuses.values())), "targets": found}


class _Door(socket.socket):
    """The listening socket. It closes connections from addresses that are not allowed, and the
    oldest connection in the TLS handshake if there are too many.
    """

    def __init__(self, listening: socket.socket, service: StatusService) -> None:
        super().__init__(fileno=listening.detach())
        self._service = service
        self._entering = dict[int, socket.socket]()  # by file descriptor, the oldest first

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection.

        Raises:
            ConnectionAbortedError: the client's address is not allowed.
            OSError: there is no connection, or it cannot be accepted.
        """
        connected, place = super().accept()
        if not is_allowed(place[0], self._service.allow):
            connected.close()
            raise ConnectionAbortedError
        for number, one in list(self._entering.items()):
            if one.fileno() < 0:  # asyncio has closed it
                del self._entering[number]
        if len(self._entering) >= CONNECTIONS_MAX:
            oldest = self._entering.pop(next(iter(self._entering)))
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # asyncio closes it then
        self._entering[connected.fileno()] = connected
        return connected, place

    def has_entered(self, transport: asyncio.BaseTransport) -> None:
        """Take note that the handshake of a connection is complete."""
        self._entering.pop(transport.get_extra_info("socket").fileno(), None)


class _Asked(H11Protocol):
    """A connection with the state of its requests. The state determines whether it can be closed to
    make room for another connection.
    """

    began: float = 0.0
    is_leaving: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_streaming(self) -> bool:
        """Whether the connection receives events."""
        return not self.is_answered and self.cycle.scope["path"] == "/events"

    def make_room(self) -> None:
        """If there are too many connections, close the one that has been idle longest."""
        others = [
            one
            for one in self.connections
            if isinstance(one, _Asked) and one is not self and not one.is_leaving
        ]
        if len(others) < CONNECTIONS_MAX:
            return
        # Prefer connections that never sent a request, then those whose requests are answered; of
        # these, the oldest.
        leaving = min(
            (one for one in others if not one.is_streaming),
            key=lambda one: (one.cycle is not None, not one.is_answered, one.began),
        )
        leaving.is_leaving = True
        leaving.transport.abort()


def _guarded(door: _Door) -> type[H11Protocol]:
    class Guarded(_Asked):
        """Closes connections that send no request in time."""

        _looking: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            door.has_entered(transport)
            self.began = self.loop.time()
            self.make_room()
            self._looked_at = self.cycle
            self._looking = self.loop.call_later(REQUEST_SECONDS, self._look)

        def _look(self) -> None:
            """Close the connection if nothing has changed since the last check and no request is in
            progress.
            """
            if self.is_answered and self.cycle is self._looked_at:
                self.transport.abort()
                return
            self._looked_at = self.cycle
            self._looking = self.loop.call_later(REQUEST_SECONDS, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self._looking is not None:
                self._looking.cancel()

    return Guarded


def _named(app: ASGIApp, names: frozenset[str]) -> ASGIApp:
    """Return an application that rejects requests whose header Host contains another DNS name.

    A malicious web page can point its own DNS name at a loopback address. For the browser, the
    answers of this service then belong to that page, which can read them (DNS rebinding). The
    header Host then contains the name of the page. A request without the header is no browser's.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "") if scope["type"] == "http" else ""
        if not _is_known_host(host, names):
            reason = (
                "the header Host contains a DNS name that is not in status.hosts; request the page"
                " by its address, or add the name to status.hosts"
            )
            await _json({"error": reason}, 421)(scope, receive, send)
            return
        await app(scope, receive, send)

    return checked


def _is_known_host(host: str, names: frozenset[str]) -> bool:
    name = host.rpartition(":")[0] if _PORT.search(host) else host
    name = name.lower().removesuffix(".")
    if not host or name == "localhost" or name in names:
        return True
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _served(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler that answers with a file of the page."""

    async def answer(_request: Request) -> Response:
        content = resources.files("olr_pg.monitor").joinpath(name).read_text("utf-8")
        return Response(content, headers=_HEADERS, media_type=_FILES[name])

    return answer


def _dumps(document: Any) -> bytes:
    import orjson

    return orjson.dumps(document, default=str)


def _json(document: Any, code: int = 200) -> Response:
    return Response(_dumps(document), code, {**_HEADERS, "Content-Type": "application/json"})

"""The status page over real sockets, and in a browser where there is one."""

from __future__ import annotations

import errno
import http.client
import json
import os
import select
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from olr_pg.cli.main import app
from olr_pg.config.address import Address
from olr_pg.config.port_sections import Tls, server_context
from olr_pg.config.reading import parse_config
from olr_pg.errors import OlrPgError
from olr_pg.monitor import service as service_module
from olr_pg.monitor.history import WHOLE, HistoryStore, Reading
from olr_pg.monitor.lag import Lag
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.service import (
    CONNECTIONS_MAX,
    FILE_NAME,
    STREAMS_MAX,
    ServiceSettings,
    StatusService,
)
from olr_pg.monitor.status_client import ask_status
from olr_pg.monitor.status_values import (
    TABLES_SHOWN,
    LoadStatus,
    SourceStatus,
    StageState,
    Status,
    TableStatus,
)
from tests.files.limits import no_more_files
from tests.server.certificates import Authority
from tests.waiting import wait_until

PATIENCE = 60.0
ANY = Address("127.0.0.1", 0)
HANDSHAKE_SECONDS = 60.0
"""The time after which asyncio itself ends a TLS handshake."""


class Shown:
    """What is served; a test may change it."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def __call__(self) -> Status:
        return self.status


@pytest.fixture
def shown(status: Status) -> Shown:
    return Shown(status)


@pytest.fixture
def service(shown: Shown) -> Iterator[StatusService]:
    with StatusService({"": shown}, make_registry(shown), ServiceSettings(address=ANY)) as one:
        yield one


def connected(service: StatusService, **options: Any) -> http.client.HTTPConnection:
    place = urllib.parse.urlsplit(service.url)
    assert place.hostname is not None
    kind = http.client.HTTPSConnection if options else http.client.HTTPConnection
    return kind(place.hostname, place.port, timeout=PATIENCE, **options)


def get(service: StatusService, path: str, **options: Any) -> tuple[int, bytes]:
    with closing(connected(service, **options)) as client:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read()


def test_what_is_served(service: StatusService, status: Status) -> None:
    code, body = get(service, "/status.json")
    assert code == 200
    record = json.loads(body)
    assert record["health"] == "degraded"
    assert record["state"]["words"] == "Waiting for a missing log"
    assert record["tables"][0]["lag"] == {
        "reading": 0.0,
        "decoding": 4.0,
        "queue": 2.0,
        "apply": 1.5,
    }
    assert record == json.loads(json.dumps(status.as_record()))
    code, body = get(service, "/metrics")
    assert (code, b"\nolr_pg_decoded_scn " in body) == (200, True)
    code, body = get(service, "/")
    assert (code, body[:15]) == (200, b"<!doctype html>")
    assert get(service, "/elsewhere")[0] == 404


def test_nothing_of_the_page_comes_from_elsewhere(service: StatusService) -> None:
    for name in ("", "page.css", "page.js"):
        code, body = get(service, f"/{name}")
        page = body.decode()
        assert code == 200
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in page
        assert "innerHTML" not in page


def test_history_of_a_range(shown: Shown, status: Status, tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "history.sqlite")
    readings = {WHOLE: Reading(rows=12.5, apply=3.0), "SHOP.ORDERS": Reading(changes=7.0)}
    store.add(status.at - 10, "", readings)
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY), history=store
    ) as service:
        code, body = get(service, "/history.json?range=1h")
        found = json.loads(body)
        assert (code, found["step"], found["to"] - found["from"]) == (200, 5, 3600)
        assert found["to"] == status.at + 5
        assert found["series"]["rows"][-4:] == [None, 12.5, None, None]
        assert found["series"].keys() == set(Reading._fields)
        lag = json.loads(get(service, "/history.json?what=lag&table=SHOP.ORDERS")[1])["series"]
        assert lag.keys() == {"reading", "decoding", "queue", "apply"}
        table = json.loads(get(service, "/history.json?range=1h&table=SHOP.ORDERS")[1])
        assert table["series"]["changes"][-4:] == [None, 7.0, None, None]
        assert get(service, "/history.json?range=2h")[0] == 400
        assert get(service, "/history.json?what=secrets")[0] == 400
        assert get(service, "/history.json?target=other")[0] == 404
    store.close()


def test_without_free_descriptors_known_clients_are_served_and_the_log_stays_short(
    service: StatusService,
) -> None:
    """asyncio reports each of its attempts to accept a connection."""
    place = urllib.parse.urlsplit(service.url)
    with ExitStack() as opened, capture_logs() as logs:
        known = opened.enter_context(closing(connected(service)))
        known.connect()
        known.request("GET", "/healthz")
        known.getresponse().read()
        others = [opened.enter_context(closing(socket.socket())) for _ in range(3)]
        with no_more_files():
            for other in others:
                other.connect((place.hostname, place.port))
                other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_until(lambda: bool(logs))
            known.request("GET", "/healthz")
            assert known.getresponse().read().startswith(b"{")
        assert {other.recv(12) for other in others} == {b"HTTP/1.1 200"}
    assert [one["code"] for one in logs] == ["OLR-01108"]
    assert "ulimit -n" in logs[0]["action"]


def test_health_is_what_a_container_asks(service: StatusService, shown: Shown) -> None:
    assert get(service, "/healthz")[0] == 200  # degraded: a restart would not help
    shown.status = replace(shown.status, problems=(), state=StageState("CAUGHT_UP", 0.0))
    assert json.loads(get(service, "/healthz")[1]) == {
        "health": "ok",
        "state": "CAUGHT_UP",
        "problems": [],
    }
    shown.status = replace(shown.status, state=StageState("STOPPED", 0.0, "why"))
    assert get(service, "/healthz")[0] == 503


def test_events_follow_each_other(
    service: StatusService, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "EVENT_SECONDS", 0.01)
    with closing(connected(service)) as client:
        client.request("GET", "/events")
        answer = client.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")

        def next_event() -> dict[str, Any]:
            line = answer.readline()
            assert answer.readline() == b"\n"
            event: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
            return event

        assert next_event()["state"]["name"] == "WAITING_FOR_REDO"
        shown.status = replace(shown.status, state=StageState("CAUGHT_UP", 0.0))
        while next_event()["state"]["name"] != "CAUGHT_UP":
            pass
    # `service` is stopped with a stream open, too: its fixture would not end otherwise.


def test_the_page_gets_only_the_first_of_many_tables(
    service: StatusService, shown: Shown, status: Status
) -> None:
    stopped = TableStatus("ERP.LAST", stopped="OLR-05008: x; y")
    quiet = [TableStatus(f"ERP.T{number:05}") for number in range(2_000)]
    loads = [LoadStatus(f"ERP.T{number:05}", 7, 1, 0, 0, 0, 0.0) for number in range(2_000)]
    late = replace(quiet[1_000], lag=Lag(5.0), lag_seconds=5.0)
    loads[1_500] = replace(loads[1_500], rows=7)
    quiet[1_000] = late
    shown.status = replace(status, tables=(*quiet, stopped), loads=tuple(loads))

    def event(path: str) -> tuple[dict[str, Any], int]:
        with closing(connected(service)) as client:
            client.request("GET", path)
            line = client.getresponse().readline()
        return json.loads(line.removeprefix(b"data: ")), len(line)

    found, size = event("/events")
    names = [table["name"] for table in found["tables"]]
    assert names[:3] == ["ERP.LAST", late.name, "ERP.T00000"]
    assert (len(names), len(found["loads"])) == (TABLES_SHOWN, TABLES_SHOWN)
    assert found["loads"][0]["table"] == "ERP.T01500"
    assert found["shown"] == {
        "tables": 2_001,
        "matching": 2_001,
        "lag_seconds": 5.0,
        "loads": 2_000,
    }
    assert size < 200_000
    found, _ = event("/events?wanted=t0012")
    assert [table["name"] for table in found["tables"]] == [f"ERP.T{n:05}" for n in range(120, 130)]
    assert found["shown"]["matching"] == 10
    assert len(json.loads(get(service, "/status.json")[1])["tables"]) == 2_001


def test_a_long_answer_does_not_keep_health_checks_waiting(
    service: StatusService, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_registry: object) -> bytes:
        begun.set()
        assert go_on.wait(PATIENCE)
        return b""

    monkeypatch.setattr(service_module, "generate_latest", slow)
    with closing(connected(service)) as client:
        client.request("GET", "/metrics")
        assert begun.wait(PATIENCE)
        assert get(service, "/healthz")[0] == 200
        go_on.set()
        assert client.getresponse().status == 200


def test_the_default_port_gives_way(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
        monkeypatch.setattr(service_module, "DEFAULT_ADDRESS", address)
        with StatusService({"": shown}, make_registry(shown)) as service:
            assert get(service, "/healthz")[0] == 200
        with pytest.raises(OlrPgError) as caught:
            StatusService(
                {"": shown}, make_registry(shown), ServiceSettings(address=address)
            ).start()
        assert caught.value.code == 4009


def await_end(client: socket.socket) -> bytes:
    client.settimeout(PATIENCE)
    received = b""
    try:
        while part := client.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass  # an end too
    return received


def raw(service: StatusService) -> socket.socket:
    place = urllib.parse.urlsplit(service.url)
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\nX: y", b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\nGET / HT"],
    ids=["silence", "half", "half of a second"],
)
def test_slow_clients_are_dropped(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(service_module, "REQUEST_SECONDS", 0.2)
    with StatusService({"": shown}, make_registry(shown), ServiceSettings(address=ANY)) as service:
        with raw(service) as slow:
            slow.sendall(said)
            await_end(slow)
        monkeypatch.setattr(service_module, "REQUEST_SECONDS", PATIENCE)
        assert get(service, "/healthz")[0] == 200


def test_a_flood_and_noise_leave_it_standing(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "REQUEST_SECONDS", 0.2)
    with StatusService({"": shown}, make_registry(shown), ServiceSettings(address=ANY)) as service:
        for noise in (b"\xff" * 100_000, b"SSH-2.0-x\r\n", b"GET /" + b"a" * 100_000):
            with raw(service) as scanner:
                scanner.sendall(noise)
                await_end(scanner)
        flood = [raw(service) for _ in range(200)]
        for one in flood:
            await_end(one)
            one.close()
        monkeypatch.setattr(service_module, "REQUEST_SECONDS", PATIENCE)
        assert get(service, "/healthz")[0] == 200


def test_an_address_that_is_not_allowed(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "is_allowed", lambda host, _: host != "127.0.0.1")
    with (
        StatusService({"": shown}, make_registry(shown), ServiceSettings(address=ANY)) as service,
        raw(service) as one,
    ):
        one.sendall(b"GET /status.json HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await_end(one) == b""


# --- asking from another process ---


def config_of(folder: Path, **status: Any) -> Any:
    source = {"kind": "offline", "dictionary": "d", "logs": "l"}
    document = {"context": {"data": str(folder)}, "source": source, "status": status}
    return parse_config(document, folder)


def test_the_command_tells_what_is_left_out(shown: Shown, tmp_path: Path) -> None:
    document = {
        "context": {"data": str(tmp_path)},
        "source": {"kind": "offline", "dictionary": "d", "logs": "l"},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document), "utf-8")

    def lines() -> list[str]:
        result = CliRunner().invoke(app, ["status", "--config", str(path)])
        assert result.exit_code == 0
        return [line for line in result.stdout.splitlines() if line.startswith("Not delivered:")]

    file = tmp_path / FILE_NAME
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY, announcement=file)
    ):
        (line,) = lines()
        assert line.removeprefix("Not delivered:").strip() == (
            "17 rows excluded by the filter, 5 transactions excluded by the filter,"
            " 3 incomplete LOB values in the redo, 1 LOB values changed without a row change"
        )
        shown.status = replace(shown.status, source=SourceStatus())
        assert lines() == []


def test_half_open_requests_keep_no_place(service: StatusService) -> None:
    with ExitStack() as stack:
        for number in range(3 * CONNECTIONS_MAX):
            half = stack.enter_context(raw(service))
            half.sendall(b"GET /healthz HTTP/1.1\r\n" if number % 2 else b"")
        code, body = get(service, "/healthz")
        assert (code, json.loads(body)["health"]) == (200, "degraded")
        assert get(service, "/metrics")[0] == 200


def test_connections_without_a_handshake_are_bounded(shown: Shown, tmp_path: Path) -> None:
    """Otherwise, anybody could use up the descriptors of the process, without a certificate."""
    authority = Authority(tmp_path)
    pair, client = authority.issue("server"), authority.issue("client")
    files = {"certificate": str(pair.certificate), "key": str(pair.key)}
    settings = ServiceSettings(address=ANY, tls=server_context(Tls.model_validate(files)))
    with StatusService({"": shown}, make_registry(shown), settings) as service, ExitStack() as all_:
        flood = [all_.enter_context(raw(service)) for _ in range(3 * CONNECTIONS_MAX)]
        assert get(service, "/healthz", context=authority.client_context(client))[0] == 200

        def is_bounded() -> bool:
            readable, _, _ = select.select(flood, [], [], 0)  # at its end
            return len(flood) - len(readable) <= CONNECTIONS_MAX

        wait_until(is_bounded, HANDSHAKE_SECONDS / 2)


def test_an_address_that_is_not_allowed_begins_no_handshake(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "is_allowed", lambda host, _: host != "127.0.0.1")
    pair = Authority(tmp_path).issue("server")
    files = {"certificate": str(pair.certificate), "key": str(pair.key)}
    settings = ServiceSettings(address=ANY, tls=server_context(Tls.model_validate(files)))
    with (
        StatusService({"": shown}, make_registry(shown), settings) as service,
        raw(service) as one,
    ):
        one.settimeout(HANDSHAKE_SECONDS / 2)
        assert one.recv(1) == b""


def code_for(service: StatusService, host: str | None) -> int:
    with raw(service) as client:
        named = "" if host is None else f"Host: {host}\r\n"
        version = "1.0" if host is None else "1.1"
        request = f"GET /status.json HTTP/{version}\r\n{named}Connection: close\r\n\r\n"
        client.sendall(request.encode())
        return int(await_end(client).split()[1])


def test_the_page_of_another_site_cannot_read_it(
    shown: Shown, service: StatusService, tmp_path: Path
) -> None:
    """Its DNS name leads to the loopback address, and the browser sends the name."""
    ours = ("127.0.0.1", "127.0.0.1:9701", "localhost", "LocalHost:1", "[::1]:9701", "10.1.2.3")
    assert {host: code_for(service, host) for host in ours} == dict.fromkeys(ours, 200)
    assert code_for(service, None) == 200
    others = ("evil.example", "evil.example:9701", "127.0.0.1.evil.example", "localhost.evil")
    assert {code_for(service, host) for host in others} == {421}
    settings = ServiceSettings(address=ANY, hosts=["Olr.example"])
    with StatusService({"": shown}, make_registry(shown), settings) as named:
        assert code_for(named, "olr.EXAMPLE.:443") == 200
        assert code_for(named, "evil.example") == 421
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    files = {"certificate": str(pair.certificate), "key": str(pair.key)}
    with_tls = ServiceSettings(address=ANY, tls=server_context(Tls.model_validate(files)))
    with (
        StatusService({"": shown}, make_registry(shown), with_tls) as served,
        closing(connected(served, context=authority.client_context())) as client,
    ):
        client.request("GET", "/healthz", headers={"Host": "olr-pg.monitoring.svc"})
        assert client.getresponse().status == 200  # a browser rejects the certificate


def test_open_pages_keep_no_place_of_the_health(service: StatusService) -> None:
    with ExitStack() as stack:
        codes = []
        for _ in range(STREAMS_MAX + 2):
            client = stack.enter_context(closing(connected(service)))
            client.request("GET", "/events")
            answer = client.getresponse()
            codes.append(answer.status)
        assert codes == [200] * STREAMS_MAX + [503] * 2
        for _ in range(2 * CONNECTIONS_MAX):
            stack.enter_context(raw(service))
        assert get(service, "/healthz")[0] == 200


def test_asking(shown: Shown, tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with pytest.raises(OlrPgError) as caught:
        ask_status(config)
    assert caught.value.code == 9010
    file = tmp_path / FILE_NAME
    with StatusService(
        {"": shown}, make_registry(shown), ServiceSettings(address=ANY, announcement=file)
    ) as service:
        announced = json.loads(file.read_text())
        assert (announced["url"], announced["pid"]) == (service.url, os.getpid())
        assert ask_status(config)["source"]["logs"] == 12
        assert ask_status(config, page="healthz")["health"] == "degraded"
        shown.status = replace(shown.status, state=StageState("STOPPED", 0.0, "why"))
        with pytest.raises(OlrPgError, match=r"503: .*failed"):
            ask_status(config, page="healthz")
        left_behind = file.read_text()
    assert not file.exists()
    file.write_text(left_behind)  # as a kill does
    with pytest.raises(OlrPgError) as caught:
        ask_status(config)
    assert caught.value.code == 9010
    file.write_text("nonsense")
    with pytest.raises(OlrPgError) as caught:
        ask_status(config)
    assert caught.value.code == 9011


def test_the_file_with_the_address_is_written_again_if_it_was_deleted(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "ANNOUNCE_SECONDS", 0.01)
    config, file = config_of(tmp_path), tmp_path / FILE_NAME
    with (
        capture_logs() as said,
        StatusService(
            {"": shown}, make_registry(shown), ServiceSettings(address=ANY, announcement=file)
        ) as service,
    ):
        before = file.read_bytes()
        for _ in range(2):
            file.unlink()
            wait_until(file.exists)
            assert file.read_bytes() == before
            assert ask_status(config)["source"]["logs"] == 12
        moved = tmp_path.rename(tmp_path.with_name("moved"))  # as long as it cannot be written
        wait_until(lambda: any("cannot be written" in line["event"] for line in said))
        moved.rename(tmp_path)
        file.write_text("the file of a load")
        service._announce_again()
        assert file.read_text() == "the file of a load"
    assert len([line for line in said if "cannot be written" in line["event"]]) == 1


def test_a_file_system_that_became_read_only_hides_no_error(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason for the end is that nothing can be written; it is not the file of the page."""

    def refuse(_path: Path, **_options: bool) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    settings = ServiceSettings(address=ANY, announcement=tmp_path / FILE_NAME)
    service = StatusService({"": shown}, make_registry(shown), settings)
    service.start()
    monkeypatch.setattr(Path, "unlink", refuse)
    with capture_logs() as said:
        service.stop()
    assert ["cannot be deleted" in line["event"] for line in said] == [True]


@pytest.mark.parametrize("name", ["CAUGHT_UP", "STOPPED"])
def test_the_address_of_a_killed_one_that_another_appliance_has_by_now(
    shown: Shown, tmp_path: Path, name: str
) -> None:
    shown.status = replace(shown.status, state=StageState(name, 0.0, "why"))
    file, registry = tmp_path / FILE_NAME, make_registry(shown)
    with StatusService(
        {"": shown}, registry, ServiceSettings(address=ANY, announcement=file)
    ) as killed:
        left_behind, port = file.read_text(), urllib.parse.urlsplit(killed.url).port
    file.write_text(left_behind)
    with StatusService(
        {"": shown}, registry, ServiceSettings(address=Address("127.0.0.1", port or 0))
    ):
        for page in ("status.json", "healthz"):
            with pytest.raises(
                OlrPgError, match="another appliance now uses its address"
            ) as caught:
                ask_status(config_of(tmp_path), page=page)
            assert caught.value.code == 9010


def test_tls_and_certificates_of_clients(shown: Shown, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, client = authority.issue("server"), authority.issue("client")
    files = {
        "certificate": str(pair.certificate),
        "key": str(pair.key),
        "client-ca": str(authority.file),
    }
    config = config_of(tmp_path, tls=files)
    with StatusService(
        {"": shown},
        make_registry(shown),
        ServiceSettings(
            address=ANY,
            tls=server_context(Tls.model_validate(files)),
            announcement=tmp_path / FILE_NAME,
        ),
    ) as service:
        assert service.url.startswith("https://")
        code, _ = get(service, "/healthz", context=authority.client_context(client))
        assert code == 200
        assert ask_status(config, client.certificate, client.key)["source"]["logs"] == 12
        with pytest.raises(OlrPgError) as caught:
            ask_status(config)
        assert caught.value.code == 9011
        with raw(service) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            await_end(plain)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            get(service, "/healthz", context=authority.client_context())


def test_a_port_that_another_service_has_by_now_does_not_answer(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with closing(accepted):
                accepted.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                accepted.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        (tmp_path / FILE_NAME).write_text(json.dumps({"url": url}), "utf-8")
        with pytest.raises(OlrPgError) as caught:
            ask_status(config_of(tmp_path))
        thread.join()
    assert caught.value.code == 9011

"""Commands over HTTP: who may give them, which there are, and what is run."""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from olr_pg.config.address import Address
from olr_pg.errors import OlrPgError
from olr_pg.monitor import service as service_module
from olr_pg.monitor.control import ACTIONS, RUNNING_MAX, Control, RequestRefusedError
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.service import ServiceSettings, StatusService
from olr_pg.monitor.status_values import Status
from olr_pg.observability.logging_setup import recent_events
from tests.files.limits import no_more_threads

ALICE, BOB = "a-token-of-alice-1234", "a-token-of-bob-567890"
TOKENS = {"alice": ALICE, "bob": BOB}
ECHO = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ.get('GIVEN')]))"


class Reloads:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def reloads() -> Reloads:
    return Reloads()


@pytest.fixture
def control(reloads: Reloads) -> Iterator[Control]:
    """Its commands print what they were given, instead of doing it."""
    one = Control(
        TOKENS,
        "/etc/olr pg.json",
        reloads,
        command=(sys.executable, "-c", ECHO),
        environ=lambda: {"GIVEN": "of the configuration"},
    )
    yield one
    one.stop()


@pytest.fixture
def service(control: Control, status: Status) -> Iterator[StatusService]:
    address = Address("127.0.0.1", 0)
    registry = make_registry(lambda: status)
    with StatusService(
        {"": lambda: status}, registry, ServiceSettings(address=address), control=control
    ) as one:
        yield one


def ask(
    service: StatusService,
    path: str,
    body: Any = None,
    token: str | None = ALICE,
    method: str = "POST",
    **headers: str,
) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    place = urllib.parse.urlsplit(service.url)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    with closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)) as one:
        text = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        one.request(method, path, text, headers)
        answer = one.getresponse()
        data = answer.read()
    found = json.loads(data) if data.startswith(b"{") else {}
    return answer.status, found, dict(answer.headers)


def run(service: StatusService, action: str, body: Any = None) -> list[str]:
    code, job, _ = ask(service, f"/control/{action}", body)
    assert (code, job["state"], job["by"]) == (200, "done", "alice"), job
    arguments, given = json.loads(job["output"])
    assert given == "of the configuration"
    found: list[str] = arguments
    return found


def test_each_action_runs_its_command(service: StatusService) -> None:
    config = ["--config", "/etc/olr pg.json"]
    by = ["--by", "alice"]
    assert run(service, "pause", {"tables": ["A.B", 'A."c d"']}) == [
        *("tables", "pause", *by, *config, "--", "A.B", 'A."c d"')
    ]
    assert run(service, "resume", {"all": True}) == [
        *("tables", "resume", *by, "--all", *config, "--")
    ]
    assert run(service, "add", {"tables": ["A.B"], "load": False}) == [
        *("tables", "add", *by, "--no-load", *config, "--", "A.B")
    ]
    assert run(service, "remove?target=eu", {"tables": ["A.B"]}) == [
        *("tables", "remove", *by, *config, "--target", "eu", "--", "A.B")
    ]
    assert run(service, "retry") == ["errors", "retry", *config, "--"]
    assert run(service, "skip", {"errors": [17], "transaction": True}) == [
        *("errors", "skip", "--whole-transaction", *config, "--", "17")
    ]


def test_what_looks_like_an_option_is_a_name(service: StatusService) -> None:
    arguments = run(service, "pause", {"tables": ["--config", "/etc/passwd"]})
    assert arguments[-3:] == ["--", "--config", "/etc/passwd"]


def test_reload(service: StatusService, reloads: Reloads) -> None:
    code, job, _ = ask(service, "/control/reload")
    assert (code, job["state"], reloads.count) == (200, "done", 1)


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("drop", {}),
        ("pause", {"tables": "A.B"}),
        ("pause", {"tables": [1]}),
        ("pause", {"tables": ["A\0B"]}),
        ("pause", {"tables": ["x" * 301]}),
        ("pause", {"all": "yes"}),
        ("pause", {"errors": [1]}),
        ("pause", []),
        ("add", {}),
        ("skip", {"errors": [True]}),
        ("skip", {"errors": [-1]}),
        ("skip", {"errors": ["1"]}),
        ("skip", b"{"),
        ("skip", b"\xff"),
    ],
)
def test_nothing_else_is_run(service: StatusService, action: str, body: Any) -> None:
    code, answer, _ = ask(service, f"/control/{action}", body)
    assert code == 400
    assert answer["error"]


def test_only_who_has_a_token(service: StatusService, reloads: Reloads) -> None:
    for token in (None, "", "x", ALICE[:-1], ALICE + "x", "ü" * 20):
        quoted = None if token is None else token.encode().decode("latin-1")
        code, _, headers = ask(service, "/control/reload", token=quoted)
        assert (code, headers["www-authenticate"]) == (401, "Bearer")
        assert ask(service, "/control/jobs/1", token=quoted, method="GET")[0] == 401
    assert ask(service, "/control/reload", token=None, Authorization=f"Basic {ALICE}")[0] == 401
    assert ask(service, f"/control/reload?token={ALICE}", token=None)[0] == 401
    assert ask(service, "/control/reload", token=None, Cookie=f"token={ALICE}")[0] == 401
    assert reloads.count == 0
    assert ask(service, "/control/reload", token=BOB)[1]["by"] == "bob"


def test_only_posts_do_something(service: StatusService, reloads: Reloads) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        code, _, headers = ask(service, "/control/reload", method=method)
        assert code == 405
        assert "access-control-allow-origin" not in headers
    assert reloads.count == 0


def test_a_large_body_is_not_read(service: StatusService) -> None:
    assert ask(service, "/control/pause", b"x" * (80 << 10))[0] == 413


def test_without_control_there_is_none(status: Status) -> None:
    registry = make_registry(lambda: status)
    address = Address("127.0.0.1", 0)
    with StatusService({"": lambda: status}, registry, ServiceSettings(address=address)) as service:
        assert ask(service, "/control/reload")[0] == 404
        assert ask(service, "/control/jobs/1", method="GET")[0] == 404


def test_what_takes_long_is_a_job(
    service: StatusService, control: Control, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(service_module, "ANSWER_SECONDS", 0.05)
    go = tmp_path / "go"
    wait = (
        f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('done')"
    )
    control._command = (sys.executable, "-c", wait)
    code, job, _ = ask(service, "/control/retry")
    assert (code, job["state"]) == (202, "at work")
    for _ in range(RUNNING_MAX - 1):
        assert ask(service, "/control/retry")[0] == 202
    code, answer, _ = ask(service, "/control/retry")
    assert (code, "already in progress" in answer["error"]) == (400, True)
    go.touch()
    deadline = time.monotonic() + 60
    while True:
        code, job, _ = ask(service, f"/control/jobs/{job['job']}", method="GET")
        assert code == 200
        if job["state"] == "done":
            break
        assert time.monotonic() < deadline
    assert job["output"] == "done\n"
    assert ask(service, "/control/jobs/99", method="GET")[0] == 404


def test_a_command_that_fails(service: StatusService, control: Control) -> None:
    control._command = (sys.executable, "-c", "import sys; print('why'); sys.exit(6)")
    code, job, _ = ask(service, "/control/retry")
    assert (code, job["state"], job["exit_code"], job["output"]) == (409, "failed", 6, "why\n")
    control._command = ("/there/is/none",)
    code, job, _ = ask(service, "/control/retry")
    assert (code, job["exit_code"]) == (409, 70)


def test_commands_that_cannot_be_started_do_not_count_as_at_work(control: Control) -> None:
    with no_more_threads():
        jobs = [control.start("retry", {}, "alice", "::1") for _ in range(RUNNING_MAX + 1)]
    assert {(job.code, "OLR-01108" in job.output, "ulimit -u" in job.output) for job in jobs} == {
        (2, True, True)
    }


def test_what_is_at_work_ends_with_the_appliance(control: Control) -> None:
    control._command = (sys.executable, "-c", "import time; time.sleep(600)")
    job = control.start("retry", {}, "alice", "::1")
    control.stop()
    assert job.wait(60)
    assert job.code == -15


@pytest.mark.usefixtures("remembered")
def test_refusals_do_not_fill_the_log(service: StatusService) -> None:
    def told() -> int:
        return sum("without a valid token" in str(one.get("event")) for one in recent_events())

    before = told()
    for _ in range(20):
        ask(service, "/control/reload", token="nobody's")
    assert told() == before + 1


def test_a_short_token_is_refused() -> None:
    with pytest.raises(OlrPgError, match="'x'") as caught:
        Control({"x": "short"}, "c.json")
    assert caught.value.code == 8017
    assert "short" not in caught.value.detail


def test_an_appliance_that_cannot_reload() -> None:
    with pytest.raises(RequestRefusedError):
        Control(TOKENS, "c.json").start("reload", {}, "alice", "::1")


def test_every_action_is_a_command() -> None:
    from typer.testing import CliRunner

    from olr_pg.cli.main import app

    for action in ACTIONS.values():
        options = [option for pair in action.flags.values() for option in pair if option]
        shown = CliRunner().invoke(app, [*action.command, "--help"], env={"COLUMNS": "200"}).output
        assert all(option in shown for option in options)

"""Kubernetes' manifests and compose's services: they fit each other, the image and the package."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from olr_pg.config.reading import load_config

ROOT: Final = Path(__file__).parents[2]
KUBERNETES: Final = ROOT / "configs" / "kubernetes"
MANIFESTS: Final = KUBERNETES / "olr-pg.yaml"
KUSTOMIZATION: Final = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))
COMPOSE: Final = ROOT / "docker" / "compose.yaml"
DOCKERFILE: Final = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
UID: Final = 10_001


def manifests() -> dict[str, dict[str, Any]]:
    documents = list(yaml.safe_load_all(MANIFESTS.read_text("utf-8")))
    return {document["kind"]: document for document in documents}


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = manifests()["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    (one,) = pod()["containers"]
    assert isinstance(one, dict)
    return one


def test_the_kustomization_names_what_is_there() -> None:
    assert KUSTOMIZATION["kind"] == "Kustomization"
    assert KUSTOMIZATION["resources"] == [MANIFESTS.name]
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    assert generated["files"] == ["olr-pg.json"]
    mounted = {one["configMap"]["name"] for one in pod()["volumes"] if "configMap" in one}
    assert mounted == {generated["name"]}
    (image,) = KUSTOMIZATION["images"]
    assert image["name"] == container()["image"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert image["newTag"] == project["version"]
    listed = {"kustomization.yaml", *KUSTOMIZATION["resources"], *generated["files"]}
    assert {path.name for path in KUBERNETES.iterdir()} == listed


def test_kustomize_builds_it() -> None:
    program = shutil.which("kustomize") or shutil.which("kubectl")
    if program is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    verb = ["build"] if program.endswith("kustomize") else ["kustomize"]
    done = subprocess.run([program, *verb, KUBERNETES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = {document["kind"] for document in yaml.safe_load_all(done.stdout)}
    assert kinds == {*manifests(), "ConfigMap"}


def test_its_configuration_is_valid() -> None:
    path = KUBERNETES / "olr-pg.json"
    config = load_config(path, {"ORACLE_PASSWORD": "o", "PG_PASSWORD": "a b"})
    assert config.apply is not None
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert config.status.address is not None
    assert ports == {"protocol": config.port.address.port, "status": config.status.address.port}
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"]}
    assert str(config.context.data).startswith("/var/lib/olr-pg/")
    assert {"/var/lib/olr-pg", "/etc/olr-pg", "/logs", "/tmp"} == mounts


def test_it_runs_as_nobody_with_nothing() -> None:
    assert pod()["securityContext"]["runAsUser"] == UID
    assert f"--uid {UID} " in DOCKERFILE
    assert f"\nUSER {UID}\n" in DOCKERFILE
    assert not pod()["automountServiceAccountToken"]
    assert not pod()["enableServiceLinks"]  # OLR_PG_PORT and others would look like ours
    rights = container()["securityContext"]
    assert rights["readOnlyRootFilesystem"]
    assert not rights["allowPrivilegeEscalation"]
    assert rights["capabilities"] == {"drop": ["ALL"]}


def test_the_parts_find_each_other() -> None:
    found = manifests()
    labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    named = {volume["name"] for volume in pod()["volumes"]}
    claims = {one["metadata"]["name"]
              for one in found["StatefulSet"]["spec"]["volumeClaimTemplates"]}  # fmt: skip
    assert {mount["name"] for mount in container()["volumeMounts"]} == named | claims
    ports = {port["name"] for port in container()["ports"]}
    assert {port["targetPort"] for port in found["Service"]["spec"]["ports"]} == ports
    assert container()["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_manifests_fit_their_schemas() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="schemas are of that package")
    for document in manifests().values():
        validate.validate(document, "1.30", strict=True)


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return found


@pytest.mark.parametrize("service", ["source", "olr-pg"])
def test_composes_services_are_as_restricted(service: str) -> None:
    one = services()[service]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert any(str(place).startswith("/tmp") for place in one["tmpfs"])


def test_the_volumes_of_compose_are_defined() -> None:
    document = yaml.safe_load(COMPOSE.read_text("utf-8"))
    used = {
        mount.partition(":")[0]
        for one in document["services"].values()
        for mount in one.get("volumes", ())
    }
    assert {name for name in used if not name.startswith(".")} == set(document["volumes"])


def test_docker_reads_the_compose_file() -> None:
    program = shutil.which("docker")
    if (
        program is None
        or subprocess.run(
            [program, "compose", "version"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("docker compose reads it where it is installed")
    done = subprocess.run(
        [program, "compose", "-f", COMPOSE, "config", "--format", "json"],
        env={"PG_PASSWORD": "a b'c", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)["services"]
    assert read["olr-pg"]["environment"]["PG_PASSWORD"] == "a b'c"

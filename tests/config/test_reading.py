"""Configuration files: OLR's own, the extensions, and everything that can be wrong with one."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.address import Address
from olr_pg.config.model import Config, secret_texts
from olr_pg.config.outside import Environment
from olr_pg.config.reading import (
    BYTES_MAX,
    ConfigError,
    OverrideError,
    Problem,
    format_key,
    json_schema,
    load_config,
    may_hide_secret,
    one_target,
    override,
    parse_config,
    parse_syntax,
    variable_of,
)
from olr_pg.config.source_section import OfflineSource, OracleSource
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator


OLR_FILE = """{
  "version": "1.2",
  "context": {
    "memory": {"min-mb": 16, "max-mb": 1024, "max-tx-msgs": 100},
    "data": "/var/lib/olr"
  },
  "metrics": {
    "postgres": {
      "connect-string": "postgresql://m:hunter2@h/m",
      "table-scheme": "s",
      "table-name": "t"
    }
  },
  "source": {
    "user": "olr", "password": "hunter2", "server": "h:1521/S",
    "path-mapping": ["/a", "/b"]
  },
  "target": {"address": "0.0.0.0:1234"}
}"""

ORACLE = {"user": "u", "password": "hunter2", "server": "h:1521/S"}
OFFLINE = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}
APPLY = {"connect-string": "embedded", "tables": ["SHOP.ORDERS"]}


def parse(folder: Path, environ: dict[str, str] | None = None, **sections: Any) -> Config:
    return parse_config({"source": ORACLE, **sections}, folder, environ or {}, file="c.json")


def problems(folder: Path, **sections: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(folder, **sections)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.where == {"file": "c.json"}
    return [str(problem) for problem in caught.value.problems]


def write(folder: Path, text: str) -> Path:
    path = folder / "c.json"
    path.write_text(text)
    return path


def test_olr_s_own_file_is_accepted_as_it_is(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, OLR_FILE))
    assert config.version == "1.2"
    memory = config.context.memory
    assert (memory.min_mb, memory.max_mb, memory.max_tx_msgs) == (16, 1024, 100)
    assert config.context.data == Path("/var/lib/olr")
    assert config.metrics is not None
    assert config.metrics.postgres is not None
    metrics = config.metrics.postgres
    assert (metrics.table_scheme, metrics.table_name) == ("s", "t")
    assert metrics.connect_string.get_secret_value() == "postgresql://m:hunter2@h/m"
    assert isinstance(config.source, OracleSource)
    assert (config.source.kind, config.source.user, config.source.server) == (
        "oracle",
        "olr",
        "h:1521/S",
    )
    assert config.source.password.get_secret_value() == "hunter2"
    assert config.source.path_mapping == (("/a", "/b"),)
    assert config.port.address == Address("0.0.0.0", 1234)
    assert config.apply is None


def test_both_spellings_of_max_tx_msgs(tmp_path: Path) -> None:
    for key in ("max-tx-msgs", "max-ts-msgs"):
        config = parse(tmp_path, context={"memory": {key: 7}})
        assert config.context.memory.max_tx_msgs == 7


def test_the_least_file_has_defaults_for_the_rest(tmp_path: Path) -> None:
    config = parse(tmp_path)
    assert config.context.data == tmp_path / "olr_data"
    assert config.port.address == Address("127.0.0.1", 9700)
    assert (config.port.byte_order, config.port.chunk_size) == ("little", 1 << 20)
    assert config.port.binary_xml == "text"
    assert (config.log.level, config.log.format) == (3, "human")
    assert (config.spark.master, config.spark.conf) == ("local[*,3]", {})
    assert (config.status.enabled, config.status.address) == (True, None)


def test_the_guards_of_the_port(tmp_path: Path) -> None:
    tls = {"certificate": "c.pem", "key": "/k.pem", "key-password": "${PW}"}
    config = parse(
        tmp_path,
        {"PW": "hunter2"},
        target={"tls": tls, "allow": ["10.0.0.0/8", "fe80::1"], "limits": {"clients": 9}},
    )
    target = config.port
    assert target.tls is not None
    assert (target.tls.certificate, target.tls.key) == (tmp_path / "c.pem", Path("/k.pem"))
    assert target.tls.client_ca is None
    assert target.allow is not None
    assert [str(network) for network in target.allow] == ["10.0.0.0/8", "fe80::1/128"]
    assert (target.limits.clients, target.limits.request_bytes) == (9, 1 << 20)
    assert secret_texts(config) == ("hunter2",)


def test_an_offline_source(tmp_path: Path) -> None:
    logs = ["archive", "/abs/*.arc"]
    config = parse(tmp_path, source={**OFFLINE, "logs": logs})
    assert isinstance(config.source, OfflineSource)
    assert config.source.dictionary == (tmp_path / "d.json",)
    assert config.source.logs == (tmp_path / "archive", Path("/abs/*.arc"))
    one = parse(tmp_path, source=OFFLINE)
    assert isinstance(one.source, OfflineSource)
    assert one.source.logs == (tmp_path / "archive",)


@pytest.mark.parametrize(
    "form", [["/a", "/b", "/c", "/d"], {"/a": "/b", "/c": "/d"}, [["/a", "/b"], ["/c", "/d"]]]
)
def test_the_forms_of_path_mapping(tmp_path: Path, form: object) -> None:
    config = parse(tmp_path, source={**ORACLE, "path-mapping": form})
    assert isinstance(config.source, OracleSource)
    assert config.source.path_mapping == (("/a", "/b"), ("/c", "/d"))


def test_the_applier(tmp_path: Path) -> None:
    config = parse(
        tmp_path,
        apply={
            "connect-string": "host=h password=hunter2",
            "tables": ["shop.orders", 'SHOP."Mixed"'],
            "workers": 2,
            "create-tables": True,
            "schema-mapping": {"SHOP": "s"},
            "table-mapping": {"shop.orders": "s.o"},
            "on-conflict": "skip",
            "batch-changes": 10,
            "batch-ms": 0,
            "policies": {"nul": "error", "char-blanks": True, "local-timezone": "+02:00"},
        },
    )
    assert config.apply is not None
    assert not config.apply.embedded
    assert config.apply.tables == (("SHOP", "ORDERS"), ("SHOP", "Mixed"))
    assert "'Mixed' AS TABLE_NAME" in config.apply.table_query
    assert config.apply.table_mapping == {"SHOP.ORDERS": "s.o"}
    assert config.apply.value_policies == Policies(
        nul="error", char_blanks=True, local_timezone="+02:00"
    )


def test_the_applier_takes_a_query_and_the_embedded_database(tmp_path: Path) -> None:
    query = "select owner, table_name from all_tables"
    config = parse(tmp_path, apply={"connect-string": "embedded", "tables": query})
    assert config.apply is not None
    assert config.apply.embedded
    assert query == config.apply.table_query


def test_spark_properties_become_texts(tmp_path: Path) -> None:
    conf = {"a": True, "b": 5, "c": "x${N}", "d": ""}
    config = parse(tmp_path, {"N": "1"}, spark={"master": "spark://h:7077", "conf": conf})
    assert config.spark.conf == {"a": "true", "b": "5", "c": "x1", "d": ""}


def test_urls_of_spark_are_no_secrets_in_files(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("from file\n")
    urls = {
        "spark.eventLog.dir": "file:/var/log/spark",
        "spark.jars": "file:///opt/${N}.jar",
        "spark.kubernetes.authenticate.oauthTokenFile": "file:/run/token",
    }
    secrets = {"spark.ssl.keyPassword": "file:pw", "spark.olr.any": {"file": "pw"}}
    config = parse(tmp_path, {"N": "1"}, spark={"conf": {**urls, **secrets}})
    assert config.spark.conf == {
        **urls,
        "spark.jars": "file:///opt/1.jar",
        **dict.fromkeys(secrets, "from file"),
    }
    assert "from file" in secret_texts(config)
    (problem,) = problems(tmp_path, spark={"conf": {"spark.jars": "file:/${NOT_SET}"}})
    assert problem.startswith("spark.conf.spark.jars: ")


def test_secrets_come_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("from file\n")
    for form in ({"file": "pw"}, "file:pw"):
        config = parse(tmp_path, source={**ORACLE, "password": form})
        assert isinstance(config.source, OracleSource)
        assert config.source.password.get_secret_value() == "from file"
    config = parse(tmp_path, {"PW": "from env"}, source={**ORACLE, "password": "${PW}"})
    assert isinstance(config.source, OracleSource)
    assert config.source.password.get_secret_value() == "from env"


def test_comments_and_trailing_commas_are_accepted(tmp_path: Path) -> None:
    text = '{ // one\n "source": {"user": "a // b", /* two */ "password": "p", "server": "s",},}'
    config = load_config(write(tmp_path, text))
    assert isinstance(config.source, OracleSource)
    assert config.source.user == "a // b"


def test_no_secret_is_printed_by_the_values(tmp_path: Path) -> None:
    config = parse(
        tmp_path,
        metrics={"postgres": {"connect-string": "password=hunter2", "table-name": "t"}},
        apply={**APPLY, "connect-string": "postgresql://u:hunter2@h/d"},
        spark={"conf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}},
    )
    for text in (repr(config), str(config), config.model_dump_json(exclude={"spark"})):
        assert "hunter2" not in text
    assert "hunter2" in secret_texts(config)
    assert "postgresql://u:hunter2@h/d" in secret_texts(config)


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"source": {**ORACLE, "user": "${ORACLE_USER}"}}, "source.user"),
        ({"source": {**ORACLE, "server": "${HOST}:1521/S"}}, "source.server"),
        ({"source": {**ORACLE, "path-mapping": {"/a": "${ARCHIVE}/a"}}}, "source.path-mapping"),
        ({"source": {**OFFLINE, "logs": ["${ARCHIVE}"]}}, "source.logs[0]"),
        ({"context": {"data": "${HOME}/data"}}, "context.data"),
        ({"status": {"name": "${HOSTNAME}"}}, "status.name"),
        ({"prove": {"user": "${U}", "password": "p"}}, "prove.user"),
        ({"fallback": {"user": "${U}", "password": "p"}}, "fallback.user"),
    ],
)
def test_a_reference_where_none_is_replaced(
    tmp_path: Path, section: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError, match="only in secrets") as caught:
        parse(tmp_path, **section)
    assert [problem.key for problem in caught.value.problems] == [key]


@pytest.mark.parametrize("text", [r"pa\ss", r"C:\logs", r"a\\\d", r"\u12", r"\01", r"\xz0"])
def test_a_backslash_that_would_be_lost(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    for quote in "\"'":
        path.write_text(f'{{\n// a \\d "comment"\n "source": {quote}{text}{quote}}}')
        with pytest.raises(ConfigError, match=r"line 3, column \d+: .*write it twice") as caught:
            load_config(path)
        assert text not in str(caught.value)


def test_the_escapes_of_json_and_json5(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    written = r"""{ /* \d */ "status": {"name": "a\\d\"\/\u0041\x41\'"}, "source":
        {"kind": "offline", "dictionary": "d.json", "logs": 'it\'s'},}"""
    path.write_text(written)
    assert load_config(path).status.name == "a\\d\"/AA'"


def test_an_unknown_key_below_a_name_suggests_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'SHOP\.\*\.A\.typ: unknown key \(did you mean "type"'):
        parse(tmp_path, apply={**APPLY, "columns": {"SHOP.*.A": {"typ": "text"}}})


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(OlrPgError) as caught:
            load_config(path)
        assert caught.value.code == 1001
        assert caught.value.where == {"file": str(path)}
    path = tmp_path / "latin1.json"
    path.write_bytes(b'{"source": "\xe9"}')
    with pytest.raises(OlrPgError, match="not contain UTF-8") as caught:
        load_config(path)
    assert caught.value.code == 1001
    assert caught.value.where["offset"] == 12
    assert "UTF-8" in caught.value.action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("{", "line 1"),
        ('{"source":\n  }', "line 2"),
        ('{"source": {}, "source": {}}', 'the key "source" is already in line 1'),
        ('{"source": {"password": "hunter2}', "line 1"),
        ('{"source": {"password": hunter2}}', "line 1"),
        ("[" * 100_000, "nested"),
    ],
)
def test_a_file_that_is_not_json(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        load_config(write(tmp_path, text))
    assert caught.value.code == 1002
    assert caught.value.exit_code == 2
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"source": {**ORACLE, "usr": 1}}, 'source.usr: unknown key (did you mean "user"?)'),
        ({"aply": {}}, 'aply: unknown key (did you mean "apply"?)'),
        ({"target": {"byte_order": "big"}}, "target.byte_order: unknown key (did you mean"),
        ({"log": {"zzz": 1}}, "log.zzz: unknown key; known here: format, level"),
        ({"source": {**ORACLE, "logs": "x"}}, 'source.logs: unknown key here; it belongs to "kin'),
        ({"source": {"user": "u", "password": "p"}}, "source.server: missing, expected host:port"),
        ({"source": {**ORACLE, "server": "u/hunter2@h"}}, "source.server: found a string, expecte"),
        ({"source": 5}, "source: found a number, expected an object"),
        ({"source": {"kind": "offlin"}}, 'source.kind: found "offlin", expected "oracle" or "off'),
        ({"source": {"kind": 5}}, 'source.kind: found 5, expected "oracle" or "offline"'),
        ({"source": {**ORACLE, "password": 5}}, "source.password: found a number, expected a st"),
        ({"source": {**ORACLE, "password": ""}}, "source.password: found a string, expected a st"),
        (
            {"source": {**ORACLE, "password": {"path": "hunter2"}}},
            "source.password: found an object, expected a string",
        ),
        ({"source": {**ORACLE, "path-mapping": ["/a"]}}, "source.path-mapping: found a list, exp"),
        ({"source": {**ORACLE, "path-mapping": "/a"}}, 'source.path-mapping: found "/a", expecte'),
        ({"source": {**OFFLINE, "logs": []}}, "source.logs: found a list, expected at least one"),
        ({"source": {**OFFLINE, "logs": ["a", 5]}}, "source.logs[1]: found 5, expected a path"),
        (
            {"source": {**OFFLINE, "logs": ["s3://key:hunter2@redo"]}},
            "source.logs[0]: found a string, expected a path, not a URL: only olr-pg decode",
        ),
        ({"source": {**OFFLINE, "logs": 5}}, "source.logs: found 5, expected a path or a list"),
        ({"source": {**OFFLINE, "dictionary": ""}}, 'source.dictionary: found "", expected a pat'),
        ({"context": {"memory": {"min-mb": "16"}}}, 'context.memory.min-mb: found "16", expected'),
        ({"context": {"memory": {"max-mb": 1.5}}}, "context.memory.max-mb: found 1.5, expected a"),
        ({"context": {"memory": {"max-ts-msgs": 0}}}, "context.memory.max-ts-msgs: found 0, expe"),
        ({"context": {"memory": {"min-mb": True}}}, "context.memory.min-mb: found true, expected"),
        (
            {"context": {"memory": {"max-ts-msgs": 1, "max-tx-msgs": 1}}},
            "context.memory: expected only one of max-tx-msgs and max-ts-msgs",
        ),
        (
            {"context": {"memory": {"min-mb": 64, "max-mb": 32}}},
            "context.memory: expected min-mb (64) not to be greater than max-mb (32)",
        ),
        ({"context": None}, "context: found null, expected an object"),
        ({"target": {"address": "localhost"}}, 'target.address: found "localhost", expected "hos'),
        ({"target": {"address": 9700}}, 'target.address: found 9700, expected "host:port"'),
        ({"target": {"byte-order": "bigg"}}, 'target.byte-order: found "bigg", expected "little'),
        ({"target": {"allow": []}}, "target.allow: found a list, expected a list of addr"),
        (
            {"target": {"allow": ["10.0.0.300"]}},
            'target.allow: found a list, expected an address ("10',
        ),
        ({"target": {"allow": ["10.0.0.1/8"]}}, "target.allow: found a list, expected an address"),
        (
            {"target": {"limits": {"clients": 0}}},
            "target.limits.clients: found 0, expected at least 1",
        ),
        ({"target": {"chunk-size": 1}}, "target.chunk-size: found 1, expected at least 1024"),
        ({"log": {"level": 5}}, "log.level: found 5, expected at most 4"),
        ({"log": {"format": "xml"}}, 'log.format: found "xml", expected "human" or "json"'),
        ({"apply": "postgresql://u:hunter2@h"}, "apply: found a string, expected an object"),
        ({"apply": {**APPLY, "tables": "SHOP.ORDERS"}}, "apply.tables: found "),
        ({"apply": {**APPLY, "tables": ["A.B", "hunter"]}}, 'apply.tables[1]: found "hunter", ex'),
        (
            {"apply": {**APPLY, "tables": ["SHOP.%"]}},
            'apply.tables[0]: found "SHOP.%", expected a table as OWNER.NAME, or a pattern of it',
        ),
        ({"apply": {**APPLY, "tables": []}}, "apply.tables: found a list, expected a TableList"),
        ({"apply": {**APPLY, "connect-string": "hunter2"}}, "apply.connect-string: found a strin"),
        ({"apply": {**APPLY, "workers": 0}}, "apply.workers: found 0, expected at least 1"),
        ({"apply": {**APPLY, "create-tables": "yes"}}, 'apply.create-tables: found "yes", expect'),
        ({"apply": {**APPLY, "on-conflict": "skp"}}, 'apply.on-conflict: found "skp", expected "'),
        ({"apply": {**APPLY, "schema-mapping": {"A": 1}}}, "apply.schema-mapping.A: found 1, exp"),
        (
            {"apply": {**APPLY, "schema-mapping": {"A": "olr_pg"}}},
            "apply.schema-mapping: expected a schema other than olr_pg",
        ),
        (
            {"apply": {**APPLY, "table-mapping": {"A.B": "olr_pg.ledger"}}},
            "apply.table-mapping: expected a schema other than olr_pg",
        ),
        (
            {"apply": {**APPLY, "table-mapping": {"A": "b"}}},
            "apply.table-mapping: expected a table as OWNER.NAME for every key",
        ),
        ({"apply": {**APPLY, "table-mapping": {"A.B": "b"}}}, "apply.table-mapping: expected sch"),
        ({"apply": {**APPLY, "start-scn": -1}}, "apply.start-scn: found -1, expected at least 0"),
        (
            {"apply": {**APPLY, "table-mapping": {"a.b": "s.c", "A.B": "s.d"}}},
            "apply.table-mapping: expected each table once, but A.B is given twice",
        ),
        ({"apply": {**APPLY, "policies": {"nul": "x"}}}, 'apply.policies.nul: found "x", expecte'),
        (
            {"spark": {"master": ""}},
            'spark.master: found "", expected a Spark master: "local", "local[N]"',
        ),
        ({"spark": {"conf": {"a.b": ["hunter2"]}}}, "spark.conf.a.b: found a list, expected a st"),
        ({"metrics": {"postgres": {"connect-string": 5}}}, "metrics.postgres.connect-string: fou"),
        ({"version": True}, "version: found true, expected a version"),
        ({"target": {"binary-xml": "blob"}}, 'target.binary-xml: found "blob", expected'),
        ({"version": "latest"}, 'version: found "latest", expected a version: numbers with dots'),
        ({"version": "1."}, 'version: found "1.", expected a version'),
        ({"version": ""}, 'version: found "", expected a version'),
        ({"version": [1]}, "version: found a list, expected a version"),
    ],
)
def test_an_error_names_the_key_what_was_found_and_what_was_expected(
    tmp_path: Path, sections: dict[str, Any], expected: str
) -> None:
    found = problems(tmp_path, **sections)
    assert any(text.startswith(expected) for text in found), found


def test_a_value_that_may_hold_a_password_is_not_shown(tmp_path: Path) -> None:
    for address in ("u:hunter2@h", "x://hunter2", "password=hunter2", "hunter2" * 20):
        (text,) = problems(tmp_path, target={"address": address})
        assert text.startswith("target.address: found a string (not shown), expected")


@pytest.mark.parametrize("data", [[], "x", None, 5])
def test_the_file_must_hold_an_object(tmp_path: Path, data: object) -> None:
    with pytest.raises(ConfigError, match="expected an object"):
        parse_config(data, tmp_path, {})


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    found = problems(
        tmp_path,
        context={"memory": {"min-mb": 0}},
        source={"user": 5, "password": "${PW}", "server": "s"},
        target={"address": "x"},
        apply={"connect-string": {"file": "empty"}, "tables": ["x"]},
        extra=1,
    )
    keys = [text.split(":")[0] for text in found]
    assert keys == [
        "context.memory.min-mb",
        "source.user",
        "source.password",
        "target.address",
        "apply.connect-string",
        "apply.tables[0]",
        "extra",
    ]


def test_secrets_alone_that_cannot_be_resolved_have_their_own_code(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(tmp_path, source={**ORACLE, "password": "${PW}"})
    assert caught.value.code == 1003
    assert "source.password: the environment variable PW is not set" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        parse(tmp_path, source={**ORACLE, "password": "${PW}"}, log={"level": 9})
    assert caught.value.code == 1002


def test_an_error_survives_pickling(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(tmp_path, log={"level": 9})
    copy = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(copy, ConfigError)
    assert str(caught.value) == str(copy)
    assert caught.value.problems == copy.problems


@pytest.mark.parametrize("version", ["0.1.0", "1", "1.0", "1.99.3", "v1.2", "1.3.0-beta", 1, 1.5])
def test_a_file_of_this_version_or_an_older_one_is_accepted(
    tmp_path: Path, version: object
) -> None:
    assert parse(tmp_path, version=version).version == str(version)


def test_a_file_without_a_version_is_accepted(tmp_path: Path) -> None:
    assert parse(tmp_path).version is None


@pytest.mark.parametrize("version", ["2", "2.0.0", "v3.1", "99.0-rc1", 2, 2.5])
def test_a_newer_file_is_refused_before_its_keys_are(tmp_path: Path, version: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(tmp_path, version=version, unheard={"of": 1})
    assert caught.value.code == 1121
    (problem,) = caught.value.problems
    assert problem.key == "version"
    assert "newer version" in str(caught.value)


def test_a_relative_mapped_path_starts_at_the_folder_of_the_file(tmp_path: Path) -> None:
    mapping = ["/a/", "../logs/", "/b", "here"]
    config = parse(tmp_path, source={**ORACLE, "path-mapping": mapping})
    assert isinstance(config.source, OracleSource)
    assert config.source.path_mapping == (
        ("/a/", f"{tmp_path}/../logs/"),
        ("/b", f"{tmp_path}/here"),
    )


@pytest.mark.parametrize("name", ["checkpoint.json", "targets", "postgres"])
def test_the_state_of_another_default_is_not_passed_over(tmp_path: Path, name: str) -> None:
    text = json.dumps({"source": ORACLE})
    path = write(tmp_path, text)
    assert load_config(path).context.data == tmp_path / "olr_data"
    (tmp_path / "data" / name).mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.code == 1122
    assert str(tmp_path / "data") in str(caught.value)
    # It is named, or it was moved and another one made since.
    write(tmp_path, json.dumps({"source": ORACLE, "context": {"data": "data"}}))
    assert load_config(path).context.data == tmp_path / "data"
    write(tmp_path, text)
    (tmp_path / "olr_data").mkdir()
    assert load_config(path).context.data == tmp_path / "olr_data"


def test_the_schema_names_every_section_and_is_json() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {
        "version",
        "context",
        "metrics",
        "source",
        "filter",
        "target",
        "apply",
        "prove",
        "fallback",
        "verify",
        "spark",
        "status",
        "log",
    }
    assert "max-tx-msgs" in schema["$defs"]["Memory"]["properties"]


def test_a_way_back_has_one_target(tmp_path: Path) -> None:
    """What it writes to Oracle is left out for all of them, but only one has it."""
    one, two = {"name": "one", "apply": APPLY}, {"name": "two"}
    fallback = {"user": "u", "password": "p"}
    assert parse(tmp_path, target=[one], fallback=fallback).fallback is not None
    assert parse(tmp_path, target=[one, two]).fallback is None
    with pytest.raises(OlrPgError, match="only one target with a `fallback` section"):
        parse(tmp_path, target=[one, two], fallback=fallback)


def test_several_targets(tmp_path: Path) -> None:
    one = {"name": "one", "address": ":9700", "apply": APPLY}
    two: Any = {"name": "two", "apply": {**APPLY, "connect-string": "postgresql://a:hunter2@h/d"}}
    config = parse(tmp_path, target=[one, two, {"name": "three", "allow": ["10.0.0.0/8"]}])
    assert [part.name for part in config.targets] == ["one", "two", "three"]
    assert [part.port.address.port for part in config.targets] == [9700, 0, 0]
    assert [part.apply is None for part in config.targets] == [False, False, True]
    assert one_target(config, "two").apply == config.targets[1].apply
    assert "hunter2" in secret_texts(config)
    for name, code in ((None, 1105), ("four", 1106), ("", 1106)):
        with pytest.raises(OlrPgError) as caught:
            one_target(config, name)
        assert caught.value.code == code
    both = [two, {"name": "of-its-own", "apply": {**two["apply"], "subscription": "two"}}]
    assert len(parse(tmp_path, target=both).targets) == 2
    alone = parse(tmp_path, target={"address": ":1"})
    assert one_target(alone, None) is alone
    with pytest.raises(OlrPgError):
        one_target(alone, "one")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (
            [{"name": "a"}, {"name": "a"}],
            "target: expected targets with different names",
        ),
        (
            [{"name": "a", "address": ":1"}, {"name": "b", "address": ":1"}],
            "target: expected targets with different addresses",
        ),
        (
            [{"name": one, "apply": {**APPLY, "connect-string": "host=h"}} for one in "ab"],
            "target: expected targets with different subscriptions in one database",
        ),
        ([{"name": "A b"}], "target[0].name: "),
        ([{"name": "a"}, {"nam": "b"}], 'target[1].nam: unknown key (did you mean "name"?)'),
        ([{"adress": ":1"}], 'target[0].adress: unknown key (did you mean "address"?)'),
        ({"adress": ":1"}, 'target.adress: unknown key (did you mean "address"?)'),
        ([{"name": "a", "filter": {"columns": {"A.B": "C"}}}], "target[0].filter.columns"),
        ([], "target: "),
        (5, "target: found a number, expected an object"),
    ],
)
def test_targets_that_cannot_be(tmp_path: Path, target: Any, problem: str) -> None:
    found = problems(tmp_path, target=target)
    assert any(one.startswith(problem) for one in found), found


def test_apply_is_in_the_entries_of_a_list(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, target=[{"name": "a"}], apply=APPLY)
    assert found == "expected `apply` inside each entry of the list `target`, not next to the list"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ap:hunter2%zz@h/d",  # what libpq says of it holds the password
        "host=h password=hunter2 bogus=1",
        "host=h password=hunter2 connect_timeout=abc",
        "hunter2",
    ],
)
def test_a_connect_string_that_libpq_cannot_read_is_refused(tmp_path: Path, text: str) -> None:
    (found,) = problems(tmp_path, apply={**APPLY, "connect-string": text})
    assert found.startswith("apply.connect-string: found a string, expected")
    metrics = {"postgres": {"connect-string": text, "table-name": "t"}}
    (found,) = problems(tmp_path, metrics=metrics)
    assert found.startswith("metrics.postgres.connect-string: found a string, expected")


def test_metrics_go_to_a_database_that_is_there(tmp_path: Path) -> None:
    metrics = {"postgres": {"connect-string": "embedded", "table-name": "t"}}
    (found,) = problems(tmp_path, metrics=metrics)
    assert "a PostgreSQL URL" in found


@pytest.mark.parametrize("zone", ["Mars/X", "../etc/passwd", "+2", ""])
def test_a_time_zone_that_nobody_knows_is_refused(tmp_path: Path, zone: str) -> None:
    (found,) = problems(tmp_path, apply={**APPLY, "policies": {"local-timezone": zone}})
    assert found.startswith("apply.policies.local-timezone: found ")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "+02:00", "-5:30"])
def test_time_zones_by_name_and_by_offset(tmp_path: Path, zone: str) -> None:
    config = parse(tmp_path, apply={**APPLY, "policies": {"local-timezone": zone}})
    apply = one_target(config, None).apply
    assert apply is not None
    assert apply.policies.local_timezone == zone


@pytest.mark.parametrize(
    "master",
    ["locl", "", "local[", "local[x]", "local[0]", "local[00,3]", "spark://", "http://h:7077"],
)
def test_a_spark_master_that_spark_cannot_read_is_refused(tmp_path: Path, master: str) -> None:
    (found,) = problems(tmp_path, spark={"master": master})
    assert found.startswith("spark.master: ")


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "local[*,3]", "local[2, 3]", "local[10]",
     "spark://h:7077,g:7077", "yarn", "k8s://https://h:6443", "local-cluster[2,1,1024]"],
)  # fmt: skip
def test_spark_masters(tmp_path: Path, master: str) -> None:
    assert parse(tmp_path, spark={"master": master}).spark.master == master


def test_an_empty_list_says_that_it_is_empty(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, target=[])
    assert found == "target: found a list, expected a list that is not empty"


def test_what_is_wrong_in_a_list_does_not_make_it_too_short(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, filter={"operations": {"SHOP.*": ["upsert"]}})
    assert found.startswith('filter.operations.SHOP.*[0]: found "upsert"')


SOURCE = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}


def keys(schema: Any, whole: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every key below a schema that is of an object, and its schema; of lists the first place."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            yield from keys(one, whole, before)
    for name, below in schema.get("properties", {}).items():
        yield f"{before}{name}", below
        yield from keys(below, whole, f"{before}{name}.")
    if "items" in schema and isinstance(schema["items"], dict):
        yield from keys(schema["items"], whole, f"{before}0.")


SCHEMA = json_schema()
ALL_KEYS = sorted({key for key, _ in keys(SCHEMA, SCHEMA) if "." in key})
"""Those of a section."""


def test_every_key_has_a_variable_of_its_own() -> None:
    assert len(ALL_KEYS) > 150
    assert len({variable_of(key) for key in ALL_KEYS}) == len(ALL_KEYS)


@pytest.mark.parametrize("key", ALL_KEYS)
def test_the_variable_of_a_key_sets_it(key: str) -> None:
    parts = key.split(".")
    data: Any = {}
    place = data
    for part, following in itertools.pairwise(parts):  # the list that a place is in is there
        at = int(part) if part.isdigit() else part
        place[at] = [{}] if following.isdigit() else {}
        place = place[at]
    found = override(data, {variable_of(key): "[]"}, SCHEMA)
    for part in parts:
        found = found[int(part) if part.isdigit() else part]
    assert found in ([], "[]")


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("CONTEXT__MEMORY__MAX_MB", "1024", 1024),
        ("CONTEXT__MAX_SPILL_MB", "null", None),
        ("APPLY__CREATE_TABLES", "true", True),
        ("APPLY__CREATE_TABLES", "yes", "yes"),  # the model refuses it
        ("SOURCE__PASSWORD", "123", "123"),
        ("SOURCE__PASSWORD", "null", "null"),
        ("SOURCE__PASSWORD", '{"file": "p"}', {"file": "p"}),
        ("SOURCE__PASSWORD", "{not an object", "{not an object"),
        ("SOURCE__LOGS", "archive", "archive"),
        ("SOURCE__LOGS", '["a", "b"]', ["a", "b"]),
        ("SPARK__CONF", '{"spark.executor.memory": "2g"}', {"spark.executor.memory": "2g"}),
        ("TARGET__BYTE_ORDER", "big", "big"),
    ],
)
def test_texts_are_taken_as_they_are_and_all_else_as_json(
    variable: str, text: str, value: object
) -> None:
    found: Any = override({}, {f"OLR_PG_{variable}": text}, SCHEMA)
    for part in variable.lower().replace("_", "-").split("--"):
        found = found[part]
    assert found == value
    assert type(found) is type(value)


def test_the_environment_wins_over_the_file_which_stays_as_it_was() -> None:
    file = {"context": {"memory": {"max-mb": 16}, "data": "d"}, "target": [{"name": "a"}]}
    before = json.dumps(file)
    environ = {"OLR_PG_CONTEXT__MEMORY__MAX_MB": "32", "OLR_PG_TARGET__0__NAME": "b", "OTHER": "x"}
    changed = override(file, environ, SCHEMA)
    assert changed == {
        "context": {"memory": {"max-mb": 32}, "data": "d"},
        "target": [{"name": "b"}],
    }
    assert json.dumps(file) == before


def test_an_object_is_set_before_what_is_within_it() -> None:
    environ = {"OLR_PG_CONTEXT__MEMORY": '{"max-mb": 20}', "OLR_PG_CONTEXT__MEMORY__MIN_MB": "1"}
    changed = override({}, environ, SCHEMA)
    assert changed == {"context": {"memory": {"max-mb": 20, "min-mb": 1}}}


@pytest.mark.parametrize(
    "variable", ["OLR_PG_APPLY__TABLE_LIST", "OLR_PG___X", "OLR_PG_Context__Data"]
)
def test_a_variable_of_no_key_is_an_error(variable: str) -> None:
    with pytest.raises(
        OverrideError, match=f"{variable}: expected the name of a configuration key"
    ):
        override({}, {variable: "secret"}, SCHEMA)


@pytest.mark.parametrize("data", [[], "text", {"target": []}, {"target": "text"}])
def test_a_file_without_a_place_for_it_is_an_error(data: object) -> None:
    with pytest.raises(OverrideError, match="has no entry to which"):
        override(data, {"OLR_PG_TARGET__0__NAME": "secret"}, SCHEMA)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("OLR_PG_SOURCE_PASSWORD", "OLR_PG_SOURCE__PASSWORD"),
        ("OLR_PG_APPLY_CREATE_TABLES", "OLR_PG_APPLY__CREATE_TABLES"),
        ("OLR_PG_CONTEXT_MEMORY_MAX_MB", "OLR_PG_CONTEXT__MEMORY__MAX_MB"),
    ],
)
def test_a_variable_whose_name_lacks_the_two_underscores_is_an_error(
    tmp_path: Path, variable: str, meant: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": ORACLE}))
    with pytest.raises(ConfigError, match=f"{variable}: expected the name {meant},") as caught:
        load_config(path, {variable: "20"})
    assert caught.value.code == 1002
    others = {"OLR_PG_CONFIG": "x", "OLR_PG_SPARK_PRELOAD": "1", "OLR_PG_APPLY_SECRET": "x"}
    load_config(path, others)
    path.write_text(json.dumps({"source": {**ORACLE, "password": f"${{{variable}}}"}}))
    load_config(path, {variable: "20"})


def test_variables_without_two_underscores_and_empty_ones_do_not_count() -> None:
    environ = {"OLR_PG_CONFIG": "f", "OLR_PG_CONTEXT__DATA": ""}
    assert override({}, environ, SCHEMA) == {}


def test_a_configuration_is_read_with_them(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    environ = {"OLR_PG_TARGET__ADDRESS": "127.0.0.1:9799", "OLR_PG_SOURCE__LOGS": '["one","two"]'}
    config = load_config(path, environ)
    assert config.targets[0].port.address.port == 9799
    assert [one.name for one in map(type(tmp_path), config.source.logs)] == ["one", "two"]  # type: ignore[union-attr]


def test_a_wrong_value_is_told_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    with pytest.raises(ConfigError, match=r"context\.memory\.max-mb"):
        load_config(path, {"OLR_PG_CONTEXT__MEMORY__MAX_MB": "many"})
    with pytest.raises(
        ConfigError, match="OLR_PG_NO__KEY: expected the name of a configuration key"
    ) as caught:
        load_config(path, {"OLR_PG_NO__KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_children_do_not_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLR_PG_CONTEXT__DATA", "elsewhere")
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    environment = Environment()
    load_config(path, environment)
    assert environment.withheld() == {"OLR_PG_CONTEXT__DATA": "elsewhere"}


def test_a_toml_file_has_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        '[source]\nkind = "offline"\ndictionary = "d.json"\nlogs = ["archive"] # where\n'
        "[context.memory]\nmax-mb = 64\n"
    )
    as_json = tmp_path / "c.json"
    as_json.write_text(json.dumps({"source": SOURCE, "context": {"memory": {"max-mb": 64}}}))
    assert load_config(path, {}).context == load_config(as_json, {}).context
    assert load_config(path, {}).source == load_config(as_json, {}).source


def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[source\n")
    with pytest.raises(ConfigError, match=r"expected TOML: .*line 1") as caught:
        load_config(path, {})
    assert caught.value.exit_code == 2


def test_keys_are_written_as_in_the_file() -> None:
    assert format_key(("source", "logs", 1)) == "source.logs[1]"
    assert format_key((0, "name")) == "[0].name"
    assert format_key(()) == ""


def test_a_problem_says_what_is_there_where_that_may_be_shown() -> None:
    assert str(Problem("port", '"x"', "a number")) == 'port: found "x", expected a number'
    assert str(Problem("port", None, "missing")) == "port: missing"
    assert str(Problem("", None, "no JSON")) == "no JSON"


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert may_hide_secret("postgresql://u:p@h/d")
    assert may_hide_secret("the PassWord")
    assert may_hide_secret("a" * 81)
    assert not may_hide_secret("a" * 80)


GOOD = b'{\n\t"source": {\n\t\t"kind": "offline",\n\t\t"dictionary": "d", "logs": "l" } }\n'

BROKEN: dict[str, tuple[str, bytes, str]] = {
    "a comma is missing": ("c.json", GOOD.replace(b'line",', b'line"'), "line 4, column 3"),
    "a brace is missing": ("c.json", GOOD.replace(b"}", b""), "line 5"),
    "a quote is missing": ("c.json", GOOD.replace(b'"d"', b'"d'), "line 4"),
    "a colon is missing": ("c.json", GOOD.replace(b":", b"", 1), "line 2, column 11"),
    "a word without quotes": ("c.json5", GOOD.replace(b'"d"', b"d.json"), "line 4"),
    "text behind the end": ("c.json", GOOD + b"x", "line 5"),
    "duplicate key": ("c.json", GOOD.replace(b'"logs"', b'"kind"'), "already in line 3"),
    "duplicate keys of JSON5": ("c.json5", b"{a: 1,\n'a': 2}", 'line 2, column 1: the key "a"'),
    "a comment without an end": ("c.json", GOOD + b"/* x", "line 5"),
    "a backslash": ("c.json", GOOD.replace(b'"d"', b'"C:\\d"'), "line 4, column 20"),
    "two commas": ("c.json", GOOD.replace(b",", b",,", 1), "line 3"),
    "YAML": ("c.yaml", b"source:\n  kind: offline\n", "YAML is not supported"),
    "YAML under another name": ("olr-pg.conf", b"source:\n  kind: offline\n", "line 1"),
    "INI": ("c.ini", b"[source]\nkind = offline\n", "line 1"),
    "XML": ("c.xml", b"<source/>", "line 1"),
    "TOML under another name": ("c.json", b'[source]\nkind = "offline"\n', "line 1"),
    "JSON named TOML": ("c.toml", GOOD, "line 1"),
    "TOML: no value": ("c.toml", b"[source]\nkind =\nlogs = 1\n", "line 2"),
    "TOML: an open text": ("c.toml", b'[source]\nkind = "offline\n', "line 2"),
    "TOML: an open table": ("c.toml", b"a = 1\n[source", "line 2"),
    "TOML: an open list": ("c.toml", b"a = 1\nlogs = [", "line 2, the end of the file"),
    "TOML: duplicate key": ("c.toml", b"[source]\nkind = 1\nkind = 2\nx = 3\n", "line 3"),
    "TOML: duplicate table": ("c.toml", b"[source]\n[target]\n[source]\n", "line 3"),
    "TOML: tabs and a bare word": ("c.toml", b"[source]\n\tkind = offline\n", "line 2"),
    "empty": ("c.json", b"", "the file is empty"),
    "only blanks": ("c.json", b" \n\t\n", "the file is empty"),
    "only a byte order mark": ("c.json", b"\xef\xbb\xbf", "the file is empty"),
    "only a comment": ("c.json", b"// later\n", "line"),
    "a list": ("c.json", b"[]", "found a list, expected an object"),
    "a text": ("c.json", b'"source"', "found a string, expected an object"),
    "null": ("c.json", b"null", "expected an object"),
    "nested too deeply": ("c.json", b'{"a":' * 50_000, "nested too deeply"),
    "zero bytes": ("c.json", bytes(512), "line 1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_configuration_says_where_and_what_to_do(name: str, tmp_path: Path) -> None:
    file, content, place = BROKEN[name]
    path = tmp_path / file
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})
    error = caught.value
    assert error.code == Code.CONFIG_INVALID
    assert place in error.detail
    assert error.where == {"file": str(path)}
    assert "above" not in error.action  # no key is named
    assert f"olr-pg config check --config {path}`" in error.action


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "UTF-16": (b"\xff\xfe" + GOOD.decode().encode("utf-16-le"), "the file contains UTF-16 text"),
    "UTF-16, big endian": (
        b"\xfe\xff" + GOOD.decode().encode("utf-16-be"),
        "the file contains UTF-16 text",
    ),
    "Latin-1": (GOOD.replace(b'"d"', b'"d\xe9"'), "the file does not contain UTF-8 text"),
    "a program": (
        b"\x7fELF\x02\x01\x01" + bytes(range(256)),
        "the file does not contain UTF-8 text",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_bytes_that_are_no_utf_8_say_how_to_save_them(name: str, tmp_path: Path) -> None:
    content, reason = UNREADABLE[name]
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(OlrPgError, match=reason) as caught:
        load_config(path, {})
    assert caught.value.code == Code.CONFIG_UNREADABLE
    assert caught.value.where["line"] == (4 if name == "Latin-1" else 1 + (name == "a program"))
    assert caught.value.action == "save the file as UTF-8"


def test_places_that_are_no_file_of_this_size_say_so(tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    huge.touch()
    os.truncate(huge, BYTES_MAX + 1)
    places: dict[Path | str, str] = {
        tmp_path: "Is a directory",
        tmp_path / "missing": "No such file",
        huge: "larger than 16 MiB",
        "/dev/zero": "larger than 16 MiB",
    }
    for path, reason in places.items():
        with pytest.raises(OlrPgError, match=reason) as caught:
            load_config(path, {})
        assert caught.value.code == Code.CONFIG_UNREADABLE
        assert caught.value.where == {"file": str(path)}
        assert caught.value.action.startswith("check the path given with --config or --file")


@pytest.mark.parametrize("content", [GOOD, b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n")])
def test_tabs_a_byte_order_mark_and_line_ends_of_windows_are_accepted(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    assert load_config(path, {}).source.kind == "offline"


def test_equal_keys_of_different_objects_are_accepted() -> None:
    text = '{a: {x: "a", y: ["b", {x: 1}, "x"]}, b: {x: "x: 1, x: 2"}, /* a: */ c: {"a": 1}}'
    assert parse_syntax(text, "c.json5")["b"] == {"x": "x: 1, x: 2"}
    with pytest.raises(ConfigError, match=re.escape('line 1, column 9: the key "x"')):
        parse_syntax("{'x': 1,\"x\":2, ", "c.json5")

"""Settings: precedence, all problems at once, secrets hidden, every field documented."""

import argparse
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_runtime.errors import SettingsError
from fairlead_runtime.settings import Secret, ServiceSettings, describe, new_replica, redacted
from fairlead_runtime.sources import add_arguments, given_arguments, load_settings

type Hidden = Secret | None
type FewNames = Annotated[list[str], msgspec.Meta(max_length=3)]


class Example(ServiceSettings, frozen=True, kw_only=True):
    """An example."""

    cluster: str
    """The cluster that it
    works for."""
    pools: list[str] = []
    """Pools."""
    weights: dict[str, int] = {}
    """Weights."""
    window: Annotated[int, msgspec.Meta(ge=1, description="How many.")] = 100
    limit: float | None = 5.0
    """A limit, or none."""
    key: Secret | None = None
    """A key."""

    other_key: Hidden = None
    """Another key, by an alias."""
    names: FewNames = []
    """A few names."""

    def __post_init__(self) -> None:
        if self.nats_token and self.nats_user:
            raise ValueError("give a token or a user, not both")


def load(environ: dict[str, str] | None = None, file: Path | None = None, **arguments: str) -> Example:
    return load_settings(
        Example, environ=environ or {}, file=None if file is None else str(file), arguments=arguments
    )


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("cluster: from-file\nwindow: 1\nlog_level: debug\npools: [a, b]\nweights: {a: 1}\n")
    found = load({"FAIRLEAD_CLUSTER": "from-environment", "FAIRLEAD_WINDOW": "2"}, file, window="3")
    assert (found.cluster, found.window, found.log_level) == ("from-environment", 3, "debug")
    assert (found.pools, found.weights, found.dry_run) == (["a", "b"], {"a": 1}, False)


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("POOLS", "a, b,,c", "pools", ["a", "b", "c"]),
        ("POOLS", "", "pools", []),
        ("NAMES", "a,b", "names", ["a", "b"]),
        ("WEIGHTS", "a=1, b = 2", "weights", {"a": 1, "b": 2}),
        ("DRY_RUN", "true", "dry_run", True),
        ("DRY_RUN", "0", "dry_run", False),
        ("LIMIT", "", "limit", None),
        ("LIMIT", "2.5", "limit", 2.5),
        ("HEALTH_PORT", "-1", "health_port", -1),
        ("NATS_URL", "nats://a:1,nats://b:2", "nats_url", "nats://a:1,nats://b:2"),
        ("KEY", "null-and-void", "key", "null-and-void"),
    ],
)
def test_text_is_read_as_the_fields_type(variable: str, text: str, field: str, value: object) -> None:
    assert getattr(load({"FAIRLEAD_CLUSTER": "c", f"FAIRLEAD_{variable}": text}), field) == value


def test_every_problem_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("windwo: 5\nlimit: many\nhealth_port: 70000\n")
    with pytest.raises(SettingsError) as refused:
        load({"FAIRLEAD_DRY_RUN": "perhaps", "FAIRLEAD_OTEL_SAMPLE_RATIO": "2"}, file, window="0")
    told = "\n".join(refused.value.problems)
    assert len(refused.value.problems) == 7
    for place in (
        "config.yaml: line 1, column 9: 'windwo'",
        "config.yaml: limit: line 2, column 8: ",
        "config.yaml: health_port: line 3, column 14: ",
        "FAIRLEAD_DRY_RUN",
        "FAIRLEAD_OTEL_SAMPLE_RATIO",
        "--window",
        "--cluster",
    ):
        assert place in told


@pytest.mark.parametrize("content", ["- a list", "text", "a: [", "\x00", "7", "a: 2026-02-30", "[" * 5_000])
def test_a_file_that_holds_no_settings_is_told_by_its_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(SettingsError, match=r"config\.yaml"):
        load({"FAIRLEAD_CLUSTER": "c"}, file)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"- secret", "config.yaml: must be a mapping of keys and values, and is a list"),
        (b"secret", "config.yaml: must be a mapping of keys and values, and is text"),
        (b"a: \xffsecret", "config.yaml: cannot be read: line 1, column 4: its text must be in UTF-8"),
        (b"a: b\nc: \0secret", "config.yaml: cannot be read: line 2, column 4: control characters are not allowed"),
        (b"a: " + b"9" * 5000, "config.yaml: cannot be read: a: line 1, column 4: is a number of more digits than can be read"),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_settings_is_told_with_its_place_and_not_quoted(
    tmp_path: Path, content: bytes, told: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        load({"FAIRLEAD_CLUSTER": "c"}, file)
    assert refused.value.problems[0] == f"{tmp_path}/{told}"


@pytest.mark.parametrize(
    ("name", "told"), [("nowhere.yaml", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_the_system_does_not_give_is_told_without_the_number_of_its_error(
    tmp_path: Path, name: str, told: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load({"FAIRLEAD_CLUSTER": "c"}, tmp_path / name)
    assert refused.value.problems[0] == f"{tmp_path / name}: cannot be read: {told}"


def test_a_missing_file_is_told_and_an_empty_one_is_fine(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load({"FAIRLEAD_CLUSTER": "c"}, tmp_path / "nowhere.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load({"FAIRLEAD_CLUSTER": "c"}, tmp_path / "empty.yaml").cluster == "c"


def test_of_a_few_words_all_are_named() -> None:
    with pytest.raises(SettingsError) as refused:
        load(cluster="east", log_level="verbose")
    assert refused.value.problems == [
        "--log-level: must be one of debug, info, warning, error (found 'verbose')"
    ]


def test_a_combination_that_the_struct_refuses_is_a_problem_like_any_other() -> None:
    with pytest.raises(SettingsError, match="not both"):
        load({"FAIRLEAD_CLUSTER": "c", "FAIRLEAD_NATS_TOKEN": "t", "FAIRLEAD_NATS_USER": "u"})


@given(st.dictionaries(st.sampled_from([f"FAIRLEAD_{s.name.upper()}" for s in describe(Example)]), st.text()))
def test_any_environment_is_read_or_refused(environ: dict[str, str]) -> None:
    try:
        load(environ)
    except SettingsError as error:
        told = list(error.problems)
    else:
        told = ["read"]
    assert told


@pytest.mark.parametrize(("written", "secret"), [("[geheim]", "geheim"), ("0x31337", "31337")])
def test_no_secret_of_a_file_is_shown(tmp_path: Path, written: str, secret: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"nats_token: {written}\n")
    with pytest.raises(SettingsError, match="nats_token: line 1, column ") as refused:
        load({"FAIRLEAD_CLUSTER": "c"}, file)
    assert secret not in str(refused.value)


def test_secrets_are_never_shown() -> None:
    shown = redacted(
        Example(
            cluster="c",
            key="geheim",
            other_key="geheim",
            nats_password="geheim",  # noqa: S106 # a test's
            nats_url="nats://me:geheim@host:4222,nats://host2",
        )
    )
    assert "geheim" not in repr(shown)
    assert shown["nats_url"] == "nats://(hidden)@host:4222,nats://host2"
    assert shown["nats_token"] is None
    with pytest.raises(SettingsError) as refused:
        load({"FAIRLEAD_CLUSTER": "c", "FAIRLEAD_HEALTH_PORT": "nats://me:geheim@host"})
    assert "geheim" not in str(refused.value)


def test_every_field_is_documented() -> None:
    assert [setting.name for setting in describe(Example) if not setting.doc] == []
    docs = {setting.name: setting.doc for setting in describe(Example)}
    assert docs["cluster"] == "The cluster that it works for."
    assert docs["window"] == "How many."
    assert docs["dry_run"].startswith("Decide,")


def test_flags_are_taken_as_given() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, Example)
    parsed = parser.parse_args(["--cluster", "c", "--dry-run", "--window", "7"])
    arguments = given_arguments(parsed, Example)
    assert arguments == {"cluster": "c", "dry_run": "true", "window": "7"}
    found = load_settings(Example, environ={"FAIRLEAD_DRY_RUN": "false"}, arguments=arguments)
    assert (found.dry_run, found.window) == (True, 7)
    assert given_arguments(parser.parse_args(["--no-dry-run"]), Example) == {"dry_run": "false"}


def test_replicas_have_names_of_their_own() -> None:
    plain = ServiceSettings()
    assert new_replica(plain) != new_replica(plain)
    assert new_replica(ServiceSettings(replica="scorer-0")) == "scorer-0"

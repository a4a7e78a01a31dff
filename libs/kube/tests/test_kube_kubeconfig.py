"""The way to a cluster: several files, several contexts, and an error that says which part is missing."""

import base64
import os
from pathlib import Path

import msgspec
import pytest

from fairlead_kube.client import connect
from fairlead_kube.connection.credentials import FixedCredentials, TokenFile, sign_in, tls_context
from fairlead_kube.connection.kubeconfig import (
    Access,
    find_access,
    material,
    read_kubeconfig,
)
from fairlead_kube.connection.kubeconfig_file import Cluster, ExecSettings, User
from fairlead_kube.errors import (
    ConfigurationError,
    CredentialsError,
    MissingKubeconfigError,
    UnknownContextError,
)
from fairlead_kube.settings import KubeSettings

FIRST = """
apiVersion: v1
kind: Config
current-context: lab
contexts:
- {name: lab, context: {cluster: lab, user: admin, namespace: team}}
- {name: broken, context: {cluster: nowhere, user: admin}}
- {name: nobody, context: {cluster: lab, user: ghost}}
clusters:
- {name: lab, cluster: {server: "https://lab:6443/", certificate-authority: ca.crt}}
users:
- {name: admin, user: {tokenFile: secrets/token}}
"""
SECOND = """
current-context: other
contexts: [{name: other, context: {cluster: lab, user: robot}}]
clusters: [{name: lab, cluster: {server: "https://shadowed"}}]
users: [{name: robot, user: {token: abc, as: somebody}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> str:
    (tmp_path / "first").write_text(FIRST)
    (tmp_path / "second").write_text(SECOND)
    return os.pathsep.join(str(tmp_path / name) for name in ("first", "second", "absent"))


def test_the_current_context_of_the_first_file_counts(files: str, tmp_path: Path) -> None:
    access = find_access(KubeSettings(kubeconfig=files), {})
    assert (access.context, access.namespace, access.cluster.server) == ("lab", "team", "https://lab:6443/")
    assert access.cluster.certificate_authority == str(tmp_path / "ca.crt")
    assert access.user.token_file == str(tmp_path / "secrets/token")


def test_files_are_merged_and_the_first_that_names_a_thing_counts(files: str) -> None:
    access = find_access(KubeSettings(context="other"), {"KUBECONFIG": files})
    assert access.cluster.server == "https://lab:6443/"
    assert (access.user.token, access.user.impersonate) == ("abc", "somebody")


def test_an_unknown_context_is_answered_with_those_that_there_are(files: str) -> None:
    with pytest.raises(UnknownContextError, match="broken, lab, nobody, other") as caught:
        find_access(KubeSettings(kubeconfig=files, context="prod"), {})
    assert caught.value.context == "prod"


@pytest.mark.parametrize(("context", "missing"), [("broken", "nowhere"), ("nobody", "ghost")])
def test_a_context_that_names_what_is_not_there_is_refused(files: str, context: str, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=missing):
        find_access(KubeSettings(kubeconfig=files, context=context), {})


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingKubeconfigError, match="absent"):
        async with connect(KubeSettings(kubeconfig=str(tmp_path / "absent")), user_agent="test"):
            pass


@pytest.mark.parametrize(
    "text", ["[1, 2]", "a: {", "clusters: 5", "contexts: [{name: 3}]", "a: 2026-02-30", "[" * 5_000]
)
def test_a_file_of_another_form_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd").write_text(text)
    with pytest.raises(ConfigurationError, match="odd"):
        find_access(KubeSettings(kubeconfig=str(tmp_path / "odd")), {})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clusters:\n  5", ["clusters: line 2, column 3: must be a list or null"]),
        ("users:\n- name: a\n  user: {token: 31337}", ["users[0].user.token: line 3, column 17: must be text or null"]),
        ("users:\n- name: a\n  user: {token: 0x31337}", ["users[0].user.token: line 3, column 17: must be a decimal"]),
        ("users:\n- user: {token: 31337}", ["users[0].name: line 2, column 3: is missing"]),
        (
            "users:\n- {name: a, user: {exec: {args: 31337}}}\ncontexts:\n- name: 31337\n",
            ["users[0].user.exec.args: line 2, column 33: must be a list", "contexts[0].name: line 4, column 9: must be"],
        ),
        (
            "clusters:\n- name: a\n  cluster:\n    certificate-authority-data: '31337'",
            ["clusters[0].cluster.certificate-authority-data: line 4, column 33: must be base64"],
        ),
        (
            "users:\n- name: a\n  user:\n    client-key-data: '31337'",
            ["users[0].user.client-key-data: line 4, column 22: must be base64"],
        ),
        ("[31337]", ["document: must be a mapping of keys and values"]),
    ],
)  # fmt: skip
def test_each_wrong_value_is_told_with_its_line_and_without_itself_as_it_may_be_secret(
    tmp_path: Path, text: str, told: list[str]
) -> None:
    (tmp_path / "odd").write_text(text)
    with pytest.raises(ConfigurationError, match="odd is not a kubeconfig") as caught:
        read_kubeconfig([tmp_path / "odd"])
    assert [words for words in told if words not in str(caught.value)] == []
    assert "31337" not in str(caught.value)


def test_what_kubectl_alone_reads_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "apiVersion: v1\npreferences: {colors: true}\nusers:\n- {name: a, user: {as-groups: [x], exec: {env: null, installHint: null}}}\n"
    )
    assert read_kubeconfig([tmp_path / "config"]).users["a"].exec == ExecSettings()


def test_in_a_cluster_without_a_kubeconfig_the_service_account_is_asked_for() -> None:
    with pytest.raises(MissingKubeconfigError, match="service account"):
        find_access(KubeSettings(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})


async def test_a_token_file_is_read_again_when_the_server_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    token = TokenFile(path)
    assert await token.authorization(renew=False) == "Bearer one"
    path.write_text("two")
    assert await token.authorization(renew=False) == "Bearer one"  # not on each request
    assert await token.authorization(renew=True) == "Bearer two"


@pytest.mark.parametrize("text", [None, "", " \n"])
async def test_a_token_file_that_gives_nothing_is_an_error(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "token").write_text(text)
    with pytest.raises(CredentialsError, match="token"):
        await TokenFile(tmp_path / "token").authorization(renew=False)


@pytest.mark.parametrize("secret", ["abc"])
async def test_users_sign_in_with_what_they_have(secret: str) -> None:
    cluster = Cluster(server="https://x")
    basic = "Basic " + base64.b64encode(f"me:{secret}".encode()).decode()
    for user, expected in (
        (User(token=secret), f"Bearer {secret}"),
        (User(username="me", password=secret), basic),
        (User(), None),
    ):
        way = sign_in(Access(cluster=cluster, user=user))
        assert isinstance(way, FixedCredentials)
        assert await way.authorization(renew=True) == expected


async def test_a_credential_plugin_is_run(tmp_path: Path) -> None:
    answer = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"minted"}}'
    )
    plugin = ExecSettings(
        api_version="client.authentication.k8s.io/v1",
        command="sh",
        args=["-c", f"date >> {tmp_path}/runs; echo '{answer}'"],
        interactive_mode="Never",
    )
    way = sign_in(Access(cluster=Cluster(server="https://x"), user=User(exec=plugin)))
    assert await way.authorization(renew=False) == "Bearer minted"
    broken = sign_in(
        Access(
            cluster=Cluster(server="https://x"),
            user=User(exec=msgspec.structs.replace(plugin, command="no-such")),
        )
    )
    with pytest.raises(CredentialsError, match="plugin"):
        await broken.authorization(renew=False)


@pytest.mark.parametrize("command", ["./plugin", "bin/plugin", "../{folder}/plugin", "{path}/plugin"])
async def test_a_plugin_with_a_slash_in_its_command_is_found_from_the_kubeconfigs_folder(
    tmp_path: Path, command: str
) -> None:
    command = command.format(folder=tmp_path.name, path=tmp_path)
    (tmp_path / "bin").mkdir()
    for place in (tmp_path, tmp_path / "bin"):
        answer = (
            '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}'
        )
        (place / "plugin").write_text(f"#!/bin/sh\necho '{answer}'\n")
        (place / "plugin").chmod(0o755)
    path = tmp_path / "config"
    path.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://x'}}]\n"
        "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
        f"command: {command}}}}}}}]\n"
    )
    [user] = read_kubeconfig([path]).users.values()
    way = sign_in(Access(cluster=Cluster(server="https://x"), user=user))
    assert await way.authorization(renew=False) == "Bearer t"


def test_a_plugin_without_a_slash_is_looked_for_on_the_path(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users: [{name: u, user: {exec: {command: aws}}}]\n")
    [user] = read_kubeconfig([path]).users.values()
    assert user.exec == ExecSettings(command="aws")


def test_certificates_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="base64"):
        material("***", None, "client key")
    with pytest.raises(ConfigurationError, match="absent"):
        material(None, str(tmp_path / "absent"), "client key")
    junk = base64.b64encode(b"junk").decode()
    with pytest.raises(CredentialsError, match="cannot be used"):
        tls_context(Access(cluster=Cluster(certificate_authority_data=junk), user=User()))
    user = User(client_certificate_data=junk, client_key_data=junk)
    with pytest.raises(CredentialsError, match="cannot be used"):
        tls_context(Access(cluster=Cluster(), user=user))

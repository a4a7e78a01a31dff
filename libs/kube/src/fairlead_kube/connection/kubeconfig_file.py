"""The form of a kubeconfig file: what is read of it, and where a value is wrong."""

import base64
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.reading import Lenient, StructReader, no_mapping, with_unread
from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, with_places
from fairlead_kube.errors import ConfigurationError


class Extension(Lenient, frozen=True, kw_only=True):
    """An entry of a kubeconfig beside what Kubernetes knows of."""

    name: str = ""
    extension: object = None


class Cluster(Lenient, frozen=True, kw_only=True, rename="kebab"):
    """The address of an API server, and how to know that it is the right one."""

    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None
    """Entries that kubectl does not read; one of them may be for credential plugins."""


class ExecVariable(Lenient, frozen=True, kw_only=True):
    """A variable of a credential plugin's environment."""

    name: str
    value: str


class ExecSettings(Lenient, frozen=True, kw_only=True, rename="camel"):
    """The `exec` of a kubeconfig's user: a credential plugin, and how it is run."""

    command: str = ""
    """Program of the plugin. One without is refused only when its user signs in, as kubectl has it."""
    api_version: str = ""
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None
    install_hint: str | None = None


class User(Lenient, frozen=True, kw_only=True, rename="kebab"):
    """The user's ways to sign in, as a kubeconfig names them."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    exec: ExecSettings | None = None
    auth_provider: dict[str, object] | None = None


class Context(Lenient, frozen=True, kw_only=True):
    """A cluster, a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = "default"


class NamedPart(Lenient, frozen=True, kw_only=True):
    """An entry of one of a kubeconfig's lists."""

    name: str
    cluster: Cluster | None = None
    user: User | None = None
    context: Context | None = None


class KubeconfigFile(Lenient, frozen=True, kw_only=True, rename="kebab"):
    """One file, as it was written; kubectl reads keys beside these, and so they are passed over."""

    current_context: str | None = None
    clusters: list[NamedPart] | None = None
    users: list[NamedPart] | None = None
    contexts: list[NamedPart] | None = None


def read_file(path: Path) -> KubeconfigFile:
    """The kubeconfig at the path.

    Raises:
        ConfigurationError: it cannot be read; with every value that is wrong and its line, and without the value, which
            may be secret.
    """
    try:
        text = path.read_bytes()
        parsed = parse_yaml(text)
        found = parsed.only
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except YamlError as error:
        raise ConfigurationError(f"{path} is not YAML: {error}") from error
    reader = StructReader()
    file = _kubeconfig(reader, {} if found is None else found)
    wrong = [problem.unquoted() for problem in with_unread(parsed.problems, reader.problems)]
    problems = with_places(wrong, text)
    if file is None or problems:
        raise ConfigurationError(f"{path} is not a kubeconfig: {'; '.join(map(str, problems))}")
    return file


def _kubeconfig(reader: StructReader, found: object) -> KubeconfigFile | None:
    if not isinstance(found, dict):
        reader.problems.append(no_mapping("document", found))
        return None
    file = reader.struct(KubeconfigFile, found, "")
    if file is not None:
        reader.problems += [
            FieldError(field, data, "must be base64")
            for field, data in _data_of(file)
            if data is not None and not _is_base64(data)
        ]
    return file


def _data_of(file: KubeconfigFile) -> Iterator[tuple[str, str | None]]:
    """Certificates and keys that stand in the file itself, by the paths of their fields."""
    for number, one in enumerate(file.clusters or ()):
        if one.cluster is not None:
            where = f"clusters[{number}].cluster.certificate-authority-data"
            yield where, one.cluster.certificate_authority_data
    for number, one in enumerate(file.users or ()):
        if one.user is not None:
            yield f"users[{number}].user.client-certificate-data", one.user.client_certificate_data
            yield f"users[{number}].user.client-key-data", one.user.client_key_data


def from_base64(data: str) -> bytes:
    """The bytes; blanks and line ends between the letters mean nothing, as in YAML's folded text.

    Raises:
        binascii.Error: it is not base64.
    """
    return base64.b64decode("".join(data.split()), validate=True)


def _is_base64(data: str) -> bool:
    try:
        from_base64(data)
    except ValueError:  # binascii.Error, and what is not ASCII
        return False
    return True

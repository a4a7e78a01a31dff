"""A real registry of container images on loopback: Debian's docker-registry, open or behind words or tokens."""

import base64
import hashlib
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self, cast, override
from urllib.parse import parse_qs, urlsplit

import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fairlead_testkit.processes.apt import ensure_program
from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.processes.own_process import OwnProcess

PROGRAM = "docker-registry"
USER, WORD = "ann", "word"
_HASHED = "$2y$05$abcdefghijklmnopqrstuuQDoL5Sa/TtfS/XN4AY/jgq.HBbO1BTu"
"""The hash of WORD, as htpasswd keeps it."""
_REALM = "registry of a test"
_START_SECONDS = 20.0
_CONFIG = "application/vnd.docker.container.image.v1+json"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class ImageRegistry(OwnProcess):
    """A process of the registry of images; killed by its pid at the end.

    Args:
        host: host with its port.
        login: header of a request that changes it.
        configuration: file of its configuration; its log is beside it.
    """

    def __init__(self, host: str, login: str | None, configuration: Path) -> None:
        super().__init__(PROGRAM, configuration.with_suffix(".log"))
        self.host = host
        self._login = login
        self._configuration = configuration

    def start(self) -> Self:
        """Start the registry, and return once it answers."""
        self._begin([PROGRAM, "serve", str(self._configuration)])
        self._await(self.up, _START_SECONDS, "the registry answers")
        return self

    def push(self, path: str, tag: str) -> str:
        """Put the smallest image there is into the registry; returns its digest."""
        config = json.dumps(
            {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
        )
        where = self._blob(path, config.encode())
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, "size": len(config), "digest": where},
            "layers": [],
        }
        content = json.dumps(manifest).encode()
        self._ask("PUT", f"http://{self.host}/v2/{path}/manifests/{tag}", content, _MANIFEST)
        return _digest(content)

    def up(self) -> bool:
        """Whether the registry answers."""
        try:
            self._ask("GET", f"http://{self.host}/v2/")
        except urllib.error.HTTPError as error:
            return error.code == 401  # noqa: PLR2004 # it answers, and wants to know who asks
        except OSError:
            return False
        return True

    def _blob(self, path: str, content: bytes) -> str:
        begun = self._ask("POST", f"http://{self.host}/v2/{path}/blobs/uploads/")
        place = str(begun["Location"])
        mark = "&" if "?" in place else "?"
        self._ask("PUT", f"{place}{mark}digest={_digest(content)}", content, "application/octet-stream")
        return _digest(content)

    def _ask(self, method: str, url: str, content: bytes | None = None, kind: str = "") -> dict[str, str]:
        headers = {"Content-Type": kind} if kind else {}
        if self._login is not None:
            headers["Authorization"] = self._login
        asked = urllib.request.Request(url, content, headers, method=method)  # noqa: S310 # loopback
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=10) as answer:
            return dict(answer.headers)


def ensure_image_registry() -> None:
    """Return where docker-registry is there. In CI, as root, apt installs it; elsewhere the test is skipped, with the remedy."""
    ensure_program(PROGRAM, PROGRAM)


@contextmanager
def image_registry(directory: Path, *, behind: str = "") -> Iterator[ImageRegistry]:
    """Runs an image registry of its own until the block ends.

    Args:
        directory: folder for its data and its log.
        behind: `words` for a name and a word, `tokens` for a server that gives tokens out for them.
    """
    with _access(directory, behind) as (lines, login):
        [port] = free_ports(1)
        host = f"127.0.0.1:{port}"
        conf = directory / "registry.yml"
        conf.write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {directory}/data}}}}\n"
            f"http: {{addr: {host}}}\n{lines}"
        )
        with ImageRegistry(host, login, conf) as registry:
            yield registry


@contextmanager
def _access(directory: Path, behind: str) -> Iterator[tuple[str, str | None]]:
    if behind == "words":
        (directory / "htpasswd").write_text(f"{USER}:{_HASHED}\n")
        yield f"auth: {{htpasswd: {{realm: {_REALM}, path: {directory}/htpasswd}}}}\n", _basic()
    elif behind == "tokens":
        with _token_server(directory) as (realm, token):
            lines = f"auth: {{token: {{realm: {realm!r}, service: test, issuer: test, rootcertbundle: {directory}/ca.pem}}}}\n"
            yield lines, f"Bearer {token}"
    else:
        yield "", None


@contextmanager
def _token_server(directory: Path) -> Iterator[tuple[str, str]]:
    """Gives out tokens to pull, for the name and word, and signs them so that the registry believes them."""
    signer = _Signer(directory / "ca.pem")

    class RegistryHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server's name
            if self.headers.get("Authorization") not in (None, _basic()):
                self.send_error(401)
                return
            rights = ["pull"] if self.headers.get("Authorization") == _basic() else []
            [scope] = parse_qs(urlsplit(self.path).query)["scope"]
            content = json.dumps({"token": signer.token(scope.split(":")[1], rights)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        @override
        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), RegistryHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", signer.token("team/train", ["pull", "push"])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Signer:
    def __init__(self, bundle: Path) -> None:
        authority = trustme.CA(key_type=trustme.KeyType.RSA, organization_name="tokens of a test")
        authority.cert_pem.write_to_path(bundle)
        key = load_pem_private_key(authority.private_key_pem.bytes(), None)
        self._key = cast("rsa.RSAPrivateKey", key)
        der = ssl.PEM_cert_to_DER_cert(authority.cert_pem.bytes().decode())
        self._certificate = base64.b64encode(der).decode()

    def token(self, path: str, rights: list[str]) -> str:
        """A token to do these things with the images of a path."""
        now = int(time.time())
        access = [{"type": "repository", "name": path, "actions": rights}] if rights else []
        head = {"typ": "JWT", "alg": "RS256", "x5c": [self._certificate]}
        body = {
            "iss": "test",
            "sub": USER,
            "aud": "test",
            "exp": now + 600,
            "nbf": now - 60,
            "iat": now,
            "jti": "1",
        }
        text = ".".join(_url_safe(json.dumps(part).encode()) for part in (head, {**body, "access": access}))
        signed = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_url_safe(signed)}"


def _url_safe(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _basic() -> str:
    return f"Basic {base64.b64encode(f'{USER}:{WORD}'.encode()).decode()}"

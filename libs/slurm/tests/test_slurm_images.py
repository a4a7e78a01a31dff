"""Images: their names, and their presence in a real registry; an HTTP server plays a hostile one."""

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead_slurm.batch.checks import ImageRule, image_remarks
from fairlead_slurm.images.credentials import (
    Credential,
    CredentialsUnreadableError,
    credentials,
    usual_file,
)
from fairlead_slurm.images.reference import ImageNameError, image_reference
from fairlead_slurm.images.registry import ImageAnswer, Presence, Registries
from fairlead_testkit.processes.http_server import http_server
from fairlead_testkit.telemetry.image_registry import (
    USER,
    WORD,
    ImageRegistry,
    ensure_image_registry,
    image_registry,
)

THERE, MISSING, UNASKED = Presence.THERE, Presence.MISSING, Presence.UNASKED
DIGEST = f"sha256:{'0' * 64}"
PATH = "team/train"
ANN = Credential(user=USER, word=WORD)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("ann/train:3", "docker.io/ann/train:3"),
        ("registry.example/a/b/c", "registry.example/a/b/c:latest"),
        ("registry.example:5000/a:V1.x", "registry.example:5000/a:V1.x"),
        ("localhost/a", "localhost/a:latest"),
        (f"registry.example/a:1@{DIGEST}", f"registry.example/a@{DIGEST}"),
        ("a.b/c", "a.b/c:latest"),
    ],
)
def test_names_are_read_as_docker_reads_them(name: str, wanted: str) -> None:
    assert str(image_reference(name)) == wanted


@pytest.mark.parametrize(
    "name",
    ["", "A/b", "registry.example/Train", "a:", "a:b:c", "a@sha256:1", "a//b", "/a", "a/", "a b", "-a.b/c", "a:\n", "../a",
     "registry.example:x/a", f"a/{'b' * 256}", f"a:{'b' * 129}"],
)  # fmt: skip
def test_no_image_is_called_so(name: str) -> None:
    with pytest.raises(ImageNameError):
        image_reference(name)


def test_credentials_are_read_as_docker_keeps_them(tmp_path: Path) -> None:
    word = base64.b64encode(b"ann:a:b").decode()
    entries = {
        "https://index.docker.io/v1/": {"auth": word},
        "registry.example:5000": {"username": "bob", "password": "c"},
        "elsewhere": {},
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": entries, "credsStore": "desktop"}))
    found = credentials(file)
    assert {host: (one.user, one.word) for host, one in found.items()} == {
        "docker.io": ("ann", "a:b"),
        "registry.example:5000": ("bob", "c"),
    }
    assert "a:b" not in repr(found)
    assert usual_file({"DOCKER_CONFIG": str(tmp_path)}) == file
    assert usual_file({"HOME": str(tmp_path)}) is None
    for odd in (
        b"{",
        b'{"auths": {"a": {"auth": "%"}}}',
        b'{"auths": 3}',
        b"[" * 100_000,
        b'{"auths": "\xff"}',
    ):
        file.write_bytes(odd)
        with pytest.raises(
            CredentialsUnreadableError, match=r"config.json: it holds no JSON with `auths` as docker"
        ):
            credentials(file)
    with pytest.raises(CredentialsUnreadableError, match=r": Is a directory$"):
        credentials(tmp_path)


@pytest.fixture
def program() -> None:
    """Install docker-registry where it is missing."""
    ensure_image_registry()


@pytest.fixture(params=["", "words", "tokens"])
def registry(
    program: None, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[ImageRegistry, str]]:
    """A real registry, open or behind credentials."""
    del program
    with image_registry(tmp_path, behind=request.param) as one:
        yield one, request.param


async def said(name: str, *known: tuple[str, Credential], seconds: float = 10) -> Presence:
    """The presence of an image, as a registry tells it."""
    found: ImageAnswer = await Registries(dict(known), seconds=seconds).ask(image_reference(name))
    assert (not found.why) == (found.presence is THERE)
    assert WORD not in found.why.split()
    return found.presence


@pytest.mark.integration
async def test_a_real_registry_says_what_it_has(registry: tuple[ImageRegistry, str]) -> None:
    one, behind = registry
    digest = await asyncio.to_thread(one.push, PATH, "3")
    here = f"{one.host}/{PATH}"
    known = (one.host, ANN)
    assert await said(f"{here}:3", known) is THERE
    assert await said(f"{here}@{digest}", known) is THERE
    assert await said(f"{here}:4", known) is MISSING
    assert await said(f"{here}@{DIGEST}", known) is MISSING
    stranger = UNASKED if behind else THERE
    assert await said(f"{here}:3") is stranger
    wrong = (one.host, Credential(user=USER, word="wrong"))
    assert await said(f"{here}:3", wrong) is stranger
    assert await said(f"{here}:3", ("elsewhere", ANN)) is stranger


async def test_a_registry_that_is_silent_costs_no_more_than_its_deadline() -> None:
    asked = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        asked.set()
        await asyncio.sleep(60)
        return web.Response()

    async with http_server(silent) as host:
        async with asyncio.timeout(20):
            assert await said(f"{host}/a", seconds=0.2) is UNASKED
        assert asked.is_set()


async def test_a_registry_that_is_not_there_is_told() -> None:
    assert await said("127.0.0.1:1/a") is UNASKED


@pytest.mark.parametrize("answer", [500, 429, 418])
async def test_an_odd_status_tells_nothing(answer: int) -> None:
    async def odd(_: web.Request) -> web.Response:
        return web.Response(status=answer)

    async with http_server(odd) as host:
        assert await said(f"{host}/a") is UNASKED


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="http://registry.invalid/token",service="x"',
        'Bearer realm="file:///etc/passwd"',
        "Bearer",
        'Negotiate realm="x"',
        "",
        'Bearer realm="http://{host}/garbage"',
        'Bearer realm="http://{host}/large"',
        'Bearer realm="http://{host}/moved"',
    ],
)
async def test_words_go_nowhere_else(challenge: str) -> None:
    told: list[str] = []

    async def asking(request: web.Request) -> web.Response:
        told.append(f"{request.path} {request.headers.get('Authorization', '')}")
        match request.path:
            case "/garbage":
                return web.Response(body=b"\0{")
            case "/large":
                return web.Response(body=b'{"token": "' + b"a" * 10**6)
            case "/moved":
                return web.Response(status=307, headers={"Location": "http://registry.invalid/"})
        return web.Response(
            status=401, headers={"WWW-Authenticate": challenge.format(host=request.host)} if challenge else {}
        )

    async with http_server(asking) as host:
        assert await said(f"{host}/a", (host, ANN)) is UNASKED
    # Basic is for the token's server alone: the registry asked for no such thing.
    assert all("Basic" not in line or "/v2/" not in line for line in told)


async def test_a_redirect_without_end_is_left() -> None:
    async def round_and_round(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": str(request.url)})

    async with http_server(round_and_round) as host:
        assert await said(f"{host}/a") is UNASKED


class _Says:
    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    async def ask(self, image: object) -> ImageAnswer:
        return ImageAnswer(presence=self._presence, why="" if self._presence is THERE else f"{image}")


@pytest.mark.parametrize(
    ("presence", "rule", "refused"),
    [
        (THERE, ImageRule.STRICT, None),
        (MISSING, ImageRule.WARN, False),
        (MISSING, ImageRule.REFUSE, True),
        (MISSING, ImageRule.OFF, None),
        (UNASKED, ImageRule.WARN, False),
        (UNASKED, ImageRule.REFUSE, False),
        (UNASKED, ImageRule.STRICT, True),
    ],
)
async def test_the_site_says_what_is_refused(
    presence: Presence, rule: ImageRule, refused: bool | None
) -> None:
    found = await image_remarks(3, "debian", _Says(presence), rule)
    assert [(one.line, one.refused) for one in found] == ([] if refused is None else [(3, refused)])

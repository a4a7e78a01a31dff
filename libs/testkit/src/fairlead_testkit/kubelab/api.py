"""A small blocking client of the lab's API server, as one user: JSON in, JSON out.

For tests and for the lab's own start: a `kubectl` takes half a second of processor time each. What Fairlead itself
uses is in fairlead_kube, and the lab must not stand on what it is there to test.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fairlead_testkit.kubelab.certificates import LOOPBACK
from fairlead_testkit.kubelab.errors import ApiError, ApiUnreachableError

type KubeObject = dict[str, Any]
"""An object of the API, or any other JSON object, just as the server has it."""

_TIMEOUT_SECONDS = 30.0
_FIELD_MANAGER = "kubelab"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Api:
    """Requests as one user, to a server of this authority. Safe to use from several threads: each has a connection of its own."""

    def __init__(self, port: int, token: str, authority: Path) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []
        self._resources: dict[str, dict[str, KubeObject]] = {}

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> KubeObject:
        """Sends a request; returns its answer in JSON.

        Raises:
            ApiError: the server refused it.
            ApiUnreachableError: no answer came.
        """
        full = f"{path}?{urlencode(query)}" if query else path
        status, data = self._exchange(method, full, None if body is None else json.dumps(body), content_type)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise _refusal(status, data)
        answer: KubeObject = json.loads(data)
        return answer

    def text(self, path: str) -> str:
        """A GET of something that is not JSON, as /readyz or /metrics.

        Raises:
            ApiError: the server refused it.
            ApiUnreachableError: no answer came.
        """
        status, data = self._exchange("GET", path, None, "")
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise _refusal(status, data)
        return data.decode()

    def get(self, path: str, **query: str) -> KubeObject:
        """Gets an object, or a list with its `items`."""
        return self.request("GET", path, **query)

    def items(self, path: str, **query: str) -> list[KubeObject]:
        """The objects of a list."""
        found: list[KubeObject] = self.get(path, **query)["items"]
        return found

    def create(self, item: KubeObject, **query: str) -> KubeObject:
        """Create an object; `dryRun="All"` and the like may follow."""
        return self.request("POST", self.collection(item), item, **query)

    def apply(self, *objects: KubeObject) -> None:
        """Create or change objects by server-side apply, in their order."""
        for item in objects:
            path = f"{self.collection(item)}/{item['metadata']['name']}"
            query = {"fieldManager": _FIELD_MANAGER, "force": "true"}
            self.request("PATCH", path, item, content_type=APPLY_PATCH, **query)

    def patch(self, path: str, change: KubeObject, **query: str) -> KubeObject:
        """Sends a JSON merge patch; returns the object after it."""
        return self.request("PATCH", path, change, content_type=MERGE_PATCH, **query)

    def watch(self, path: str, since: str, *, seconds: int = 8) -> Iterator[KubeObject]:
        """The events of a watch, for so long; on a connection of its own.

        Args:
            path: the collection's path.
            since: resource version that was seen last.
            seconds: time after which the server ends it, as it may earlier.

        Raises:
            ApiUnreachableError: the connection broke, or the server does not open a watch now.
        """
        connection = http.client.HTTPSConnection(LOOPBACK, self._port, timeout=4 * seconds, context=self._tls)
        wish = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(seconds),
        }
        try:
            connection.request("GET", f"{path}?{urlencode(wish)}", headers=self._headers)
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise ApiUnreachableError(f"watch of {path}: {answer.status} {answer.read()[:2000]!r}")
            while line := answer.readline():
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiUnreachableError(f"watch of {path}: {error!r}") from error
        finally:
            connection.close()

    def delete(self, path: str, **query: str) -> KubeObject:
        """Delete an object; what it owns goes in the background."""
        return self.request("DELETE", path, propagationPolicy="Background", **query)

    def collection(self, item: KubeObject) -> str:
        """The path of all objects of this kind, in the object's namespace where it has one."""
        version, kind = item["apiVersion"], item["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in self._resources.get(version, {}):
            self._resources[version] = {
                resource["kind"]: resource
                for resource in self.get(root)["resources"]
                if "/" not in resource["name"]
            }
        if kind not in self._resources[version]:
            raise ApiError(http.HTTPStatus.NOT_FOUND, "NotFound", f"no kind {kind} in {version}")
        resource = self._resources[version][kind]
        if not resource["namespaced"]:
            return f"{root}/{resource['name']}"
        return f"{root}/namespaces/{item['metadata'].get('namespace', 'default')}/{resource['name']}"

    def _exchange(self, method: str, path: str, body: str | None, content_type: str) -> tuple[int, bytes]:
        headers = self._headers | ({"Content-Type": content_type} if body is not None else {})
        for last in (False, True):
            connection, fresh = self._connection()
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self._local.connection = None
                # A kept connection may have been closed by a restarted server before it saw the request.
                if fresh or last or not isinstance(error, ConnectionError):
                    raise ApiUnreachableError(f"{method} {path}: {error!r}") from error
        raise AssertionError("the second try returns or raises")

    def _connection(self) -> tuple[http.client.HTTPSConnection, bool]:
        kept: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if kept is not None:
            return kept, False
        made = http.client.HTTPSConnection(LOOPBACK, self._port, timeout=_TIMEOUT_SECONDS, context=self._tls)
        self._local.connection = made
        self._connections.append(made)
        return made, True

    def close(self) -> None:
        """Close the connections of all threads."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        self._local = threading.local()


def _refusal(status: int, data: bytes) -> ApiError:
    try:
        said = json.loads(data)
    except json.JSONDecodeError:
        return ApiError(status, "", data.decode(errors="replace")[:2000])
    return ApiError(status, str(said.get("reason", "")), str(said.get("message", "")))


def documents(*paths: Path) -> Iterator[KubeObject]:
    """The objects of YAML files, in their order."""
    for path in paths:
        yield from parse(path.read_text())


def parse(text: str) -> Iterator[KubeObject]:
    """The objects of a YAML text, in their order."""
    import yaml  # here: the pytest plugin loads this package in every run

    # The C loader is there in every wheel; the CRDs of Kueue take ten times as long without it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from (document for document in yaml.load_all(text, loader) if document)  # safe, either way

"""A mirror of the objects of one kind that knows when it is complete."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from fairlead_kube.client import PAGE, KubeClient
from fairlead_kube.observer import SILENT, KubeObserver
from fairlead_kube.resources import Resource


class Key(NamedTuple):
    """Which object."""

    namespace: str
    """Empty for an object of the whole cluster."""
    name: str


class KubeChanges[U](msgspec.Struct, frozen=True):
    """What changed since the last look."""

    changed: dict[Key, U | None]
    """None for deleted, or no longer wanted by the projection."""
    complete: bool


def whole[T](value: T) -> T:
    """The projection that keeps everything."""
    return value


class Reflector[T, U]:
    """The last value of each object of a kind."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource[T],
        *,
        project: Callable[[T], U | None],
        wake: asyncio.Event,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        observer: KubeObserver = SILENT,
        page: int = PAGE,
    ) -> None:
        raise NotImplementedError

    @property
    def values(self) -> Mapping[Key, U]:
        """The last values."""
        raise NotImplementedError

    def take(self) -> KubeChanges[U]:
        """What changed since the last take; several changes of an object are one."""
        raise NotImplementedError

    async def wait_complete(self) -> None:
        """Returns as soon as the mirror is complete."""
        raise NotImplementedError

    async def run(self) -> None:
        """Mirrors until cancelled."""
        raise NotImplementedError

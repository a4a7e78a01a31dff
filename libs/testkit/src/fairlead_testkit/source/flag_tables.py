"""docs/settings.md, written from the settings of the services: what each can be told, flag by flag."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from fairlead_runtime.settings import Setting

SERVICES = {
    "watcher": "WatcherSettings",
    "scorer": "ScorerSettings",
    "admitter": "AdmitterSettings",
    "checker": "CheckerSettings",
    "slurm_bridge": "SlurmBridgeSettings",
    "sim": "SimSettings",
}
"""Settings classes of the services; each stands in the module `settings` of the package `fairlead_<service>`."""

_HEAD = """\
# Settings of the services

What each service can be told. This page is written from their code (`make settings`): change it there.

Each setting is a flag (`--nats-url`), a variable of the environment (`FAIRLEAD_NATS_URL`) and a key of a YAML file (`nats_url`) that `--config FILE` or
`FAIRLEAD_CONFIG` names. Flags win over the environment, the environment over the file, the file over the defaults. A setting marked *secret* has no flag,
since everybody on a host can read its processes' command lines. `python -m fairlead_<service> --help` says the same; `--health-check` asks the
service that runs on the health port whether it is ready, and exits 0 or 1. How to run them by hand: [production.md](production.md).
"""
_COMMON = "## All services\n\n"


def settings_page() -> str:
    """The whole of docs/settings.md."""
    from fairlead_runtime.settings import ServiceSettings, describe

    shared = {setting.name: setting for setting in describe(ServiceSettings)}
    parts = [_HEAD, _COMMON + _table(list(shared.values()))]
    for service, kind in SERVICES.items():
        settings = importlib.import_module(f"fairlead_{service}.settings")
        own = [
            setting
            for setting in describe(getattr(settings, kind))
            if setting.name not in shared or setting.default != shared[setting.name].default
        ]
        parts.append(f"## {service.replace('_', '-')}\n\n{_table(own)}")
    return "\n".join(parts)


def _table(settings: Sequence["Setting"]) -> str:
    lines = ["| setting | default | what it is |", "|---|---|---|"]
    return "\n".join([*lines, *map(_row, settings)]) + "\n"


def _row(setting: "Setting") -> str:
    name = f"`{setting.variable()}` *secret*" if setting.secret else f"`{setting.flag}`"
    return f"| {name} | {_default(setting.default)} | {setting.doc.replace('|', '&#124;')} |"


def _default(value: object) -> str:
    if value is msgspec.NODEFAULT:
        return "must be given"
    if value is None:
        return ""
    if isinstance(value, list):
        return f"`{','.join(map(str, value))}`"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(settings_page())

"""Users of the lab: the token file, and a kubeconfig file for each."""

from pathlib import Path

from fairlead_testkit.kubelab.api import KubeObject
from fairlead_testkit.kubelab.certificates import Certificates, token_of

ADMIN = "admin"
WATCHER = "fairlead-watcher"
ADMITTER = "fairlead-admitter"
OPERATOR = "fairlead-operator"
CHECKER = "fairlead-checker"
CHECK_WATCHDOG = "fairlead-check-watchdog"
SLURM_BRIDGE = "fairlead-slurm-bridge"
FAIRLEAD_USERS = (WATCHER, ADMITTER, OPERATOR, CHECKER, CHECK_WATCHDOG, SLURM_BRIDGE)
FAIRLEAD_GROUP = "fairlead"
"""Group by which the audit policy knows our users; no right hangs on it."""

# Parts of the lab go in under their own names, so that the audit log tells their requests from ours.
PARTS = ("kueue", "kube-controller-manager", "kube-scheduler", "kwok")


def write_token_file(path: Path, authority: Path) -> Path:
    """The API server's `--token-auth-file`: token, name, uid, groups."""
    lines = [f'{token_of(user, authority)},{user},{user},"system:masters"' for user in (ADMIN, *PARTS)]
    lines += [f'{token_of(user, authority)},{user},{user},"{FAIRLEAD_GROUP}"' for user in FAIRLEAD_USERS]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


def write_kubeconfigs(folder: Path, server: str, certificates: Certificates) -> None:
    """`<user>.yaml` for each user; each holds its token, so only their owner can read them."""
    import yaml  # here: the pytest plugin loads this package in every run

    folder.mkdir(parents=True, exist_ok=True)
    for user in (ADMIN, *PARTS, *FAIRLEAD_USERS):
        path = folder / f"{user}.yaml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(_kubeconfig(user, server, certificates), sort_keys=False))


def _kubeconfig(user: str, server: str, certificates: Certificates) -> KubeObject:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kubelab",
        "clusters": [
            {
                "name": "kubelab",
                "cluster": {"server": server, "certificate-authority-data": certificates.bundle},
            }
        ],
        "users": [{"name": user, "user": {"token": token_of(user, certificates.authority)}}],
        "contexts": [{"name": "kubelab", "context": {"cluster": "kubelab", "user": user}}],
    }

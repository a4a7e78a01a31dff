"""The Kubernetes lab that outlives the command which started it: `make lab-kube`, `make lab-down`."""

import shutil
from typing import Self

from fairlead_testkit.kubelab.building import build
from fairlead_testkit.kubelab.lab import KubeLab
from fairlead_testkit.kubelab.users import FAIRLEAD_USERS
from fairlead_testkit.supervised import Supervised, Supervision


class DetachedKubeLab(Supervised, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        server: the API server's URL.
        kubeconfig: of the user who may do everything.
        kubeconfigs: of Fairlead's users, by their names.
        binaries: the folder that kubectl is in.
        logs: the folder of the logs.
    """

    server: str
    kubeconfig: str
    kubeconfigs: dict[str, str]
    binaries: str
    logs: str

    @classmethod
    def of(cls, lab: KubeLab) -> Self:
        """What the supervisor, which calls this, writes down."""
        return cls(
            server=lab.server,
            kubeconfig=str(lab.kubeconfig()),
            kubeconfigs={user: str(lab.kubeconfig(user)) for user in FAIRLEAD_USERS},
            binaries=str(lab.kit.binary("kubectl").parent),
            logs=str(lab.audit_log.parent),
            parts=lab.pids(),
        )


_SUPERVISION = Supervision("fairlead_testkit.kubelab", DetachedKubeLab)


def running() -> DetachedKubeLab | None:
    """The lab that is up, or None."""
    return _SUPERVISION.running()


def up() -> tuple[DetachedKubeLab, bool]:
    """Start the lab, with the example queues, unless it is up; and whether it was up already.

    Raises:
        GoMissingError: it has to be built, and Go is missing.
        KubeLabError: it did not start; carries the supervisor's log.
    """
    build()
    return _SUPERVISION.up()


def down() -> bool:
    """End the lab; whether there was one.

    Raises:
        NeverReadyError: something still runs.
    """
    return _SUPERVISION.down()


def serve() -> None:
    """Be the supervisor: start the lab, say so in the state file, and keep it until SIGTERM."""
    data = _SUPERVISION.folder / "lab"
    shutil.rmtree(data, ignore_errors=True)
    with KubeLab(directory=data) as lab:
        lab.apply_examples()
        _SUPERVISION.keep(DetachedKubeLab.of(lab))

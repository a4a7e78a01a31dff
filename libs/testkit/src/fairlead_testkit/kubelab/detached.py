"""The Kubernetes lab that outlives the command which started it: `make lab-kube`, `make lab-down`, `make lab-build`."""

import contextlib
import shutil
from collections.abc import Callable, Iterator

from fairlead_testkit.kubelab.building import build
from fairlead_testkit.kubelab.furnishing import REPOSITORY
from fairlead_testkit.kubelab.lab import KubeLab
from fairlead_testkit.kubelab.toolsets import CURRENT, JAEGER, KUBERNETES
from fairlead_testkit.kubelab.users import FAIRLEAD_USERS
from fairlead_testkit.labs.supervised import Supervised, Supervision


class DetachedKubeLab(Supervised, frozen=True, kw_only=True):
    """A lab that is up.

    Attributes:
        server: the API server's URL.
        kubeconfig: kubeconfig of the user who may do everything.
        kubeconfigs: kubeconfigs of Fairlead's users, by their names.
        binaries: the folder that kubectl is in.
        logs: the folder of the logs.
    """

    server: str
    kubeconfig: str
    kubeconfigs: dict[str, str]
    binaries: str
    logs: str


class KubeLabSupervision(Supervision[DetachedKubeLab]):
    """The Kubernetes lab, with the example queues."""

    module = "fairlead_testkit.kubelab"
    kind = DetachedKubeLab
    name = "lab"

    def words(self) -> dict[str, Callable[[], str]]:
        """Adds `build` to the words of the base."""
        return {**super().words(), "build": self._build}

    def prepare(self) -> None:
        """Build the lab, where that was not done yet."""
        build()

    @contextlib.contextmanager
    def lab(self) -> Iterator[DetachedKubeLab]:
        """Run the lab in the folder of its state file."""
        data = self.folder / "lab"
        shutil.rmtree(data, ignore_errors=True)
        with KubeLab(directory=data) as lab:
            lab.apply_examples()
            yield DetachedKubeLab(
                server=lab.server,
                kubeconfig=str(lab.kubeconfig()),
                kubeconfigs={user: str(lab.kubeconfig(user)) for user in FAIRLEAD_USERS},
                binaries=str(lab.kit.binary("kubectl").parent),
                logs=str(lab.audit_log.parent),
                parts=lab.pids(),
            )

    def described(self, found: DetachedKubeLab) -> str:
        """Tells where the lab is, and what to do with it."""
        parts = ", ".join(f"{name} {pid}" for name, pid in found.parts.items())
        examples = REPOSITORY / "deploy" / "examples" / "kueue"
        return f"""\
Kubernetes {KUBERNETES} with Kueue {CURRENT.kueue} on {found.server}
  processes    {parts}
  logs         {found.logs}
  nodes        gpu-a-0, gpu-a-1, gpu-b-0, gpu-b-1 with 8 GPUs each, cpu-0, cpu-1; KWOK plays them
  queues       LocalQueue `gpus` in team-a, team-b, team-c, over ClusterQueue `shared` of 16 GPUs;
               `vision` in team-a and `speech` in team-b, over the cohort `research` of 8 GPUs

Use it:
  export KUBECONFIG={found.kubeconfig}
  export PATH={found.binaries}:$PATH     # kubectl is there
  kubectl create -f {examples}/team-a.yaml     # also team-b, team-c; as often as you like
  kubectl get workloads -A

Order it fairly:
  fairlead doctor --kubeconfig $KUBECONFIG
  fairlead up --kubeconfig $KUBECONFIG

End it: make lab-down"""

    def _build(self) -> str:
        return "\n".join(str(build(toolset).folder) for toolset in (CURRENT, JAEGER))

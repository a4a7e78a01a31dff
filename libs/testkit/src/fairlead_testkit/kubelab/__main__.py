"""`python -m fairlead_testkit.kubelab up|down|status|build`: what the targets lab-kube, lab-down and lab-build run."""

import sys

from fairlead_testkit.kubelab import building, detached
from fairlead_testkit.kubelab.furnishing import REPOSITORY
from fairlead_testkit.kubelab.toolsets import CURRENT, JAEGER, KUBERNETES
from fairlead_testkit.lab_words import run_word, say


def main(arguments: list[str] | None = None) -> int:
    """Run one word; the exit code is 1 where it failed, and for `status` where no lab is up."""
    words = {"up": _up, "down": _down, "status": _status, "build": _build, "serve": _serve}
    return run_word("python -m fairlead_testkit.kubelab", __doc__, words, arguments)


def _up() -> int:
    found, was_up = detached.up()
    say(f"The lab {'is up already' if was_up else 'is up'}.\n\n{_described(found)}")
    return 0


def _down() -> int:
    say("The lab has ended; nothing of it runs." if detached.down() else "No lab is up.")
    return 0


def _status() -> int:
    found = detached.running()
    say("No lab is up." if found is None else _described(found))
    return 1 if found is None else 0


def _build() -> int:
    for toolset in (CURRENT, JAEGER):
        say(str(building.build(toolset).folder))
    return 0


def _serve() -> int:
    detached.serve()
    return 0


def _described(found: detached.DetachedKubeLab) -> str:
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


if __name__ == "__main__":
    sys.exit(main())

"""`python -m fairlead_testkit.kubelab up|down|status|build`: what the targets lab-kube, lab-down and lab-build run."""

import sys

from fairlead_testkit.kubelab.detached import KubeLabSupervision

if __name__ == "__main__":
    sys.exit(KubeLabSupervision().main())

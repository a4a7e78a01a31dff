"""Tool sets of the lab: which binaries of which Go modules it is made of, and which of their files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

KUBERNETES = "1.36.3"
_MAJOR, _MINOR, _ = KUBERNETES.split(".")
_KUBERNETES_STAMPS = {
    # Without them the server calls itself v0.0.0-master, and Kueue does not start on what it cannot parse.
    "k8s.io/component-base/version.gitVersion": f"v{KUBERNETES}",
    "k8s.io/component-base/version.gitMajor": _MAJOR,
    "k8s.io/component-base/version.gitMinor": _MINOR,
}


@dataclass(frozen=True)
class Manifests:
    """YAML files of a Go module.

    Attributes:
        group: the folder of the kit that they go to.
        module: the Go module that holds them.
        pattern: pattern of the files that are wanted.
        version: version of a module that is not in go.mod, since only its files are wanted.
        checksum: checksum of that version, as go.sum would have it.
    """

    group: str
    module: str
    pattern: str
    version: str | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class Toolset:
    """A folder with a go.mod, and what is taken of it.

    Attributes:
        folder: name of the folder beside this file.
        kueue: the version of Kueue in it, where it is a lab's.
        binaries: package by the name of the binary.
        stamps: values of variables that are set at link time.
        manifests: files that belong to the binaries.
    """

    folder: str
    kueue: str
    binaries: Mapping[str, str]
    stamps: Mapping[str, str] = field(default_factory=dict)
    manifests: tuple[Manifests, ...] = ()


_KUEUE = "sigs.k8s.io/kueue"
_KWOK = "sigs.k8s.io/kwok"

CURRENT = Toolset(
    folder="binaries",
    kueue="0.19.2",
    binaries={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
        "kueue": f"{_KUEUE}/cmd/kueue",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kwok": f"{_KWOK}/cmd/kwok",
    },
    stamps=_KUBERNETES_STAMPS,
    manifests=(
        Manifests("kueue-crds", _KUEUE, "config/components/crd/bases/*.yaml"),
        Manifests("kueue-webhooks", _KUEUE, "config/components/webhook/manifests.yaml"),
        Manifests("stages", _KWOK, "kustomize/stage/node/fast/node-initialize.yaml"),
        Manifests(
            "stages", _KWOK, "kustomize/stage/pod/fast/pod-[rd]*.yaml"
        ),  # ready and delete; complete is ours
        Manifests(
            "pytorchjobs",
            "github.com/kubeflow/training-operator",
            "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
            "v1.9.3",
            "h1:aaSHqskOtCY8Dn8sVd+l9p5XAczW6O0nYMPjVLAw/lc=",
        ),
        Manifests(
            "nodepools",
            "sigs.k8s.io/karpenter",
            "pkg/apis/crds/karpenter.sh_nodepools.yaml",
            "v1.9.0",
            "h1:95p6+9AaZ/eYD3hLPyvBDBquC3v8m09T2u/pB/3Qrqs=",
        ),
    ),
)


def _older(version: str) -> Toolset:
    """Kueue alone, to run on the other parts of the lab."""
    minor = version.rsplit(".", 1)[0]
    return Toolset(
        folder=f"kueue-{minor}",
        kueue=version,
        binaries={"kueue": f"{_KUEUE}/cmd/kueue"},
        manifests=tuple(found for found in CURRENT.manifests if found.module == _KUEUE),
    )


OLDER = {toolset.kueue: toolset for toolset in (_older("0.18.3"), _older("0.17.1"))}
"""Tool sets of older Kueues, by their version. Go's checksum database could not vouch for 0.17.1 where its go.sum was
written."""

JAEGER = Toolset(
    folder="jaeger",
    kueue="",
    binaries={"jaeger": "github.com/jaegertracing/jaeger/cmd/all-in-one"},
)
"""Tools of Jaeger, a place for traces with a query API; its pages are not in the Go module. Of 1.51: later ones are made of 700
more packages, a client of Elasticsearch's, and build three times as long."""

COMPOSE = Toolset(
    folder="compose",
    kueue="",
    binaries={"docker-compose": "github.com/docker/compose/v2/cmd"},
)
"""docker-compose, for a machine that has an engine alone."""

DEPLOY = Toolset(
    folder="compose-config",
    kueue="",
    binaries={"compose-config": "."},
    manifests=(
        *(
            Manifests(
                "kinds",
                "github.com/prometheus-operator/prometheus-operator",
                f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml",
                "v0.85.0",
                "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
            )
            for kind in ("podmonitors", "prometheusrules")
        ),
        Manifests(
            "kinds",
            "github.com/kedacore/keda/v2",
            "config/crd/bases/keda.sh_scaledobjects.yaml",
            "v2.21.0",
            "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        ),
    ),
)
"""Tools that check the files that people deploy with: the loader of docker-compose, a tenth of its packages, and the
kinds that are not Kubernetes' own."""

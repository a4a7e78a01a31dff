"""A snapshot of the nodes in which gangs are placed one by one: room that is kept for one goes to no other. Pure."""

from collections.abc import Mapping

import msgspec

from fairlead_checker.facts import CheckedWorkload
from fairlead_contracts.base.errors import FieldError
from fairlead_kube.kinds.queues import ResourceFlavor
from fairlead_policy.fit.observed import FitQuestion, fit_question
from fairlead_policy.fit.results import PlacedPod, Placement, with_pods
from fairlead_policy.fit.shapes import FitNode, Gang
from fairlead_policy.fit.unschedulable import all_in_words, ask_refused
from fairlead_policy.hami.annotations import CardStrategy
from fairlead_policy.hami.requests import VgpuRequestError

_TOLD = 3
"""Reasons that a message names; the first are the plainest."""
_EVERYTHING: Mapping[str, int] = {}


class StartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a gang starts now."""

    fits: bool
    why: str
    zone: str | None = None
    """The value of its zone key, where it asks for one zone."""
    gang: Gang = Gang(shapes=())
    pods: tuple[PlacedPod, ...] = ()
    """Places for its pods where there is room; none where nothing is known of that."""


class NodeSnapshot:
    """A snapshot of the nodes, less what is kept for gangs that were let through.

    Args:
        nodes: the nodes that take pods, by name.
        flavors: the flavors by name.
        strategy: the rule to choose among places that all fit.
    """

    def __init__(
        self, nodes: Mapping[str, FitNode], flavors: Mapping[str, ResourceFlavor], strategy: CardStrategy
    ) -> None:
        self._nodes = dict(nodes)
        self._flavors = flavors
        self._strategy = strategy
        self._unfit: dict[bytes, StartAnswer] = {}
        """Answers to gangs that do not fit, by gang: they will not fit later, for nodes only fill up here."""

    def fit_now(self, workload: CheckedWorkload, counts: Mapping[str, int] = _EVERYTHING) -> StartAnswer:
        """Whether all pods of a Workload have room now. What cannot be judged is let through, and that is said.

        Args:
            workload: the Workload with its admission.
            counts: pods by pod set, where they are others than were admitted.
        """
        try:
            pods = workload.gang(self._flavors, counts)
            question = fit_question(pods, self._nodes.values(), workload.zone_key)
        except VgpuRequestError as error:
            return StartAnswer(fits=False, why=str(ask_refused(error)))
        except FieldError as error:
            return StartAnswer(fits=True, why=f"Not looked at, as what it asks for cannot be read: {error}.")
        key = msgspec.json.encode(question.gang)
        if key in self._unfit:
            return self._unfit[key]
        answer = self._placed(question)
        if not answer.fits:
            self._unfit[key] = answer
        return answer

    def _placed(self, question: FitQuestion) -> StartAnswer:
        gang, found = question.gang, question.answer(self._strategy)
        if isinstance(found, Placement):
            pods = "its pod" if gang.pods == 1 else f"all {gang.pods} pods"
            where = f" in {gang.zone_key}={found.zone}" if found.zone is not None else ""
            return StartAnswer(
                fits=True,
                why=f"There is room for {pods}{where}.",
                zone=found.zone,
                gang=gang,
                pods=found.pods,
            )
        words = all_in_words(found.reasons[:_TOLD])
        if not found.exact:
            return StartAnswer(fits=True, why=f"No room was found, which is no proof. {words}")
        return StartAnswer(fits=False, why=words)

    def reserve(self, answer: StartAnswer) -> None:
        """Keep the room that an answer names for its gang."""
        self._nodes |= with_pods(answer.gang, self._nodes, answer.pods)

    def reserve_missing(self, workload: CheckedWorkload, missing: Mapping[str, int]) -> None:
        """Keep room for the pods of a gang that are not on nodes yet; where not all of them have any, for some."""
        counts = dict(missing)
        while any(counts.values()):
            answer = self.fit_now(workload, counts)
            if answer.fits:
                self.reserve(answer)
                return
            counts = {name: count // 2 for name, count in counts.items()}

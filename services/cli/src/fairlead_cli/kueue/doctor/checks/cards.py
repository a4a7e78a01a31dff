"""Cards that HAMi registers on nodes."""

from collections.abc import Iterator

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, warning
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_contracts.frontend.card_annotations import RegisterError, cards_of
from fairlead_contracts.frontend.cards import REGISTER
from fairlead_kube.kinds.core import Node


@check("cards", "cards-unread", fine="every register of cards can be read", needs=("nodes",))
def _registers(survey: Survey) -> Iterator[Finding]:
    refused = [(node.metadata.name, why) for node in survey.nodes if (why := refusal(node))]
    if not refused:
        return
    first, why = refused[0]
    yield warning(
        "cards-unread",
        f"Node/{first}",
        f"{counted(len(refused), 'node')} whose register of cards cannot be read: "
        f"{listed(name for name, _ in refused)}; {why}",
        why="HAMi alone may know which cards they have. The order counts none of them, and the gang check lets jobs through "
        "that ask for cards and for which it finds no room",
        mend=f"look at {REGISTER}: kubectl get node {first} -o yaml\n"
        "# HAMi's device plugin writes it anew twice a minute; a newer HAMi may need a newer Fairlead",
    )


def refusal(node: Node) -> str:
    """The reason for which the node's register of cards cannot be read; empty where it can, or it has none."""
    try:
        cards_of(node.metadata.name, node.metadata.annotations or {})
    except RegisterError as error:
        return str(error)
    return ""

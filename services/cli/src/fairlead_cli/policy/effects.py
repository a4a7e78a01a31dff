"""What a policy says without effect: no mistake, and yet not what whoever wrote it may think."""

from collections.abc import Iterator

from fairlead_contracts.policyfile.document import PolicyDocument


def without_effect(document: PolicyDocument) -> Iterator[str]:
    """A sentence each."""
    if document.class_mode == "strict" and document.class_weights:
        yield "class_weights have no effect with class_mode strict: every job of a class goes before the next class's"

"""The JSON Schema of what commands print with `-o json` and `-o yaml`; `python -m` prints it."""

import msgspec

from fairlead_cli.console import write_line
from fairlead_cli.kueue.doctor.verdict import DoctorReport
from fairlead_cli.outcomes import (
    ClassGranted,
    ClusterRetired,
    ControlSaid,
    NatsChecked,
    NatsProvisioned,
    PolicyChecked,
    PolicyCompared,
    PolicyPut,
)
from fairlead_cli.paper.explaining import PaperExplanations
from fairlead_cli.paper.reserving import ReserveLine
from fairlead_cli.paper.results import JobLine, LevelLine, WithheldLine
from fairlead_cli.policy.history import OperatorWord
from fairlead_cli.policy.store import Revision
from fairlead_cli.published import Schema, schema_of
from fairlead_cli.slurm.examining import SlurmReport
from fairlead_cli.slurm.validating import BatchVerdict
from fairlead_contracts.messages.questions import ExplainReply, QueueReply, TenantsReply
from fairlead_contracts.messages.submissions import Accepted, Cancelling, Ended, Refused, Started

ANSWERS: dict[str, tuple[type[msgspec.Struct], ...]] = {
    "queue": (QueueReply,),
    "tenants": (TenantsReply,),
    "explain": (ExplainReply,),
    "order --explain": (PaperExplanations,),
    "doctor": (DoctorReport,),
    "policy history": (Revision, OperatorWord),
    "approve": (ClassGranted,),
    "cancel": (Cancelling, Refused, Ended),
    "nats check": (NatsChecked,),
    "nats provision": (NatsProvisioned,),
    "nats retire": (ClusterRetired,),
    "pause": (ControlSaid,),
    "policy apply": (PolicyPut,),
    "policy check": (PolicyChecked,),
    "policy diff": (PolicyCompared,),
    "policy revert": (PolicyPut,),
    "release": (ControlSaid,),
    "resume": (ControlSaid,),
    "slurm check": (SlurmReport,),
    "slurm validate": (BatchVerdict,),
    "submit": (Accepted, Refused, Started, Cancelling, Ended),
}
"""Kinds of answer that each command prints; of several kinds, one a line or document."""


def output_schema() -> Schema:
    """The schema of all answers, by command, under `$defs`."""
    definitions: dict[str, Schema] = {}
    by_command: Schema = {}
    for command, kinds in ANSWERS.items():
        references = [schema_of(kind, definitions) for kind in kinds]
        by_command[command] = references[0] if len(references) == 1 else {"anyOf": references}
    by_command["order"] = {"$ref": "#/$defs/Order"}
    definitions["Order"] = _order(definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What Fairlead's commands print with -o json and -o yaml",
        "type": "object",
        "description": "A key for each command, with the schema of what it prints.",
        "properties": dict(sorted(by_command.items())),
        "$defs": dict(sorted(definitions.items())),
    }


def _order(definitions: dict[str, Schema]) -> Schema:
    """The answer of `order`, which is written part by part and has no type of its own."""

    def listed(kind: type[msgspec.Struct]) -> Schema:
        return {"type": "array", "items": schema_of(kind, definitions)}

    pool: Schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "order": listed(JobLine),
            "reserve": schema_of(ReserveLine, definitions),
            "writes": listed(LevelLine),
            "withheld": listed(WithheldLine),
        },
        "required": ["name", "order"],
    }
    return {
        "type": "object",
        "description": "The order of a snapshot.",
        "properties": {"pools": {"type": "array", "items": pool}},
        "required": ["pools"],
    }


if __name__ == "__main__":
    write_line(msgspec.json.format(msgspec.json.encode(output_schema()), indent=1).decode())

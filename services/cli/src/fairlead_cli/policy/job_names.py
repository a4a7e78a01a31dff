"""Names that people have for jobs that the policy knows by their uid."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from fairlead_bus import Bus
from fairlead_cli.client.connection import ask
from fairlead_cli.errors import CommandError
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion, Explanation
from fairlead_contracts.messages.state import job_name
from fairlead_contracts.policyfile.document import PolicyDocument

type JobNames = Mapping[str, str]
"""Names by uid, each `<scope>/<name>` as every command takes it."""

NOBODY: JobNames = MappingProxyType({})
_MOST_NAMED = 20
"""Number of jobs that are asked about at most."""


def full_name(job: Explanation) -> str:
    """The job as people know it, and as every command takes it."""
    return f"{job.scope}/{job_name(job.id, job.owner)}"


async def names_in(bus: Bus, policies: Iterable[PolicyDocument | None]) -> JobNames:
    """The names of the jobs that these policies grant something to, those of the first asked for first.

    Of jobs that are gone nobody knows a name, and a policy can be told without scorers.
    """
    jobs = [grant.job for policy in policies if policy for grant in policy.grants if grant.job]
    names: dict[str, str] = {}
    for job in list(dict.fromkeys(jobs))[:_MOST_NAMED]:
        try:
            reply = await ask(bus, "explain", ExplainQuestion(job=job), EXPLAIN_REPLY)
        except CommandError:
            break
        names |= {found.uid: full_name(found) for found in reply.found if found.uid == job}
    return names

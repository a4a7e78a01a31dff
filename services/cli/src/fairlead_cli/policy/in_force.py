"""The policy in force, printed: a module of its own, as who only asks for it waits for nothing that changes one."""

from fairlead_cli.client.connection import connected
from fairlead_cli.console import say, write_line
from fairlead_cli.errors import NoPolicyError
from fairlead_cli.options import Format
from fairlead_cli.policy.aging_in_cards import aging_lines, asked_pools, capacities
from fairlead_cli.policy.files import MADE_FROM, as_yaml
from fairlead_cli.policy.store import stored_policy
from fairlead_contracts.policyfile.read import encode_document


async def print_policy(nats: str | None, *, form: Format) -> None:
    """Print the policy that is in force.

    Raises:
        NoPolicyError: there is none.
    """
    async with connected(nats) as bus:
        found = await stored_policy(bus)
        known = {} if found is None else capacities(await asked_pools(bus))
    if found is None:
        raise NoPolicyError
    document, revision = found
    match form:
        case "name":
            write_line(str(revision))
        case "json":
            write_line(encode_document(document).decode())
        case _:
            write_line(f"{MADE_FROM}{revision}\n{as_yaml(document)}".rstrip())
    for line in aging_lines(document, known):
        say(line)

"""Commands on a policy file: whether it is valid, what it means, what it would change."""

from collections.abc import Callable, Iterator
from pathlib import Path

from fairlead_cli.client.connection import connected
from fairlead_cli.console import say, warn, write_line
from fairlead_cli.errors import InputError
from fairlead_cli.options import Format
from fairlead_cli.outcomes import PolicyChecked, PolicyCompared
from fairlead_cli.policy.aging_in_cards import Capacities, aging_lines
from fairlead_cli.policy.applying import PLAIN, ApplyTerms, overtaken, resulting
from fairlead_cli.policy.approvals import changes_in_words, changes_of_approvals
from fairlead_cli.policy.effects import remarks, without_effect
from fairlead_cli.policy.files import PolicyFile, as_yaml, differences, read_file
from fairlead_cli.policy.job_names import names_in
from fairlead_cli.policy.members import KnownPools, doubts_of, without_unknown
from fairlead_cli.policy.older_formats import older_format_notes
from fairlead_cli.policy.store import StoredPolicy, in_force, kept
from fairlead_cli.printing import is_for_people, print_outcome, print_sentence
from fairlead_contracts.policyfile.read import encode_document


def check_file(path: Path, ask_pools: Callable[[], KnownPools], *, form: Format = "table") -> None:
    """Check a file: say its format, what a day of waiting is worth in each pool, and which members of pools are missing.

    Args:
        path: path of the file. What is wrong with it is told before anybody is asked.
        ask_pools: asks a running Fairlead for the pools that it knows.

    Raises:
        InputError: it is no policy; programs are told its problems, too.
    """
    try:
        file = read_file(path)
    except InputError as error:
        problems = error.problems or [str(error)]
        print_outcome(PolicyChecked(file=str(path), valid=False, problems=problems), [], form)
        raise
    tenants, pools = len(file.policy.tenants), len(file.policy.pools)
    print_sentence(f"{path} is valid; tenants: {tenants}, pools: {pools}", form)
    known = ask_pools()
    notes = list(_notes(file, without_unknown(known, file.policy)))
    said = list(remarks(file.policy))
    for sentence in said:
        warn(sentence)
    for note in notes:
        print_sentence(note, form)
    doubts = list(doubts_of(file, known))
    for sentence in doubts:
        warn(sentence)
    found = PolicyChecked(
        file=str(path),
        valid=True,
        tenants=tenants,
        pools=pools,
        warnings=[*said, *doubts],
        notes=notes,
    )
    print_outcome(found, [str(path)], form)


def print_file(path: Path, ask_pools: Callable[[], KnownPools], *, form: Format) -> None:
    """Print the policy that a file means, with every key written out, and say what its aging comes to."""
    file = read_file(path)
    match form:
        case "name":
            write_line(file.name)
        case "json":
            write_line(encode_document(file.policy).decode())
        case _:
            write_line(as_yaml(file.policy).rstrip())
    for sentence in without_effect(file.policy):
        warn(sentence)
    for note in _notes(file, ask_pools().capacities):
        say(note)


async def print_differences(
    nats: str | None, path: Path, terms: ApplyTerms = PLAIN, *, form: Format = "table"
) -> int:
    """Print what putting a file in force would change; the exit code is 1 where that is anything."""
    file = read_file(path)
    async with connected(nats) as bus:
        standing = await in_force(bus)
        made_from = await kept(bus, file.revision)
        onto = made_from if terms.onto is None else await kept(bus, terms.onto)
        names = await names_in(bus, [file.policy, standing.policy])
    after = resulting(file, standing, made_from, exact=terms.exact, names=names)
    lines = list(differences(standing.policy, after, names))
    notes = [
        *changes_of_approvals(file.policy, standing.policy, after, name=file.name, names=names),
        *older_format_notes(file, after, standing.revision, standing.policy),
    ]
    if is_for_people(form):
        for line in changes_in_words(standing.policy, after, names):
            write_line(line)
    for note in notes:
        say(note)
    refused = _why_refused(standing, onto if lines else None)
    if refused:
        warn(refused)
    elif not lines:
        say(f"{path} is what is in force")
    found = PolicyCompared(
        file=str(path), revision=standing.followed, changes=lines, notes=notes, refused=refused
    )
    print_outcome(found, dict.fromkeys(line[2:].partition(": ")[0] for line in lines), form)
    return 1 if lines else 0


def _why_refused(standing: StoredPolicy, onto: StoredPolicy | None) -> str:
    """The reason for which `apply` would refuse a file made from that revision; empty where it would not."""
    if standing.why_not_last is not None:
        return f"{standing.in_words()}: `apply` would refuse to go over it without --force"
    if onto is not None and overtaken(onto, standing):
        return f"`apply` would refuse it: made from revision {onto.revision}, and {standing.revision} is in force"
    return ""


def _notes(file: PolicyFile, known: Capacities) -> Iterator[str]:
    yield from older_format_notes(file, file.policy, None)
    yield from aging_lines(file.policy, known)

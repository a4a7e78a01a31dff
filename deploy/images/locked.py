"""Prints the part of a lock file that some packages need: what the image installs, and nothing for developers.

    locked.py requirements.lock hatchling                  # of these packages, with all that they need
    locked.py requirements.lock --not fairlead-testkit     # of Fairlead's own members, but for those named

The lock file says below each package who needs it (`# via`), so no index is asked and nothing is resolved anew.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

OURS = "fairlead-"
_ENTRY = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)
_VIA = re.compile(r"^ +#(?: +via)? +([A-Za-z0-9][\w.-]*)", re.MULTILINE)


def entries(lock: str) -> dict[str, str]:
    """The text of each package, hashes and comments included, by its name."""
    starts = [found.start() for found in _ENTRY.finditer(lock)]
    texts = [lock[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return {text.partition("==")[0]: text for text in texts}


def needed(found: Mapping[str, str], roots: Sequence[str], without: Sequence[str] = ()) -> list[str]:
    """The names of what the roots need, in the order of the lock file.

    Args:
        found: the entries of the lock file.
        roots: packages that are wanted; none means Fairlead's own members.
        without: members of Fairlead that are not wanted.
    """
    askers = {name: {via for via in _VIA.findall(text) if via != "via"} for name, text in found.items()}
    wanted = {name for name in found if name in roots}
    if not roots:
        ours = {via for vias in askers.values() for via in vias if via.startswith(OURS)} - set(without)
        wanted = {name for name, vias in askers.items() if vias & ours}
    while more := {name for name, vias in askers.items() if vias & wanted} - wanted:
        wanted |= more
    return [name for name in found if name in wanted]


def main() -> None:
    """Read the command line, print the entries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lock", type=Path)
    parser.add_argument("roots", nargs="*")
    parser.add_argument("--not", dest="without", action="append", default=[])
    given = parser.parse_args()
    found = entries(given.lock.read_text(encoding="utf-8"))
    sys.stdout.write("".join(found[name] for name in needed(found, given.roots, given.without)))


if __name__ == "__main__":
    main()

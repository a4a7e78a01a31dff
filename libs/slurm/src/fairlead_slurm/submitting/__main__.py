"""`python -m fairlead_slurm.submitting`: the helper that submits batch jobs as the users of accounts."""

import argparse
import os
import pwd
import signal
import sys
import threading
from pathlib import Path

from fairlead_slurm.submitting.submit_server import SubmitServer, SubmitTerms


def main() -> int:
    """Listen until a signal asks for the end."""
    given = _arguments()
    try:
        askers = {os.geteuid(), *(pwd.getpwnam(name).pw_uid for name in given.allow)}
    except KeyError as error:
        sys.stderr.write(f"--allow: {error}\n")
        return 2
    terms = SubmitTerms(
        askers=frozenset(askers),
        users=given.users,
        least_uid=given.least_uid,
        output=given.output,
        conf=given.slurm_conf,
        seconds=given.seconds,
    )
    with SubmitServer(given.socket, terms) as helper:
        for number in (signal.SIGTERM, signal.SIGINT):
            # `shutdown` waits for the loop that this handler interrupts.
            signal.signal(number, lambda *_: threading.Thread(target=helper.shutdown).start())
        helper.serve_forever(poll_interval=0.2)
    given.socket.unlink(missing_ok=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fairlead-slurm-submitting", description=__doc__)
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="USER", help="a Unix user who may ask"
    )
    parser.add_argument(
        "--users", type=Path, help="file of lines ACCOUNT USER; else the user is called as the account"
    )
    parser.add_argument("--least-uid", type=int, default=1000, help="no job runs as a user below it")
    parser.add_argument(
        "--output", default="slurm-%j.out", help="file of a job's output, in sbatch's patterns"
    )
    parser.add_argument(
        "--slurm-conf", type=Path, help="slurm.conf; where Slurm's commands look, unless given"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="how long sbatch may take")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

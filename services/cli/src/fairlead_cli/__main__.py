"""Entry of the `fairlead` command."""

import os
import sys

from fairlead_cli.errors import CommandError, InputError

INTERRUPTED = 130


def main() -> None:
    """Run the command line; say expected failures in words and end with their exit code."""
    # Commands import what they run when they run: `fairlead --help` must not wait for NATS, NumPy or rich tables.
    from fairlead_cli.commands import app

    try:
        found = app()
    except CommandError as error:
        from fairlead_cli.console import fail

        fail(str(error), problems=error.problems if isinstance(error, InputError) else (), hint=error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe left (`fairlead queue | head`): not a failure; keep Python's own flush quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(found if isinstance(found, int) else 0)


if __name__ == "__main__":
    main()

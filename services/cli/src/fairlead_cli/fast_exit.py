"""Ends a process whose answer is out."""

import os
import sys
from typing import NoReturn


def leave() -> NoReturn:
    """End with success, without freeing anything: of a million jobs that takes longer than their order.

    No exit handler runs: nothing but the standard streams may be open. They are flushed first.

    Raises:
        OSError: what was said does not go out.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

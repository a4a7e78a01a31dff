"""Taking time in a process that does not stand still itself meanwhile."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_garbage_collected() -> Iterator[None]:
    """Collects garbage before the block and not within it.

    A look through all that pytest and a hundred thousand answers are made of takes 0.1 s and more. Whatever was on its way in
    that time would be told as late, and with forty samples a second some such looks are the slowest per cent of them.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()

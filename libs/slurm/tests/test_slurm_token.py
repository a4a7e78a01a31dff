"""Files with a token: what keeps one from being read is told in words, and never what is in it."""

from pathlib import Path

import pytest

from fairlead_slurm.errors import SlurmUnreachableError
from fairlead_slurm.slurm_token import SlurmToken


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"secret \xff", "holds no text"),
        (b" \n", "is empty"),
    ],
)
async def test_a_token_that_is_none_is_told_in_words(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SlurmUnreachableError) as refused:
        await SlurmToken(path).text()
    assert str(refused.value) == f"no token to ask slurmctld with: {path} {told}"

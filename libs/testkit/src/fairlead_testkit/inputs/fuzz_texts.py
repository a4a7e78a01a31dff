"""YAML texts that are right, nearly right, or broken: documents written in many ways, then changed as texts.

What a parser of YAML may stumble over lies in the text and not in the values: nesting, anchors and aliases (of what holds
them, too), merge keys, tabs, odd numbers, tags, several documents, keys given twice.
"""

import random

import yaml

from fairlead_testkit.inputs.fuzz_inputs import PlainDocument, seldom

PIECES = (
    *(
        "\t",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\N{NO-BREAK SPACE}",
        "\ufeff",
        "\x00",
        "\x85",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
    ),
    *("- ", "? ", ": ", ",", "[", "]", "{", "}", "|\n", ">-\n", "# ", "'", '"', "\\x41", "@", "`"),
    *(
        "&a ",
        "*a",
        "&a [*a]",
        "<<: *a",
        "<<: [*a, *a]",
        "!!str ",
        "!!int ",
        "!!python/name:os ",
        "!x ",
        "=",
        "~",
    ),
)
ODD = (
    *(
        "010",
        "0x1F",
        "0b11",
        "1:30",
        "1_000",
        "+3",
        ".5",
        "5.",
        "1e3",
        "1E400",
        "-.inf",
        ".nan",
        "0o17",
        "190:20:30.15",
    ),
    *(
        "yes",
        "NO",
        "null",
        "~",
        "2026-11-21",
        "2026-13-45",
        "2026-11-21T12:00:00Z",
        "=",
        "<<",
        "9" * 30,
        "9" * 5000,
    ),
)
DEEP = 400
"""Depth beyond that of any document, and small enough to be written often."""


def as_yaml(rng: random.Random, document: PlainDocument) -> str:
    """The document as a text, laid out in some way."""
    return yaml.dump(
        document,
        Dumper=rng.choice([_Plain, _Sharing]),
        default_flow_style=rng.choice([True, False, None]),
        indent=rng.choice([2, 4, 8]),
        width=rng.choice([20, 80, 10**6]),
        sort_keys=False,
        allow_unicode=seldom(rng),
        explicit_start=seldom(rng),
    )


class _Sharing(yaml.SafeDumper):
    """Writes what is the same object once, with an anchor, as people who save lines do."""


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def scramble_yaml(rng: random.Random, text: str) -> str:
    """The text with a few pieces put in, numbers made odd, lines moved, doubled or anchored, or the whole nested deeply."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        match rng.randrange(8):
            case 0 | 1:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 2 | 3:
                text = _odd_value(rng, text)
            case 4:
                text = _moved_line(rng, text)
            case 5:
                text = _aliased(rng, text)
            case 6 if seldom(rng) and seldom(rng):
                text = rng.choice(["[", "{a: ", "- ", "? "]) * rng.choice([20, DEEP]) + text
            case _:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + text[at + rng.choice([1, 1, 3, 40]) :]
    return text


def _odd_value(rng: random.Random, text: str) -> str:
    """The text with some value replaced by what YAML 1.1 reads in a way of its own."""
    starts = [at for at in range(len(text) - 1) if text[at : at + 2] == ": "]
    if not starts:
        return text
    at = rng.choice(starts) + 2
    end = min((found for mark in ",}\n" if (found := text.find(mark, at)) >= 0), default=len(text))
    return text[:at] + rng.choice(ODD) + text[end:]


def _moved_line(rng: random.Random, text: str) -> str:
    """The text with some line elsewhere, twice, or further in."""
    lines = text.splitlines(keepends=True) or [""]
    line = lines[rng.randrange(len(lines))]
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(["", " ", "  ", "\t"]) + line)
    return "".join(lines)


def _aliased(rng: random.Random, text: str) -> str:
    """The text with some value named, and put in the place of another: before it, behind it, or inside of it."""
    starts = [at + 2 for at in range(len(text) - 1) if text[at : at + 2] in {": ", "- "}]
    if not starts:
        return text
    first, second = sorted((rng.choice(starts), rng.choice(starts)))
    if seldom(rng):
        return text[:first] + "*z " + text[first:second] + "&z " + text[second:]
    end = min((found for mark in ",}]\n" if (found := text.find(mark, second)) >= 0), default=len(text))
    return text[:first] + "&z " + text[first:second] + "*z" + text[end:]

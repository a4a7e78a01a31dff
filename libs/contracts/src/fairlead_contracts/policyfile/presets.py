"""Class modes by the name of the controller whose formula they follow: shorthands of the policy file.

`class_mode: drf` and `class_mode: wdrf` stand for these keys; a key that the file has itself counts before them. The
document that is stored has the keys written out.
"""

from collections.abc import Mapping

_SECONDS_A_DAY = 86_400

PRESETS: Mapping[str, Mapping[object, object]] = {
    # score = W + share - 0.1 * seconds waited; lower goes first (github.com/Godmook/DRF_Controller).
    "drf": {
        "classes": ["urgent", "normal"],
        "class_mode": "additive",
        "class_weights": {"urgent": 0, "normal": 1000},
        "divide_by": "weight",
        "aging": {"entitlement_per_day": 0.1 * _SECONDS_A_DAY, "cap_days": 14},
    },
    # share / W - 0.1 * seconds waited, of which an hour counts (github.com/Godmook/GPU_Controller).
    "wdrf": {
        "classes": ["urgent", "approved", "normal"],
        "class_mode": "multiplicative",
        "class_weights": {"urgent": 1000, "approved": 100, "normal": 1},
        "divide_by": "weight",
        "aging": {"entitlement_per_day": 0.1 * _SECONDS_A_DAY, "cap_days": 1 / 24},
    },
}


def written_out(found: Mapping[object, object]) -> Mapping[object, object]:
    """The document's keys with a preset's in place of its name."""
    mode = found.get("class_mode")
    if not isinstance(mode, str) or mode not in PRESETS:
        return found
    given = {key: value for key, value in found.items() if key != "class_mode"}
    keys: dict[object, object] = {**PRESETS[mode]}
    return keys | given

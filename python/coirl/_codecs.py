"""Settings as people write them, and as the library saves them.

The library keeps a choice with numbers as ``{"schedule": {"initial": 0.3, "decay": 0.9}}``; that form is accepted everywhere. Here are the
shorter ones: a word where the numbers are the usual ones, a number where there is one that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Codec:
    """One setting: its short forms by word, and what a number or a list stands for."""

    words: Mapping[str, Any]
    of_number: Callable[[Any], Any] | None = None
    to_number: Callable[[Any], Any] | None = None
    of_list: Callable[[Sequence[Any]], Any] | None = None
    to_list: Callable[[Any], Any] | None = None

    def encode(self, value: Any) -> Any:
        """As the library has it; what is unknown is left to the library to refuse."""
        if isinstance(value, str):
            return self.words.get(value, value)
        if self.of_number and isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.of_number(value)
        if self.of_list and isinstance(value, (list, tuple)):
            return self.of_list(value)
        return value

    def decode(self, value: Any) -> Any:
        """As people write it."""
        for word, meant in self.words.items():
            if value == meant:
                return word
        for shorter in (self.to_number, self.to_list):
            short = shorter(value) if shorter else None
            if short is not None:
                return short
        return value


def _only(tag: str, name: str) -> Callable[[Any], Any]:
    """The one number of ``{tag: {name: x}}``."""
    return lambda value: value[tag][name] if isinstance(value, dict) and list(value.get(tag, ())) == [name] else None


def _schedule(value: Any) -> Any:
    own = value.get("schedule") if isinstance(value, dict) else None
    return own["initial"] if own and own["decay"] == 1.0 else None


def _leaky(width: Any) -> Any:
    return {"width": width, "batch_normalisation": False, "leaky": True} if isinstance(width, int) else width


def _widths(value: Any) -> Any:
    layers = value.get("layers") if isinstance(value, dict) else None
    if layers is None:
        return None
    return [layer["width"] if layer == _leaky(layer["width"]) else layer for layer in layers]


BATCH = Codec(
    {"in_order": "in_order", "full": "full"},
    of_number=lambda n: {"without_replacement": {"size": n}},
    to_number=_only("without_replacement", "size"),
)
OBJECTIVE = Codec(
    {"auto": "auto", "loss": "loss", "likelihood": {"likelihood": {"temperature": None}}},
    of_number=lambda t: {"likelihood": {"temperature": t}},
    to_number=_only("likelihood", "temperature"),
)
STEP_SIZE = Codec(
    {"theory": {"theory": {"multiplier": 1.0}}, "constant": {"constant": {"multiplier": 1.0}}},
    of_number=lambda a: {"schedule": {"initial": a, "decay": 1.0}},
    to_number=_schedule,
)
EVOLUTION_STEP = Codec(
    {"inverse_root": {"inverse_root": {"factor": 0.1}}, "theorem": "theorem"},
    of_number=lambda a: {"schedule": {"initial": a, "decay": 1.0}},
    to_number=_schedule,
)
PERTURBATION = Codec({"antithetic": {"antithetic": {"deviation": 1e-3, "pairs": 250}}})
GRADIENT = Codec({"propagated": "propagated", "antithetic": {"antithetic": {"deviation": 1e-3, "pairs": 50, "policies": "fixed"}}})
HIDDEN = Codec(
    {word: word for word in ("plain", "simulator", "real_life")},
    of_list=lambda widths: {"layers": [_leaky(width) for width in widths]},
    to_list=_widths,
)
OPTIMISER = Codec(
    {"adam": "adam", "sgd": {"sgd": {"momentum": 0.0}}},
    of_number=lambda momentum: {"sgd": {"momentum": momentum}},
    to_number=_only("sgd", "momentum"),
)
STEP_DECAY = Codec(
    {"linear": "linear"}, of_number=lambda factor: {"geometric": {"factor": factor}}, to_number=_only("geometric", "factor")
)
ESTIMATOR = Codec(
    {
        "truncated": {"truncated": {"horizon": None}},
        "geometric": "geometric",
        "control_variate": "control_variate",
        "decisions": "decisions",
    }
)
PLAIN = Codec({})

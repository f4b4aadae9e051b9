"""Experts that the interactive methods ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._arrays import Floats, count, floats, number

__all__ = ["SimulatedExpert"]


@dataclass(frozen=True, eq=False)
class SimulatedExpert:
    """An expert who acts optimally for a known mapping, or for one drawn near it.

    Parameters
    ----------
    mapping
        W ``[d, k]``.
    tolerance
        How much value an agent may miss before the expert objects.
    radius
        How far each query's mapping may be from the truth, in every entry.
    roll_outs, transitions
        Where both are given, demonstrations are the mean features of so many sampled roll-outs instead of exact expectations.
    seed
        Seed of mappings and roll-outs.
    """

    mapping: Any
    tolerance: float = 0.03
    radius: float = 0.0
    roll_outs: int | None = None
    transitions: int | None = None
    seed: int = 0

    def _passed(self) -> tuple[Floats, float, float, tuple[int, int] | None, int]:
        sampled = None
        if self.roll_outs is not None or self.transitions is not None:
            sampled = (count("roll_outs", self.roll_outs, 1), count("transitions", self.transitions, 1))
        return (
            floats("mapping of the expert", self.mapping, 2),
            number("tolerance", self.tolerance),
            number("radius", self.radius),
            sampled,
            count("seed", self.seed),
        )

"""Models that ship with the library."""

from __future__ import annotations

from . import _coirl
from ._arrays import Floats, Integers, count, flag, number, room
from ._parts import word
from .model import ContextualMDP

__all__ = [
    "driving",
    "driving_mapping",
    "epidemic",
    "epidemic_mapping",
    "garnet",
    "grid",
    "maze",
    "maze_mapping",
    "pendulum",
    "pendulum_mapping",
    "sepsis",
    "sepsis_mapping",
    "sepsis_patients",
]


def grid(width: int = 3, height: int = 4, discount: float = 0.9) -> ContextualMDP:
    """The paper's cyclic grid world: one feature per cell, moves that wrap around."""
    return ContextualMDP._of(_coirl.grid(count("width", width), count("height", height), number("discount", discount)))


def driving(actions: int = 3, polarity: str = "code", discount: float = 0.9) -> ContextualMDP:
    """The driving simulator: speed, collisions and staying on the road; contexts are three priorities on the simplex.

    ``actions`` are 3 as in the published code or 2 as in the paper; ``polarity`` says whether features show what happens (``"code"``) or what does
    not (``"paper"``).
    """
    return ContextualMDP._of(_coirl.driving(count("actions", actions), word("polarity", polarity), number("discount", discount)))


def driving_mapping(interactive: bool = False) -> Floats:
    """W* of the paper's driving experiments ``[3, 3]``: online, or interactive."""
    return _coirl.known_mappings("driving-interactive" if flag("interactive", interactive) else "driving")


def sepsis(inadmissible: str = "unknown", dynamics: str = "shared", discount: float = 0.9) -> ContextualMDP:
    """Treatment of sepsis on published aggregates (ICU-Sepsis): 716 states, 25 actions, 42 features, contexts of 7 fields. Research
    software, not for clinical use.

    ``inadmissible`` actions lead to a state *unknown*, or are ``"masked"``; ``dynamics`` are ``"shared"``, a ``"mixture"`` or ``"clusters"``.
    """
    return ContextualMDP._of(
        _coirl.sepsis(word("inadmissible", inadmissible), word("dynamics", dynamics), number("discount", discount))
    )


def sepsis_mapping() -> Floats:
    """W* of the linear sepsis experiments ``[7, 42]``."""
    return _coirl.known_mappings("sepsis")


def sepsis_patients(n: int, seed: int = 0) -> tuple[Floats, Integers]:
    """Simulated patients: contexts ``[n, 7]`` and the states in which their stays begin ``[n]``, drawn together."""
    room("n", count("n", n), 7)
    return _coirl.sepsis_patients(n, count("seed", seed))


def pendulum(grid: int = 101, discount: float = 0.99) -> ContextualMDP:
    """An inverted pendulum that is to stand upright, on ``grid`` angles and ``grid`` speeds; nine torques, steps of 0.01 s. Mixes slowly.

    Features: squared angle from upright, squared speed, squared torque; contexts are three priorities on the simplex.
    """
    grid = count("grid", grid)
    room("grid", grid, grid, 9 * 4)
    return ContextualMDP._of(_coirl.pendulum(grid, number("discount", discount)))


def pendulum_mapping() -> Floats:
    """Penalties of the pendulum ``[3, 3]``; in the context (0.4, 0.4, 0.2) they are -2, -2 and -1."""
    return _coirl.known_mappings("pendulum")


def maze(
    side: int = 100,
    *,
    slip: float = 0.1,
    walls: float = 0.3,
    mud: float = 0.2,
    danger: float = 0.05,
    discount: float = 0.99,
    seed: int = 0,
) -> ContextualMDP:
    """``side`` × ``side`` cells with random walls and one exit, in the last corner; steps slip to the side with probability ``slip``. Mixes slowly.

    Features: a step, mud, danger, which no cell of a wall and not the exit have; contexts are how much one hurries, minds mud and fears danger.
    """
    side = count("side", side)
    room("side", side, side, 4 * 3)
    return ContextualMDP._of(
        _coirl.maze(
            side,
            number("slip", slip),
            number("walls", walls),
            number("mud", mud),
            number("danger", danger),
            number("discount", discount),
            count("seed", seed),
        )
    )


def maze_mapping() -> Floats:
    """Costs of the maze ``[3, 3]``; in the context (1, 0, 0) they are one per step and nothing else."""
    return _coirl.known_mappings("maze")


def epidemic(people: int = 1000, window: int = 100, discount: float = 0.99) -> ContextualMDP:
    """How many of ``people`` are healthy, under five levels of hygiene and four of distance; up to ``window`` successors per row. Mixes slowly.

    Features: cost of the measures, quality of life, number of ill to the power 1.1; contexts are three priorities on the simplex.
    """
    people, window = count("people", people), count("window", window)
    room("people", people, min(window, people), 20)
    return ContextualMDP._of(_coirl.epidemic(people, window, number("discount", discount)))


def epidemic_mapping() -> Floats:
    """Weights of the epidemic ``[3, 3]``; in the context (0.5, 0.2, 0.3) they are -0.5, 0.2 and -0.3."""
    return _coirl.known_mappings("epidemic")


def garnet(
    n_states: int = 100,
    n_actions: int = 4,
    *,
    n_successors: int = 5,
    n_features: int = 5,
    n_kernels: int = 1,
    admissible: float = 1.0,
    discount: float = 0.9,
    seed: int = 0,
) -> ContextualMDP:
    """A random model, for tests and benchmarks; with several kernels a mixture."""
    room("n_features", count("n_states", n_states), count("n_features", n_features))
    room("n_kernels", n_states, count("n_actions", n_actions), count("n_successors", n_successors), count("n_kernels", n_kernels))
    return ContextualMDP._of(
        _coirl.garnet(
            count("n_states", n_states),
            count("n_actions", n_actions),
            count("n_successors", n_successors),
            count("n_features", n_features),
            count("n_kernels", n_kernels),
            number("admissible", admissible),
            number("discount", discount),
            count("seed", seed),
        )
    )

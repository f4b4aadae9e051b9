"""What the paper and others compare with: apprenticeship learning, maximum entropy, cloning, and the trivial ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ._codecs import BATCH, HIDDEN, OPTIMISER, STEP_DECAY, Codec
from .learners import Learner
from .methods import _preset

__all__ = [
    "Cloning",
    "FrankWolfe",
    "Majority",
    "MaxMargin",
    "MaximumEntropy",
    "MaximumEntropyPerContext",
    "Mwal",
    "NearestContext",
    "NeuralCloning",
    "Projection",
    "Uniform",
]


@dataclass(kw_only=True, eq=False, repr=False)
class Projection(Learner):
    """Apprenticeship learning by projection (Abbeel and Ng), as the paper compares with.

    ``states`` is ``"separate"`` (contexts planned for one by one) or ``"joint"`` (one process with all contexts in its state, as published).
    """

    states: str = "separate"

    _method: ClassVar[str] = "projection"


@dataclass(kw_only=True, eq=False, repr=False)
class MaxMargin(Learner):
    """Apprenticeship learning by the maximum margin; ``states`` as for :class:`Projection`."""

    states: str = "separate"

    _method: ClassVar[str] = "max_margin"


@dataclass(kw_only=True, eq=False, repr=False)
class FrankWolfe(Learner):
    """Apprenticeship learning by Frank-Wolfe steps with away steps; ``states`` as for :class:`Projection`."""

    states: str = "separate"

    _method: ClassVar[str] = "frank_wolfe"


@dataclass(kw_only=True, eq=False, repr=False)
class Mwal(Learner):
    """Apprenticeship learning by multiplicative weights (Syed and Schapire).

    Parameters
    ----------
    states
        As for :class:`Projection`.
    signed
        Whether weights of the reward may be negative.
    step_multiplier
        Factor on the theory's step.
    """

    states: str = "separate"
    signed: bool = True
    step_multiplier: float = 1.0

    _method: ClassVar[str] = "mwal"


@dataclass(kw_only=True, eq=False, repr=False)
class MaximumEntropy(Learner):
    """Maximum-entropy inverse reinforcement learning of one mapping.

    Parameters
    ----------
    temperature
        What a unit of entropy is worth.
    penalty
        Weight of the squared norm.
    greedy
        Take the best action instead of drawing one.
    gradient_tolerance
        Where it has finished.
    """

    temperature: float = 1.0
    penalty: float = 1e-4
    greedy: bool = False
    gradient_tolerance: float = 1e-5

    _method: ClassVar[str] = "maximum_entropy"


@dataclass(kw_only=True, eq=False, repr=False)
class MaximumEntropyPerContext(MaximumEntropy):
    """The same with weights of their own for every context that was seen; the nearest acts."""

    _method: ClassVar[str] = "maximum_entropy_per_context"


@dataclass(kw_only=True, eq=False, repr=False)
class Cloning(Learner):
    """Behavioural cloning by logistic regression; from trajectories.

    Parameters
    ----------
    penalty
        Weight of the squared norm.
    components
        Principal components of the dynamics that describe a state; by default at most 64.
    interactions
        Whether context and state interact.
    most_probable
        Take the likeliest action instead of drawing one.
    masked
        Keep to known actions.
    gradient_tolerance
        Where it has finished.
    """

    penalty: float = 1e-3
    components: int | None = None
    interactions: bool = True
    most_probable: bool = False
    masked: bool = True
    gradient_tolerance: float = 1e-6

    _method: ClassVar[str] = "cloning"


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralCloning(Learner):
    """Behavioural cloning by a network, as in the paper.

    Parameters
    ----------
    hidden, optimiser, step_size, weight_decay, batch
        As for :class:`~coirl.Neural`; a batch is of decisions.
    step_decay
        ``"linear"`` (to zero at the end), or the factor from one step to the next.
    components, most_probable, masked
        As for :class:`Cloning`.
    """

    hidden: Any = "simulator"
    components: int | None = None
    most_probable: bool = False
    masked: bool = True
    optimiser: Any = "adam"
    step_size: float = 1e-3
    step_decay: Any = "linear"
    weight_decay: float = 0.0
    batch: Any = 32

    _method: ClassVar[str] = "neural_cloning"
    _codecs: ClassVar[dict[str, Codec]] = {"hidden": HIDDEN, "optimiser": OPTIMISER, "step_decay": STEP_DECAY, "batch": BATCH}

    @classmethod
    def paper_patients(cls, **settings: Any) -> NeuralCloning:
        """As the paper trains it on patients."""
        return cls(**{**_preset(cls, "neural_cloning_paper_patients"), **settings})


@dataclass(kw_only=True, eq=False, repr=False)
class Majority(Learner):
    """The action taken most often in a state."""

    _method: ClassVar[str] = "majority"


@dataclass(kw_only=True, eq=False, repr=False)
class NearestContext(Learner):
    """The action taken most often in a state of the nearest context that was seen."""

    _method: ClassVar[str] = "nearest_context"


@dataclass(kw_only=True, eq=False, repr=False)
class Uniform(Learner):
    """Every known action with equal probability."""

    _method: ClassVar[str] = "uniform"

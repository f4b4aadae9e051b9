"""The methods that learn a mapping from context to reward."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from . import _coirl
from ._arrays import Floats
from ._codecs import BATCH, EVOLUTION_STEP, GRADIENT, HIDDEN, OBJECTIVE, OPTIMISER, PERTURBATION, STEP_SIZE, Codec
from .learners import _BY_METHOD, Learner, StreamLearner
from .model import ContextualMDP

__all__ = [
    "Adaptive",
    "BatchEllipsoid",
    "Bundle",
    "Choice",
    "CuttingPlane",
    "Ellipsoid",
    "EvolutionStrategies",
    "MirrorDescent",
    "Neural",
    "ReplayedDescent",
    "ReplayedEvolution",
]


@dataclass(kw_only=True, eq=False, repr=False)
class Choice(Learner):
    """Experts as soft-optimal planners, by penalised maximum likelihood to convergence: start here.

    A dynamic discrete choice model, also known as maximum causal entropy: π ∝ exp(Q) of the soft Q, with rewards of any length, so that the
    temperature is estimated with them. No setting needs to be set, and no unit of a feature or of a context matters. From feature
    expectations the dual of matching them takes the place of the likelihood.

    Parameters
    ----------
    mapping
        What the reward depends on: ``"constant"`` (one reward for everybody), ``"linear"``, ``"network"`` (one hidden layer), or ``"auto"``:
        linear, until another is better by two standard errors on demonstrations that are left out.
    penalty
        Strength of the ridge penalty in standardised units; chosen by held-out likelihood by default, 0 for plain maximum likelihood.
    lapses
        Probability of acting at random; estimated by default, 0 for none.
    folds
        Parts that demonstrations are divided into, each left out once; three from 60 demonstrations on.
    tolerance
        How far from the optimum the fit may end, in standard errors of its parameters.
    standard_errors
        Which standard errors are computed at the end: ``"none"``, ``"information"`` (Fisher's), ``"outer_products"`` (of the scores of single
        decisions) or ``"sandwich"`` (of the scores of demonstrations, right also where decisions of one person hang together).

    Attributes
    ----------
    intercept_
        The weights that everybody has, where contexts have no constant of their own: f(c) = c·W + intercept.
    standard_errors_
        Of ``mapping_``, NaN where the data do not determine a weight; None where they were not asked for, or for a network.
    intercept_standard_errors_
        Of ``intercept_``.
    can_be_left_out_
        Features, by number, without whose weights, each by itself, the demonstrated actions are no less likely than luck would explain: the
        signs of these weights are open.
    """

    mapping: str = "auto"
    penalty: float | None = None
    lapses: float | None = None
    folds: int = 5
    tolerance: float = 0.03
    standard_errors: str = "none"

    _method: ClassVar[str] = "choice"

    def _store(self, fitted: _coirl.Fitted, model: ContextualMDP | None) -> None:
        super()._store(fitted, model)
        explained = self.certificate_.get("explained") or {}
        self.can_be_left_out_: list[int] = list(explained.get("can_be_left_out", ()))
        found = explained.get("standard_errors")
        self.standard_errors_: Floats | None = None
        self.intercept_standard_errors_: Floats | None = None
        if found is not None and self.mapping_ is not None:
            self.standard_errors_ = np.array(found["mapping"], dtype=np.float64).reshape(self.mapping_.shape)
            if found["intercept"] is not None:
                self.intercept_standard_errors_ = np.array(found["intercept"], dtype=np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class Adaptive(StreamLearner):
    """Mirror descent on the sphere, without a step size to tune.

    Parameters
    ----------
    objective
        What is minimised: ``"loss"`` of the paper, ``"likelihood"`` (negative, of single actions; a number is its temperature), or
        ``"auto"``: the likelihood from trajectories, unless an estimator is chosen, and the loss from feature expectations.
    batch
        Demonstrations per step: ``"in_order"`` (one), ``"full"``, a number (in shuffled passes), or ``{"with_replacement": {"size": n}}``.
    """

    objective: Any = "auto"
    batch: Any = "in_order"

    _method: ClassVar[str] = "adaptive"
    _codecs: ClassVar[dict[str, Codec]] = {"objective": OBJECTIVE, "batch": BATCH}


@dataclass(kw_only=True, eq=False, repr=False)
class MirrorDescent(StreamLearner):
    """Algorithm 1 of the paper: projected subgradient descent (PSGD) and exponential weights (EW).

    Parameters
    ----------
    geometry
        ``"ball"`` (PSGD), ``"sphere"`` (normalised at every step, as the paper prints it) or ``"simplex"`` (EW: no weight is negative).
    step_size
        ``"theory"``, ``"constant"`` (the theory's, for the number of steps), a number, or with a factor
        ``{"theory": {"multiplier": 100}}``, ``{"schedule": {"initial": 0.3, "decay": 0.9}}``.
    average
        What is returned: the mean of the iterates ``"after_update"`` (the published code), ``"before_update"`` (the theorem) or the ``"last"``.
    batch
        As for :class:`Adaptive`.
    """

    geometry: str = "ball"
    step_size: Any = "theory"
    average: str = "after_update"
    batch: Any = "in_order"

    _method: ClassVar[str] = "mirror_descent"
    _codecs: ClassVar[dict[str, Codec]] = {"step_size": STEP_SIZE, "batch": BATCH}


@dataclass(kw_only=True, eq=False, repr=False)
class Neural(StreamLearner):
    """A network from context to reward, for rewards that are no linear function of the context.

    Parameters
    ----------
    hidden
        A list of widths, or ``"plain"`` (three layers of eight times the features), ``"simulator"`` and ``"real_life"`` (the paper's).
    unit_output
        Whether rewards have length one.
    objective
        As for :class:`Adaptive`.
    gradient
        ``"propagated"``, or ``"antithetic"`` (evolution strategies; slow).
    optimiser
        ``"adam"``, ``"sgd"``, or a number: SGD with this momentum.
    step_size, step_decay, weight_decay
        Length of a step, factor from one to the next, share of the weights that a step of length one takes away.
    largest_gradient
        Length to which gradients are shortened.
    batch
        As for :class:`Adaptive`.
    """

    hidden: Any = "plain"
    unit_output: bool = True
    objective: Any = "auto"
    gradient: Any = "propagated"
    optimiser: Any = "adam"
    step_size: float = 3e-3
    step_decay: float | None = None
    weight_decay: float = 0.0
    largest_gradient: float | None = None
    batch: Any = 32

    _method: ClassVar[str] = "neural"
    _codecs: ClassVar[dict[str, Codec]] = {
        "hidden": HIDDEN,
        "objective": OBJECTIVE,
        "gradient": GRADIENT,
        "optimiser": OPTIMISER,
        "batch": BATCH,
    }

    @classmethod
    def paper(cls, **settings: Any) -> Neural:
        """As the paper trains it on the simulator; for ``max_steps=200``."""
        return cls(**{**_preset(cls, "neural_paper"), **settings})

    @classmethod
    def paper_patients(cls, **settings: Any) -> Neural:
        """As the paper trains it on patients."""
        return cls(**{**_preset(cls, "neural_paper_patients"), **settings})


def _preset(cls: type[Learner], name: str) -> dict[str, Any]:
    own = json.loads(_coirl.preset(name))
    return {key: codec.decode(own[key]) for key, codec in cls._own().items()}


@dataclass(kw_only=True, eq=False, repr=False)
class Bundle(Learner):
    """A proximal bundle method on the full loss, with a gap: for few or noisy demonstrations.

    Parameters
    ----------
    max_cuts
        Subgradients that are kept.
    radius
        How far from its start the mapping may go.
    caution
        How much of the noise of the demonstrations it allows for.
    relative_gap
        The gap, relative to the first loss, at which it has finished.
    """

    max_cuts: int = 100
    radius: float = 100.0
    caution: float = 1.0
    relative_gap: float = 1e-4

    _method: ClassVar[str] = "bundle"


@dataclass(kw_only=True, eq=False, repr=False)
class EvolutionStrategies(StreamLearner):
    """Evolution strategies.

    Parameters
    ----------
    policies
        ``"fixed"`` (one plan per step, as published) or ``"resolved"`` (a plan for every perturbation).
    perturbation
        ``"antithetic"``, or with numbers ``{"antithetic": {"deviation": 1e-3, "pairs": 250}}``, ``{"one_sided": {...}}``,
        ``{"forward": {...}}``.
    region
        ``"clipped_simplex"``, ``"ball"`` or ``"sphere"``.
    unit_objective, accept_if_better, best, indifference
        See the chapter on methods.
    step_size
        ``"inverse_root"``, ``"theorem"``, a number, or ``{"schedule": {...}}``.
    batch
        As for :class:`Adaptive`.
    """

    policies: str = "fixed"
    perturbation: Any = "antithetic"
    region: str = "clipped_simplex"
    unit_objective: bool = True
    step_size: Any = "inverse_root"
    accept_if_better: bool = False
    best: bool = False
    indifference: float = 1e-3
    batch: Any = "in_order"

    _method: ClassVar[str] = "evolution_strategies"
    _codecs: ClassVar[dict[str, Codec]] = {"perturbation": PERTURBATION, "step_size": EVOLUTION_STEP, "batch": BATCH}


@dataclass(kw_only=True, eq=False, repr=False)
class Ellipsoid(Learner):
    """Algorithm 2 of the paper: an expert demonstrates where the agent misses more than ``tolerance``, by default a thousandth of the largest
    value there can be."""

    tolerance: float | None = None

    interactive: ClassVar[bool] = True
    _method: ClassVar[str] = "ellipsoid"


@dataclass(kw_only=True, eq=False, repr=False)
class BatchEllipsoid(Learner):
    """Algorithm 3 of the paper: an expert judges single actions and shows roll-outs. For simulated experts.

    Parameters
    ----------
    tolerance
        How much value an agent may miss; by default a thousandth of the largest value there can be.
    failure_probability
        Probability with which the theorem's bound may fail.
    horizon, batch, episode
        Transitions of a roll-out, roll-outs per cut, steps of an episode; by default the theorem's.
    """

    tolerance: float | None = None
    failure_probability: float = 0.1
    horizon: int | None = None
    batch: int | None = None
    episode: int | None = None

    interactive: ClassVar[bool] = True
    _method: ClassVar[str] = "batch_ellipsoid"


@dataclass(kw_only=True, eq=False, repr=False)
class CuttingPlane(Learner):
    """Asks an expert and keeps to the centre of what the answers allow: the fewest demonstrations.

    Parameters
    ----------
    centre
        ``"analytic"`` or ``"chebyshev"``.
    replay
        Whether demonstrations given before are looked at again.
    max_rounds, max_cuts
        Caps of its loops.
    """

    centre: str = "analytic"
    replay: bool = True
    max_rounds: int = 50
    max_cuts: int = 1000

    interactive: ClassVar[bool] = True
    _method: ClassVar[str] = "cutting_plane"


@dataclass(kw_only=True, eq=False, repr=False)
class ReplayedDescent(Learner):
    """Asks an expert; the paper's interactive PSGD over all demonstrations given so far."""

    initial_step: float = 0.3
    decay: float = 0.9
    outer_decay: float = 0.94
    epochs: int = 40

    interactive: ClassVar[bool] = True
    _method: ClassVar[str] = "replayed_descent"


@dataclass(kw_only=True, eq=False, repr=False)
class ReplayedEvolution(Learner):
    """Asks an expert; the paper's interactive evolution strategy over all demonstrations given so far."""

    deviation: float = 1e-3
    pairs: int = 250
    initial_step: float = 0.1
    decay: float = 0.95
    iterations: int = 50
    stop: float = 1e-3

    interactive: ClassVar[bool] = True
    _method: ClassVar[str] = "replayed_evolution"


#: How settings that several methods share are written.
_SHARED_CODECS: dict[str, Codec] = {"batch": BATCH, "objective": OBJECTIVE, "hidden": HIDDEN, "optimiser": OPTIMISER}


def generate() -> dict[str, type[Learner]]:
    """A learner for every method of the registry that has none of its own here, with the library's settings and defaults."""
    made: dict[str, type[Learner]] = {}
    for entry in json.loads(_coirl.registry()):
        settings = entry["settings"]
        tag = settings.pop("name")
        if tag in _BY_METHOD:
            continue
        codecs = {name: codec for name, codec in _SHARED_CODECS.items() if name in settings}
        own: list[tuple[str, Any, Any]] = []
        for name, value in settings.items():
            default = codecs[name].decode(value) if name in codecs else value
            mutable = isinstance(default, (dict, list))
            own.append((name, Any, field(default_factory=partial(copy.deepcopy, default)) if mutable else field(default=default)))
        name = "".join(word.capitalize() for word in tag.split("_"))
        listed = "\n".join(f"    {key}: {json.dumps(value)}" for key, value in settings.items())
        about = f"{entry['about'][0].upper()}{entry['about'][1:]}.\n\n    Settings and their defaults, as the library has them:\n\n{listed}\n    "
        made[name] = make_dataclass(
            name,
            own,
            bases=(StreamLearner if entry["stream"] else Learner,),
            namespace={
                "__doc__": about,
                "__module__": __name__,
                "_method": tag,
                "_codecs": codecs,
                "interactive": entry["interactive"],
            },
            kw_only=True,
            eq=False,
            repr=False,
        )
    globals().update(made)
    return made

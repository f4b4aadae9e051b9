"""Inverse reinforcement learning in contextual Markov decision processes: from demonstrations to the reward behind them.

>>> import coirl
>>> model = coirl.domains.driving()
>>> truth = [[1, 0, 0], [0, -4, 0], [0, 0, -2]]  # what each priority makes of speed, collisions, leaving the road
>>> contexts = model.sample_contexts(20, seed=1)
>>> seen = model.plan_many(contexts @ truth).feature_expectations
>>> learner = coirl.Choice().fit(model, coirl.Demonstrations.from_arrays(contexts, seen))
>>> policy = learner.predict([0.2, 0.5, 0.3])  # for a context that is not in the data
>>> round(learner.examine(truth, model.sample_contexts(80, seed=2))["relative_value"], 2) > 0.9
True
"""

from . import cohort, domains, errors, off_policy
from ._coirl import __version__
from ._threads import set_threads, threads
from .baselines import (
    Cloning,
    FrankWolfe,
    Majority,
    MaximumEntropy,
    MaximumEntropyPerContext,
    MaxMargin,
    Mwal,
    NearestContext,
    NeuralCloning,
    Projection,
    Uniform,
)
from .command import report
from .demonstrations import Demonstrations
from .errors import CoirlError
from .experts import SimulatedExpert
from .learners import Learner, StreamLearner, load
from .methods import (
    Adaptive,
    BatchEllipsoid,
    Bundle,
    Choice,
    CuttingPlane,
    Ellipsoid,
    EvolutionStrategies,
    MirrorDescent,
    Neural,
    ReplayedDescent,
    ReplayedEvolution,
    generate,
)
from .model import Certificate, ContextualMDP, Evaluation, Plan, Plans
from .transfer import Prediction, Transfer

__all__ = [
    "Adaptive",
    "BatchEllipsoid",
    "Bundle",
    "Certificate",
    "Choice",
    "Cloning",
    "CoirlError",
    "ContextualMDP",
    "CuttingPlane",
    "Demonstrations",
    "Ellipsoid",
    "Evaluation",
    "EvolutionStrategies",
    "FrankWolfe",
    "Learner",
    "Majority",
    "MaxMargin",
    "MaximumEntropy",
    "MaximumEntropyPerContext",
    "MirrorDescent",
    "Mwal",
    "NearestContext",
    "Neural",
    "NeuralCloning",
    "Plan",
    "Plans",
    "Prediction",
    "Projection",
    "ReplayedDescent",
    "ReplayedEvolution",
    "SimulatedExpert",
    "StreamLearner",
    "Transfer",
    "Uniform",
    "__version__",
    "cohort",
    "domains",
    "errors",
    "load",
    "off_policy",
    "report",
    "set_threads",
    "threads",
]

# Methods of the library that have no class written by hand.
_generated = generate()
globals().update(_generated)
__all__ += list(_generated)
del generate

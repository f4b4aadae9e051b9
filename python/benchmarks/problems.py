"""Contextual problems of many kinds, each made from its name and a seed, with a truth that learners can be scored against.

    from problems import KINDS, make
    problem = make("inventory", seed=1)
    learner = coirl.Adaptive().fit(problem.model, problem.trajectories)
    problem.score(learner)        # 0: acting at random, 100: the best policies, in contexts that nobody demonstrated

Everything here is NumPy: kernels, planning (policy iteration), paths and values do not use the library, so that a score is not the
library's own opinion. A kind fixes what a problem is about; the seed draws its numbers. Experts plan for the true reward among the known
actions, draw between equally good ones, and then either lapse (a known action at random, with a fixed probability) or take actions with
probabilities that grow with their values.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

import coirl

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Random = np.random.Generator

N_TEST = 60


@dataclass(frozen=True)
class Truth:
    """f: contexts ``[n, d]`` to reward weights ``[n, k]``. ``W`` and ``intercept`` are there where f(c) = c·W + intercept."""

    function: Callable[[Floats], Floats]
    W: Floats | None = None
    intercept: Floats | None = None

    def __call__(self, contexts: Floats) -> Floats:
        return self.function(np.atleast_2d(contexts))


def linear(W: Any, intercept: Any = None) -> Truth:
    """f(c) = c·W + intercept."""
    own, more = np.asarray(W, dtype=np.float64), None if intercept is None else np.asarray(intercept, dtype=np.float64)
    return Truth(lambda contexts: contexts @ own + (0.0 if more is None else more), own, more)


def affine(effects: Any, base: Any, centre: Any, scale: Any) -> Truth:
    """f(c) = base + ((c − centre)/scale)·effects, as one matrix and an intercept."""
    W = np.asarray(effects, dtype=np.float64) / np.asarray(scale, dtype=np.float64)[:, None]
    return linear(W, np.asarray(base, dtype=np.float64) - np.asarray(centre, dtype=np.float64) @ W)


@dataclass(frozen=True)
class Expert:
    """How experts depart from the best action: a probability of lapses, or a temperature.

    ``temperature`` is relative to how much the best action is better than a random one, in the median state of the model: of actions that
    are drawn in proportion to exp(Q/temperature), where Q is the optimal (``foresight=False``) or the soft one (``foresight=True``).
    """

    lapses: float = 0.0
    temperature: float | None = None
    foresight: bool = False


@dataclass
class Draft:
    """What a kind draws."""

    kernels: list[Floats]  # [S, A, S] each
    features: Any  # as the model takes them
    discount: float
    contexts: Callable[[int], Floats]
    truth: Truth
    n_train: int
    steps: int
    expert: Expert
    n_paths: int = 1
    initial: Floats | None = None
    admissible: Booleans | None = None
    known: Booleans | None = None
    context_space: Any = None
    centroids: Floats | None = None
    feature_names: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """A model with demonstrations and a truth to be scored against."""

    kind: str
    seed: int
    draft: Draft = field(repr=False)
    #: ``[n, d]``, demonstrated.
    train_contexts: Floats = field(repr=False)
    #: ``[60, d]``, not demonstrated.
    test_contexts: Floats = field(repr=False)
    #: One list of paths (states, actions) per training context.
    paths: list[list[tuple[Integers, Integers]]] = field(repr=False)
    #: Of the optimal policies of the training contexts ``[n, k]``.
    feature_expectations: Floats = field(repr=False)

    @property
    def truth(self) -> Truth:
        """From context to the weights of the true reward."""
        return self.draft.truth

    @property
    def about(self) -> str:
        """One line about the kind."""
        return (KINDS[self.kind].__doc__ or "").strip()

    @cached_property
    def model(self) -> coirl.ContextualMDP:
        """The model as learners get it."""
        own = self.draft
        transitions: Any = own.kernels[0] if len(own.kernels) == 1 else list(own.kernels)
        if own.centroids is not None:
            transitions = (list(own.kernels), own.centroids)
        return coirl.ContextualMDP(
            transitions,
            own.features,
            own.initial,
            own.discount,
            admissible=own.admissible,
            known=own.known,
            context_space=own.context_space,
            feature_names=own.feature_names,
            name=self.kind,
        )

    @cached_property
    def trajectories(self) -> coirl.Demonstrations:
        """Noisy paths, one or a few per training context."""
        return coirl.Demonstrations(self.train_contexts, trajectories=self.paths)

    @cached_property
    def expectations(self) -> coirl.Demonstrations:
        """Exact feature expectations of the optimal policies of the training contexts."""
        return coirl.Demonstrations.from_arrays(self.train_contexts, self.feature_expectations)

    @cached_property
    def phi(self) -> Floats:
        """φ(s, a), dense ``[S, A, k]``."""
        return dense_features(self.draft)

    @cached_property
    def allowed(self) -> Booleans:
        """Known and admissible ``[S, A]``: what experts take, and what acting at random is."""
        return allowed(self.draft)

    def kernel(self, context: Floats) -> Floats:
        """P of a context ``[S, A, S]``."""
        return kernel(self.draft, context)

    @cached_property
    def best_and_random(self) -> tuple[Floats, Floats]:
        """Values from the start of the best and of random policies in the test contexts."""
        uniform = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        best, chance = [], []
        start = None
        for context, weights in zip(self.test_contexts, self.truth(self.test_contexts)):
            P, reward = self.kernel(context), self.phi @ weights
            start, _, values = plan(P, reward, self.draft.discount, self.allowed, start)
            best.append(self.start @ values)
            chance.append(self.start @ evaluate(P, reward, self.draft.discount, uniform))
        return np.array(best), np.array(chance)

    @cached_property
    def start(self) -> Floats:
        """Start distribution ``[S]``."""
        return start_distribution(self.draft)

    def values(self, policies: Sequence[Any]) -> Floats:
        """True values from the start, of one policy per test context: actions ``[S]``, or probabilities ``[S, A]``."""
        found = []
        for context, weights, policy in zip(self.test_contexts, self.truth(self.test_contexts), policies):
            found.append(
                self.start
                @ evaluate(self.kernel(context), self.phi @ weights, self.draft.discount, probabilities(policy, self.phi))
            )
        return np.array(found)

    def score(self, by: Any) -> float:
        """Share of the way from random to best, in percent, over all test contexts together: of a fitted learner, or of one policy per
        test context."""
        policies = by.predict(self.test_contexts) if hasattr(by, "predict") else by
        if len(policies) != len(self.test_contexts):
            raise ValueError(f"{len(policies)} policies; expected {len(self.test_contexts)}, one per test context")
        best, chance = self.best_and_random
        return float(100.0 * (self.values(policies) - chance).sum() / (best - chance).sum())


# Planning, in NumPy.


def dense_features(draft: Draft) -> Floats:
    n_states, n_actions = draft.kernels[0].shape[:2]
    given = draft.features
    if isinstance(given, str):
        phi = np.zeros((n_states, n_actions, n_states + n_actions))
        phi[np.arange(n_states), :, np.arange(n_states)] = 1.0
        phi[:, np.arange(n_actions), n_states + np.arange(n_actions)] = 1.0
        return phi
    if isinstance(given, tuple):
        k, indptr, indices, data = given
        rows = np.zeros((n_states * n_actions, k))
        rows[np.repeat(np.arange(len(rows)), np.diff(indptr)), indices] = data
        return rows.reshape(n_states, n_actions, k)
    array: Floats = np.asarray(given, dtype=np.float64)
    return array if array.ndim == 3 else np.repeat(array[:, None], n_actions, axis=1)


def allowed(draft: Draft) -> Booleans:
    mask = np.ones(draft.kernels[0].shape[:2], dtype=bool)
    for own in (draft.admissible, draft.known):
        mask &= True if own is None else own
    return mask


def start_distribution(draft: Draft) -> Floats:
    n_states = len(draft.kernels[0])
    return np.full(n_states, 1.0 / n_states) if draft.initial is None else draft.initial


def kernel(draft: Draft, context: Floats) -> Floats:
    if len(draft.kernels) == 1:
        return draft.kernels[0]
    if draft.centroids is not None:
        return draft.kernels[int(np.argmin(((draft.centroids - context) ** 2).sum(axis=1)))]
    return np.asarray(np.tensordot(context, np.array(draft.kernels), axes=1))


def probabilities(policy: Any, phi: Floats) -> Floats:
    own = np.asarray(policy)
    return np.eye(phi.shape[1])[own] if own.ndim == 1 else own.astype(np.float64)


def evaluate(P: Floats, reward: Floats, discount: float, policy: Floats) -> Floats:
    """V(s) of probabilities ``[S, A]``."""
    under = np.einsum("sa,sat->st", policy, P)
    return np.linalg.solve(np.eye(len(P)) - discount * under, (policy * reward).sum(axis=1))


def plan(
    P: Floats, reward: Floats, discount: float, mask: Booleans, start: Integers | None = None
) -> tuple[Integers, Floats, Floats]:
    """Policy iteration: actions ``[S]``, Q ``[S, A]`` (−∞ for what is not allowed), V ``[S]``."""
    states, identity = np.arange(len(P)), np.eye(len(P))
    masked = np.where(mask, reward, -np.inf)
    actions = masked.argmax(axis=1) if start is None else start
    while True:
        values = np.linalg.solve(identity - discount * P[states, actions], reward[states, actions])
        q = masked + discount * (P @ values)
        better = q.argmax(axis=1)
        gain = q[states, better] - q[states, actions]
        if (gain <= 1e-11 * (1.0 + np.abs(values).max())).all():
            return actions, q, values
        actions = np.where(gain > 0.0, better, actions)


def soft_values(P: Floats, reward: Floats, discount: float, mask: Booleans, temperature: float, start: Floats) -> Floats:
    """Q of a planner who is paid ``temperature`` for a unit of entropy, by value iteration from V ``[S]``."""
    masked, values = np.where(mask, reward, -np.inf), start
    for _ in range(100_000):
        q = masked + discount * (P @ values)
        top = q.max(axis=1)
        following = top + temperature * np.log(np.exp((q - top[:, None]) / temperature).sum(axis=1))
        change = following - values
        values = following
        if change.max() - change.min() < 1e-7 * temperature:
            break
    return masked + discount * (P @ values)


def best_actions(q: Floats) -> Floats:
    """Probabilities: all actions that are as good as the best, alike."""
    top = q.max(axis=1, keepdims=True)
    ties = q >= top - 1e-9 * (1.0 + np.abs(top))
    return np.asarray(ties / ties.sum(axis=1, keepdims=True))


def draw_path(rng: Random, P: Floats, policy: Floats, start: Floats, steps: int, ends: Booleans) -> tuple[Integers, Integers]:
    """States and actions up to an absorbing state or the last step; at least one action."""
    state = int(rng.choice(len(P), p=start))
    states = [state]
    actions: list[int] = []
    for _ in range(steps):
        if ends[state] and actions:
            break
        action = int(rng.choice(policy.shape[1], p=policy[state]))
        state = int(rng.choice(len(P), p=P[state, action] / P[state, action].sum()))
        actions.append(action)
        states.append(state)
    return np.array(states, dtype=np.int64), np.array(actions, dtype=np.int64)


def make(kind: str, seed: int) -> Problem:
    """The problem of a kind and a seed: the same whenever it is made."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    draft = KINDS[kind](rng)
    phi, mask, start = dense_features(draft), allowed(draft), start_distribution(draft)
    train, test = draft.contexts(draft.n_train), draft.contexts(N_TEST)
    random_policy = mask / mask.sum(axis=1, keepdims=True)
    ends = np.ones(len(phi), dtype=bool)
    for P in draft.kernels:
        ends &= np.where(mask, np.einsum("sas->sa", P), 1.0).min(axis=1) > 1.0 - 1e-12
    solved, warm = [], None
    for context, weights in zip(train, draft.truth(train)):
        P, reward = kernel(draft, context), phi @ weights
        warm, q, values = plan(P, reward, draft.discount, mask, warm)
        solved.append((P, reward, q, values))
    spreads = [q.max(axis=1) - np.where(mask, q, 0.0).sum(axis=1) / mask.sum(axis=1) for _, _, q, _ in solved]
    positive = np.concatenate([own[own > 1e-9 * (1.0 + np.abs(own).max())] for own in spreads])
    unit = float(np.median(positive)) if positive.size else 1.0
    paths, expectations = [], []
    for P, reward, q, values in solved:
        best = best_actions(q)
        under = np.einsum("sa,sat->st", best, P)
        visits = np.linalg.solve((np.eye(len(P)) - draft.discount * under).T, start)
        expectations.append(np.einsum("s,sa,sak->k", visits, best, phi))
        policy = (1.0 - draft.expert.lapses) * best + draft.expert.lapses * random_policy
        if draft.expert.temperature is not None:
            temperature = draft.expert.temperature * unit
            if draft.expert.foresight:
                q = soft_values(P, reward, draft.discount, mask, temperature, values)
            policy = np.exp((q - q.max(axis=1, keepdims=True)) / temperature)
            policy /= policy.sum(axis=1, keepdims=True)
        paths.append([draw_path(rng, P, policy, start, draft.steps, ends) for _ in range(draft.n_paths)])
    return Problem(kind, seed, draft, train, test, paths, np.array(expectations))


def with_constant(problem: Problem) -> Problem:
    """The problem with a constant column in its contexts, for learners that have no intercept; as it is where contexts sum to one."""
    if np.allclose(np.vstack([problem.train_contexts, problem.test_contexts]).sum(axis=1), 1.0):
        return problem

    def more(rows: Floats) -> Floats:
        return np.column_stack([rows, np.ones(len(rows))])

    own = problem.draft
    centroids = None if own.centroids is None else more(own.centroids)
    truth = Truth(lambda contexts: problem.truth(contexts[:, :-1]))
    draft = replace(own, context_space=None, centroids=centroids, truth=truth)
    return replace(problem, draft=draft, train_contexts=more(problem.train_contexts), test_contexts=more(problem.test_contexts))


# What kinds are made of.

KINDS: dict[str, Callable[[Random], Draft]] = {}


def kind(function: Callable[[Random], Draft]) -> Callable[[Random], Draft]:
    KINDS[function.__name__] = function
    return function


def simplex(rng: Random, d: int) -> Callable[[int], Floats]:
    return lambda n: rng.dirichlet(np.ones(d), n)


def box(rng: Random, d: int, low: float = 0.0, high: float = 1.0) -> Callable[[int], Floats]:
    return lambda n: rng.uniform(low, high, (n, d))


def groups(rng: Random, d: int) -> Callable[[int], Floats]:
    return lambda n: np.eye(d)[rng.permutation(np.arange(n) % d)]


PATIENT_CENTRE, PATIENT_SCALE = np.array([62.0, 80.0, 0.45, 0.25]), np.array([15.0, 16.0, 0.5, 0.43])


def patients(rng: Random) -> Callable[[int], Floats]:
    """Age in years, weight in kilograms, female, diabetic."""

    def draw(n: int) -> Floats:
        age = np.clip(rng.normal(62.0, 15.0, n), 18.0, 95.0).round()
        weight = np.clip(rng.normal(80.0, 16.0, n), 40.0, 150.0).round(1)
        return np.column_stack([age, weight, rng.random(n) < 0.45, rng.random(n) < 0.25]).astype(np.float64)

    return draw


def garnet(rng: Random, n_states: int, n_actions: int, successors: int) -> Floats:
    """Random successors with random probabilities."""
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            P[s, a, rng.choice(n_states, successors, replace=False)] = rng.dirichlet(np.ones(successors))
    return P


MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])  # north, east, south, west


def grid_moves(height: int, width: int, slip: float) -> Floats:
    """Four directions on a grid; with probability ``slip`` another one. Who would leave stays."""
    P = np.zeros((height * width, 4, height * width))
    for row in range(height):
        for column in range(width):
            for a in range(4):
                for b in range(4):
                    r, c = np.clip([row, column] + MOVES[b], 0, [height - 1, width - 1])
                    P[row * width + column, a, r * width + c] += 1.0 - slip if a == b else slip / 3.0
    return P


def signs(rng: Random, *shape: int) -> Floats:
    return rng.normal(size=shape)


def lapses(rng: Random, low: float, high: float) -> Expert:
    return Expert(lapses=round(float(rng.uniform(low, high)), 3))


# Random dynamics.


@kind
def garnet_sparse(rng: Random) -> Draft:
    """Random, three successors; simplex of 4; few lapses."""
    P, phi = garnet(rng, 50, 4, 3), rng.normal(size=(50, 6))
    return Draft(
        [P], phi, 0.9, simplex(rng, 4), linear(signs(rng, 4, 6)), 100, 20, lapses(rng, 0.0, 0.1), context_space=("simplex", 4)
    )


@kind
def garnet_dense(rng: Random) -> Draft:
    """Random, every state a successor; simplex of 3; Boltzmann-rational experts."""
    P, phi = garnet(rng, 30, 5, 30), rng.normal(size=(30, 5, 5))
    expert = Expert(temperature=0.3)
    return Draft([P], phi, 0.8, simplex(rng, 3), linear(signs(rng, 3, 5)), 80, 25, expert, context_space=("simplex", 3))


@kind
def garnet_scales(rng: Random) -> Draft:
    """Features spread over four decades, every one of them wanted alike; a box of 3."""
    scales = 10.0 ** rng.permutation(np.linspace(-2.0, 2.0, 6))
    P, phi = garnet(rng, 40, 4, 4), rng.normal(size=(40, 6)) * scales
    truth = linear(signs(rng, 3, 6) / scales, signs(rng, 6) / scales)
    return Draft(
        [P], phi, 0.9, box(rng, 3, -1.0, 1.0), truth, 120, 20, lapses(rng, 0.0, 0.1), context_space=(-np.ones(3), np.ones(3))
    )


@kind
def garnet_duplicates(rng: Random) -> Draft:
    """Two features twice, one constant, one without any reward; simplex of 3."""
    own = rng.normal(size=(40, 4))
    phi = np.column_stack([own, own[:, :2], np.ones(40), rng.normal(size=40)])
    W = np.column_stack([signs(rng, 3, 4), np.zeros((3, 4))])
    return Draft(
        [garnet(rng, 40, 4, 4)], phi, 0.9, simplex(rng, 3), linear(W), 100, 20, lapses(rng, 0.0, 0.1), context_space=("simplex", 3)
    )


@kind
def garnet_indicators(rng: Random) -> Draft:
    """One feature for every state and every action; simplex of 2; many contexts."""
    P = garnet(rng, 15, 3, 3)
    W = signs(rng, 2, 18)
    return Draft([P], "indicators", 0.8, simplex(rng, 2), linear(W), 250, 30, lapses(rng, 0.0, 0.1), context_space=("simplex", 2))


@kind
def garnet_myopic(rng: Random) -> Draft:
    """Discount 0.5, features of actions; a box of 2 with an intercept; short paths."""
    P, phi = garnet(rng, 60, 6, 3), rng.normal(size=(60, 6, 4))
    truth = linear(signs(rng, 2, 4), signs(rng, 4))
    return Draft(
        [P], phi, 0.5, box(rng, 2, -1.0, 1.0), truth, 80, 10, lapses(rng, 0.05, 0.2), context_space=(-np.ones(2), np.ones(2))
    )


@kind
def garnet_many_contexts(rng: Random) -> Draft:
    """Simplex of 8, 300 contexts with five steps each."""
    P, phi = garnet(rng, 40, 4, 3), rng.normal(size=(40, 5))
    return Draft(
        [P], phi, 0.85, simplex(rng, 8), linear(signs(rng, 8, 5)), 300, 5, lapses(rng, 0.0, 0.1), context_space=("simplex", 8)
    )


@kind
def garnet_few_contexts(rng: Random) -> Draft:
    """Ten contexts on a simplex of 3, with a path of sixty steps each."""
    P, phi = garnet(rng, 30, 3, 3), rng.normal(size=(30, 4))
    return Draft(
        [P], phi, 0.9, simplex(rng, 3), linear(signs(rng, 3, 4)), 10, 60, lapses(rng, 0.0, 0.1), context_space=("simplex", 3)
    )


@kind
def garnet_lapses(rng: Random) -> Draft:
    """A fifth of all actions at random; ten actions; simplex of 3."""
    P, phi = garnet(rng, 40, 10, 4), rng.normal(size=(40, 5))
    return Draft(
        [P], phi, 0.9, simplex(rng, 3), linear(signs(rng, 3, 5)), 120, 30, Expert(lapses=0.2), context_space=("simplex", 3)
    )


@kind
def garnet_one_context(rng: Random) -> Draft:
    """The same context for everybody: ordinary inverse reinforcement learning."""
    P, phi = garnet(rng, 50, 5, 3), rng.normal(size=(50, 6))
    return Draft([P], phi, 0.95, lambda n: np.ones((n, 1)), linear(signs(rng, 1, 6)), 30, 20, lapses(rng, 0.05, 0.15))


@kind
def garnet_groups(rng: Random) -> Draft:
    """Six groups, one-hot; ten people of each."""
    P, phi = garnet(rng, 40, 4, 4), rng.normal(size=(40, 5))
    return Draft([P], phi, 0.9, groups(rng, 6), linear(signs(rng, 6, 5)), 60, 25, lapses(rng, 0.0, 0.1))


@kind
def garnet_irrelevant(rng: Random) -> Draft:
    """Two columns of the context matter, four do not; soft-optimal experts."""
    P, phi = garnet(rng, 40, 4, 4), rng.normal(size=(40, 5))
    W = np.vstack([signs(rng, 2, 5), np.zeros((4, 5))])
    expert = Expert(temperature=0.25, foresight=True)
    return Draft([P], phi, 0.9, box(rng, 6, -1.0, 1.0), linear(W, signs(rng, 5)), 120, 20, expert)


@kind
def garnet_correlated(rng: Random) -> Draft:
    """Three columns of the context say nearly the same."""
    P, phi = garnet(rng, 40, 4, 4), rng.normal(size=(40, 5))

    def contexts(n: int) -> Floats:
        common = rng.normal(size=(n, 1))
        return np.hstack([common + 0.1 * rng.normal(size=(n, 3)), rng.normal(size=(n, 1))])

    truth = linear(signs(rng, 4, 5), signs(rng, 5))
    return Draft([P], phi, 0.9, contexts, truth, 100, 20, lapses(rng, 0.0, 0.1))


@kind
def garnet_mixture(rng: Random) -> Draft:
    """Dynamics that the context mixes from three kernels."""
    kernels = [garnet(rng, 40, 4, 3) for _ in range(3)]
    W = signs(rng, 3, 5)
    return Draft(
        kernels, rng.normal(size=(40, 5)), 0.9, simplex(rng, 3), linear(W), 100, 20, lapses(rng, 0.0, 0.1), context_space="simplex"
    )


@kind
def garnet_clusters(rng: Random) -> Draft:
    """Dynamics of their own for three clusters of contexts in a box of 2."""
    kernels = [garnet(rng, 30, 4, 4) for _ in range(3)]
    centroids = np.array([[-0.7, -0.5], [0.7, -0.5], [0.0, 0.7]])
    truth = linear(signs(rng, 2, 4), signs(rng, 4))
    return Draft(
        kernels, rng.normal(size=(30, 4)), 0.9, box(rng, 2, -1.0, 1.0), truth, 90, 25, lapses(rng, 0.0, 0.1), centroids=centroids,
        context_space=(-np.ones(2), np.ones(2)),
    )  # fmt: skip


# Grids.


@kind
def grid_terrain(rng: Random) -> Draft:
    """A grid with slips and five kinds of ground; how much each is disliked depends on a box of 3."""
    size = 9
    ground = rng.choice(5, size * size, p=[0.4, 0.2, 0.15, 0.15, 0.1])
    phi = np.zeros((size * size, 6))
    phi[np.arange(size * size), ground] = 1.0
    goal = size * size - 1
    phi[goal] = [0, 0, 0, 0, 0, 1]
    P = grid_moves(size, size, 0.1)
    base, effects = np.array([-0.2, -0.8, -0.8, -0.8, -1.0, 1.0]), np.zeros((3, 6))
    effects[:, 1:5] = rng.uniform(-1.0, 1.0, (3, 4))
    return Draft([P], phi, 0.95, box(rng, 3), linear(effects, base), 80, 30, lapses(rng, 0.0, 0.1))


@kind
def grid_corners(rng: Random) -> Draft:
    """A prize in every corner, worth what a context on the simplex of 4 says, and a price of steps."""
    size = 8
    P, phi = grid_moves(size, size, 0.2), np.zeros((size * size, 5))
    for i, corner in enumerate([0, size - 1, size * (size - 1), size * size - 1]):
        phi[corner, i] = 1.0
    phi[:, 4] = rng.random(size * size)
    W = np.column_stack([np.eye(4) + 0.1 * rng.random((4, 4)), np.full(4, -0.2)])
    return Draft([P], phi, 0.9, simplex(rng, 4), linear(W), 100, 20, lapses(rng, 0.05, 0.2), context_space=("simplex", 4))


@kind
def grid_patrol(rng: Random) -> Draft:
    """Discount 0.995, wandering sights on a grid; long paths of Boltzmann-rational experts."""
    size = 7
    P, centres = grid_moves(size, size, 0.15), rng.uniform(0, size - 1, (4, 2))
    where = np.array([[r, c] for r in range(size) for c in range(size)])
    phi = np.exp(-((where[:, None] - centres[None]) ** 2).sum(axis=2) / 3.0)
    truth = linear(2.0 * np.eye(4) + rng.uniform(-0.5, 0.5, (4, 4)))
    return Draft([P], phi, 0.995, simplex(rng, 4), truth, 60, 60, Expert(temperature=0.3), context_space=("simplex", 4))


@kind
def grid_wind(rng: Random) -> Draft:
    """Four winds that the context mixes; it also says which of four places is wanted."""
    size = 6
    still = grid_moves(size, size, 0.0)
    kernels = []
    for wind in range(4):
        blown = still[:, wind]  # [S, S]: one cell with the wind
        kernels.append(0.6 * still + 0.4 * still @ blown)
    phi = np.zeros((size * size, 5))
    places = rng.choice(size * size, 4, replace=False)
    phi[places, np.arange(4)] = 1.0
    phi[:, 4] = rng.random(size * size)
    W = np.column_stack([np.eye(4)[rng.permutation(4)], np.full(4, -0.3)])
    return Draft(kernels, phi, 0.9, simplex(rng, 4), linear(W), 100, 25, lapses(rng, 0.0, 0.1), context_space="simplex")


@kind
def maze(rng: Random) -> Draft:
    """A maze without slips, where walls take actions away; three groups look for different exits."""
    size = 7
    n = size * size
    open_ = np.zeros((n, 4), dtype=bool)
    seen, stack = {0}, [0]
    while stack:
        cell = stack[-1]
        row, column = divmod(cell, size)
        ways = []
        for a, (dr, dc) in enumerate(MOVES):
            r, c = row + dr, column + dc
            if 0 <= r < size and 0 <= c < size and r * size + c not in seen:
                ways.append((a, r * size + c))
        if not ways:
            stack.pop()
            continue
        a, other = ways[int(rng.integers(len(ways)))]
        open_[cell, a] = open_[other, (a + 2) % 4] = True
        seen.add(other)
        stack.append(other)
    for _ in range(12):  # some walls fall, so that there is more than one way
        cell, a = int(rng.integers(n)), int(rng.integers(4))
        r, c = np.array(divmod(cell, size)) + MOVES[a]
        if 0 <= r < size and 0 <= c < size:
            open_[cell, a] = open_[r * size + c, (a + 2) % 4] = True
    moved = grid_moves(size, size, 0.0)
    exits = np.array([size - 1, n - 1, size * (size - 1)])
    open_[exits] = [True, False, False, False]
    moved[exits] = 0.0
    moved[exits, :, exits] = 1.0
    phi = np.zeros((n, 5))
    phi[exits, np.arange(3)] = 0.03
    mud = rng.random(n) < 0.25
    mud[exits] = False
    phi[mud, 3] = 1.0
    phi[:, 4] = 1.0
    phi[exits, 4] = 0.0
    W = np.column_stack([10.0 + 20.0 * np.eye(3), rng.uniform(-1.5, 0.0, 3), np.full(3, -0.3)])
    return Draft([moved], phi, 0.97, groups(rng, 3), linear(W), 45, 40, lapses(rng, 0.0, 0.1), n_paths=2, admissible=open_)


@kind
def grid_threshold(rng: Random) -> Draft:
    """The truth is no linear function of the context: beyond a threshold of the first number, another place is wanted."""
    size = 6
    P, phi = grid_moves(size, size, 0.1), np.zeros((size * size, 4))
    places = rng.choice([0, size - 1, size * (size - 1), size * size - 1], 2, replace=False)
    phi[places, [0, 1]] = 1.0
    phi[:, 2] = rng.random(size * size)
    phi[:, 3] = rng.random(size * size)
    tilt = rng.uniform(-0.3, 0.0, 2)

    def weights(contexts: Floats) -> Floats:
        late = contexts[:, 0] > 0.6
        rest = np.column_stack([np.full(len(contexts), tilt[0]), tilt[1] * contexts[:, 1]])
        return np.column_stack([np.where(late, 0.2, 1.0), np.where(late, 1.0, 0.2), rest])

    return Draft(
        [P], phi, 0.9, box(rng, 2), Truth(weights), 200, 20, lapses(rng, 0.0, 0.1), context_space=(np.zeros(2), np.ones(2))
    )


@kind
def river(rng: Random) -> Draft:
    """Across a river whose current takes boats to a fall; three landing places, three columns of context."""
    rows, columns = 6, 9
    n = rows * columns
    P, phi = np.zeros((n, 4, n)), np.zeros((n, 4, 5))
    for r in range(rows):
        current = 0.7 * np.sin(np.pi * r / (rows - 1))
        for c in range(columns):
            s = r * columns + c
            fall = c == columns - 1 and 0 < r < rows - 1
            for a, (dr, dc) in enumerate(MOVES):
                if fall:
                    P[s, a, 0] = 1.0  # carried back to where boats start
                    phi[s, a, 3] = 1.0
                    continue
                r2, c2 = np.clip([r + dr, c + dc], 0, [rows - 1, columns - 1])
                P[s, a, r2 * columns + c2] += 1.0 - current
                P[s, a, r2 * columns + min(c2 + 1, columns - 1)] += current
                phi[s, a, 4] = float(a == 3)  # paddling upstream
    for i, c in enumerate(rng.choice(columns - 1, 3, replace=False)):
        phi[(rows - 1) * columns + c, :, i] = 1.0
    initial = np.zeros(n)
    initial[:columns] = 1.0 / columns
    W = np.column_stack([np.eye(3) + 0.1, np.full(3, -3.0), rng.uniform(-0.3, 0.0, 3)])
    return Draft(
        [P], phi, 0.93, simplex(rng, 3), linear(W), 80, 30, lapses(rng, 0.0, 0.1), initial=initial, context_space=("simplex", 3)
    )


@kind
def chain(rng: Random) -> Draft:
    """A chain with a prize at either end, a swamp between, and effort; simplex of 2."""
    n = 20
    P, phi = np.zeros((n, 3, n)), np.zeros((n, 3, 4))
    for s in range(n):
        for a, to in enumerate([max(s - 1, 0), s, min(s + 1, n - 1)]):
            P[s, a, to] += 0.85
            P[s, a, max(s - 1, 0)] += 0.1
            P[s, a, s] += 0.05
    phi[0, :, 0] = phi[-1, :, 1] = 1.0
    swamp = int(rng.integers(6, 14))
    phi[swamp - 1 : swamp + 2, :, 2] = 1.0
    phi[:, [0, 2], 3] = 1.0
    W = np.array([[1.0, 0.1, -0.5, -0.1], [0.1, 1.0, -1.0, -0.05]])
    return Draft([P], phi, 0.95, simplex(rng, 2), linear(W), 60, 20, lapses(rng, 0.0, 0.15), context_space=("simplex", 2))


# Operations.


@kind
def inventory(rng: Random) -> Draft:
    """Orders of a shop; contexts in euros and cents, and a price of goods that is the same everywhere."""
    room, orders, mean = 18, 6, float(rng.uniform(2.0, 3.5))
    chances = np.array([mean**d * np.exp(-mean) for d in range(13)]) / np.cumprod([1.0, *range(1, 13)])
    chances /= chances.sum()
    n = room + 1
    P, phi, can = np.zeros((n, orders, n)), np.zeros((n, orders, 5)), np.zeros((n, orders), dtype=bool)
    for s in range(n):
        for a in range(orders):
            stock = min(s + a, room)
            can[s, a] = s + a <= room
            for d, chance in enumerate(chances):
                P[s, a, max(stock - d, 0)] += chance
                phi[s, a, 0] += chance * min(d, stock)
                phi[s, a, 4] += chance * max(d - stock, 0)
            phi[s, a, 1:4] = [a, a > 0, stock]

    def contexts(count: int) -> Floats:
        return np.column_stack(
            [rng.uniform(5, 15, count).round(2), rng.uniform(10, 90, count).round(), rng.uniform(1, 25, count).round(2)]
        )

    W = np.zeros((3, 5))
    W[0, 0], W[0, 4], W[1, 3], W[2, 2] = 1.0, -0.3, -0.01, -1.0
    truth = linear(W, [0.0, -3.0, 0.0, 0.0, 0.0])
    names = ["sold", "ordered", "delivery", "stock", "missed"]
    return Draft([P], phi, 0.95, contexts, truth, 80, 30, lapses(rng, 0.0, 0.1), admissible=can, feature_names=names)


@kind
def queue(rng: Random) -> Draft:
    """Admission to a queue: two classes of customers, slow or fast service; a box of 3."""
    room = 12
    n = (room + 1) * 3
    P, phi, can = np.zeros((n, 4, n)), np.zeros((n, 4, 5)), np.ones((n, 4), dtype=bool)
    arrivals = np.array([0.3, 0.4, 0.3])
    for length in range(room + 1):
        for arriving in range(3):
            s = length * 3 + arriving
            for a in range(4):
                accept, fast = a % 2, a // 2
                if accept and (arriving == 0 or length == room):
                    can[s, a] = False
                inside = min(length + accept, room)
                served = (0.75 if fast else 0.4) if inside else 0.0
                for following, chance in ((max(inside - 1, 0), served), (inside, 1.0 - served)):
                    P[s, a, following * 3 : following * 3 + 3] += chance * arrivals
                phi[s, a] = [accept and arriving == 1, accept and arriving == 2, length / room, (length / room) ** 2, fast]
    W = np.zeros((3, 5))
    W[0, 0], W[1, 1], W[2, 2], W[2, 4] = 2.0, 3.0, -2.0, -0.3
    truth = linear(W, [0.5, 0.5, -0.5, -1.0, -0.3])
    return Draft([P], phi, 0.95, box(rng, 3), truth, 80, 40, lapses(rng, 0.0, 0.1), admissible=can)


@kind
def machine(rng: Random) -> Draft:
    """When to replace or overhaul a machine: discount 0.99, soft-optimal owners; a box of 2."""
    n = 31
    P, phi = np.zeros((n, 3, n)), np.zeros((n, 3, 3))
    steps = rng.dirichlet([4.0, 6.0, 3.0])
    for s in range(n):
        for a, base in enumerate([s, max(s - 10, 0), 0]):
            for step, chance in enumerate(steps):
                P[s, a, min(base + step, n - 1)] += chance
        phi[s, 0, 0] = s
        phi[s, 1] = [max(s - 10, 0), 1.0, 0.0]
        phi[s, 2, 2] = 1.0
    truth = linear([[-0.3, 0.0, 0.0], [0.0, -1.0, -6.0]], [-0.01, -0.5, -1.5])
    expert = Expert(temperature=0.2, foresight=True)
    return Draft([P], phi, 0.99, box(rng, 2), truth, 80, 60, expert)


@kind
def shortest_path(rng: Random) -> Draft:
    """Roads without chance to one goal: distance, tolls, hills and views, stored sparsely; a box of 3."""
    n, ways = 40, 5
    P, can = np.zeros((n, ways, n)), np.zeros((n, ways), dtype=bool)
    rows = np.zeros((n, ways, 4))
    for s in range(n - 1):
        there = [int(rng.integers(s + 1, min(s + 6, n)))]
        there += [int(t) for t in rng.choice(n, int(rng.integers(1, ways)), replace=False) if t != s and t not in there]
        for a, t in enumerate(there[:ways]):
            P[s, a, t], can[s, a] = 1.0, True
            rows[s, a] = [
                rng.uniform(0.5, 1.0) + 0.05 * abs(t - s),
                (rng.random() < 0.3) * 1.0,
                (rng.random() < 0.3) * 1.0,
                (rng.random() < 0.2) * 1.0,
            ]
    can[n - 1, 0] = True
    P[n - 1, 0, n - 1] = 1.0
    flat = rows.reshape(n * ways, 4)
    owner, column = np.nonzero(flat)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n * ways))])
    features = (4, indptr, column, flat[owner, column])
    truth = linear([[0.0, -3.0, 0.0, 0.0], [0.0, 0.0, -3.0, 0.0], [0.0, 0.0, 0.0, 0.4]], [-1.0, -0.1, -0.1, 0.0])
    return Draft([P], features, 0.99, box(rng, 3), truth, 80, 40, lapses(rng, 0.0, 0.1), admissible=can)


@kind
def staged_game(rng: Random) -> Draft:
    """Eight rounds that never come back, then the end; discount 0.995; simplex of 4."""
    stages, width, n_actions = 8, 6, 4
    n = stages * width + 1
    P, phi = np.zeros((n, n_actions, n)), np.zeros((n, 5))
    phi[:-1] = rng.normal(size=(n - 1, 5))
    for stage in range(stages):
        for s in range(stage * width, (stage + 1) * width):
            for a in range(n_actions):
                if stage == stages - 1:
                    P[s, a, n - 1] = 1.0
                else:
                    P[s, a, (stage + 1) * width + rng.choice(width, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
    P[-1, :, -1] = 1.0
    initial = np.zeros(n)
    initial[:width] = 1.0 / width
    return Draft(
        [P], phi, 0.995, simplex(rng, 4), linear(signs(rng, 4, 5)), 120, 20, lapses(rng, 0.0, 0.1), initial=initial,
        context_space=("simplex", 4),
    )  # fmt: skip


@kind
def elevator(rng: Random) -> Draft:
    """A lift between four floors with people waiting; whose time counts is a context on the simplex of 4."""
    floors = 4
    n = floors * 2**floors
    arrivals = rng.uniform(0.05, 0.2, floors)
    P, phi = np.zeros((n, 3, n)), np.zeros((n, 3, floors + 1))
    calls = np.array([[(w >> f) & 1 for f in range(floors)] for w in range(2**floors)])
    for floor in range(floors):
        for w in range(2**floors):
            s = floor * 2**floors + w
            for a in range(3):  # up, down, open
                to = min(floor + 1, floors - 1) if a == 0 else max(floor - 1, 0) if a == 1 else floor
                left = calls[w].copy()
                if a == 2:
                    left[floor] = 0
                chances = np.prod(
                    np.where(calls == 1, np.where(left == 1, 1.0, arrivals), np.where(left == 1, 0.0, 1.0 - arrivals)), axis=1
                )
                P[s, a, to * 2**floors : (to + 1) * 2**floors] = chances
                phi[s, a, :floors] = calls[w]
                phi[s, a, floors] = float(a != 2)
    W = np.column_stack([-2.0 * np.eye(floors) - 0.1, np.full(floors, -0.1)])
    return Draft([P], phi, 0.9, simplex(rng, floors), linear(W), 60, 40, lapses(rng, 0.0, 0.1), context_space=("simplex", floors))


@kind
def battery(rng: Random) -> Draft:
    """Buy, wait or sell electricity; of four columns of the context two mean nothing."""
    levels, prices = 9, 5
    n = levels * prices
    P, phi, can = np.zeros((n, 3, n)), np.zeros((n, 3, 4)), np.ones((n, 3), dtype=bool)
    drift = np.zeros((prices, prices))
    for p in range(prices):
        for q in range(prices):
            drift[p, q] = np.exp(-abs(q - (0.7 * p + 0.6)) * 1.2)
    drift /= drift.sum(axis=1, keepdims=True)
    for level in range(levels):
        for p in range(prices):
            s = level * prices + p
            for a, change in enumerate([1, 0, -1]):
                to = int(np.clip(level + change, 0, levels - 1))
                can[s, a] = 0 <= level + change < levels
                P[s, a, to * prices : (to + 1) * prices] = drift[p]
                phi[s, a] = [-change * (p + 1.0), float(change != 0), float(level < 3), level / (levels - 1.0)]
    W = np.array([[0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -2.5, 0.0], [0.0] * 4, [0.0] * 4])
    truth = linear(W, [1.0, -0.1, -0.1, -0.3])
    return Draft([P], phi, 0.9, box(rng, 4), truth, 90, 30, lapses(rng, 0.0, 0.15), admissible=can)


@kind
def dam(rng: Random) -> Draft:
    """How much water to let out, over four seasons; the context has correlated columns in different units."""
    levels = 12
    n = levels * 4
    P, phi, can = np.zeros((n, 4, n)), np.zeros((n, 4, 4)), np.zeros((n, 4), dtype=bool)
    inflow = np.array([[0.2, 0.4, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4], [0.7, 0.2, 0.1, 0.0], [0.5, 0.3, 0.1, 0.1]])
    for level in range(levels):
        for season in range(4):
            s = level * 4 + season
            for a in range(4):
                can[s, a] = a <= level
                left = max(level - a, 0)
                for water, chance in enumerate(inflow[season]):
                    to = min(left + water, levels - 1)
                    P[s, a, to * 4 + (season + 1) % 4] += chance
                    phi[s, a, 1] += chance * max(left + water - levels + 1, 0)
                phi[s, a, 0] = min(a, 2) * (level + 2.0)  # megawatts
                phi[s, a, 2] = a if season == 2 else 0.0  # water for the fields, in summer
                phi[s, a, 3] = float(left < 3)

    def contexts(count: int) -> Floats:
        dry = rng.normal(size=count)
        rain = 800.0 - 150.0 * dry + 30.0 * rng.normal(size=count)
        fields = 5000.0 + 1500.0 * dry + 700.0 * rng.normal(size=count)
        return np.column_stack([rain.round(), fields.round(), rng.uniform(20.0, 120.0, count).round(1)])

    effects = np.array([[0.0, -0.8, 0.0, 0.3], [0.0, 0.0, 1.2, 0.0], [0.12, 0.0, 0.0, 0.0]])
    truth = affine(effects, [0.25, -4.0, 2.0, -1.5], [800.0, 5000.0, 70.0], [153.0, 1655.0, 29.0])
    return Draft([P], phi, 0.97, contexts, truth, 100, 40, lapses(rng, 0.0, 0.1), admissible=can)


@kind
def fishery(rng: Random) -> Draft:
    """How much to catch from a stock that grows back; prices in euros per tonne, fuel in cents, and two flags."""
    n = 21
    P, phi = np.zeros((n, 5, n)), np.zeros((n, 5, 4))
    for s in range(n):
        for a in range(5):
            caught = min(2 * a, s)
            left = s - caught
            mean = left + 0.6 * left * (1.0 - left / (n - 1.0)) + 0.2
            for noise, chance in ((-1, 0.25), (0, 0.5), (1, 0.25)):
                level = float(np.clip(mean + noise, 0, n - 1))
                low = int(level)
                P[s, a, low] += chance * (1.0 - level + low)
                P[s, a, min(low + 1, n - 1)] += chance * (level - low)
            phi[s, a] = [caught, a * 1.0, float(left < 5), left / (n - 1.0)]

    def contexts(count: int) -> Floats:
        flags = (rng.random((count, 2)) < [0.5, 0.3]).astype(np.float64)
        return np.column_stack([rng.uniform(1500, 4500, count).round(), rng.uniform(40, 110, count).round(1), flags])

    effects = np.array([[0.5, 0.0, 0.0, 0.0], [0.0, -0.5, 0.0, 0.0], [0.0, 0.0, -1.5, 0.0], [0.0, 0.0, 0.0, 1.5]])
    truth = affine(effects, [1.2, -0.9, -2.0, 0.5], [3000.0, 75.0, 0.5, 0.3], [870.0, 20.0, 0.5, 0.46])
    return Draft([P], phi, 0.95, contexts, truth, 90, 25, lapses(rng, 0.0, 0.15))


@kind
def courier(rng: Random) -> Draft:
    """Parcels to be fetched in three corners and brought to the fourth; tolls and hills; a box of 3."""
    size = 4
    corners, home = [size - 1, size * (size - 1), size * size - 1], 0
    n = size * size * 4  # where the parcel is: a corner, or on board
    moves = grid_moves(size, size, 0.05)
    P, phi = np.zeros((n, 5, n)), np.zeros((n, 5, 5))
    toll, hill = rng.random(size * size) < 0.3, rng.random(size * size) < 0.3
    toll[[home, *corners]] = hill[[home, *corners]] = False
    for cell in range(size * size):
        for parcel in range(4):
            s = cell * 4 + parcel
            for a in range(5):
                if a < 4:
                    P[s, a, parcel::4] = moves[cell, a]
                    phi[s, a, 1:3] = [toll[cell], hill[cell]]
                elif parcel < 3 and cell == corners[parcel]:
                    P[s, a, cell * 4 + 3] = 1.0
                elif parcel == 3 and cell == home:
                    P[s, a, cell * 4 : cell * 4 + 3] = 1.0 / 3.0
                    phi[s, a, 0] = 1.0
                else:
                    P[s, a, s] = 1.0
                    phi[s, a, 3] = 1.0
                phi[s, a, 4] = 1.0
    truth = linear([[0, -2.0, 0, 0, 0], [0, 0, -2.0, 0, 0], [3.0, 0, 0, 0, 0]], [6.0, -0.1, -0.1, -1.0, -0.1])
    return Draft([P], phi, 0.95, box(rng, 3), truth, 60, 50, lapses(rng, 0.0, 0.1))


# People.


@kind
def epidemic(rng: Random) -> Draft:
    """Ten people who infect one another; nothing, masks, closing, vaccines; the context has correlated columns."""
    people = 9
    states = [(s, i) for s in range(people + 1) for i in range(people + 1 - s)]
    number = {state: j for j, state in enumerate(states)}
    n = len(states)

    def binomial(count: int, p: float) -> Floats:
        found = np.array([1.0])
        for _ in range(count):
            found = np.convolve(found, [1.0 - p, p])
        return found

    spread = float(rng.uniform(0.5, 0.8))
    P, phi = np.zeros((n, 4, n)), np.zeros((n, 4, 6))
    for (s, i), j in number.items():
        for a, (contact, vaccines) in enumerate([(1.0, 0), (0.6, 0), (0.25, 0), (1.0, 2)]):
            healthy = max(s - vaccines, 0)
            immune = people - healthy - i
            risk = 1.0 - (1.0 - contact * spread / people) ** i * 0.98
            for new, p in enumerate(binomial(healthy, risk)):
                for well, q in enumerate(binomial(i, 0.35)):
                    for lost, r in enumerate(binomial(immune, 0.08)):
                        P[j, a, number[healthy - new + lost, i + new - well]] += p * q * r
            phi[j, a] = [i / people, float(i >= 4), a == 1, a == 2, a == 3, 1.0]

    def contexts(count: int) -> Floats:
        wealth = rng.normal(size=count)
        return np.column_stack([wealth, 0.8 * wealth + 0.4 * rng.normal(size=count), rng.normal(size=count)])

    effects = np.array([[0, -0.3, 0, 0.25, 0.15, 0], [-0.5, 0, 0, 0, 0, 0], [0, 0, 0.1, 0, 0.15, 0]], dtype=np.float64)
    truth = linear(effects, [-2.5, -1.2, -0.12, -0.6, -0.45, 0.0])
    return Draft([P], phi, 0.95, contexts, truth, 100, 30, lapses(rng, 0.0, 0.1))


def ward(rng: Random, n_levels: int) -> tuple[Floats, Floats]:
    """Severity, and harm done by treatment; then death and discharge, which nobody leaves. Four doses."""
    harms = 3
    n = n_levels * harms + 2
    dead, home = n - 2, n - 1
    P, phi = np.zeros((n, 4, n)), np.zeros((n, 4, 6))
    help_, toxic = rng.uniform(0.12, 0.18), rng.uniform(0.08, 0.15)
    for severity in range(n_levels):
        for harm in range(harms):
            s = severity * harms + harm
            for a in range(4):
                dies = 0.15 * (severity / (n_levels - 1.0)) ** 3 + 0.03 * harm * severity / n_levels
                better, worse = 0.15 + help_ * a, 0.25 - 0.05 * a
                hurt = toxic * a if harm < harms - 1 else 0.0
                heals = 0.15 if a == 0 and harm else 0.0
                P[s, a, dead] += dies
                for move, p in ((-1, better), (0, 1.0 - better - worse), (1, worse)):
                    to = min(severity + move, n_levels - 1)
                    for shift, q in ((1, hurt), (-1, heals), (0, 1.0 - hurt - heals)):
                        P[s, a, home if to < 0 else to * harms + harm + (shift if q else 0)] += (1.0 - dies) * p * q
                phi[s, a] = [severity / (n_levels - 1.0), harm / (harms - 1.0), a / 3.0, a == 3, 0.0, 0.0]
    P[dead, :, dead] = P[home, :, home] = 1.0
    phi[dead, :, 4] = phi[home, :, 5] = 1.0
    return P, phi


@kind
def clinic(rng: Random) -> Draft:
    """Four doses against an illness, until death or discharge; age, weight and two flags in raw units."""
    discount = 0.95
    P, phi = ward(rng, 9)
    phi[:, :, 4:] *= 1.0 - discount
    effects = np.array(
        [
            [0.0, -0.5, -0.35, 0.0, 2.0, 0.0],
            [0.0, 0.0, 0.25, 0.0, 0.0, 0.0],
            [-0.3, 0.0, 0.0, -0.3, 0.0, 0.0],
            [0.0, -0.6, 0.0, 0.0, 0.0, 1.0],
        ]
    )
    truth = affine(effects, [-1.0, -1.0, -0.7, -0.4, -8.0, 4.0], PATIENT_CENTRE, PATIENT_SCALE)
    initial = np.zeros(len(P))
    initial[9:27:3] = 1.0 / 6.0
    return Draft([P], phi, discount, patients(rng), truth, 150, 30, lapses(rng, 0.0, 0.1), initial=initial)


@kind
def clinic_simplex(rng: Random) -> Draft:
    """The same illness with contexts on a simplex of 5, a smaller discount and three visits each."""
    P, phi = ward(rng, 7)
    phi[:, :, 4:] *= 0.15
    base = np.array([-1.0, -1.0, -0.6, -0.3, -6.0, 3.0])
    truth = linear(base * rng.choice([0.1, 3.0], (5, 6)))
    initial = np.zeros(len(P))
    initial[6:21:3] = 0.2
    return Draft(
        [P],
        phi,
        0.85,
        simplex(rng, 5),
        truth,
        50,
        15,
        lapses(rng, 0.05, 0.2),
        n_paths=3,
        initial=initial,
        context_space=("simplex", 5),
    )


@kind
def ward_known(rng: Random) -> Draft:
    """A ward where some treatments are never given: the record cannot say what they do, and they do harm."""
    discount = 0.9
    P, phi = ward(rng, 8)
    n = len(P)
    known = np.ones((n, 4), dtype=bool)
    for s in range(n - 2):
        known[s, rng.permutation(4)[: int(rng.integers(0, 3))]] = False
    # What a record without such cases suggests is anything; in truth it ends badly.
    P[~known] = 0.0
    unknown = np.argwhere(~known)
    P[unknown[:, 0], unknown[:, 1], n - 2] = 1.0
    phi[:, :, 4:] *= 1.0 - discount
    effects = np.array(
        [
            [-0.3, 0.0, -0.4, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.3, 0.0, 0.0, 0.0],
            [0.0, -0.4, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        ]
    )
    truth = affine(effects, [-1.0, -1.0, -0.6, -0.3, -15.0, 4.0], PATIENT_CENTRE, PATIENT_SCALE)
    initial = np.zeros(n)
    initial[6:24:3] = 1.0 / 6.0
    return Draft([P], phi, discount, patients(rng), truth, 120, 25, lapses(rng, 0.0, 0.1), initial=initial, known=known)


@kind
def cohort(rng: Random) -> Draft:
    """A model as cohorts have them: 80 random clusters with two ends; raw units; Boltzmann-rational doctors."""
    n, n_actions = 82, 5
    P = np.zeros((n, n_actions, n))
    phi = np.zeros((n, n_actions, 6))
    level = np.sort(rng.uniform(0.0, 1.0, 80))
    for s in range(80):
        for a in range(n_actions):
            near = np.clip(s + rng.integers(-12, 13, 5) - 2 * (a - 2), 0, 79)
            np.add.at(P[s, a], near, 0.93 * rng.dirichlet(np.ones(5)))
            P[s, a, 80] += 0.07 * level[s] ** 2
            P[s, a, 81] += 0.07 * (1.0 - level[s] ** 2)
    P[80, :, 80] = P[81, :, 81] = 1.0
    phi[:80, :, 0] = level[:, None]
    phi[:80, :, 1:3] = rng.normal(size=(80, 1, 2))
    phi[:80, :, 3] = np.arange(n_actions) / 4.0
    phi[80, :, 4] = phi[81, :, 5] = 0.05
    effects = 0.4 * signs(rng, 4, 6) * [1.0, 0.5, 0.5, 0.5, 5.0, 5.0]
    truth = affine(effects, [-1.0, 0.5, -0.5, -0.4, -20.0, 10.0], PATIENT_CENTRE, PATIENT_SCALE)
    initial = np.append(np.full(80, 1.0 / 80.0), [0.0, 0.0])
    return Draft([P], phi, 0.95, patients(rng), truth, 200, 20, Expert(temperature=0.3), initial=initial)


# Where there is little to learn from.


@kind
def garnet_scarce(rng: Random) -> Draft:
    """Ten contexts for sixty weights: simplex of 6, ten features."""
    P, phi = garnet(rng, 60, 4, 4), rng.normal(size=(60, 10))
    W = 0.5 * signs(rng, 1, 10) + signs(rng, 6, 10)
    return Draft([P], phi, 0.9, simplex(rng, 6), linear(W), 10, 60, lapses(rng, 0.0, 0.05), context_space=("simplex", 6))


@kind
def garnet_uninformative(rng: Random) -> Draft:
    """Everybody wants the same, and five columns of context have nothing to do with it."""
    P, phi = garnet(rng, 40, 4, 4), rng.normal(size=(40, 6))
    truth = linear(np.zeros((5, 6)), signs(rng, 6))
    return Draft([P], phi, 0.9, box(rng, 5, -1.0, 1.0), truth, 30, 15, lapses(rng, 0.0, 0.15))


@kind
def grid_lapses(rng: Random) -> Draft:
    """Discount 0.99 and a fifth of all steps at random, on a grid with holes that end a path; a box of 2."""
    size = 7
    n = size * size
    P, phi = grid_moves(size, size, 0.1), np.zeros((n, 5))
    cells = rng.permutation(np.arange(1, n - 1))
    holes, slow, fast = cells[:4], cells[4:14], cells[14:24]
    ends = np.append(holes, n - 1)
    P[ends] = 0.0
    P[ends, :, ends] = 1.0
    phi[holes, 0], phi[n - 1, 1] = 0.01, 0.01
    phi[slow, 2] = phi[fast, 3] = 1.0
    phi[:, 4] = 1.0
    phi[ends, 4] = 0.0
    truth = linear([[0.0, 0.0, -2.0, 0.0, 0.0], [0.0, 0.0, 0.0, -2.0, 0.0]], [-30.0, 30.0, -0.1, -0.1, -0.3])
    initial = np.full(n, 1.0)
    initial[ends] = 0.0
    return Draft([P], phi, 0.99, box(rng, 2), truth, 80, 40, Expert(lapses=0.2), initial=initial / initial.sum())


@kind
def shop_groups(rng: Random) -> Draft:
    """The shop's orders again, with one-hot groups beside a column in euros, and features in tonnes, cents and shares."""
    own = inventory(rng)
    scales = np.array([0.001, 1.0, 100.0, 0.01, 1.0])

    def contexts(count: int) -> Floats:
        return np.column_stack([np.eye(4)[rng.integers(4, size=count)], rng.uniform(5, 15, count).round(2)])

    fees, storage = rng.uniform(1.0, 25.0, 4), rng.uniform(0.1, 0.9, 4)
    W = np.zeros((5, 5))
    W[4, 0], W[4, 4] = 1.0, -0.3
    W[:4, 1], W[:4, 2], W[:4, 3] = -3.0, -fees, -storage
    own.features, own.contexts, own.truth = own.features * scales, contexts, linear(W / scales)
    own.n_train, own.steps, own.n_paths = 40, 12, 2
    return own

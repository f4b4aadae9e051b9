"""The choice model against plain NumPy: experts as soft-optimal planners, by maximum likelihood.

In a context c the reward is r(s, a) = f(c)·φ(s, a), f(c) = c W, and an expert who plans softly has

    Q(s, a) = r(s, a) + γ Σ P(s' | s, a) V(s'),   V(s) = log Σ_a exp Q(s, a),   π(a | s) = exp(Q(s, a) − V(s)),

with sums over admissible actions. With lapses, an action is drawn from (1 − ε) π(a | s) + ε / |A(s)|. The objective is the mean of
−log π over all demonstrated actions. Everything is dense and written for reading: fixed points by Newton's method, the gradient by
one linear system per context, and both are themselves checked, by plain value iteration and by finite differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

import coirl

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A model with shared dynamics, and how often each action was taken in each state of each context."""

    transitions: Floats  # [S, A, S]
    features: Floats  # [S, A, k]
    admissible: npt.NDArray[np.bool_]  # [S, A]
    discount: float
    contexts: Floats  # [n, d], all different
    counts: Floats  # [n, S, A]

    def reward(self, mapping: Floats, context: Floats) -> Floats:
        """r ``[S, A]``, minus infinity where an action cannot be taken."""
        return np.where(self.admissible, self.features @ (context @ mapping), -np.inf)

    def soft_plan(self, mapping: Floats, context: Floats) -> tuple[Floats, Floats]:
        """V ``[S]`` and π ``[S, A]``: Newton's method on V = log Σ exp Q, which is soft policy iteration."""
        reward = self.reward(mapping, context)
        values = np.zeros(len(reward))
        for _ in range(200):
            q = reward + self.discount * self.transitions @ values
            backed = np.logaddexp.reduce(q, axis=1)
            policy = np.exp(q - backed[:, None])
            kernel = np.einsum("sa,sat->st", policy, self.transitions)
            step = np.linalg.solve(np.eye(len(values)) - self.discount * kernel, backed - values)
            values = values + step
            if np.abs(step).max() <= 1e-12 * (1.0 + np.abs(values).max()):
                break
        else:
            raise AssertionError("soft policy iteration did not converge")
        q = reward + self.discount * self.transitions @ values
        return values, np.exp(q - np.logaddexp.reduce(q, axis=1)[:, None])

    def lapsing(self, policy: Floats, lapses: float) -> Floats:
        """(1 − ε) π + ε / |A(s)|, zero where an action cannot be taken."""
        return (1.0 - lapses) * policy + lapses * self.admissible / self.admissible.sum(axis=1, keepdims=True)

    def objective(self, mapping: Floats, lapses: float = 0.0) -> float:
        """The mean of −log π over the demonstrated actions."""
        total = 0.0
        for context, counts in zip(self.contexts, self.counts):
            drawn = self.lapsing(self.soft_plan(mapping, context)[1], lapses)
            seen = counts > 0.0
            total -= float(counts[seen] @ np.log(drawn[seen]))
        return total / self.counts.sum()

    def gradient(self, mapping: Floats, lapses: float = 0.0) -> Floats:
        """By W ``[d, k]``, by the adjoint.

        Of the log-likelihood, ∂/∂Q(s, a) = g(s, a) = ñ(s, a) − π(a | s) Σ_b ñ(s, b), where ñ are the counts, each times the share
        (1 − ε) π / ((1 − ε) π + ε / |A|) of its probability that is no lapse. A reward counts where it is paid and in all states
        before: ∂/∂r = m with m(s, a) = g(s, a) + π(a | s) λ(s) and λ = γ Pᵀ m, the visits of the learner's own policy from a start
        that has both signs.
        """
        total = np.zeros_like(mapping)
        for context, counts in zip(self.contexts, self.counts):
            _, policy = self.soft_plan(mapping, context)
            drawn = self.lapsing(policy, lapses)
            meant = counts * (1.0 - lapses) * policy / np.where(drawn > 0.0, drawn, 1.0)
            start = meant - policy * meant.sum(axis=1, keepdims=True)
            kernel = np.einsum("sa,sat->st", policy, self.transitions)
            flows_in = self.discount * np.einsum("sa,sat->t", start, self.transitions)
            visits = np.linalg.solve(np.eye(len(kernel)) - self.discount * kernel.T, flows_in)
            by_reward = start + policy * visits[:, None]
            total -= np.outer(context, np.einsum("sa,sak->k", by_reward, self.features))
        return total / self.counts.sum()


def random_problem(
    seed: int, paths: int = 60, steps: int = 25, lapses: float = 0.0
) -> tuple[Problem, coirl.ContextualMDP, coirl.Demonstrations]:
    """Twelve states, three actions of which some cannot be taken, four features, and three contexts of a simplex with many paths each."""
    rng = np.random.default_rng(seed)
    n_states, n_actions, n_features, n_contexts = 12, 3, 4, 3
    transitions = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    features = rng.normal(size=(n_states, n_actions, n_features))
    admissible = rng.random((n_states, n_actions)) < 0.8
    admissible[np.arange(n_states), rng.integers(0, n_actions, n_states)] = True
    contexts = rng.dirichlet(np.ones(n_contexts), n_contexts)
    truth = rng.normal(size=(n_contexts, n_features))
    empty = np.zeros((n_contexts, n_states, n_actions))
    model = coirl.ContextualMDP(transitions, features, None, 0.9, admissible=admissible, context_space=("simplex", n_contexts))
    unseen = Problem(transitions, features, admissible, 0.9, contexts, empty)
    counts, trajectories = empty.copy(), []
    for i, context in enumerate(contexts):
        policy = unseen.lapsing(unseen.soft_plan(truth, context)[1], lapses)
        own = model.sample(policy / policy.sum(axis=1, keepdims=True), paths, steps=steps, seed=1000 * seed + i)
        trajectories.append(own)
        for states, actions in own:
            np.add.at(counts[i], (states[:-1], actions), 1.0)
    seen = Problem(transitions, features, admissible, 0.9, contexts, counts)
    return seen, model, coirl.Demonstrations(contexts, trajectories=trajectories)


def by_differences(problem: Problem, mapping: Floats, lapses: float) -> Floats:
    """The gradient by central differences."""
    found, step = np.zeros_like(mapping), 1e-5
    for at in np.ndindex(*mapping.shape):
        ahead, behind = mapping.copy(), mapping.copy()
        ahead[at] += step
        behind[at] -= step
        found[at] = (problem.objective(ahead, lapses) - problem.objective(behind, lapses)) / (2.0 * step)
    return found


def test_the_reference_plans_as_plain_value_iteration_does() -> None:
    problem, _, _ = random_problem(1, paths=1)
    mapping = np.random.default_rng(2).normal(size=(3, 4))
    for context in problem.contexts:
        reward, values = problem.reward(mapping, context), np.zeros(12)
        for _ in range(500):
            values = np.logaddexp.reduce(reward + 0.9 * problem.transitions @ values, axis=1)
        newton, policy = problem.soft_plan(mapping, context)
        np.testing.assert_allclose(newton, values, atol=1e-10)
        assert (policy[~problem.admissible] == 0.0).all()
        np.testing.assert_allclose(policy.sum(axis=1), 1.0)


@pytest.mark.parametrize("lapses", [0.0, 0.1])
def test_the_adjoint_of_the_reference_agrees_with_finite_differences(lapses: float) -> None:
    problem, _, _ = random_problem(3, paths=10, lapses=lapses)
    mapping = np.random.default_rng(4).normal(size=(3, 4))
    np.testing.assert_allclose(problem.gradient(mapping, lapses), by_differences(problem, mapping, lapses), atol=1e-8)


def fitted(model: coirl.ContextualMDP, demonstrations: coirl.Demonstrations, **settings: float) -> tuple[coirl.Choice, Floats]:
    """The learner and its W, by default without a penalty and without lapses."""
    learner = coirl.Choice(mapping="linear", tolerance=1e-6, **{"penalty": 0.0, "lapses": 0.0, **settings})
    mapping = learner.fit(model, demonstrations).mapping_
    assert mapping is not None and mapping.shape == (demonstrations.contexts.shape[1], model.n_features)
    return learner, mapping


@pytest.mark.parametrize("lapses", [0.0, 0.1])
@pytest.mark.parametrize("seed", [5, 6, 7])
def test_a_fit_without_a_penalty_is_a_minimum_of_the_objective(seed: int, lapses: float) -> None:
    problem, model, demonstrations = random_problem(seed, lapses=lapses)
    _, mapping = fitted(model, demonstrations, lapses=lapses)
    assert np.abs(problem.gradient(mapping, lapses)).max() < 1e-6
    best = problem.objective(mapping, lapses)
    rng = np.random.default_rng(seed)
    for length in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(10):
            away = rng.normal(size=mapping.shape)
            assert problem.objective(mapping + length * away / np.linalg.norm(away), lapses) >= best - 1e-9


def test_a_penalty_gives_up_likelihood() -> None:
    problem, model, demonstrations = random_problem(9)
    objectives = [problem.objective(fitted(model, demonstrations, penalty=penalty)[1]) for penalty in (0.0, 1.0, 100.0)]
    assert objectives == sorted(objectives)
    assert objectives[0] < objectives[2]


@pytest.mark.parametrize("lapses", [0.0, 0.1])
def test_probabilities_are_those_of_experts_who_choose_softly_and_lapse(lapses: float) -> None:
    problem, model, demonstrations = random_problem(8, paths=10, lapses=lapses)
    learner, mapping = fitted(model, demonstrations, penalty=1.0, lapses=lapses)
    states = list(range(12))
    found = learner.predict_proba(problem.contexts, [states] * 3).reshape(3, 12, 3)
    for context, own in zip(problem.contexts, found):
        np.testing.assert_allclose(own, problem.lapsing(problem.soft_plan(mapping, context)[1], lapses), atol=1e-6)


def test_standard_errors_are_those_of_the_outer_products_of_scores() -> None:
    problem, model, demonstrations = random_problem(11)
    learner = coirl.Choice(mapping="linear", penalty=0.0, lapses=0.0, tolerance=1e-6, standard_errors="outer_products")
    learner.fit(model, demonstrations)
    mapping = learner.mapping_
    assert mapping is not None and learner.standard_errors_ is not None
    outer = np.zeros((mapping.size, mapping.size))
    for at in np.argwhere(problem.counts > 0.0):
        alone = np.zeros_like(problem.counts)
        alone[tuple(at)] = 1.0
        one = Problem(problem.transitions, problem.features, problem.admissible, problem.discount, problem.contexts, alone)
        score = one.gradient(mapping).ravel()
        outer += problem.counts[tuple(at)] * np.outer(score, score)
    expected = np.sqrt(np.diag(np.linalg.inv(outer))).reshape(mapping.shape)
    np.testing.assert_allclose(learner.standard_errors_, expected, rtol=1e-5)


def test_standard_errors_agree_where_the_model_is_true() -> None:
    _, model, demonstrations = random_problem(12, paths=300)
    kinds = ("information", "outer_products", "sandwich")
    found = [
        coirl.Choice(mapping="linear", penalty=0.0, lapses=0.0, standard_errors=kind).fit(model, demonstrations) for kind in kinds
    ]
    errors = [learner.standard_errors_ for learner in found]
    assert errors[0] is not None and errors[1] is not None
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.1)
    # Three demonstrations cannot tell how much twelve weights vary between people, but they are numbers.
    assert errors[2] is not None and np.isfinite(errors[2]).all()


def test_weights_that_data_do_not_determine_have_no_standard_error() -> None:
    problem, model, demonstrations = random_problem(13)
    twice = np.concatenate([problem.features, problem.features[..., :1]], axis=-1)
    copied = coirl.ContextualMDP(problem.transitions, twice, None, 0.9, admissible=problem.admissible, context_space=("simplex", 3))
    learner = coirl.Choice(mapping="linear", penalty=0.0, lapses=0.0, standard_errors="information").fit(copied, demonstrations)
    assert learner.standard_errors_ is not None
    assert np.isnan(learner.standard_errors_[:, [0, 4]]).all()
    assert np.isfinite(learner.standard_errors_[:, 1:4]).all()
    assert coirl.Choice().fit(model, demonstrations).standard_errors_ is None

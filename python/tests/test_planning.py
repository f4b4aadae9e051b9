"""Plans and evaluations against other packages, direct solves and brute force, however a model is given."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from quantecon.markov import DiscreteDP

import coirl
from coirl import ContextualMDP
from coirl.errors import ArrayError, ContextError, FileError, ModelError, SettingError

Floats = npt.NDArray[np.float64]
Any_ = npt.NDArray[Any]


def random_kernel(rng: np.random.Generator, n_states: int, n_actions: int, n_successors: int) -> Floats:
    """P(s' | s, a) ``[S, A, S]`` with so many successors at most."""
    dense = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            np.add.at(dense[s, a], rng.integers(0, n_states, n_successors), rng.dirichlet(np.ones(n_successors)))
    return dense


def random_mask(rng: np.random.Generator, n_states: int, n_actions: int) -> npt.NDArray[np.bool_]:
    """Admissible actions; at least one in every state."""
    mask = rng.random((n_states, n_actions)) < 0.7
    mask[np.arange(n_states), rng.integers(0, n_actions, n_states)] = True
    return mask


def chain_of(kernel: Floats, policy: Any_) -> Floats:
    """P_π ``[S, S]`` of actions or probabilities."""
    if policy.ndim == 1:
        return kernel[np.arange(len(kernel)), policy]
    mixed: Floats = np.einsum("sa,sat->st", policy, kernel)
    return mixed


def gained_by(reward: Floats, policy: Any_) -> Floats:
    """r_π ``[S]`` of a reward ``[S, A]``."""
    return reward[np.arange(len(reward)), policy] if policy.ndim == 1 else (policy * reward).sum(axis=1)


def values_of(kernel: Floats, reward: Floats, policy: Any_, discount: float) -> Floats:
    """V of a policy by a direct solve."""
    return np.linalg.solve(np.eye(len(kernel)) - discount * chain_of(kernel, policy), gained_by(reward, policy))


def optimum_of(kernel: Floats, reward: Floats, discount: float) -> Floats:
    """V* by QuantEcon's policy iteration."""
    values: Floats = DiscreteDP(reward, kernel, discount).policy_iteration().v
    return values


def test_plan_agrees_with_quantecon_on_200_random_problems() -> None:
    rng = np.random.default_rng(2024)
    discounts = [0.0, 0.3, 0.6, 0.9, 0.95, 0.99]
    for trial in range(200):
        n_states, n_actions = int(rng.integers(2, 61)), int(rng.integers(1, 7))
        discount = discounts[trial % len(discounts)] if trial % 2 else float(rng.uniform(0.0, 0.99))
        n_successors = n_states if trial % 4 < 2 else int(rng.integers(1, 4))
        kernel = random_kernel(rng, n_states, n_actions, n_successors)
        reward = rng.normal(size=(n_states, n_actions)) * 10.0 ** rng.integers(-1, 2)
        mask = random_mask(rng, n_states, n_actions) if trial % 3 == 0 else np.ones((n_states, n_actions), dtype=bool)
        admissible = mask if trial % 3 == 0 else None
        owner, action = np.nonzero(mask)
        pairs = sp.csr_matrix(kernel.reshape(-1, n_states))
        if trial % 4 < 2:
            expected = optimum_of(kernel, np.where(mask, reward, -np.inf), discount)
            transitions: Any = kernel
        else:
            rows = pairs[np.flatnonzero(mask.ravel())]
            expected = DiscreteDP(reward[mask], rows, discount, owner, action).policy_iteration().v
            transitions = pairs
        model = ContextualMDP(transitions, np.ones((n_states, 1)), None, discount, admissible=admissible)
        plan = model.plan(reward=reward)
        where = f"problem {trial}: {n_states} states, {n_actions} actions, discount {discount}"
        np.testing.assert_allclose(plan.values, expected, rtol=0.0, atol=1e-8, err_msg=where)
        assert plan.value == pytest.approx(expected.mean(), abs=1e-8), where
        assert mask[np.arange(n_states), plan.policy].all(), where
        np.testing.assert_allclose(values_of(kernel, reward, plan.policy, discount), expected, rtol=0.0, atol=1e-8, err_msg=where)
        assert plan.certificate.status == "exact", where


def test_weights_stand_for_the_reward_of_the_features() -> None:
    rng = np.random.default_rng(3)
    kernel = random_kernel(rng, 12, 4, 3)
    of_states, of_pairs, weights = rng.normal(size=(12, 5)), rng.normal(size=(12, 4, 5)), rng.normal(size=5)
    by_state = ContextualMDP(kernel, of_states, 0, 0.9)
    np.testing.assert_allclose(by_state.plan(weights).values, by_state.plan(reward=of_states @ weights).values, atol=1e-12)
    repeated = np.repeat((of_states @ weights)[:, None], 4, axis=1)
    np.testing.assert_allclose(by_state.plan(weights).values, by_state.plan(reward=repeated).values, atol=1e-12)
    by_pair = ContextualMDP(kernel, of_pairs, 0, 0.9)
    plan = by_pair.plan(weights)
    np.testing.assert_allclose(plan.values, optimum_of(kernel, of_pairs @ weights, 0.9), atol=1e-10)
    assert plan.feature_expectations is not None
    assert plan.feature_expectations @ weights == pytest.approx(plan.value, abs=1e-10)


@pytest.mark.parametrize("method", ["automatic", "value_iteration", "modified_policy_iteration", "policy_iteration"])
def test_methods_agree(method: str) -> None:
    model = coirl.domains.garnet(80, 4, discount=0.95, seed=5)
    weights = np.linspace(-1.0, 1.0, 5)
    known, found = model.plan(weights), model.plan(weights, method=method)
    np.testing.assert_array_equal(found.policy, known.policy)
    np.testing.assert_allclose(found.values, known.values, atol=1e-10)
    assert found.certificate.status == "exact"


def test_a_warm_start_changes_nothing_but_the_work() -> None:
    model = coirl.domains.garnet(200, 4, discount=0.99, seed=6)
    weights = np.linspace(-1.0, 1.0, 5)
    cold = model.plan(weights)
    warm = model.plan(weights, start=cold.values)
    np.testing.assert_array_equal(warm.policy, cold.policy)
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-10)
    assert warm.certificate.sweeps < cold.certificate.sweeps


@pytest.mark.parametrize("method", ["automatic", "value_iteration", "modified_policy_iteration", "policy_iteration"])
def test_a_plan_does_not_depend_on_the_one_before(method: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        model = ContextualMDP(random_kernel(rng, 4, 2, 3), rng.normal(size=(4, 2)))
        weights = rng.normal(size=2)
        # A limit may be met just where planning has converged.
        for max_sweeps in [*range(1, 30), *range(150, 200, 3)]:
            found = []
            for _ in range(2):
                model.plan(rng.normal(size=2))
                found.append(model.plan(weights, method=method, max_sweeps=max_sweeps))
            np.testing.assert_array_equal(found[0].policy, found[1].policy)
            np.testing.assert_array_equal(found[0].values, found[1].values)
            assert found[0].certificate == found[1].certificate


def test_finite_horizon_against_every_policy() -> None:
    rng = np.random.default_rng(7)
    n_states, n_actions, steps, discount = 2, 2, 3, 0.8
    for _ in range(5):
        kernel, reward = random_kernel(rng, n_states, n_actions, 2), rng.normal(size=(n_states, n_actions))
        initial = rng.dirichlet(np.ones(n_states))

        def worth(policy: Any_) -> Floats:
            values = np.zeros(n_states)
            for decision in reversed(policy):
                values = gained_by(reward, decision) + discount * chain_of(kernel, decision) @ values
            return values

        each = itertools.product(itertools.product(range(n_actions), repeat=n_states), repeat=steps)
        best = np.max([worth(np.array(policy)) for policy in each], axis=0)
        model = ContextualMDP(kernel, np.eye(n_states), initial, discount, horizon=steps)
        plan = model.plan(reward=reward)
        assert plan.policy.shape == (steps, n_states)
        np.testing.assert_allclose(plan.values, best, atol=1e-12)
        np.testing.assert_allclose(worth(plan.policy), best, atol=1e-12)
        assert plan.value == pytest.approx(initial @ best)
        # Indicators of the states count their discounted visits.
        visits, at = np.zeros(n_states), initial
        for t, decision in enumerate(plan.policy):
            visits, at = visits + discount**t * at, at @ chain_of(kernel, decision)
        np.testing.assert_allclose(plan.feature_expectations, visits, atol=1e-12)
        found = model.evaluate(plan.policy, reward=reward)
        np.testing.assert_allclose(found.values, best, atol=1e-12)
        np.testing.assert_allclose(found.occupancy, visits, atol=1e-12)
        assert model.horizon == steps and model.discount == discount


def test_average_reward_against_every_policy() -> None:
    rng = np.random.default_rng(8)
    n_states, n_actions = 4, 3
    for _ in range(5):
        kernel, reward = random_kernel(rng, n_states, n_actions, 40), rng.normal(size=(n_states, n_actions))
        model = ContextualMDP(kernel, np.eye(n_states), average=True)

        def gain(policy: Any_) -> tuple[float, Floats]:
            chain = chain_of(kernel, policy)
            system = np.vstack([chain.T - np.eye(n_states), np.ones(n_states)])
            share = np.linalg.lstsq(system, np.r_[np.zeros(n_states), 1.0], rcond=None)[0]
            return float(share @ gained_by(reward, policy)), share

        best = max(gain(np.array(policy))[0] for policy in itertools.product(range(n_actions), repeat=n_states))
        plan = model.plan(reward=reward)
        assert plan.value == pytest.approx(best, abs=1e-10)
        own_gain, share = gain(plan.policy)
        assert own_gain == pytest.approx(best, abs=1e-10)
        np.testing.assert_allclose(plan.feature_expectations, share, atol=1e-10)
        # The values are relative: g + h(s) = max over a of r(s, a) + P h.
        lookahead = reward + kernel @ plan.values
        np.testing.assert_allclose(plan.values + best, lookahead.max(axis=1), atol=1e-10)


def test_total_reward_is_the_time_to_ruin() -> None:
    # From i, a fair gambler plays i (N - i) games on average before it is all won or lost.
    n = 12
    kernel = np.zeros((n + 1, 1, n + 1))
    kernel[0, 0, 0] = kernel[n, 0, n] = 1.0
    for i in range(1, n):
        kernel[i, 0, [i - 1, i + 1]] = 0.5
    features = np.ones((n + 1, 1))
    features[[0, n]] = 0.0
    model = ContextualMDP(kernel, features, 3, discount=1.0)
    i = np.arange(n + 1)
    plan = model.plan([1.0])
    np.testing.assert_allclose(plan.values, i * (n - i), atol=1e-9)
    assert plan.value == pytest.approx(3 * (n - 3))
    assert model.discount == 1.0 and model.horizon is None
    with pytest.raises(ModelError) as refused:
        ContextualMDP(kernel, np.ones((n + 1, 1)), 3, discount=1.0)
    assert refused.value.state in (0, n)


def same_rows(model: ContextualMDP, weights: Floats, contexts: Floats | None = None, context: Any = None) -> None:
    block = model.plan_many(weights, contexts=contexts, context=context, values=True)
    assert len(block) == len(weights)
    for i, row in enumerate(weights):
        one = model.plan(row, context=context if contexts is None else contexts[i])
        assert block.policies is not None and block.values is not None and block.feature_expectations is not None
        np.testing.assert_array_equal(block.policies[i], one.policy)
        np.testing.assert_allclose(block.values[i], one.values, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(block.feature_expectations[i], one.feature_expectations, rtol=0.0, atol=1e-10)
        assert block.value[i] == pytest.approx(one.value, abs=1e-10)
        assert not block.sweep_limit[i]
        # The bounds are of another run, and hold just as well.
        assert np.abs(block.values[i] - one.values).max() <= block.value_error_bound[i] + one.certificate.value_error_bound


def test_plan_many_row_by_row() -> None:
    rng = np.random.default_rng(9)
    for n in (1, 5, 16, 37):
        same_rows(coirl.domains.garnet(40, 3, discount=0.9, seed=n), rng.normal(size=(n, 5)))
    mixture = coirl.domains.garnet(30, 3, n_kernels=3, discount=0.9, seed=1)
    contexts = mixture.sample_contexts(21, seed=4)
    same_rows(mixture, rng.normal(size=(21, 5)), contexts=contexts)
    same_rows(mixture, rng.normal(size=(21, 5)), context=contexts[0])
    kernel = random_kernel(rng, 8, 3, 4)
    same_rows(ContextualMDP(kernel, rng.normal(size=(8, 2)), horizon=4), rng.normal(size=(18, 2)))
    same_rows(ContextualMDP(kernel, rng.normal(size=(8, 3, 2)), discount=0.5), rng.normal(size=(18, 2)))


def test_plan_many_shapes() -> None:
    model = coirl.domains.garnet(10, 2, seed=0)
    none = model.plan_many(np.empty((0, 5)), values=True)
    assert len(none) == 0
    assert none.policies is not None and none.policies.shape == (0, 10)
    assert none.feature_expectations is not None and none.feature_expectations.shape == (0, 5)
    assert none.values is not None and none.values.shape == (0, 10)
    bare = model.plan_many(np.ones((3, 5)), policies=False, feature_expectations=False)
    assert bare.policies is None and bare.values is None and bare.feature_expectations is None and bare.value.shape == (3,)
    staged = ContextualMDP(np.ones((1, 2, 1)), [[1.0]], horizon=3)
    many = staged.plan_many(np.ones((4, 1)))
    assert isinstance(many.policies, np.ndarray) and many.policies.shape == (4, 3, 1)
    with pytest.raises(ArrayError):
        model.plan_many(np.ones((3, 4)))
    with pytest.raises(SettingError):
        model.plan_many(np.ones((3, 5)), context=[1.0], contexts=np.ones((3, 1)))


def test_certificates_are_honest() -> None:
    rng = np.random.default_rng(10)
    loose = 0
    for trial in range(40):
        discount = [0.5, 0.9, 0.99][trial % 3]
        n_states, n_actions = int(rng.integers(5, 40)), int(rng.integers(2, 5))
        kernel = random_kernel(rng, n_states, n_actions, 3)
        reward = rng.normal(size=(n_states, n_actions))
        model = ContextualMDP(kernel, np.eye(n_states), None, discount)
        best = optimum_of(kernel, reward, discount)
        for settings in ({"tolerance": 1.0}, {"tolerance": 0.1}, {"tolerance": 1e-3}, {"max_sweeps": 1}, {"max_sweeps": 4}):
            for method in ("automatic", "value_iteration", "modified_policy_iteration"):
                plan = model.plan(reward=reward, method=method, **settings)
                lost = (best - values_of(kernel, reward, plan.policy, discount)).max()
                off = np.abs(plan.values - best).max()
                residual = np.abs((reward + discount * kernel @ plan.values).max(axis=1) - plan.values).max()
                own = plan.certificate
                assert lost <= own.suboptimality_bound + 1e-11
                assert off <= own.value_error_bound + 1e-11
                assert residual <= own.residual + 1e-11
                assert own.status in ("exact", "converged", "sweep_limit")
                if "tolerance" in settings:
                    assert own.residual <= settings["tolerance"] and own.status != "sweep_limit"
                loose += lost > 1e-6
        many = model.plan_many(rng.normal(size=(3, n_states)), tolerance=0.3)
        assert (many.residual <= 0.3).all()
    # Bounds are only tested where something was lost.
    assert loose > 20


def test_a_limit_of_sweeps_is_told() -> None:
    model = coirl.domains.garnet(300, 4, discount=0.999, seed=2)
    weights = np.linspace(-1.0, 1.0, 5)
    assert model.plan(weights, max_sweeps=2, method="value_iteration").certificate.status == "sweep_limit"
    assert model.plan_many([weights, -weights], max_sweeps=2, method="value_iteration").sweep_limit.all()


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("of_pairs", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_evaluate_against_a_direct_solve(stochastic: bool, of_pairs: bool, masked: bool) -> None:
    rng = np.random.default_rng(11)
    for discount in (0.0, 0.7, 0.97):
        n_states, n_actions, k = 15, 4, 3
        kernel, weights = random_kernel(rng, n_states, n_actions, 4), rng.normal(size=k)
        initial = rng.dirichlet(np.ones(n_states))
        of_states = rng.normal(size=(n_states, k))
        features = rng.normal(size=(n_states, n_actions, k)) if of_pairs else np.repeat(of_states[:, None], n_actions, axis=1)
        mask = random_mask(rng, n_states, n_actions) if masked else np.ones((n_states, n_actions), dtype=bool)
        model = ContextualMDP(kernel, features if of_pairs else of_states, initial, discount, admissible=mask)
        shares = np.where(mask, rng.random((n_states, n_actions)), 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        policy = shares if stochastic else shares.argmax(axis=1)
        taken = shares if stochastic else np.eye(n_actions)[policy]
        solved = np.linalg.inv(np.eye(n_states) - discount * chain_of(kernel, policy))
        psi = solved @ np.einsum("sa,sak->sk", taken, features)
        reward = features @ weights
        values = solved @ gained_by(reward, policy)
        found = model.evaluate(policy, weights, successor_features=True)
        assert found.value == pytest.approx(initial @ values, abs=1e-10)
        np.testing.assert_allclose(found.values, values, atol=1e-10)
        np.testing.assert_allclose(found.q_values, np.where(mask, reward + discount * kernel @ values, np.nan), atol=1e-10)
        np.testing.assert_allclose(found.occupancy, initial @ solved, atol=1e-10)
        np.testing.assert_allclose(found.successor_features, psi, atol=1e-10)
        np.testing.assert_allclose(found.feature_expectations, initial @ psi, atol=1e-10)
        by_reward = model.evaluate(policy, reward=np.where(mask, reward, 0.0))
        np.testing.assert_allclose(by_reward.values, values, atol=1e-10)
        bare = model.evaluate(policy)
        assert bare.value is None and bare.values is None and bare.q_values is None and bare.successor_features is None


def test_evaluate_of_policies_that_change_with_time() -> None:
    rng = np.random.default_rng(12)
    kernel, initial = random_kernel(rng, 5, 3, 3), rng.dirichlet(np.ones(5))
    model = ContextualMDP(kernel, np.eye(5), initial, 0.9, horizon=4)
    shares = rng.dirichlet(np.ones(3), (4, 5))
    visits, at = np.zeros(5), initial
    for t, decision in enumerate(shares):
        visits, at = visits + 0.9**t * at, at @ chain_of(kernel, decision)
    np.testing.assert_allclose(model.evaluate(shares).occupancy, visits, atol=1e-12)
    np.testing.assert_allclose(model.evaluate(shares).feature_expectations, visits, atol=1e-12)
    actions = shares.argmax(axis=2)
    np.testing.assert_allclose(model.evaluate(actions).occupancy, model.evaluate(np.eye(3)[actions]).occupancy, atol=1e-12)


def test_sampled_trajectories_follow_the_model() -> None:
    rng = np.random.default_rng(13)
    kernel = random_kernel(rng, 4, 2, 2)
    mask = np.array([[True, False], [True, True], [True, True], [False, True]])
    model = ContextualMDP(kernel, np.eye(4), [0.5, 0.5, 0.0, 0.0], 0.9, admissible=mask)
    policy = model.random_policy()
    np.testing.assert_allclose(policy, mask / mask.sum(axis=1, keepdims=True))
    paths = model.sample(policy, 400, steps=25, seed=3)
    assert len(paths) == 400
    counts = np.zeros((4, 2, 4))
    for states, actions in paths:
        assert states.shape == (26,) and actions.shape == (25,) and states[0] in (0, 1)
        np.add.at(counts, (states[:-1], actions, states[1:]), 1)
    assert counts[~mask].sum() == 0
    tried = counts.sum(axis=2)
    assert (np.abs(counts / np.maximum(tried, 1)[:, :, None] - kernel)[tried > 500] < 0.08).all() and (tried > 500).any()
    again = model.sample(policy, 400, steps=25, seed=3)
    assert all((a == b).all() and (x == y).all() for (a, x), (b, y) in zip(paths, again))
    assert any((a != b).any() for (a, _), (b, _) in zip(paths, model.sample(policy, 400, steps=25, seed=4)))
    assert all(states[0] == 2 for states, _ in model.sample(policy, 10, steps=1, start=2))
    # Without steps a trajectory ends with probability 1 - γ at every state: γ / (1 - γ) = 9 transitions on average.
    lengths = [actions.size for _, actions in model.sample(policy, 4000, seed=1)]
    assert np.mean(lengths) == pytest.approx(9.0, abs=0.7)


def csr_parts(kernel: Floats) -> tuple[Any_, Any_, Any_]:
    rows = sp.csr_matrix(kernel.reshape(-1, kernel.shape[-1]))
    return rows.indptr, rows.indices, rows.data


def shuffled_parts(kernel: Floats, rng: np.random.Generator) -> tuple[Any_, Any_, Any_]:
    """The same rows with entries in any order, some of them in two halves."""
    indptr, indices, data = [0], [], []
    for row in kernel.reshape(-1, kernel.shape[-1]):
        for column in rng.permutation(np.flatnonzero(row)):
            halves = [0.5, 0.5] if rng.random() < 0.3 else [1.0]
            indices += [column] * len(halves)
            data += [half * row[column] for half in halves]
        indptr.append(len(indices))
    return np.array(indptr), np.array(indices), np.array(data)


def same_model(one: ContextualMDP, other: ContextualMDP, contexts: Floats | None = None) -> None:
    """Equal in every answer."""
    assert (one.n_states, one.n_actions, one.n_features) == (other.n_states, other.n_actions, other.n_features)
    np.testing.assert_array_equal(one.admissible, other.admissible)
    np.testing.assert_array_equal(one.known, other.known)
    np.testing.assert_array_equal(one.initial, other.initial)
    assert one.discount == other.discount and one.horizon == other.horizon
    weights = np.random.default_rng(0).normal(size=(3, one.n_features))
    for context in [None] if contexts is None else contexts:
        for row in weights:
            first, second = one.plan(row, context=context), other.plan(row, context=context)
            np.testing.assert_array_equal(first.policy, second.policy)
            np.testing.assert_allclose(first.values, second.values, rtol=0.0, atol=1e-12)
            np.testing.assert_allclose(first.feature_expectations, second.feature_expectations, rtol=0.0, atol=1e-12)


def test_one_kernel_in_every_form() -> None:
    rng = np.random.default_rng(14)
    n_states, n_actions = 9, 3
    kernel, features = random_kernel(rng, n_states, n_actions, 3), rng.normal(size=(n_states, 4))
    known = ContextualMDP(kernel, features, 2, 0.9)
    rows = sp.csr_matrix(kernel.reshape(-1, n_states))
    wider = np.zeros((n_states, 2 * n_actions, n_states))
    wider[:, ::2] = kernel
    frozen = kernel.copy()
    frozen.flags.writeable = False
    indptr, indices, data = csr_parts(kernel)
    forms: dict[str, Any] = {
        "lists": kernel.tolist(),
        "fortran": np.asfortranarray(kernel),
        "strided": wider[:, ::2],
        "reversed twice": kernel[::-1][::-1],
        "big-endian": kernel.astype(">f8"),
        "read-only": frozen,
        "longdouble": kernel.astype(np.longdouble),
        "csr matrix": rows,
        "csr array": sp.csr_array(rows),
        "csc": rows.tocsc(),
        "coo": rows.tocoo(),
        "lil": rows.tolil(),
        "tuple": (indptr, indices, data),
        "tuple of int64": (indptr.astype(np.int64), indices.astype(np.uint16), data.astype(">f8")),
        "tuple of lists": (indptr.tolist(), indices.tolist(), data.tolist()),
        "tuple, any order": shuffled_parts(kernel, rng),
    }
    for name, form in forms.items():
        model = ContextualMDP(form, features, 2, 0.9, n_actions=n_actions if name.startswith("tuple") else None)
        same_model(known, model)
        got = model.transitions()
        dense = sp.csr_matrix((got[2], got[1], got[0]), shape=(n_states * n_actions, n_states)).toarray()
        np.testing.assert_allclose(dense, kernel.reshape(-1, n_states), atol=1e-15, err_msg=name)
    one_hot = np.eye(n_states)[2]
    same_model(known, ContextualMDP(kernel, features, one_hot, 0.9))
    same_model(known, ContextualMDP(kernel, sp.csr_matrix(features), one_hot, 0.9))


def test_mixtures_in_every_form() -> None:
    rng = np.random.default_rng(15)
    kernels = [random_kernel(rng, 6, 2, 3) for _ in range(3)]
    features = rng.normal(size=(6, 2))
    known = ContextualMDP(kernels, features)
    assert known.dynamics == "mixture" and known.context_dimension == 3
    contexts = known.sample_contexts(5, seed=1)
    np.testing.assert_allclose(contexts.sum(axis=1), 1.0)
    for form in (
        np.array(kernels),
        [kernel.tolist() for kernel in kernels],
        [sp.csr_matrix(kernel.reshape(-1, 6)) for kernel in kernels],
        [csr_parts(kernel) for kernel in kernels],
    ):
        same_model(known, ContextualMDP(form, features, n_actions=2), contexts)
    for context in contexts:
        mixed = ContextualMDP(sum(share * kernel for share, kernel in zip(context, kernels)), features)
        weights = np.array([1.0, -0.5])
        np.testing.assert_allclose(known.plan(weights, context=context).values, mixed.plan(weights).values, atol=1e-12)
    with pytest.raises(ContextError):
        known.plan([1.0, 0.0])
    with pytest.raises(ContextError):
        known.plan([1.0, 0.0], context=[0.5, 0.5, 0.5])


def test_clusters_have_the_kernel_of_the_nearest_centroid() -> None:
    rng = np.random.default_rng(16)
    kernels = [random_kernel(rng, 6, 2, 3) for _ in range(3)]
    centroids, features = rng.normal(size=(3, 2)), rng.normal(size=(6, 2))
    known = ContextualMDP((kernels, centroids), features)
    assert known.dynamics == "clusters"
    contexts = rng.normal(size=(8, 2))
    same_model(
        known, ContextualMDP(([csr_parts(kernel) for kernel in kernels], centroids.tolist()), features, n_actions=2), contexts
    )
    same_model(known, ContextualMDP((np.array(kernels), centroids), features), contexts)
    for context in contexts:
        nearest = int(((centroids - context) ** 2).sum(axis=1).argmin())
        alone = ContextualMDP(kernels[nearest], features)
        np.testing.assert_allclose(known.plan([1.0, 0.3], context=context).values, alone.plan([1.0, 0.3]).values, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
def test_features_of_states_and_actions_in_every_form(masked: bool) -> None:
    rng = np.random.default_rng(17)
    n_states, n_actions, k = 7, 3, 4
    kernel = random_kernel(rng, n_states, n_actions, 3)
    features = np.where(rng.random((n_states, n_actions, k)) < 0.5, 0.0, rng.normal(size=(n_states, n_actions, k)))
    mask = random_mask(rng, n_states, n_actions) if masked else None
    known = ContextualMDP(kernel, features, admissible=mask)
    assert known.features is None
    rows = sp.csr_matrix(features.reshape(-1, k))
    for form in (
        features.tolist(),
        np.asfortranarray(features),
        rows,
        sp.csc_array(rows),
        (k, rows.indptr, rows.indices, rows.data),
    ):
        same_model(known, ContextualMDP(kernel, form, admissible=mask))
    for s, a in np.ndindex(n_states, n_actions):
        if mask is None or mask[s, a]:
            np.testing.assert_array_equal(known.feature_row(s, a), features[s, a])
    if masked:
        # Nothing is looked at where an action cannot be taken.
        assert mask is not None
        other_kernel, other_features = kernel.copy(), features.copy()
        other_kernel[~mask], other_features[~mask] = 0.0, 77.0
        same_model(known, ContextualMDP(other_kernel, other_features, admissible=mask))
        same_model(
            known, ContextualMDP(sp.csr_matrix(other_kernel.reshape(-1, n_states)), other_features, admissible=mask.astype(int))
        )


def test_features_of_one_action_per_state() -> None:
    rng = np.random.default_rng(18)
    kernel, features = random_kernel(rng, 5, 1, 3), rng.normal(size=(5, 2))
    same_model(ContextualMDP(kernel, features), ContextualMDP(kernel, sp.csr_matrix(features)))
    same_model(ContextualMDP(kernel, features), ContextualMDP(kernel, features[:, None]))


def test_indicators_are_states_and_actions() -> None:
    rng = np.random.default_rng(19)
    kernel, mask = random_kernel(rng, 4, 3, 2), random_mask(rng, 4, 3)
    explicit = np.zeros((4, 3, 7))
    for s, a in np.ndindex(4, 3):
        explicit[s, a, [s, 4 + a]] = 1.0
    same_model(ContextualMDP(kernel, explicit, admissible=mask), ContextualMDP(kernel, "indicators", admissible=mask))


def test_reads_what_numpy_writes(tmp_path: Path) -> None:
    rng = np.random.default_rng(20)
    kernel, features, initial = random_kernel(rng, 6, 2, 3), rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6))
    mask = random_mask(rng, 6, 2)
    parts = dict(zip(("indptr", "indices", "data"), csr_parts(kernel)))
    plain = ContextualMDP(kernel, features, initial, 0.95)
    path = tmp_path / "model.npz"
    np.savez(path, transitions=kernel, features=features, initial=initial, discount=0.95)
    same_model(plain, ContextualMDP.from_npz(path))
    np.savez_compressed(
        path, transitions=np.asfortranarray(kernel), features=features.astype(">f8"), initial=initial, discount=0.95
    )
    same_model(plain, ContextualMDP.load(str(path)))
    np.savez(path, **parts, features=features, initial=initial, discount=0.95)
    same_model(plain, ContextualMDP.from_npz(path))
    np.savez(path, transitions=kernel, features=features, initial=initial, discount=0.95, admissible=mask, horizon=5)
    same_model(ContextualMDP(kernel, features, initial, 0.95, admissible=mask, horizon=5), ContextualMDP.from_npz(path))
    kernels = np.array([random_kernel(rng, 6, 2, 3) for _ in range(3)])
    np.savez(path, kernels=kernels, features=features, initial=initial, discount=0.95)
    mixture = ContextualMDP.from_npz(path)
    same_model(ContextualMDP(kernels, features, initial, 0.95), mixture, mixture.sample_contexts(3))
    pairs = rng.normal(size=(6, 2, 3))
    np.savez(path, transitions=kernel, features=pairs, initial=initial, criterion="average")
    same_model(ContextualMDP(kernel, pairs, initial, average=True), ContextualMDP.from_npz(path))


@pytest.mark.parametrize("extension", [".npz", ".safetensors"])
def test_saved_models_come_back(tmp_path: Path, extension: str) -> None:
    rng = np.random.default_rng(21)
    kernels = [random_kernel(rng, 6, 3, 3) for _ in range(2)]
    mask, features = random_mask(rng, 6, 3), rng.normal(size=(6, 3, 4))
    known = mask.copy()
    several = np.flatnonzero(mask.sum(axis=1) > 1)[0]
    known[several, np.flatnonzero(mask[several])[0]] = False
    names = {"name": "ward 3 — Süd", "action_names": ["wait", "treat", "x"], "feature_names": list("abcd")}
    models = [
        ContextualMDP(kernels[0], features, 0, 0.95, admissible=mask, known=known, **names),
        ContextualMDP(kernels, features, 0, 0.95, admissible=mask, **names, context_names=["old", "young"]),
        ContextualMDP((kernels, rng.normal(size=(2, 3))), features[:, 0], context_space=([-9.0] * 3, [9.0] * 3)),
        ContextualMDP(kernels[0], features, horizon=4, discount=1.0),
        ContextualMDP(kernels[0], features, average=True),
        coirl.domains.driving(),
    ]
    for i, model in enumerate(models):
        path = tmp_path / f"{i}{extension}"
        model.save(path)
        contexts = None if model.dynamics == "shared" else model.sample_contexts(3)
        again = ContextualMDP.load(path)
        same_model(model, again, contexts)
        assert again.names == model.names and again.context_dimension == model.context_dimension
        model.save(tmp_path / f"again{extension}")
        assert path.read_bytes() == (tmp_path / f"again{extension}").read_bytes()
        for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            same_model(model, copied, contexts)
            assert copied.names == model.names and copied.context_dimension == model.context_dimension


def test_numpy_reads_what_is_saved(tmp_path: Path) -> None:
    kernel = random_kernel(np.random.default_rng(22), 5, 2, 2)
    ContextualMDP(kernel, np.eye(5), 1, 0.75, name="five").save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        np.testing.assert_allclose(file["transitions"], kernel, atol=1e-15)
        np.testing.assert_array_equal(file["features"], np.eye(5))
        np.testing.assert_array_equal(file["initial"], np.eye(5)[1])
        assert float(file["discount"]) == 0.75
        assert json.loads(str(file["names"]))["model"] == "five"


def test_files_that_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(FileError) as missing:
        ContextualMDP.load(tmp_path / "nowhere.npz")
    assert "nowhere" in str(missing.value) and missing.value.errno == 2
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(FileError):
        ContextualMDP.load(tmp_path / "text.npz")
    model = coirl.domains.garnet(5, 2, n_features=2)
    model.save(tmp_path / "model.safetensors")
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError):
        ContextualMDP.load(tmp_path / "half.safetensors")
    with pytest.raises(coirl.CoirlError):
        model.save(tmp_path / "no" / "such" / "folder.npz")
    broken = np.full((2, 1, 2), 0.4)
    np.savez(tmp_path / "broken.npz", transitions=broken, features=np.eye(2), initial=[1.0, 0.0], discount=0.9)
    with pytest.raises(FileError) as rows:
        ContextualMDP.load(tmp_path / "broken.npz")
    assert rows.value.data["sum"] == pytest.approx(0.8) and rows.value.state == 0


def test_context_spaces() -> None:
    kernel = random_kernel(np.random.default_rng(23), 3, 2, 2)
    anything = ContextualMDP(kernel, np.eye(3))
    assert anything.context_dimension is None
    anything.plan([1, 0, 0], context=[1e9, -4.0])
    simplex = ContextualMDP(kernel, np.eye(3), context_space=("simplex", 4))
    assert simplex.context_dimension == 4
    drawn = simplex.sample_contexts(50, seed=2)
    assert drawn.shape == (50, 4) and (drawn >= 0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    np.testing.assert_array_equal(drawn, simplex.sample_contexts(50, seed=2))
    assert (drawn != simplex.sample_contexts(50, seed=3)).any()
    box = ContextualMDP(kernel, np.eye(3), context_space=([-1.0, 0.0], [1.0, 5.0]))
    drawn = box.sample_contexts(200)
    assert box.context_dimension == 2 and (drawn >= [-1.0, 0.0]).all() and (drawn <= [1.0, 5.0]).all() and drawn[:, 1].max() > 4.0
    for model, bad in ((simplex, [0.5, 0.5]), (simplex, [0.9, 0.9, 0.0, 0.0]), (box, [0.0, 6.0]), (box, [np.nan, 1.0])):
        with pytest.raises(ContextError) as refused:
            model.plan([1, 0, 0], context=bad)
        assert len(refused.value.values) == len(bad)
    for space in ("simplex", "sphere", ("simplex",), ([0.0], [np.inf]), 3):
        with pytest.raises((SettingError, TypeError)):
            ContextualMDP(kernel, np.eye(3), context_space=space)


def test_names_are_kept_and_counted() -> None:
    kernel = random_kernel(np.random.default_rng(24), 3, 2, 2)
    model = ContextualMDP(kernel, np.eye(3), name="m", action_names=["left", "right"], feature_names=["a", "b", "c"])
    assert (
        model.names["model"] == "m" and model.names["actions"] == ["left", "right"] and model.names["features"] == ["a", "b", "c"]
    )
    assert "'m'" in repr(model)
    assert "<b>" not in ContextualMDP(kernel, np.eye(3), name="<b>")._repr_html_()
    with pytest.raises(coirl.CoirlError):
        ContextualMDP(kernel, np.eye(3), action_names=["left"])
    with pytest.raises(TypeError):
        ContextualMDP(kernel, np.eye(3), action_names=["left", 3])  # type: ignore[list-item]


def test_what_is_refused_is_named() -> None:
    kernel = np.full((3, 2, 3), 1.0 / 3.0)
    bad = kernel.copy()
    bad[1, 1, 2] = 0.5
    with pytest.raises(ModelError) as row:
        ContextualMDP(bad, np.eye(3))
    assert (row.value.state, row.value.action) == (1, 1) and row.value.sum == pytest.approx(7.0 / 6.0)
    bad[1, 1, 2] = -0.5
    with pytest.raises(ModelError) as negative:
        ContextualMDP(bad, np.eye(3))
    assert (negative.value.state, negative.value.action, negative.value.next, negative.value.value) == (1, 1, 2, -0.5)
    with pytest.raises(ModelError):
        ContextualMDP(kernel, np.eye(3), admissible=[[True, True], [False, False], [True, True]])
    with pytest.raises(ModelError) as discount:
        ContextualMDP(kernel, np.eye(3), discount=1.5)
    assert discount.value.value == 1.5
    with pytest.raises(ArrayError, match="transpose"):
        ContextualMDP(np.full((2, 3, 3), 1.0 / 3.0), np.eye(3))
    with pytest.raises(ArrayError):
        ContextualMDP(kernel, np.array([[1.0], [np.nan], [0.0]]))
    with pytest.raises(ModelError):
        ContextualMDP(kernel, np.eye(3), [0.5, 0.2, 0.2])

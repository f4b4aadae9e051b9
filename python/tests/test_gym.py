"""Contextual processes as Gymnasium environments, and Gymnasium's tables as models."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import coirl
from coirl import ContextualMDP, Demonstrations
from coirl.errors import ArrayError, ContextError, DataError, NotFittedError, SettingError

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.utils.env_checker import check_env

from coirl.gym import ContextualMDPEnv, from_gymnasium

Floats = npt.NDArray[np.float64]


def random_rows(rng: np.random.Generator, n_states: int, n_actions: int) -> Floats:
    """P(s' | s, a) ``[S, A, S]``."""
    return rng.dirichlet(np.full(n_states, 0.5), (n_states, n_actions))


def with_end(kernel: Floats, state: int) -> Floats:
    kernel[state] = 0.0
    kernel[state, :, state] = 1.0
    return kernel


def corridor(**settings: Any) -> ContextualMDP:
    """0 → 1 → 2, which is never left; two features, both present in the end."""
    kernel = np.zeros((3, 1, 3))
    kernel[[0, 1, 2], 0, [1, 2, 2]] = 1.0
    features = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    return ContextualMDP(kernel, features, **{"initial": 0, "discount": 0.5, "context_space": ("simplex", 2), **settings})


def returns(env: Any, policy: Any, discount: float, n: int, seed: int, options: dict[str, Any] | None = None) -> Floats:
    """Discounted sums of the rewards of episodes; ``policy`` has actions ``[S]`` or probabilities ``[S, A]``."""
    rng = np.random.default_rng(seed)
    drawn = policy.cumsum(axis=1) if policy.ndim == 2 else None
    found = np.zeros(n)
    env.reset(seed=seed, options=options)
    for i in range(n):
        state, _ = env.reset(options=options)
        factor, over = 1.0, False
        while not over:
            action = (
                policy[state] if drawn is None else min(drawn[state].searchsorted(rng.random(), side="right"), drawn.shape[1] - 1)
            )
            state, reward, terminated, truncated, _ = env.step(int(action))
            found[i] += factor * reward
            factor *= discount
            over = terminated or truncated
    return found


def assert_mean(sample: Floats, value: float, precision: float) -> None:
    """The mean is the value, within four standard errors, which are small enough to notice anything else."""
    error = float(sample.std(ddof=1) / np.sqrt(sample.size))
    assert error < precision
    assert abs(float(sample.mean()) - value) < 4.0 * error


def in_another_process(lines: str) -> str:
    return subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True).stdout


def test_the_package_does_not_import_gymnasium() -> None:
    assert in_another_process("import coirl, sys; print('gymnasium' in sys.modules)").strip() == "False"


def test_without_gymnasium_the_error_says_what_to_install() -> None:
    lines = (
        "import sys; sys.modules['gymnasium'] = None\ntry:\n    import coirl.gym\nexcept ImportError as error:\n    print(error)"
    )
    assert "pip install coirl[gym]" in in_another_process(lines)


@pytest.mark.filterwarnings("ignore:.*not having a spec.*")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", ["grid", "driving", "sepsis mixture", "garnet", "table"])
def test_gymnasiums_own_checker_passes(domain: str) -> None:
    if domain == "grid":
        env = ContextualMDPEnv(coirl.domains.grid(), np.eye(12))
    elif domain == "driving":
        env = ContextualMDPEnv(coirl.domains.driving(), coirl.domains.driving_mapping(), render_mode="ansi", max_episode_steps=50)
    elif domain == "sepsis mixture":
        env = ContextualMDPEnv(coirl.domains.sepsis(dynamics="mixture"), coirl.domains.sepsis_mapping())
    elif domain == "garnet":
        env = ContextualMDPEnv(coirl.domains.garnet(n_features=3), lambda context: context, context=[0.1, 0.2, 0.7])
    else:
        model, reward = from_gymnasium(gymnasium.make("FrozenLake-v1"))
        env = ContextualMDPEnv(model, reward.ravel())
    check_env(env)


@pytest.mark.filterwarnings("error")
def test_the_checker_passes_on_a_registered_environment_with_all_its_render_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))

    def entry(**settings: Any) -> ContextualMDPEnv:
        return ContextualMDPEnv(coirl.domains.driving(), coirl.domains.driving_mapping(), **settings)

    gymnasium.register("coirl/Driving-v0", entry_point=entry)
    check_env(gymnasium.make("coirl/Driving-v0").unwrapped)


def test_a_step_pays_for_the_state_in_which_it_is_taken_and_the_last_for_ever() -> None:
    model, context = corridor(), np.array([0.3, 0.7])
    mapping = np.array([[1.0, 2.0], [3.0, -4.0]])
    w = context @ mapping
    env = ContextualMDPEnv(model, mapping, context=context)
    state, info = env.reset(seed=0)
    assert state == 0 and np.array_equal(info["context"], context)
    state, first, terminated, truncated, _ = env.step(0)
    assert state == 1 and not terminated and not truncated
    assert first == pytest.approx(w[0])
    state, second, terminated, truncated, _ = env.step(0)
    assert state == 2 and terminated and not truncated
    # 0.5 + 0.25 + … = 1 times the reward of the end.
    assert second == pytest.approx(w[1] + 0.5 * (w[0] + w[1]))
    assert first + 0.5 * second == pytest.approx(model.evaluate([0, 0, 0], w).value)


def test_an_episode_that_starts_in_the_end_has_one_step_with_its_whole_value() -> None:
    model = corridor()
    env = ContextualMDPEnv(model, [2.0, 4.0], context=[0.5, 0.5])
    env.reset(seed=0, options={"state": 2})
    _, reward, terminated, _, _ = env.step(0)
    assert terminated
    values = model.evaluate([0, 0, 0], [2.0, 4.0]).values
    assert values is not None and reward == pytest.approx(values[2])


@pytest.mark.parametrize("discount", [0.5, 1.0])
@pytest.mark.parametrize("horizon", [1, 2, 3, 7])
def test_a_finite_horizon_ends_episodes_with_the_value_of_its_steps(horizon: int, discount: float) -> None:
    model = corridor(horizon=horizon, discount=discount)
    env = ContextualMDPEnv(model, [2.0, 4.0])
    env.reset(seed=0)
    total, factor, terminated, steps = 0.0, 1.0, False, 0
    while not terminated:
        _, reward, terminated, truncated, _ = env.step(0)
        assert not truncated
        total, factor, steps = total + factor * reward, factor * discount, steps + 1
    assert steps == min(horizon, 2)
    assert total == pytest.approx(model.evaluate(np.zeros((horizon, 3), dtype=int), [2.0, 4.0]).value)


def test_the_average_criterion_never_ends() -> None:
    env = ContextualMDPEnv(corridor(average=True), [2.0, 4.0], max_episode_steps=5)
    env.reset(seed=0)
    steps = [env.step(0) for _ in range(5)]
    assert [step[1] for step in steps] == [2.0, 4.0, 3.0, 3.0, 3.0]
    assert [step[2] for step in steps] == [False] * 5
    assert [step[3] for step in steps] == [False] * 4 + [True]


def test_where_actions_still_matter_the_episode_goes_on() -> None:
    kernel = with_end(np.full((2, 2, 2), 0.5), 1)
    features = np.zeros((2, 2, 1))
    features[1, 1] = 1.0
    model = ContextualMDP(kernel, features, initial=1, discount=0.9, context_space=("simplex", 1))
    env = ContextualMDPEnv(model, [1.0])
    env.reset(seed=0)
    assert [env.step(action)[1:3] for action in (1, 0, 1)] == [(1.0, False), (0.0, False), (1.0, False)]
    env = ContextualMDPEnv(model, [0.0])
    env.reset(seed=0)
    assert env.step(1)[1:3] == (0.0, True)


def shared(rng: np.random.Generator) -> ContextualMDP:
    return ContextualMDP(
        with_end(random_rows(rng, 6, 3), 5), rng.normal(size=(6, 4)), initial=rng.dirichlet(np.ones(6)), discount=0.8
    )


def mixture(rng: np.random.Generator) -> ContextualMDP:
    kernels = [with_end(random_rows(rng, 6, 3), 5) for _ in range(3)]
    return ContextualMDP(kernels, rng.normal(size=(6, 4)), initial=rng.dirichlet(np.ones(6)), discount=0.8)


def clusters(rng: np.random.Generator) -> ContextualMDP:
    kernels = [random_rows(rng, 6, 3) for _ in range(2)]
    return ContextualMDP((kernels, rng.normal(size=(2, 3))), rng.normal(size=(6, 4)), initial=2, discount=0.8)


def pairs(rng: np.random.Generator) -> ContextualMDP:
    mask = rng.random((6, 3)) < 0.6
    mask[:, 1] = True
    features = rng.normal(size=(6, 3, 4))
    features[5] = features[5, 0]
    kernel = with_end(random_rows(rng, 6, 3), 5)
    return ContextualMDP(kernel, features, initial=rng.dirichlet(np.ones(6)), discount=0.8, admissible=mask)


def finite(rng: np.random.Generator) -> ContextualMDP:
    return ContextualMDP(with_end(random_rows(rng, 6, 3), 5), rng.normal(size=(6, 4)), discount=0.95, horizon=8)


def total_reward(rng: np.random.Generator) -> ContextualMDP:
    features = rng.normal(size=(6, 4))
    features[5] = 0.0
    return ContextualMDP(with_end(random_rows(rng, 6, 3), 5), features, discount=1.0)


@pytest.mark.parametrize("make", [shared, mixture, clusters, pairs, finite, total_reward])
def test_discounted_rewards_are_the_value_in_expectation(make: Any) -> None:
    rng = np.random.default_rng(5)
    model = make(rng)
    context, mapping = rng.dirichlet(np.ones(3)), rng.normal(size=(3, 4))
    policy = np.where(model.admissible, rng.random((6, 3)), 0.0)
    policy /= policy.sum(axis=1, keepdims=True)
    staged = policy if model.horizon is None else np.repeat(policy[None], model.horizon, axis=0)
    needs = None if model.dynamics == "shared" else context
    value = model.evaluate(staged, context @ mapping, context=needs).value
    assert value is not None
    env = ContextualMDPEnv(model, mapping, max_episode_steps=None if model.discount == 1.0 else 60)
    sample = returns(env, policy, model.discount, 3000, 11, {"context": context})
    # One step more of discount, or the reward of the next state, would be off by far more.
    assert_mean(sample, value, 0.05)


def test_successors_are_drawn_by_the_dynamics_of_the_context() -> None:
    rng = np.random.default_rng(3)
    model = mixture(rng)
    env = ContextualMDPEnv(model, np.zeros((3, 4)))
    env.reset(seed=1)
    for context in (np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.3, 0.5])):
        indptr, indices, data = model.transitions(context)
        expected = np.zeros(6)
        expected[indices[indptr[7] : indptr[8]]] = data[indptr[7] : indptr[8]]  # action 1 in state 2
        seen = np.zeros(6)
        for _ in range(4000):
            env.reset(options={"context": context, "state": 2})
            seen[env.step(1)[0]] += 1
        assert np.all(np.abs(seen / 4000 - expected) < 4.0 * np.sqrt(expected * (1.0 - expected) / 4000) + 1e-12)


def test_starts_are_drawn_by_the_start_distribution() -> None:
    initial = np.array([0.0, 0.1, 0.0, 0.6, 0.3, 0.0])
    model = ContextualMDP(random_rows(np.random.default_rng(0), 6, 2), np.eye(6), initial=initial)
    env = ContextualMDPEnv(model, np.zeros(6))
    env.reset(seed=2)
    seen = np.bincount([env.reset()[0] for _ in range(4000)], minlength=6) / 4000
    assert np.all(np.abs(seen - initial) < 4.0 * np.sqrt(initial * (1.0 - initial) / 4000) + 1e-12)


def test_contexts_are_drawn_from_the_space_unless_given() -> None:
    model = coirl.domains.driving()
    env = ContextualMDPEnv(model, coirl.domains.driving_mapping())
    drawn = np.array([env.reset(seed=7 if i == 0 else None)[1]["context"] for i in range(50)])
    assert np.allclose(drawn.sum(axis=1), 1.0) and (drawn >= 0.0).all()
    assert len(np.unique(drawn, axis=0)) == 50
    again = ContextualMDPEnv(model, coirl.domains.driving_mapping())
    assert np.array_equal(again.reset(seed=7)[1]["context"], drawn[0])
    given = [0.2, 0.5, 0.3]
    assert env.reset(options={"context": given})[1]["context"].tolist() == given
    assert env.step(0)[4]["context"].tolist() == given
    assert env.reset()[1]["context"].tolist() != given
    fixed = ContextualMDPEnv(model, coirl.domains.driving_mapping(), context=given)
    assert fixed.reset(seed=1)[1]["context"].tolist() == given
    assert fixed.reset(options={"context": [1.0, 0.0, 0.0]})[1]["context"].tolist() == [1.0, 0.0, 0.0]
    assert fixed.reset()[1]["context"].tolist() == given


def test_the_reward_follows_the_context_from_episode_to_episode() -> None:
    model, mapping = corridor(), np.array([[1.0, 0.0], [5.0, 0.0]])
    env = ContextualMDPEnv(model, mapping)
    env.reset(seed=0)
    for context, expected in (([1.0, 0.0], 1.0), ([0.0, 1.0], 5.0), ([0.5, 0.5], 3.0), ([1.0, 0.0], 1.0)):
        env.reset(options={"context": context})
        assert env.step(0)[1] == pytest.approx(expected)


def test_what_has_no_probability_is_never_drawn() -> None:
    from coirl.gym import _draw

    for uniform in (0.0, 0.3, np.nextafter(1.0, 0.0)):
        assert _draw(np.cumsum([0.0, 0.5, 0.0]), uniform) == 1
    # The largest number below one, times a sum below one, is that sum.
    total = np.cumsum([0.1] * 9 + [0.1 - 1e-16, 0.0])
    assert _draw(total, np.nextafter(1.0, 0.0)) <= 9


def test_what_comes_back_is_not_what_the_environment_keeps() -> None:
    given = np.array([0.2, 0.5, 0.3])
    env = ContextualMDPEnv(coirl.domains.driving(), coirl.domains.driving_mapping(), context=given)
    _, info = env.reset(seed=1)
    info["context"][:] = 9.0
    info["action_mask"][:] = 0
    given[:] = 7.0
    _, info = env.reset(seed=1)
    assert info["context"].tolist() == [0.2, 0.5, 0.3]
    assert info["action_mask"].tolist() == [1, 1, 1]


def test_every_kind_of_mapping_gives_its_reward() -> None:
    model = coirl.domains.grid()
    rng = np.random.default_rng(0)
    contexts, truth = model.sample_contexts(12, seed=1), rng.normal(size=(12, 12))
    learner = coirl.Adaptive(max_steps=20)
    learner.fit(model, Demonstrations.from_arrays(contexts, model.plan_many(contexts @ truth).feature_expectations))
    assert learner.mapping_ is not None
    context = contexts[3]
    kinds = [learner, learner.mapping_, lambda c: c @ learner.mapping_, learner.weights(context)]
    rewards = []
    for kind in kinds:
        env = ContextualMDPEnv(model, kind, context=context)
        env.reset(seed=4)
        rewards.append([env.step(i % 4)[1] for i in range(20)])
    assert np.ptp(rewards[0]) > 0.0
    for other in rewards[1:]:
        assert other == pytest.approx(rewards[0])


def test_a_learner_that_has_learned_on_is_asked_anew() -> None:
    model = coirl.domains.grid()
    contexts, truth = model.sample_contexts(2, seed=1), np.random.default_rng(0).normal(size=(12, 12))
    seen = model.plan_many(contexts @ truth).feature_expectations
    assert seen is not None and model.features is not None
    learner = coirl.Adaptive(max_steps=3).fit(model, Demonstrations.from_arrays(contexts, seen))
    env = ContextualMDPEnv(model, learner, context=contexts[0])
    before = learner.weights(contexts[0])
    env.reset(seed=0)
    learner.fit(model, Demonstrations.from_arrays(contexts, seen[::-1]))
    assert not np.allclose(before, learner.weights(contexts[0]))
    state, _ = env.reset(seed=0)
    assert env.step(0)[1] == pytest.approx(model.features[state] @ learner.weights(contexts[0]))


def test_a_learner_without_a_model_takes_that_of_the_environment(tmp_path: Any) -> None:
    model = coirl.domains.grid()
    contexts = model.sample_contexts(4, seed=1)
    seen = model.plan_many(contexts).feature_expectations
    learner = coirl.Adaptive(max_steps=3).fit(model, Demonstrations.from_arrays(contexts, seen))
    learner.save(tmp_path / "fitted.safetensors")
    env = ContextualMDPEnv(model, coirl.load(tmp_path / "fitted.safetensors"), context=contexts[0])
    state, _ = env.reset(seed=0)
    assert model.features is not None
    assert env.step(0)[1] == pytest.approx(model.features[state] @ learner.weights(contexts[0]))
    with pytest.raises(NotFittedError):
        ContextualMDPEnv(model, coirl.Adaptive())


def test_the_mask_says_which_actions_can_be_taken_and_others_are_refused() -> None:
    model = coirl.domains.sepsis(inadmissible="masked")
    env = ContextualMDPEnv(model, coirl.domains.sepsis_mapping())
    state, info = env.reset(seed=3)
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].tolist() == model.admissible[state].tolist()
    assert env.action_space.sample(info["action_mask"]) in np.flatnonzero(model.admissible[state])
    refused = int(np.flatnonzero(info["action_mask"] == 0)[0])
    with pytest.raises(DataError, match=f"action {refused} .*state {state}") as raised:
        env.step(refused)
    assert (raised.value.state, raised.value.action) == (state, refused)
    for action in (-1, model.n_actions):
        with pytest.raises(DataError):
            env.step(action)
    for word in ("left", 0.5, None):
        with pytest.raises(TypeError):
            env.step(word)
    # A refused action changes nothing.
    allowed = int(np.flatnonzero(info["action_mask"])[0])
    after = env.step(np.int64(allowed))
    again = ContextualMDPEnv(model, coirl.domains.sepsis_mapping())
    again.reset(seed=3)
    assert after[:2] == again.step(np.array(allowed))[:2]


def test_the_order_of_calls_is_kept() -> None:
    env = ContextualMDPEnv(corridor(), [1.0, 1.0])
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    assert env.step(0)[0] == 1


def test_truncation() -> None:
    env = ContextualMDPEnv(coirl.domains.grid(), np.eye(12), max_episode_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    # The end of an episode is its end, also at the limit.
    env = ContextualMDPEnv(corridor(), [1.0, 1.0], max_episode_steps=2)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (True, False)]


def test_rendering() -> None:
    model = ContextualMDP(
        np.ones((1, 2, 1)), [[2.0]], action_names=["stay", "wait"], discount=0.0, average=True, context_space=("simplex", 1)
    )
    env = ContextualMDPEnv(model, [3.0], render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "state 0\n"
    env.step(1)
    assert env.render() == "state 0 after wait, reward 6\n"
    with pytest.raises(SettingError, match="render_mode"):
        ContextualMDPEnv(model, [3.0], render_mode="human")


def test_what_does_not_fit_is_refused() -> None:
    model = coirl.domains.driving()
    mapping = coirl.domains.driving_mapping()
    env = ContextualMDPEnv(model, mapping)
    with pytest.raises(ContextError):
        env.reset(options={"context": [0.5, 0.2, 0.2]})
    with pytest.raises(ContextError):
        ContextualMDPEnv(model, mapping, context=[0.5, 0.5])
    with pytest.raises(SettingError, match="'contxt'"):
        env.reset(options={"contxt": [1.0, 0.0, 0.0]})
    env.reset(seed=0)
    with pytest.raises(DataError, match="1531"):
        env.reset(options={"state": 1531})
    env.step(0)  # the episode before goes on
    for wrong in (np.eye(4), np.zeros((2, 3)), [1.0, 2.0], np.full((3, 3), np.nan)):
        with pytest.raises(ArrayError):
            ContextualMDPEnv(model, wrong)
    for function in (lambda context: [1.0], lambda context: [np.nan] * 3):
        with pytest.raises(ArrayError, match="expected 3 finite numbers"):
            ContextualMDPEnv(model, function).reset(seed=0)
    for steps in (0, -1):
        with pytest.raises(ArrayError):
            ContextualMDPEnv(model, mapping, max_episode_steps=steps)
    with pytest.raises(TypeError):
        ContextualMDPEnv(mapping, mapping)  # type: ignore[arg-type]
    open_space = ContextualMDPEnv(coirl.domains.garnet(n_features=2), np.ones((3, 2)))
    with pytest.raises(ContextError, match="options"):
        open_space.reset(seed=0)
    with pytest.raises(ContextError, match="takes 3"):
        open_space.reset(options={"context": [1.0]})
    assert open_space.reset(options={"context": [1.0, 2.0, 3.0]})[1]["context"].size == 3


def test_environments_are_copied_pickled_and_run_side_by_side() -> None:
    env = ContextualMDPEnv(coirl.domains.driving(), coirl.domains.driving_mapping(), max_episode_steps=20)
    env.reset(seed=5)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        env.reset(seed=5)
        other.reset(seed=5)
        assert [env.step(1)[:4] for _ in range(10)] == [other.step(1)[:4] for _ in range(10)]
    many = gymnasium.vector.SyncVectorEnv([lambda: copy.deepcopy(env) for _ in range(3)])
    states, info = many.reset(seed=1)
    assert states.shape == (3,) and info["context"].shape == (3, 3)
    assert not np.array_equal(info["context"][0], info["context"][1])
    for _ in range(30):
        states, rewards, _, _, _ = many.step(np.ones(3, dtype=int))
    assert rewards.shape == (3,)


def latest(name: str) -> str:
    """Gymnasium warns of versions that it has replaced."""
    return max(
        (found for found in gymnasium.registry if found.startswith(f"{name}-v")), key=lambda found: int(found.rsplit("v", 1)[1])
    )


TABLES: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake", {"map_name": "4x4", "is_slippery": True}),
    ("FrozenLake", {"map_name": "8x8", "is_slippery": True}),
    ("FrozenLake", {"map_name": "4x4", "is_slippery": False}),
    ("Taxi", {}),
    ("CliffWalking", {}),
    ("CliffWalking", {"is_slippery": True}),
]


def value_iteration(table: Any, n_states: int, n_actions: int, discount: float) -> Floats:
    """Optimal values straight from a table: what is terminated has no future."""
    values = np.zeros(n_states)
    rows = [
        (s * n_actions + a, p, following, reward, 0.0 if terminated else discount)
        for s in range(n_states)
        for a in range(n_actions)
        for p, following, reward, terminated in table[s][a]
    ]
    row, p, following, reward, factor = (np.array(column) for column in zip(*rows))
    while True:
        q = np.bincount(row, weights=p * (reward + factor * values[following]), minlength=n_states * n_actions)
        better: Floats = q.reshape(n_states, n_actions).max(axis=1)
        if np.abs(better - values).max() < 1e-13:
            return better
        values = better


def acted_in(table: Any, start: Floats) -> set[int]:
    """States in which somebody who starts properly ever acts."""
    found: set[int] = set()
    new = set(np.flatnonzero(start).tolist())
    while new:
        found |= new
        new = {int(t) for s in new for rows in table[s].values() for p, t, _, over in rows if p > 0 and not over} - found
    return found


@pytest.mark.parametrize(("name", "settings"), TABLES)
def test_the_value_of_a_table_is_that_of_value_iteration(name: str, settings: dict[str, Any]) -> None:
    env = gymnasium.make(latest(name), **settings)
    own: Any = env.unwrapped
    model, reward = from_gymnasium(env, discount=0.99)
    n_states, n_actions = int(own.observation_space.n), int(own.action_space.n)
    assert (model.n_states, model.n_actions) == (n_states, n_actions), "these tables need no state more"
    assert model.discount == 0.99 and np.array_equal(model.initial, own.initial_state_distrib)
    values = value_iteration(own.P, n_states, n_actions, 0.99)
    plan = model.plan(reward=reward)
    states = sorted(acted_in(own.P, own.initial_state_distrib))
    np.testing.assert_allclose(plan.values[states], values[states], rtol=0, atol=1e-9)
    assert plan.value == pytest.approx(own.initial_state_distrib @ values, abs=1e-9)
    # The default features hold the environment's own reward.
    by_weights = model.plan(reward.ravel())
    assert by_weights.value == pytest.approx(plan.value, abs=1e-9)
    assert by_weights.feature_expectations is not None
    assert np.dot(reward.ravel(), by_weights.feature_expectations) == pytest.approx(plan.value, abs=1e-9)


def test_known_values() -> None:
    cliff, reward = from_gymnasium(gymnasium.make(latest("CliffWalking")))
    # Up, eleven to the right, down.
    assert cliff.plan(reward=reward).value == pytest.approx(-sum(0.99**t for t in range(13)), abs=1e-10)
    lake, reward = from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False))
    assert lake.plan(reward=reward).value == pytest.approx(0.99**5, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "settings", "episodes", "precision"),
    [("FrozenLake", {"is_slippery": True}, 2500, 0.01), ("Taxi", {}, 1000, 0.15), ("CliffWalking", {}, 3, 1.0)],
)
def test_acting_in_the_environment_earns_what_the_plan_says(
    name: str, settings: dict[str, Any], episodes: int, precision: float
) -> None:
    env = gymnasium.make(latest(name), **settings).unwrapped  # without the limit of steps
    model, reward = from_gymnasium(env)
    plan = model.plan(reward=reward)
    sample = returns(env, plan.policy, 0.99, episodes, 8)
    if np.ptp(sample) < 1e-9:
        np.testing.assert_allclose(sample, plan.value, rtol=0, atol=1e-9)
    else:
        assert_mean(sample, plan.value, precision)


@pytest.mark.parametrize(("name", "settings"), TABLES[::2] + TABLES[3:4])
def test_recorded_episodes_are_possible_in_the_model_and_can_be_learned_from(name: str, settings: dict[str, Any]) -> None:
    env = gymnasium.make(latest(name), **settings)
    model, reward = from_gymnasium(env)
    policy = model.plan(reward=reward).policy
    episodes = []
    for seed in range(15):
        state, _ = env.reset(seed=seed)
        episode: dict[str, list[int]] = {"observations": [int(state)], "actions": []}
        over = False
        while not over:
            episode["actions"].append(int(policy[state]))
            state, _, terminated, truncated, _ = env.step(int(policy[state]))
            episode["observations"].append(int(state))
            over = terminated or truncated
        episodes.append(episode)
    indptr, indices, _ = model.transitions()
    for episode in episodes:
        for state, action, following in zip(episode["observations"], episode["actions"], episode["observations"][1:]):
            row = state * model.n_actions + action
            assert following in indices[indptr[row] : indptr[row + 1]]
    demonstrations = Demonstrations.from_episodes(episodes, np.ones((15, 1)))
    learner = coirl.MaximumEntropy(max_steps=5).fit(model, demonstrations)
    assert learner.weights([1.0]).shape == (model.n_features,)


class Turnstile(gymnasium.Env[Any, Any]):
    """Two states; going from 1 to 0 terminates, staying in 0 does not: whether an episode is over is not a matter of the state."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, isd: Any = (0.25, 0.75)) -> None:
        self.P = {
            0: {0: [(0.5, 0, 1.0, False), (0.25, 0, 3.0, False), (0.25, 1, 0.0, False)], 1: [(1.0, 1, -1.0, False)]},
            1: {0: [(0.4, 0, 10.0, True), (0.6, 1, 0.5, False), (0.0, 1, 99.0, True)]},
        }
        if isd is not None:
            self.isd = np.array(isd)


def test_an_end_that_is_no_matter_of_the_state_gets_a_state_of_its_own() -> None:
    env = Turnstile()
    model, reward = from_gymnasium(env, discount=0.9)
    assert model.n_states == 3
    assert model.initial.tolist() == [0.25, 0.75, 0.0]
    assert model.admissible.tolist() == [[True, True], [True, False], [True, True]]
    np.testing.assert_allclose(reward, [[1.25, -1.0], [4.3, 0.0], [0.0, 0.0]])
    table = {0: env.P[0], 1: {0: env.P[1][0], 1: env.P[1][0]}}
    values = value_iteration(table, 2, 2, 0.9)
    plan = model.plan(reward=reward)
    np.testing.assert_allclose(plan.values, [*values, 0.0], atol=1e-10)
    # The same in closed form: V(1) = 4.3 + 0.9 · 0.6 V(1), V(0) = 1.25 + 0.9 (0.75 V(0) + 0.25 V(1)).
    v1 = 4.3 / 0.46
    assert plan.values[:2] == pytest.approx([(1.25 + 0.225 * v1) / 0.325, v1])
    assert ContextualMDPEnv(model, reward.ravel()).reset(seed=0, options={"state": 1})[1]["action_mask"].tolist() == [1, 0]


def table_of(table: Any, n_states: int, n_actions: int) -> Any:
    env: Any = Turnstile(isd=np.eye(n_states)[0])
    env.P = table
    env.observation_space, env.action_space = gymnasium.spaces.Discrete(n_states), gymnasium.spaces.Discrete(n_actions)
    return env


def test_a_game_that_is_played_until_it_is_over() -> None:
    # The state is the same before and after; half of the time there is no after.
    model, reward = from_gymnasium(table_of({0: {0: [(0.5, 0, 1.0, False), (0.5, 0, 1.0, True)]}}, 1, 1), discount=0.9)
    assert model.n_states == 2
    assert model.plan(reward=reward).value == pytest.approx(1.0 / (1.0 - 0.45))
    assert model.plan(reward.ravel()).value == pytest.approx(1.0 / (1.0 - 0.45))


def test_what_never_happens_leads_nowhere() -> None:
    # State 1 is a final one; that it could be reached otherwise has probability zero.
    table = [[[(1.0, 1, 2.0, True), (0.0, 1, 5.0, False)]], [[(1.0, 0, 7.0, False)]]]
    model, reward = from_gymnasium(table_of(table, 2, 1), discount=0.9)
    assert model.n_states == 2
    assert reward.tolist() == [[2.0], [0.0]]
    assert model.plan(reward=reward).values.tolist() == [2.0, 0.0]


def test_absorbing_states_have_no_default_features() -> None:
    model, _ = from_gymnasium(gymnasium.make("FrozenLake-v1"))
    for state, letter in enumerate("SFFFFHFHFFFHHFFG"):
        for action in range(4):
            expected = np.zeros(64)
            if letter in "SF":
                expected[state * 4 + action] = 1.0
            assert np.array_equal(model.feature_row(state, action), expected)
    # So episodes end there, whatever the reward.
    env = ContextualMDPEnv(model, np.arange(64.0))
    env.reset(seed=0, options={"state": 14})
    holes_and_goal = (5, 7, 11, 12, 15)
    while not (step := env.step(2))[2]:
        assert step[0] not in holes_and_goal
    assert step[0] in holes_and_goal


def test_features_of_ones_own() -> None:
    model, _ = from_gymnasium(Turnstile(), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), discount=0.9)
    assert model.features is not None
    assert model.features.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]
    model, _ = from_gymnasium(Turnstile(), np.ones((2, 2, 5)), discount=0.9)
    assert model.n_features == 5 and model.feature_row(2, 0).tolist() == [0.0] * 5
    compressed = (3, [0, 1, 2, 3, 3], [0, 1, 2], [1.0, 1.0, 1.0])
    model, _ = from_gymnasium(Turnstile(), compressed, discount=0.9)
    found = [model.feature_row(s, a).tolist() for s, a in ((0, 0), (0, 1), (1, 0), (2, 0), (2, 1))]
    assert found == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0] * 3, [0.0] * 3]
    model, _ = from_gymnasium(gymnasium.make("FrozenLake-v1"), np.eye(16))
    assert model.n_features == 16
    model, _ = from_gymnasium(gymnasium.make("FrozenLake-v1"), "indicators", context_space=("simplex", 3))
    assert model.n_features == 20 and model.context_dimension == 3


def test_the_start_can_be_chosen() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    model, reward = from_gymnasium(env, initial=14)
    assert model.plan(reward=reward).value == pytest.approx(1.0)
    spread = np.full(16, 1 / 16)
    model, reward = from_gymnasium(env, initial=spread)
    assert model.n_states == 16 and np.array_equal(model.initial, spread)
    with pytest.raises(SettingError, match="initial"):
        from_gymnasium(Turnstile(isd=None))
    with pytest.raises(ArrayError):
        from_gymnasium(env, initial=[1.0])


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, match="no table"):
        from_gymnasium(gymnasium.make("CartPole-v1"))
    with pytest.raises(DataError, match="no table"):
        from_gymnasium(None)
    broken: Any = Turnstile()
    broken.P[0][0] = [(1.0, 0)]
    with pytest.raises(DataError, match=r"P\[0\]\[0\]") as raised:
        from_gymnasium(broken)
    assert (raised.value.state, raised.value.action) == (0, 0)
    broken = Turnstile()
    broken.P[0][1] = [(1.0, 2, 0.0, False)]
    with pytest.raises(DataError, match="leads to state 2"):
        from_gymnasium(broken)
    broken = Turnstile()
    broken.P[1][0] = [(0.7, 0, 0.0, False)]
    with pytest.raises(coirl.errors.ModelError):
        from_gymnasium(broken)
    broken = Turnstile()
    broken.P[1] = {}
    with pytest.raises(coirl.errors.ModelError):
        from_gymnasium(broken)
    broken = Turnstile()
    broken.observation_space = gymnasium.spaces.Box(0.0, 1.0)
    with pytest.raises(DataError, match="observation_space"):
        from_gymnasium(broken)

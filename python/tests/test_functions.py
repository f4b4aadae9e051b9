"""Models from functions of states and actions, and the test beds that are made of them."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import coirl
from coirl import ContextualMDP
from coirl.errors import ArrayError, ModelError, SettingError

N, A = 40, 3


def successors(state: int, action: int) -> list[tuple[int, float]]:
    """Some twice, some of probability zero; the last action only in even states."""
    if action == 2 and state % 2:
        return []
    return [((state + 1 + action) % N, 0.5), (state, 0.25), (7, 0.25), (3, 0.0)]


def phi(state: int, action: int) -> list[float]:
    return [float(state), float(action), float(state == 5)]


def dense() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    kernel, features = np.zeros((N, A, N)), np.zeros((N, A, 3))
    for s in range(N):
        for a in range(A):
            features[s, a] = phi(s, a)
            for follower, p in successors(s, a):
                kernel[s, a, follower] += p
    return kernel, features, kernel.sum(axis=2) > 0


def assert_same(found: ContextualMDP, expected: ContextualMDP) -> None:
    for one, other in zip(found.transitions(), expected.transitions(), strict=True):
        assert (one == other).all()
    assert (found.admissible == expected.admissible).all()
    assert (found.initial == expected.initial).all()
    assert found.discount == expected.discount
    weights = [1.0, -0.5, 3.0]
    plans = found.plan(weights), expected.plan(weights)
    assert (plans[0].policy == plans[1].policy).all() and (plans[0].values == plans[1].values).all()


def as_none(state: int, action: int) -> Any:
    return successors(state, action) or None


def as_dictionary(state: int, action: int) -> Any:
    found: dict[int, float] = {}
    for follower, p in successors(state, action):
        found[follower] = found.get(follower, 0.0) + p
    return found


def as_lists(state: int, action: int) -> Any:
    found = successors(state, action)
    return [follower for follower, _ in found], [p for _, p in found]


def as_arrays(state: int, action: int) -> Any:
    followers, shares = as_lists(state, action)
    return np.array(followers, dtype=np.int32), np.array(shares, dtype=np.float32)


def as_generator(state: int, action: int) -> Any:
    return (pair for pair in successors(state, action))


@pytest.mark.parametrize("transition", [successors, as_none, as_dictionary, as_lists, as_arrays, as_generator])
def test_one_function_in_every_form(transition: Callable[[int, int], Any]) -> None:
    kernel, features, mask = dense()
    expected = ContextualMDP(kernel, features, discount=0.8, admissible=mask)
    assert_same(ContextualMDP.from_functions(N, A, transition, phi, discount=0.8), expected)
    assert_same(ContextualMDP.from_functions(N, A, transition, features, discount=0.8), expected)


def test_vectorised_functions_are_the_same() -> None:
    def transition(states: Any, action: int) -> Any:
        followers = np.column_stack([(states + 1 + action) % N, states, np.full_like(states, 7), np.full_like(states, 3)])
        shares = np.tile([0.5, 0.25, 0.25, 0.0], (len(states), 1))
        if action == 2:
            shares[states % 2 == 1] = 0
        return followers, shares

    def features(states: Any, action: int) -> Any:
        return np.column_stack([states, np.full(len(states), action), states == 5]).astype(float)

    kernel, values, mask = dense()
    found = ContextualMDP.from_functions(N, A, transition, features, discount=0.8, vectorised=True)
    assert_same(found, ContextualMDP(kernel, values, discount=0.8, admissible=mask))


def test_vectorised_answers_in_short() -> None:
    def transition(states: Any, action: int) -> Any:
        if action == 0:
            return states, 1.0  # a successor each, surely
        if action == 1:
            return np.column_stack([(states + 1) % N, states]), [0.75, 0.25]  # the same probabilities for every state
        return None

    found = ContextualMDP.from_functions(N, A, transition, np.eye(N), vectorised=True)
    assert found.admissible.tolist() == [[True, True, False]] * N
    expected = ContextualMDP.from_functions(N, A, lambda s, a: [s, {(s + 1) % N: 0.75, s: 0.25}, None][a], np.eye(N), initial=None)
    for one, other in zip(found.transitions(), expected.transitions(), strict=True):
        assert (one == other).all()


def test_blocks_of_states_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def transition(states: Any, action: int) -> Any:
        width = 2 + action  # rows of another length for every action
        return (states[:, None] + np.arange(width)) % 1000, np.full(width, 1 / width)

    def made() -> ContextualMDP:
        return ContextualMDP.from_functions(1000, 3, transition, lambda states, a: states[:, None] % 7 + a, vectorised=True)

    whole = made()
    monkeypatch.setattr("coirl._functions._BLOCK", 77)
    parts = made()
    for one, other in zip(whole.transitions(), parts.transitions(), strict=True):
        assert (one == other).all()
    assert whole.plan([1.0]).value == parts.plan([1.0]).value


def test_settings_are_those_of_the_constructor() -> None:
    model = ContextualMDP.from_functions(
        3, 1, lambda s, _: s, np.eye(3), 2, 0.5, context_space=("simplex", 3), name="stay", action_names=["stay"]
    )
    assert model.initial.tolist() == [0, 0, 1] and model.discount == 0.5 and model.context_dimension == 3
    assert model.names["model"] == "stay"
    with pytest.raises(SettingError, match="admissible follows from the functions"):
        ContextualMDP.from_functions(3, 1, lambda s, _: s, np.eye(3), admissible=np.ones((3, 1), bool))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([(0, 0.5), (1, float("nan"))], "state 2, action 1: the probability of state 1 is NaN"),
        ([(0, 1.5), (1, -0.5)], "state 2, action 1: the probability of state 0 is 1.5"),
        ([(0, -0.5), (1, 1.5)], "state 2, action 1: the probability of state 0 is -0.5"),
        ([(0, 0.5), (1, 0.4)], "state 2, action 1: the transition probabilities sum to 0.9"),
        ([(0, 0.0)], "state 2, action 1: the transition probabilities sum to 0;"),
        ([(4, 1.0)], "state 2, action 1: successor state 4 does not exist; the model has 4 states"),
        (-1, "state 2, action 1: successor state -1 does not exist"),
        (([0, 1], [1.0]), "state 2, action 1: 2 next states and 1 probabilities"),
        (10**30, "state 2, action 1: successor state 10+ does not exist"),
    ],
)
def test_what_is_wrong_is_told_with_state_and_action(answer: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as told:
        ContextualMDP.from_functions(4, 2, lambda s, a: answer if (s, a) == (2, 1) else s, np.eye(4))
    assert (told.value.state, told.value.action) == (2, 1)


@pytest.mark.parametrize("answer", [0.5, True, "no", [1, 2], [(1, 0.5, 0.5)], [("a", 1.0)], [(1, "x")], {1: None}, (1, 1.0)])
def test_answers_that_are_none(answer: Any) -> None:
    with pytest.raises(TypeError, match="state 0, action 0"):
        ContextualMDP.from_functions(4, 2, lambda _s, _a: answer, np.eye(4))


def test_a_state_without_actions_is_refused() -> None:
    with pytest.raises(ModelError, match="state 1 has no admissible action"):
        ContextualMDP.from_functions(3, 2, lambda s, _: None if s == 1 else s, np.eye(3))
    with pytest.raises(ModelError, match="state 0 has no admissible action"):
        ContextualMDP.from_functions(3, 2, lambda _s, _a: None, lambda _s, _a: [1.0])
    with pytest.raises(ModelError, match="state 0 has no admissible action"):
        ContextualMDP.from_functions(3, 2, lambda _s, _a: None, lambda _s, _a: np.ones((3, 1)), vectorised=True)


def test_vectorised_answers_of_other_shapes() -> None:
    def refused(answer: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            ContextualMDP.from_functions(4, 2, lambda _s, _a: answer, np.eye(4), vectorised=True)

    refused(np.zeros(4), TypeError, "expected .next states, probabilities.")
    refused((np.zeros((3, 2), int), np.ones((3, 2))), ArrayError, "4 rows, one per state")
    refused((np.zeros((4, 2), int), np.ones((4, 3)) / 3), ArrayError, "probabilities has shape")
    refused((np.full((4, 2), 0.5), np.full((4, 2), 0.5)), ArrayError, "whole number")
    refused((np.full((4, 1), 9), np.ones((4, 1))), ModelError, "state 0, action 0: successor state 9")
    refused((np.zeros((4, 1), int), np.array([[1.0], [1.0], [np.nan], [1.0]])), ModelError, "state 2, action 0.*NaN")


def test_features_that_are_none() -> None:
    def refused(features: Any, error: type[Exception], message: str, **settings: Any) -> None:
        with pytest.raises(error, match=message):
            ContextualMDP.from_functions(4, 2, lambda s, _: s, features, **settings)

    refused(lambda s, a: [float("inf") if (s, a) == (3, 1) else 0.0], ModelError, "state 3, action 1: feature 0 is inf")
    refused(lambda s, _: np.zeros(1 + s), ArrayError, "2 numbers; expected 1")
    refused(lambda _s, _a: "x", TypeError, "features")


def test_what_a_function_raises_comes_through() -> None:
    def transition(state: int, action: int) -> int:
        raise KeyError(f"{state} {action}")

    with pytest.raises(KeyError, match="0 0") as told:
        ContextualMDP.from_functions(3, 1, transition, np.eye(3))
    assert getattr(told.value, "__notes__", ["in transition for state 0, action 0"]) == ["in transition for state 0, action 0"]


def test_the_example_of_the_docstring_runs() -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    found = finder.find(ContextualMDP.from_functions, "from_functions", globs={"ContextualMDP": ContextualMDP})
    assert sum(len(test.examples) for test in found) == 3
    for test in found:
        runner.run(test)
    assert runner.failures == 0


def test_a_pendulum_by_hand_is_the_one_that_ships() -> None:
    n = 15
    angles, speeds, torques = np.linspace(0, 2 * np.pi, n), np.linspace(-10, 10, n), np.linspace(-3, 3, 9)

    def transition(states: Any, action: int) -> Any:
        x, v = angles[states // n], speeds[states % n]
        x, v = (x + v * 0.01) % (2 * np.pi), np.clip(v + (torques[action] - 9.81 * np.sin(x)) * 0.01, -10, 10)
        i = np.clip(np.searchsorted(angles, x, side="right"), 1, n - 1)
        j = np.clip(np.searchsorted(speeds, v, side="right"), 1, n - 1)
        a = ((x - angles[i - 1]) / (angles[i] - angles[i - 1])).clip(0, 1)
        b = ((v - speeds[j - 1]) / (speeds[j] - speeds[j - 1])).clip(0, 1)
        corner = (i - 1) * n + j - 1
        followers = np.column_stack([corner, corner + 1, corner + n, corner + n + 1])
        return followers, np.column_stack([(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b])

    def features(states: Any, action: int) -> Any:
        x, v = angles[states // n], speeds[states % n]
        return np.column_stack([(x - np.pi) ** 2, v**2, np.full(len(states), torques[action] ** 2)])

    mine = ContextualMDP.from_functions(n * n, 9, transition, features, discount=0.999, vectorised=True)
    ours = coirl.domains.pendulum(n, 0.999)
    weights = np.array([0.4, 0.4, 0.2]) @ coirl.domains.pendulum_mapping()
    assert weights.tolist() == [-2, -2, -1]
    np.testing.assert_allclose(mine.plan(weights).values, ours.plan(weights).values, rtol=1e-9, atol=1e-9)


def test_the_other_test_beds() -> None:
    maze, epidemic = coirl.domains.maze(12, discount=0.999, seed=2), coirl.domains.epidemic(50, 20)
    assert (maze.n_states, maze.n_actions, maze.n_features) == (144, 4, 3)
    assert (epidemic.n_states, epidemic.n_actions, epidemic.n_features) == (51, 20, 3)
    assert (np.array([1, 0, 0]) @ coirl.domains.maze_mapping()).tolist() == [-1, 0, 0]
    assert (np.array([0.5, 0.2, 0.3]) @ coirl.domains.epidemic_mapping()).tolist() == [-0.5, 0.2, -0.3]
    assert maze.plan([-1.0, 0, 0]).values[-1] == pytest.approx(0)
    assert maze.names["features"] == ["step", "mud", "danger"]
    with pytest.raises(SettingError, match="slip"):
        coirl.domains.maze(5, slip=2)

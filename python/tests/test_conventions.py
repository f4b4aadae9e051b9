"""What learners share: settings, callbacks, streams, experts, files, errors, threads and interruptions."""

from __future__ import annotations

import copy
import dataclasses
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import coirl
from coirl import ContextualMDP, Demonstrations, Learner, SimulatedExpert, StreamLearner, Transfer, _coirl, errors
from coirl.learners import _BY_METHOD

LEARNERS = sorted(_BY_METHOD.values(), key=lambda cls: cls.__name__)
SEE_ACTIONS = (coirl.Cloning, coirl.NeuralCloning, coirl.Majority, coirl.NearestContext)
TRUTH = np.array([[1.0, -0.5, 0.2], [-0.3, 1.0, -1.0], [0.1, 0.4, 1.0]])


def small_model(**settings: Any) -> ContextualMDP:
    rng = np.random.default_rng(1)
    kernel = rng.dirichlet(np.full(12, 0.2), (12, 3))
    return ContextualMDP(kernel, rng.normal(size=(12, 3)), context_space=("simplex", 3), **settings)


MODEL = small_model()
CONTEXTS = MODEL.sample_contexts(10, seed=1)
TESTS = MODEL.sample_contexts(7, seed=2)


def shown(model: ContextualMDP = MODEL, contexts: Any = CONTEXTS) -> Demonstrations:
    """Feature expectations of the best policies."""
    return Demonstrations.from_arrays(contexts, model.plan_many(contexts @ TRUTH).feature_expectations)


def walked(contexts: Any = CONTEXTS) -> Demonstrations:
    """A trajectory of the best policy in every context."""
    paths = [MODEL.sample(MODEL.plan(c @ TRUTH).policy, steps=15, seed=i)[0] for i, c in enumerate(contexts)]
    return Demonstrations.from_arrays(contexts, states=[states for states, _ in paths], actions=[actions for _, actions in paths])


def fitted(cls: type[Learner], **settings: Any) -> Learner:
    """A learner of a class after a few steps."""
    learner = cls(**{"max_steps": 5, **settings})
    if cls.interactive:
        return learner.fit(MODEL, CONTEXTS, expert=SimulatedExpert(TRUTH, tolerance=1e-3))
    return learner.fit(MODEL, walked() if cls in SEE_ACTIONS else shown())


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)


def run_script(code: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """A program of its own, in this environment."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(),
        check=False,
    )


def environment() -> dict[str, str]:
    found = [path for path in sys.path if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found)}


@pytest.fixture(autouse=True)
def usual_threads() -> Iterator[None]:
    yield
    coirl.set_threads(None)


def test_every_learner_is_public() -> None:
    public = {value for value in vars(coirl).values() if isinstance(value, type) and issubclass(value, Learner)}
    assert public == {*LEARNERS, Learner, StreamLearner}
    assert all(cls.__name__ in coirl.__all__ for cls in LEARNERS)


@pytest.mark.parametrize("cls", LEARNERS)
def test_settings_as_in_scikit_learn(cls: type[Learner]) -> None:
    learner = cls()
    params = learner.get_params()
    assert set(params) == {own.name for own in dataclasses.fields(learner)}
    # The constructor stores what it is given, and nothing else.
    assert vars(learner) == params
    given = {name: object() for name in params}
    stored = cls(**given)
    assert all(getattr(stored, name) is value for name, value in given.items())
    assert vars(stored).keys() == given.keys()
    other = cls(seed=7, max_steps=11, initial=TRUTH)
    copied = clone(other)
    assert type(copied) is cls and copied is not other
    assert all(same(value, copied.get_params()[name]) for name, value in other.get_params().items())
    for name, value in other.get_params().items():
        assert learner.set_params(**{name: value}) is learner
        assert getattr(learner, name) is value
    with pytest.raises(errors.SettingError, match="did you mean 'max_steps'") as unknown:
        learner.set_params(max_step=3)
    assert unknown.value.name == "max_step"
    with pytest.raises(TypeError):
        cls(max_step=3)


@pytest.mark.parametrize("cls", LEARNERS)
def test_a_learner_shows_what_was_changed(cls: type[Learner]) -> None:
    assert repr(cls()) == f"{cls.__name__}()"
    changed = cls(seed=7, max_steps=11)
    assert repr(changed) == f"{cls.__name__}(seed=7, max_steps=11)"
    again = eval(repr(changed), vars(coirl))
    assert again.get_params() == changed.get_params()
    assert "not fitted" in cls()._repr_html_() and "step" in fitted(cls)._repr_html_()


@pytest.mark.parametrize("cls", LEARNERS)
def test_defaults_are_those_of_the_library(cls: type[Learner]) -> None:
    known = json.loads(_coirl.default_settings(json.dumps({"method": {"name": cls._method}})))
    assert json.loads(cls()._settings()) == known


def test_every_method_of_the_library_is_a_class() -> None:
    entries = json.loads(_coirl.registry())
    assert {entry["settings"]["name"] for entry in entries} == set(_BY_METHOD)
    for entry in entries:
        cls = _BY_METHOD[entry["settings"]["name"]]
        assert (issubclass(cls, StreamLearner), cls.interactive) == (entry["stream"], entry["interactive"]), cls


def test_the_objective_follows_the_data() -> None:
    def objective(learner: Learner, demonstrations: Demonstrations) -> Any:
        return learner.fit(MODEL, demonstrations).settings_["method"]["objective"]

    for cls in (coirl.Adaptive, coirl.Neural):
        assert objective(cls(max_steps=2), shown()) == "loss"
        assert objective(cls(max_steps=2), walked()) == {"likelihood": {"temperature": None}}
        assert objective(cls(max_steps=2, estimator="truncated"), walked()) == "loss"
        assert objective(cls(max_steps=2, objective="loss"), walked()) == "loss"
        assert objective(cls(max_steps=2, objective=0.5), walked()) == {"likelihood": {"temperature": 0.5}}


def test_an_estimator_that_is_not_used_is_refused() -> None:
    ignoring: list[Learner] = [coirl.Cloning(estimator="truncated"), coirl.Uniform(estimator="decisions")]
    for learner in [*ignoring, coirl.Adaptive(objective="likelihood", estimator="truncated")]:
        with pytest.raises(errors.SettingError, match=r"estimator.*these do: .*adaptive.*bundle"):
            learner.fit(MODEL, walked())


@pytest.mark.parametrize("cls", LEARNERS)
def test_what_was_learned_comes_back_from_a_file(cls: type[Learner], tmp_path: Path) -> None:
    learner = fitted(cls, seed=3, record_every=2)
    learner.save(tmp_path / "fitted.safetensors")
    for again in (
        coirl.load(tmp_path / "fitted.safetensors", MODEL),
        cls.load(str(tmp_path / "fitted.safetensors"), MODEL),
        pickle.loads(pickle.dumps(learner)),
        copy.deepcopy(learner),
    ):
        assert type(again) is cls
        params = again.get_params()
        for name, value in learner.get_params().items():
            # What was left to the library comes back as it was decided.
            assert same(value, params[name]) or value is None or (name, value) == ("objective", "auto"), name
        for name in (
            "mapping_",
            "loss_",
            "history_",
            "status_",
            "certificate_",
            "n_steps_",
            "n_planner_calls_",
            "n_demonstrations_",
            "settings_",
        ):
            assert same(getattr(learner, name), getattr(again, name)), name
        for one, other in zip(learner.predict(TESTS), again.predict(TESTS)):
            np.testing.assert_array_equal(one, other)
        again.save(tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "fitted.safetensors").read_bytes()
    without = coirl.load(tmp_path / "fitted.safetensors")
    with pytest.raises(errors.NotFittedError):
        without.predict(TESTS)
    wrong = coirl.Majority if cls is not coirl.Majority else coirl.Uniform
    with pytest.raises(errors.SettingError):
        wrong.load(tmp_path / "fitted.safetensors")


@pytest.mark.parametrize(
    "learner",
    [
        coirl.Adaptive(objective="loss", batch="full", initial=TRUTH, stop_loss=1e-9, record_every=1),
        coirl.Adaptive(objective=0.25, batch=3),
        coirl.Adaptive(objective="likelihood", batch={"with_replacement": {"size": 2}}, watched="accuracy"),
        coirl.MirrorDescent(geometry="simplex", step_size=0.25, average="last", batch=2),
        coirl.MirrorDescent(geometry="sphere", step_size={"schedule": {"initial": 0.3, "decay": 0.5}}, average="before_update"),
        coirl.MirrorDescent(step_size="constant"),
        coirl.MirrorDescent(step_size={"theory": {"multiplier": 2.0}}),
        coirl.Neural(
            hidden=[4, 3], objective="loss", optimiser=0.9, step_decay=0.99, weight_decay=0.1, largest_gradient=1.0, batch="full"
        ),
        coirl.Neural(hidden=[4], objective="loss", gradient="antithetic", optimiser="sgd", unit_output=False, batch="in_order"),
        coirl.Bundle(max_cuts=7, radius=2.0, caution=0.5, relative_gap=1e-2, stop_gap=1e-3),
        coirl.EvolutionStrategies(
            perturbation={"antithetic": {"deviation": 0.01, "pairs": 4}}, region="ball", step_size=0.2, best=True
        ),
        coirl.EvolutionStrategies(policies="resolved", perturbation={"antithetic": {"deviation": 0.01, "pairs": 2}}),
        coirl.Mwal(signed=False, step_multiplier=2.0),
        coirl.Projection(states="joint"),
        coirl.MaximumEntropy(temperature=0.5, penalty=0.1, greedy=True),
        coirl.Cloning(components=2, interactions=False, most_probable=True, masked=False),
        coirl.NeuralCloning(hidden=[4], step_decay=0.9, optimiser=0.5, batch="full", components=2),
    ],
)
def test_settings_come_back_from_a_file_as_they_were_written(learner: Learner, tmp_path: Path) -> None:
    learner.set_params(max_steps=3)
    needs_actions = isinstance(learner, SEE_ACTIONS) or getattr(learner, "objective", "loss") != "loss"
    learner.fit(MODEL, walked() if needs_actions else shown())
    learner.save(tmp_path / "fitted.safetensors")
    again = coirl.load(tmp_path / "fitted.safetensors", MODEL)
    for name, value in learner.get_params().items():
        # What was left to the library comes back as it was decided.
        assert same(value, again.get_params()[name]) or value is None, name


@pytest.mark.parametrize("cls", LEARNERS)
def test_same_seed_same_bytes_whatever_the_threads(cls: type[Learner], tmp_path: Path) -> None:
    files = []
    for threads in (1, 2, 5, 2):
        coirl.set_threads(threads)
        assert coirl.threads() == threads
        path = tmp_path / f"{len(files)}.safetensors"
        fitted(cls, seed=5).save(path)
        files.append(path.read_bytes())
    assert len(set(files)) == 1


def test_another_seed_is_another_run() -> None:
    one, two = (fitted(coirl.EvolutionStrategies, seed=seed).mapping_ for seed in (1, 2))
    assert one is not None and two is not None and (one != two).any()


def test_numbers_of_threads_that_are_none() -> None:
    for n in (0, -1, 10**9, 2**70):
        with pytest.raises(errors.CoirlError):
            coirl.set_threads(n)
    for other in ("2", 1.5, True):
        with pytest.raises(TypeError):
            coirl.set_threads(other)  # type: ignore[arg-type]
    assert coirl.threads() >= 1


def test_nothing_before_fitting() -> None:
    learner = coirl.Adaptive()
    for ask in (
        lambda: learner.predict(TESTS),
        lambda: learner.weights(TESTS),
        lambda: learner.score(shown()),
        lambda: learner.save("nowhere.safetensors"),
        lambda: Transfer(MODEL, learner),
    ):
        with pytest.raises(errors.NotFittedError) as early:
            ask()
        assert isinstance(early.value, ValueError) and isinstance(early.value, AttributeError)
    assert not hasattr(learner, "mapping_")


def test_results_are_what_they_are_called() -> None:
    learner = fitted(coirl.Adaptive, max_steps=40)
    assert learner.mapping_ is not None and learner.mapping_.shape == (3, 3)
    np.testing.assert_allclose(learner.weights(TESTS), TESTS @ learner.mapping_, atol=1e-12)
    np.testing.assert_array_equal(learner.weights(TESTS[0]), learner.weights(TESTS)[0])
    plan = learner.plan(TESTS[0])
    np.testing.assert_array_equal(learner.predict(TESTS[0]), plan.policy)
    np.testing.assert_array_equal(learner.predict(TESTS)[0], plan.policy)
    # Loss(W) / |W| on the demonstrations: what the agent would gain over them by its own reward.
    weights = CONTEXTS @ learner.mapping_
    plans, demonstrated = MODEL.plan_many(weights), shown().feature_expectations
    missed = np.mean(plans.value - (weights * demonstrated).sum(axis=1)) / np.linalg.norm(learner.mapping_)
    assert learner.loss_ == pytest.approx(missed, abs=1e-9)
    assert learner.score(shown()) == pytest.approx(-missed, abs=1e-9)
    # The share of demonstrated actions that it takes.
    test = walked(TESTS)
    hits = [(learner.predict(TESTS[i])[states[:-1]] == actions).mean() for i, states, actions in test.trajectories()]
    assert learner.score(test) == pytest.approx(np.mean(hits), abs=1e-12)
    examined = learner.examine(TRUTH, TESTS)
    own = [MODEL.evaluate(policy, c @ TRUTH).value for policy, c in zip(learner.predict(TESTS), TESTS)]
    best = MODEL.plan_many(TESTS @ TRUTH).value
    assert examined["value"] == pytest.approx(np.mean(own), abs=1e-9)
    assert examined["value_ratio"] == pytest.approx(np.mean(own) / np.mean(best), abs=1e-9)


def test_predict_proba_is_the_policy_at_the_visited_states() -> None:
    visits = [[0, 3, 3], [], [11], [5, 4], [1], [2], [0]]
    for learner in (fitted(coirl.Adaptive), fitted(coirl.MaximumEntropy), fitted(coirl.Uniform)):
        found = learner.predict_proba(TESTS, visits)
        expected = []
        for policy, states in zip(learner.predict(TESTS), visits):
            rows = policy if policy.ndim == 2 else np.eye(3)[policy]
            expected += [rows[state] for state in states]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_callbacks_see_every_step() -> None:
    records: list[dict[str, Any]] = []
    learner = coirl.Adaptive(max_steps=6, record_every=1).fit(MODEL, shown(), callback=records.append)
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    # The history begins before the first step.
    assert learner.history_[0]["step"] == 0 and records == learner.history_[1:]
    scored = coirl.Adaptive(max_steps=2, record_every=1).fit(MODEL, shown(), truth=(TRUTH, TESTS))
    assert {"value_ratio", "relative_value", "held_out_loss"} <= scored.history_[-1].keys()
    assert scored.history_[-1]["value_ratio"] == pytest.approx(scored.examine(TRUTH, TESTS)["value_ratio"])


@pytest.mark.parametrize("cls", [coirl.Adaptive, coirl.Bundle, coirl.MaximumEntropy, coirl.Mwal])
def test_a_callback_stops_a_run(cls: type[Learner]) -> None:
    learner = cls(max_steps=50).fit(MODEL, shown(), callback=lambda record: record["step"] < 3)
    assert learner.n_steps_ == 3 and learner.status_ == "interrupted"
    short = cls(max_steps=3).fit(MODEL, shown())
    np.testing.assert_allclose(learner.predict(TESTS[0]), short.predict(TESTS[0]), atol=1e-9)
    # Nothing is no answer: the run goes on.
    assert cls(max_steps=4).fit(MODEL, shown(), callback=lambda record: None).n_steps_ == 4


def test_an_exception_of_a_callback_keeps_what_was_learned() -> None:
    class Enough(Exception):
        pass

    def callback(record: dict[str, Any]) -> None:
        if record["step"] == 4:
            raise Enough("at four")

    learner = coirl.Adaptive(max_steps=50)
    with pytest.raises(Enough, match="at four"):
        learner.fit(MODEL, shown(), callback=callback)
    assert learner.n_steps_ == 4 and learner.status_ == "interrupted"
    np.testing.assert_array_equal(learner.mapping_, coirl.Adaptive(max_steps=4).fit(MODEL, shown()).mapping_)


def test_a_callback_may_use_the_library() -> None:
    learner = coirl.Adaptive(max_steps=3)
    seen = []
    learner.fit(MODEL, shown(), callback=lambda record: seen.append(MODEL.plan([1.0, 0.0, 0.0]).value))
    assert len(seen) >= 3 and len(set(seen)) == 1


@pytest.mark.parametrize("chunks", [[10], [5, 5], [3, 4, 3], [1] * 10, [7, 1, 2]])
@pytest.mark.parametrize(
    "learner",
    [coirl.Adaptive(), coirl.MirrorDescent(step_size={"schedule": {"initial": 0.5, "decay": 0.9}}), coirl.EvolutionStrategies()],
)
def test_a_stream_in_parts_is_the_stream(learner: StreamLearner, chunks: list[int]) -> None:
    demonstrations = shown()
    whole = clone(learner).set_params(max_steps=10).fit(MODEL, demonstrations)
    stream = clone(learner)
    at = 0
    for n in chunks:
        assert stream.partial_fit(MODEL, demonstrations[at : at + n]) is stream
        at += n
        assert stream.n_steps_ == at
    np.testing.assert_array_equal(stream.mapping_, whole.mapping_)
    regrets = [learned.history_[-1]["regret"] for learned in (stream, whole)]
    assert regrets[0] == regrets[1]
    assert stream.max_steps is None


def test_streams_go_on_only_where_they_stopped(tmp_path: Path) -> None:
    learner = coirl.Adaptive().partial_fit(MODEL, shown())
    learner.save(tmp_path / "fitted.safetensors")
    with pytest.raises(errors.SettingError):
        coirl.Adaptive.load(tmp_path / "fitted.safetensors", MODEL).partial_fit(MODEL, shown())
    steps = coirl.Adaptive(max_steps=4).partial_fit(MODEL, shown()).partial_fit(MODEL, shown())
    assert steps.n_steps_ == 8
    fresh = learner.fit(MODEL, shown())
    np.testing.assert_array_equal(fresh.mapping_, coirl.Adaptive().fit(MODEL, shown()).mapping_)


@pytest.mark.parametrize("cls", [cls for cls in LEARNERS if cls.interactive and cls is not coirl.BatchEllipsoid])
def test_a_callable_expert_is_as_good_as_a_simulated_one(cls: type[Learner]) -> None:
    questions: list[tuple[int, Any, Any]] = []

    def expert(query: int, context: Any, feature_expectations: Any) -> Any:
        questions.append((query, context, feature_expectations))
        best = MODEL.plan(context @ TRUTH)
        return None if best.value - context @ TRUTH @ feature_expectations <= 1e-3 else best.feature_expectations

    simulated = cls(max_steps=8).fit(MODEL, CONTEXTS, expert=SimulatedExpert(TRUTH, tolerance=1e-3))
    asked = cls(max_steps=8).fit(MODEL, CONTEXTS, expert=expert)
    np.testing.assert_array_equal(asked.mapping_, simulated.mapping_)
    assert asked.n_demonstrations_ == simulated.n_demonstrations_
    assert questions and all(any((context == own).all() for own in CONTEXTS) for _, context, _ in questions)


def test_an_expert_that_fails() -> None:
    def refuses(query: int, context: Any, feature_expectations: Any) -> Any:
        raise LookupError("ask somebody else")

    with pytest.raises(LookupError, match="somebody else"):
        coirl.Ellipsoid(max_steps=3).fit(MODEL, CONTEXTS, expert=refuses)
    for answer, family in (
        ([1.0], errors.ArrayError),
        ([np.nan] * 3, errors.ArrayError),
        ("yes", TypeError),
        (3, errors.ArrayError),
    ):
        with pytest.raises(family):
            coirl.Ellipsoid(max_steps=3).fit(MODEL, CONTEXTS, expert=lambda *_, own=answer: own)
    with pytest.raises(TypeError, match="expert"):
        coirl.Ellipsoid(max_steps=3).fit(MODEL, CONTEXTS)
    with pytest.raises(errors.SettingError):
        coirl.BatchEllipsoid(max_steps=3).fit(MODEL, CONTEXTS, expert=lambda *_: None)


def test_experts_that_err_within_bounds() -> None:
    exact = coirl.Ellipsoid(max_steps=8).fit(MODEL, CONTEXTS, expert=SimulatedExpert(TRUTH, tolerance=1e-3))
    sampled = SimulatedExpert(TRUTH, tolerance=1e-3, roll_outs=5, transitions=20, seed=1)
    one, two = (coirl.Ellipsoid(max_steps=8).fit(MODEL, CONTEXTS, expert=sampled) for _ in range(2))
    np.testing.assert_array_equal(one.mapping_, two.mapping_)
    assert exact.mapping_ is not None and one.mapping_ is not None and (one.mapping_ != exact.mapping_).any()
    with pytest.raises(TypeError):
        coirl.Ellipsoid().fit(MODEL, CONTEXTS, expert=SimulatedExpert(TRUTH, roll_outs=5))


def test_patience_stops_and_returns_the_best() -> None:
    validation = shown(contexts=TESTS)
    learner = coirl.MirrorDescent(step_size=0.8, max_steps=500, record_every=1, patience=4)
    learner.fit(MODEL, shown(), validation=validation)
    seen = [record["validation_loss"] for record in learner.history_]
    assert learner.status_ == "validation_stalled" and learner.n_steps_ < 500
    best = int(np.argmin(seen))
    assert len(seen) - 1 - best == 4
    assert -learner.score(validation) == pytest.approx(min(seen), abs=1e-9)
    with pytest.raises(errors.CoirlError):
        coirl.MirrorDescent(patience=4, max_steps=5).fit(MODEL, shown())


def test_a_loss_that_is_reached_ends_a_run() -> None:
    learner = coirl.Adaptive(max_steps=500, record_every=1, stop_loss=0.05).fit(MODEL, shown())
    assert learner.status_ == "loss_reached" and learner.loss_ is not None and learner.loss_ <= 0.05


@pytest.mark.parametrize("cls", [coirl.Projection, coirl.Mwal, coirl.MaxMargin, coirl.FrankWolfe])
@pytest.mark.parametrize("settings", [{}, {"discount": 0.5}, {"horizon": 4}, {"average": True}])
def test_one_policy_has_the_feature_expectations_of_its_mixture(cls: type[Learner], settings: dict[str, Any]) -> None:
    model = small_model(**settings)
    # Expectations that no single policy has.
    mixed = Demonstrations.from_arrays(CONTEXTS, [model.evaluate(model.random_policy()).feature_expectations] * len(CONTEXTS))
    learner = cls(max_steps=12).fit(model, mixed)
    drawn = 0
    for context in TESTS[:3]:
        behaviour = learner.behaviour(context)
        assert sum(share for share, _, _ in behaviour) == pytest.approx(1.0)
        expected = sum(share * mu for share, _, mu in behaviour)
        policy = learner.predict(context)
        np.testing.assert_allclose(model.evaluate(policy).feature_expectations, expected, atol=1e-9)
        for _, own, mu in behaviour:
            np.testing.assert_allclose(model.evaluate(own).feature_expectations, mu, atol=1e-9)
        drawn += len(behaviour)
    assert drawn > 3


def test_mixtures_in_dynamics_that_depend_on_the_context() -> None:
    model = coirl.domains.garnet(20, 3, n_kernels=3, n_features=3, seed=3)
    contexts = model.sample_contexts(6, seed=1)
    mu = np.array([model.evaluate(model.random_policy(), context=c).feature_expectations for c in contexts])
    learner = coirl.Mwal(max_steps=10).fit(model, Demonstrations.from_arrays(contexts, mu))
    for context in contexts[:3]:
        expected = sum(share * own for share, _, own in learner.behaviour(context))
        found = model.evaluate(learner.predict(context), context=context)
        np.testing.assert_allclose(found.feature_expectations, expected, atol=1e-9)


def test_transfer_bounds_what_is_lost() -> None:
    transfer = Transfer(MODEL, TRUTH, CONTEXTS)
    assert transfer.n_contexts == len(transfer) == 10 and 1 <= transfer.n_policies <= 10
    lost = 0
    for context in MODEL.sample_contexts(40, seed=9):
        best = MODEL.plan(context @ TRUTH)
        for settings in ({"plan": False}, {"bound": 0.5}, {"bound": 0.0}, {}):
            found = transfer.predict(context, **settings)
            own = MODEL.evaluate(found.policy, context @ TRUTH)
            np.testing.assert_allclose(found.values, own.values, atol=1e-9)
            assert found.value == pytest.approx(own.value, abs=1e-9)
            missed = (best.values - found.values).max()
            assert missed <= found.bound + 1e-9
            lost += missed > 1e-6
            if settings == {"plan": False}:
                assert found.how in ("improved", "nearest") and found.nearest in range(10)
            if settings.get("bound") == 0.0:
                assert "planned" in found.how and missed == pytest.approx(0.0, abs=1e-9)
    # Bounds are only tested where something was lost.
    assert lost > 0
    known = transfer.predict(CONTEXTS[3], plan=False)
    assert known.value == pytest.approx(MODEL.plan(CONTEXTS[3] @ TRUTH).value)


def test_transfer_remembers_and_forgets() -> None:
    transfer = Transfer(MODEL, fitted(coirl.Adaptive), CONTEXTS[:2])
    transfer.predict(TESTS[0], bound=0.0)
    assert len(transfer) == 2
    transfer.predict(TESTS[0], bound=0.0, remember=True)
    assert len(transfer) == 3
    assert transfer.learn(TESTS) is transfer and len(transfer) >= 9
    before = [transfer.predict(c, plan=False).value for c in CONTEXTS]
    policies = transfer.n_policies
    left_out = transfer.prune(CONTEXTS)
    assert left_out > 0 and transfer.n_policies == policies - left_out
    after = [transfer.predict(c, plan=False).value for c in CONTEXTS]
    np.testing.assert_allclose(after, before, atol=1e-9)
    with pytest.raises(errors.CoirlError):
        Transfer(MODEL, TRUTH).predict(TESTS[0], plan=False)
    with pytest.raises(errors.SettingError):
        Transfer(MODEL, fitted(coirl.Majority))


def test_off_policy_estimates_of_one_decision() -> None:
    # One state, treated or not by a coin, and treatment is worth 0.7 and nothing 0.2.
    n = 400
    actions = np.arange(n) % 2
    rewards = np.where(actions == 1, 0.7, 0.2)
    given: dict[str, Any] = {"n_states": 1, "n_actions": 2, "behaviour": np.full((n, 2), 0.5)}
    policies = {"treat": [1], "leave": [0], "coin": [[0.5, 0.5]], "by step": np.repeat([[0.25, 0.75]], n, axis=0)}
    found = coirl.off_policy.evaluate(
        np.zeros((n, 1)), actions.reshape(n, 1), rewards.reshape(n, 1), policies, softness=0.0, **given
    )
    worth = {"treat": 0.7, "leave": 0.2, "coin": 0.45, "by step": 0.575}
    for name, expected in worth.items():
        for estimator, estimate in found.estimates[name].items():
            assert estimate.refused is None
            assert estimate.value == pytest.approx(expected, abs=1e-9), (name, estimator)
            assert estimate.interval is not None and estimate.interval[0] - 1e-9 <= expected <= estimate.interval[1] + 1e-9
    assert found.recorded.value == pytest.approx(0.45)
    assert found.diagnostics["treat"]["effective_sample_size"] == pytest.approx(n / 2)
    np.testing.assert_array_equal(found.behaviour, given["behaviour"])
    soft = coirl.off_policy.evaluate(
        np.zeros((n, 1)), actions.reshape(n, 1), rewards.reshape(n, 1), {"treat": [1]}, softness=0.1, **given
    )
    assert soft.estimates["treat"]["weighted"].value == pytest.approx(0.9 * 0.7 + 0.1 * 0.45)
    given["behaviour"] = np.full((40, 2), 0.5)
    few = coirl.off_policy.evaluate([[0]] * 40, [[0], [1]] * 20, [[0.0], [1.0]] * 20, {"treat": [1]}, **given)
    refused = few.estimates["treat"]["weighted"]
    assert refused.value is None and refused.interval is None and refused.refused
    assert "refused" in few._repr_html_() and "0.700" in found._repr_html_()


def families() -> list[tuple[type[errors.CoirlError], type[Exception], Any, dict[str, Any]]]:
    """What goes wrong, of which family it is, and its data."""
    halves = np.full((2, 1, 2), 0.4)
    bad_actions = Demonstrations.from_arrays(TESTS[:1], states=[[0, 1]], actions=[[7]])
    return [
        (errors.ModelError, ValueError, lambda: ContextualMDP(halves, np.eye(2)), {"state": 0, "action": 0, "sum": 0.8}),
        (errors.ArrayError, ValueError, lambda: MODEL.plan([1.0, np.inf, 0.0]), {"index": 1, "value": np.inf}),
        (errors.ArrayError, ValueError, lambda: MODEL.plan([1.0]), {}),
        (errors.ContextError, ValueError, lambda: MODEL.plan([1.0, 0, 0], context=[1, 1, 1]), {"values": [1.0, 1.0, 1.0]}),
        (errors.DataError, ValueError, lambda: coirl.Majority().fit(MODEL, bad_actions), {"state": 0, "action": 7}),
        (errors.DataError, ValueError, lambda: MODEL.evaluate(np.full((12, 3), 0.5)), {"state": 0, "sum": 1.5}),
        (errors.SettingError, ValueError, lambda: MODEL.plan([1.0, 0, 0], method="magic"), {"name": "method", "value": "magic"}),
        (errors.SettingError, ValueError, lambda: coirl.Adaptive(seed=-1).fit(MODEL, shown()), {}),
        (
            errors.SolverError,
            ArithmeticError,
            lambda: ContextualMDP(np.eye(2)[:, None], np.eye(2), average=True).plan([1.0, 0.0]),
            {},
        ),
        (errors.FileError, OSError, lambda: coirl.load("no-such-file.safetensors"), {"errno": 2}),
        (errors.CommandError, RuntimeError, lambda: coirl.report("no-such-folder"), {"returncode": 1}),
        (errors.NotFittedError, AttributeError, lambda: coirl.Adaptive().predict(TESTS), {}),
    ]


@pytest.mark.parametrize("number", range(len(families())))
def test_errors_are_of_one_family_with_data(number: int) -> None:
    family, builtin, wrong, data = families()[number]
    with pytest.raises(coirl.CoirlError) as caught:
        wrong()
    error = caught.value
    assert type(error) is family and isinstance(error, builtin)
    for name, value in data.items():
        assert getattr(error, name) == pytest.approx(value) if isinstance(value, float) else getattr(error, name) == value
        assert name in error.data
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is family and str(again) == str(error) and again.data == error.data
    assert all(getattr(again, name) == getattr(error, name) for name in data)
    assert str(error) and not str(error).startswith("(")
    with pytest.raises(AttributeError):
        str(error.no_such_thing)


def test_every_family_is_tested() -> None:
    named = {getattr(errors, name) for name in errors.__all__} - {coirl.CoirlError}
    assert named == {family for family, *_ in families()}
    assert all(issubclass(family, coirl.CoirlError) for family in named)


def test_the_interpreter_is_free_while_plans_are_made() -> None:
    model = coirl.domains.garnet(3000, 6, n_successors=20, n_features=8, discount=0.995, seed=1)
    weights = np.random.default_rng(0).normal(size=(256, 8))
    turns, done = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    try:
        before = turns
        model.plan_many(weights)
        after = turns
    finally:
        done.set()
        other.join()
    # With the lock held there would be one turn before, and one after.
    assert after - before >= 5


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_works_after_use() -> None:
    done = run_script(
        """
        import multiprocessing
        import numpy as np
        import coirl

        model = coirl.domains.driving()
        truth = coirl.domains.driving_mapping()
        contexts = model.sample_contexts(20, seed=1)

        def work(_):
            plans = model.plan_many(contexts @ truth)
            learner = coirl.Adaptive(max_steps=3).fit(model, coirl.Demonstrations.from_arrays(contexts, plans.feature_expectations))
            return plans.value.sum(), learner.mapping_.sum()

        known = work(0)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map_async(work, range(3)).get(timeout=100)
        assert found == [known] * 3, (known, found)
        assert work(0) == known
        print("done")
        """
    )
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_a_fit_and_keeps_what_was_learned() -> None:
    # What was started in the background may not hear of Ctrl-C at all.
    script = """
        import signal
        import coirl

        signal.signal(signal.SIGINT, signal.default_int_handler)
        model = coirl.domains.driving()
        truth = coirl.domains.driving_mapping()
        contexts = model.sample_contexts(20, seed=1)
        seen = model.plan_many(contexts @ truth).feature_expectations
        learner = coirl.Adaptive(max_steps=10**9)

        def tell(record):
            if record["step"] == 5:
                print("ready", flush=True)

        try:
            learner.fit(model, coirl.Demonstrations.from_arrays(contexts, seen), callback=tell)
        except KeyboardInterrupt:
            print(learner.status_, learner.n_steps_ >= 5, learner.mapping_.shape, learner.predict(contexts[0]).shape, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().strip() == "ready"
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, error
    assert out.strip() == "interrupted True (3, 3) (1531,)"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("work", ["model.plan_many(weights)", "[model.plan(row, method='value_iteration') for row in weights]"])
def test_ctrl_c_ends_planning(work: str) -> None:
    # All of it would take longer than the script may.
    done = run_script(
        f"""
        import os, signal, threading
        import numpy as np
        import coirl

        signal.signal(signal.SIGINT, signal.default_int_handler)
        model = coirl.domains.garnet(600, 4, n_successors=10, n_features=8, discount=0.999, seed=1)
        weights = np.random.default_rng(0).normal(size=(2_000_000, 8))
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            {work}
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert done.returncode == 0 and done.stdout.strip() == "interrupted", done.stderr

"""Calls that nobody should make: every one ends in a result, a CoirlError or a TypeError.

Valid calls are made first, and then something about one to three of their arguments is changed: shape, type, byte order, strides, single
entries, or the whole argument for something else. All of it happens in processes of its own, so that a crash or a hang fails a test instead
of ending the tests. ``python test_fuzz.py SEED CALLS`` repeats a run, and a third argument shows every call.
"""

from __future__ import annotations

import datetime
import decimal
import faulthandler
import fractions
import json
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import coirl
from coirl import ContextualMDP, Demonstrations, SimulatedExpert, Transfer
from coirl.model import _from_bytes

CALLS = 10_000
PROCESSES = 4

Call = tuple[str, Callable[..., Any], list[Any], dict[str, Any]]


class Odd:
    """Not what anybody expects."""

    def __len__(self) -> int:
        return 3

    def __repr__(self) -> str:
        return "Odd()"


class WithArray:
    """Something that says how it is an array."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


class Calls:
    """Valid calls, and what is done to them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.models = [
            ContextualMDP(self.kernel(5, 3), self.rng.normal(size=(5, 2)), context_space=("simplex", 3)),
            ContextualMDP([self.kernel(4, 2) for _ in range(3)], self.rng.normal(size=(4, 2)), discount=0.8),
            ContextualMDP(([self.kernel(4, 2) for _ in range(2)], self.rng.normal(size=(2, 3))), self.rng.normal(size=(4, 2, 2))),
            ContextualMDP(self.kernel(4, 2), self.rng.normal(size=(4, 2)), horizon=3, context_space=("simplex", 3)),
            ContextualMDP(self.kernel(4, 2), self.rng.normal(size=(4, 2)), average=True, context_space=([-1.0] * 3, [2.0] * 3)),
            ContextualMDP(self.kernel(4, 3), "indicators", admissible=[[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]),
        ]
        self.mapping = self.rng.normal(size=(3, 2))
        model = self.models[0]
        contexts = model.sample_contexts(6, seed=1)
        seen = Demonstrations.from_arrays(contexts, model.plan_many(contexts @ self.mapping).feature_expectations)
        self.learner = coirl.Adaptive(max_steps=3).fit(model, seen)
        self.drawing = coirl.Mwal(max_steps=4).fit(model, seen)
        self.stream = coirl.Adaptive().partial_fit(model, seen)
        self.transfer = Transfer(model, self.mapping, contexts)

    def kernel(self, n_states: int, n_actions: int) -> Any:
        return self.rng.dirichlet(np.ones(n_states), (n_states, n_actions))

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def context(self) -> Any:
        return self.rng.dirichlet(np.ones(3))

    def demonstrations(self, n: int = 4) -> dict[str, Any]:
        contexts = self.rng.dirichlet(np.ones(3), n)
        if self.rng.random() < 0.5:
            return {
                "contexts": contexts,
                "feature_expectations": self.rng.normal(size=(n, 2)),
                "starts": self.rng.integers(-1, 5, n),
            }
        lengths = self.rng.integers(1, 5, n)
        return {
            "contexts": contexts,
            "states": [self.rng.integers(0, 5, length + 1) for length in lengths],
            "actions": [self.rng.integers(0, 3, length) for length in lengths],
        }

    # Each of these makes one valid call.

    def call_model(self) -> Call:
        n_states, n_actions, k = int(self.rng.integers(1, 6)), int(self.rng.integers(1, 4)), int(self.rng.integers(1, 4))
        dense = self.kernel(n_states, n_actions)
        rows = sp.csr_matrix(dense.reshape(-1, n_states))
        compressed = (rows.indptr, rows.indices, rows.data)
        by_pair = self.rng.normal(size=(n_states, n_actions, k))
        pair_rows = sp.csr_matrix(by_pair.reshape(-1, k))
        transitions = self.pick(
            [dense, rows, compressed, [dense, dense], ([dense, dense], self.rng.normal(size=(2, 2))), np.array([dense, dense])]
        )
        features = self.pick(
            [
                by_pair[:, 0],
                by_pair,
                pair_rows,
                (k, pair_rows.indptr, pair_rows.indices, pair_rows.data),
                "indicators",
                sp.coo_matrix(by_pair[:, 0]),
            ]
        )
        extras: dict[str, Any] = {
            "discount": 0.9,
            "horizon": 3,
            "average": False,
            "admissible": np.ones((n_states, n_actions), dtype=bool),
            "known": np.ones((n_states, n_actions), dtype=bool),
            "context_space": self.pick([None, ("simplex", 2), ([0.0, 0.0], [1.0, 2.0])]),
            "name": "m",
            "action_names": [f"a{i}" for i in range(n_actions)],
            "feature_names": [f"f{i}" for i in range(k)],
        }
        kept = {name: value for name, value in extras.items() if self.rng.random() < 0.3}
        initial = self.pick([None, 0, np.full(n_states, 1.0 / n_states)])
        return "ContextualMDP", build_and_use, [transitions, features, initial], {"n_actions": n_actions, **kept}

    def call_plan(self) -> Call:
        model = self.pick(self.models)
        s, a, k = model.n_states, model.n_actions, model.n_features
        kwargs: dict[str, Any] = {"context": self.context() if model.dynamics != "shared" or self.rng.random() < 0.3 else None}
        if self.rng.random() < 0.5:
            kwargs["reward"] = self.pick([self.rng.normal(size=s), self.rng.normal(size=(s, a))])
        else:
            kwargs["weights"] = self.rng.normal(size=k)
        optional = {
            "method": "value_iteration",
            "tolerance": 1e-3,
            "max_sweeps": 50,
            "start": self.rng.normal(size=s),
            "feature_expectations": True,
        }
        return "plan", model.plan, [], {**kwargs, **{name: value for name, value in optional.items() if self.rng.random() < 0.3}}

    def call_plan_many(self) -> Call:
        model = self.pick(self.models)
        n = int(self.rng.integers(0, 20))
        kwargs: dict[str, Any] = self.pick([{"contexts": self.rng.dirichlet(np.ones(3), n)}, {"context": self.context()}])
        optional = {
            "method": "policy_iteration",
            "tolerance": 1e-2,
            "max_sweeps": 9,
            "policies": False,
            "values": True,
            "feature_expectations": False,
        }
        kept = {name: value for name, value in optional.items() if self.rng.random() < 0.2}
        return "plan_many", model.plan_many, [self.rng.normal(size=(n, model.n_features))], {**kwargs, **kept}

    def policy(self, model: ContextualMDP) -> Any:
        if self.rng.random() < 0.5:
            return model.random_policy()
        actions = np.array([self.pick(np.flatnonzero(row)) for row in model.admissible])
        return actions if model.horizon is None else np.tile(actions, (model.horizon, 1))

    def call_evaluate(self) -> Call:
        model = self.pick(self.models)
        kwargs: dict[str, Any] = {"context": self.context()}
        if self.rng.random() < 0.5:
            kwargs["weights"] = self.rng.normal(size=model.n_features)
        elif self.rng.random() < 0.5:
            kwargs["reward"] = self.rng.normal(size=(model.n_states, model.n_actions))
        if self.rng.random() < 0.2:
            kwargs["successor_features"] = True
        return "evaluate", model.evaluate, [self.policy(model)], kwargs

    def call_sample(self) -> Call:
        model = self.pick(self.models)
        kwargs: dict[str, Any] = {"steps": 4, "context": self.context(), "start": 1, "seed": 3}
        return (
            "sample",
            model.sample,
            [self.policy(model), 3],
            {name: value for name, value in kwargs.items() if self.rng.random() < 0.7},
        )

    def call_parts(self) -> Call:
        model = self.pick(self.models)
        name, args = self.pick([("feature_row", [1, 0]), ("transitions", [self.context()]), ("sample_contexts", [3, 1])])
        return name, getattr(model, name), args, {}

    def call_demonstrations(self) -> Call:
        return "Demonstrations", learn_from, [], self.demonstrations()

    def call_episodes(self) -> Call:
        def episode() -> dict[str, Any]:
            n = int(self.rng.integers(1, 5))
            return {"observations": self.rng.integers(0, 5, n + 1), "actions": self.rng.integers(0, 3, n)}

        return "from_episodes", Demonstrations.from_episodes, [[episode() for _ in range(3)], self.rng.dirichlet(np.ones(3), 3)], {}

    def call_frame(self) -> Call:
        n = 6
        frame = {
            "id": np.repeat([0, 1], 3),
            "t": np.arange(n),
            "s": self.rng.integers(0, 5, n),
            "a": self.rng.integers(0, 3, n),
            "c": np.repeat([0.5, 1.0], 3),
        }
        frame[self.pick(list(frame))] = self.mutated_array(np.asarray(frame[self.pick(list(frame))]))
        return (
            "from_frame",
            Demonstrations.from_frame,
            [frame],
            {"id": "id", "time": "t", "state": "s", "action": "a", "context": ["c"]},
        )

    def call_split(self) -> Call:
        own = Demonstrations.from_arrays(**self.demonstrations(6))
        if self.rng.random() < 0.5:
            return "split", own.split, [], {"validation": 0.3, "test": 0.2, "seed": 1}
        return "[...]", own.__getitem__, [self.pick([slice(1, 4), np.array([0, 2]), np.array([True] * 6), 3])], {}

    def call_fit(self) -> Call:
        cls = self.pick(
            [
                coirl.Adaptive,
                coirl.MirrorDescent,
                coirl.Bundle,
                coirl.EvolutionStrategies,
                coirl.Projection,
                coirl.Mwal,
                coirl.MaxMargin,
                coirl.MaximumEntropy,
                coirl.Majority,
                coirl.NearestContext,
                coirl.Uniform,
                coirl.Cloning,
                coirl.Neural,
            ]
        )
        settings = {own: value for own, value in cls().get_params().items() if own not in ("max_steps", "seed")}
        # What costs time or memory in proportion to its size stays as it is.
        fixed = ("hidden", "perturbation", "batch", "max_cuts", "gradient", "components")
        changed = self.pick([name for name in settings if name not in fixed])
        value = settings[changed] if self.rng.random() < 0.5 else self.nonsense(changed)
        data = self.demonstrations()
        if cls in (coirl.Majority, coirl.NearestContext, coirl.Cloning):
            data = {"contexts": self.rng.dirichlet(np.ones(3), 2), "states": [[0, 1, 2], [4, 4]], "actions": [[0, 1], [2]]}
        data.update({changed: value})
        return f"{cls.__name__}.fit", fit_with, [cls, self.models[0]], data

    def call_interactive(self) -> Call:
        cls = self.pick([coirl.Ellipsoid, coirl.CuttingPlane])
        expert = {"mapping": self.mapping, "tolerance": 0.03, "radius": 0.01, "seed": 1, "roll_outs": 2, "transitions": 3}
        kept = {name: value for name, value in expert.items() if name == "mapping" or self.rng.random() < 0.3}
        return f"{cls.__name__}.fit", ask_expert, [cls, self.models[0], self.rng.dirichlet(np.ones(3), 4)], kept

    def call_answers(self) -> Call:
        return "expert's answer", answer_with, [self.models[0], self.pick([None, self.rng.normal(size=2)])], {}

    def call_stream(self) -> Call:
        own = Demonstrations.from_arrays(self.rng.dirichlet(np.ones(3), 2), self.rng.normal(size=(2, 2)))
        return "partial_fit", self.stream.partial_fit, [self.models[0], own], {}

    def call_learned(self) -> Call:
        learner = self.pick([self.learner, self.drawing])
        own = Demonstrations.from_arrays(**self.demonstrations())
        name, args = self.pick(
            [
                ("predict", [self.pick([self.context(), self.rng.dirichlet(np.ones(3), 2)])]),
                ("weights", [self.context()]),
                ("behaviour", [self.context()]),
                ("plan", [self.context()]),
                ("score", [own]),
                ("examine", [self.mapping, self.rng.dirichlet(np.ones(3), 2)]),
                ("predict_proba", [self.rng.dirichlet(np.ones(3), 2), [[0, 1], [4]]]),
            ]
        )
        return name, getattr(learner, name), args, {}

    def call_settings(self) -> Call:
        return "set_params", set_params, [], {self.pick(list(self.learner.get_params())): 3}

    def call_transfer(self) -> Call:
        kind = self.rng.random()
        if kind < 0.4:
            return (
                "Transfer",
                Transfer,
                [self.pick(self.models[:2]), self.pick([self.mapping, self.learner]), self.rng.dirichlet(np.ones(3), 3)],
                {},
            )
        if kind < 0.8:
            optional = {"bound": 0.1, "plan": False, "remember": True}
            kept = {name: value for name, value in optional.items() if self.rng.random() < 0.4}
            return "Transfer.predict", self.transfer.predict, [self.context()], kept
        own = Transfer(self.models[0], self.mapping, self.rng.dirichlet(np.ones(3), 2))
        return "Transfer", self.pick([own.learn, own.prune]), [self.rng.dirichlet(np.ones(3), 2)], {}

    def call_off_policy(self) -> Call:
        n = int(self.rng.integers(6, 12))
        lengths = self.rng.integers(1, 4, n)
        steps = int(lengths.sum())
        kwargs: dict[str, Any] = {
            "n_states": 3,
            "n_actions": 2,
            "discount": 0.9,
            "patients": np.arange(n),
            "behaviour": self.rng.dirichlet(np.ones(2), steps),
            "covariates": self.rng.normal(size=(steps, 2)),
            "neighbours": 3,
            "softness": 0.1,
            "fitted_q_alone": True,
            "least_effective_sample_size": 1.0,
            "seed": 0,
        }
        kept = {name: value for name, value in kwargs.items() if name.startswith("n_") or self.rng.random() < 0.4}
        policies = {"a": self.pick([[1, 0, 1], self.rng.dirichlet(np.ones(2), 3), self.rng.dirichlet(np.ones(2), steps)])}
        columns = [
            [self.rng.integers(0, 3, length) for length in lengths],
            [self.rng.integers(0, 2, length) for length in lengths],
            [self.rng.normal(size=length) for length in lengths],
        ]
        return "off_policy.evaluate", coirl.off_policy.evaluate, [*columns, policies], {"resamples": 5, **kept}

    def call_domains(self) -> Call:
        name, kwargs = self.pick(
            [
                ("grid", {"width": 2, "height": 3, "discount": 0.9}),
                ("driving", {"actions": 2, "polarity": "code", "discount": 0.9}),
                (
                    "garnet",
                    {
                        "n_states": 5,
                        "n_actions": 2,
                        "n_successors": 2,
                        "n_features": 2,
                        "n_kernels": 2,
                        "admissible": 0.5,
                        "discount": 0.5,
                        "seed": 1,
                    },
                ),
                ("sepsis_patients", {"n": 3, "seed": 0}),
                ("driving_mapping", {"interactive": True}),
                ("pendulum", {"grid": 5, "discount": 0.9}),
                ("maze", {"side": 4, "slip": 0.1, "walls": 0.3, "mud": 0.2, "danger": 0.1, "discount": 0.9, "seed": 1}),
                ("epidemic", {"people": 6, "window": 4, "discount": 0.9}),
            ]
        )
        return f"domains.{name}", getattr(coirl.domains, name), [], kwargs

    def call_threads(self) -> Call:
        return "set_threads", coirl.set_threads, [2], {}

    def call_files(self) -> Call:
        return (
            "load",
            self.pick([ContextualMDP.load, coirl.load, coirl.Adaptive.load]),
            [self.pick(["nowhere", os.devnull, __file__])],
            {},
        )

    def call_bytes(self) -> Call:
        """A model file with a few bits wrong."""
        whole = bytearray(pickled(self.pick(self.models)))
        for _ in range(int(self.rng.integers(0, 4))):
            whole[int(self.rng.integers(len(whole)))] = int(self.rng.integers(256))
        end = len(whole) if self.rng.random() < 0.7 else int(self.rng.integers(len(whole)))
        return "a damaged model", unpickled, [bytes(whole[:end])], {}

    # What is done to arguments.

    def mutated(self, value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            return self.mutated_array(value) if self.rng.random() < 0.85 else self.nonsense(name)
        if sp.issparse(value):
            return self.mutated_rows(value)
        if isinstance(value, (list, tuple)) and value and self.rng.random() < 0.7:
            parts = list(value)
            i = int(self.rng.integers(len(parts)))
            parts[i] = self.mutated(parts[i], name)
            if self.rng.random() < 0.2:
                parts.append(parts[0]) if self.rng.random() < 0.5 else parts.pop()
            return tuple(parts) if isinstance(value, tuple) else parts
        if isinstance(value, dict) and value and self.rng.random() < 0.7:
            key = self.pick(list(value))
            return {**value, key: self.mutated(value[key], name)}
        if isinstance(value, (int, float)) and self.rng.random() < 0.5:
            forms = [
                np.float16,
                np.longdouble,
                np.array,
                complex,
                str,
                bool,
                decimal.Decimal,
                lambda x: [x],
                lambda x: -x,
                np.int8,
                np.uint64,
            ]
            return self.changed_by(forms, value)
        return self.nonsense(name)

    def nonsense(self, name: str) -> Any:
        # fmt: off
        everything: list[Any] = [
            None, True, False, -1, 0, 2, 1.5, -0.5, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, "x", "", "é\ud800", b"x", 1j,
            [], [[]], [[1.0], [1.0, 2.0]], (), {}, {"a": 1}, {1, 2}, [None], [None, 1.0], ["a", "b"], range(3), slice(1, 2), Ellipsis, Odd(),
            WithArray([1.0, 2.0]), WithArray("x"), object(), int, abs, np.array(3.0), np.array("x"), np.array([]), np.empty((0, 3)), np.empty((3, 0)),
            np.datetime64("2020-01-01"), datetime.date(2020, 1, 1), fractions.Fraction(1, 2), decimal.Decimal("0.5"), np.float16(0.5), np.int8(-3),
            np.nan, np.ma.masked, np.ma.array([1.0, 2.0], mask=[0, 1]), memoryview(b"abcdefgh"), np.array([1.0, 2.0], dtype=object),
            np.zeros((2, 2), dtype=[("a", "f8")]), np.zeros(3, dtype="V8"), iter([1, 2]), sp.eye(3), self.models[0], self.learner, [[[1.0]]], [1, [2]],
        ]
        # fmt: on
        # Sizes and lengths stay small; everything else may be as large as it likes.
        if name not in SIZES:
            everything += [2**31, -(2**31), 2**63 - 1, 2**63, 2**70, -(2**70), np.uint64(2**64 - 1)]
        return self.pick(everything)

    def mutated_array(self, array: Any) -> Any:
        changes: list[Callable[[Any], Any]] = [
            *(
                lambda x, t=kind: x.astype(t)
                for kind in ("f2", "f4", ">f8", ">f4", "g", "i1", "i2", ">i4", "u1", "u8", "?", "O", "U", "S", "c16", "c8")
            ),
            lambda x: x.astype("i8").astype("M8[s]"),
            lambda x: x.astype("i8").astype("m8[s]"),
            lambda x: x[::2],
            lambda x: x[::-1],
            lambda x: x.T,
            lambda x: np.asfortranarray(x),
            lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
            lambda x: np.broadcast_to(x.ravel()[:1], x.shape),
            lambda x: np.lib.stride_tricks.as_strided(x, x.shape, [0] * x.ndim) if x.size else x,
            lambda x: x.ravel(),
            lambda x: x[None],
            lambda x: x[..., None],
            lambda x: x[0],
            lambda x: x[:0],
            lambda x: x[..., :0],
            lambda x: x.sum(),
            lambda x: np.concatenate([x, x]),
            lambda x: np.concatenate([x, x], axis=-1),
            lambda x: x.reshape(-1, 1),
            lambda x: x.tolist(),
            lambda x: tuple(x.tolist()),
            lambda x: [x.tolist(), 1],
            lambda x: np.ma.array(x, mask=np.zeros_like(x)),
            lambda x: x.view(np.recarray),
            lambda x: memoryview(np.ascontiguousarray(x)),
            lambda x: WithArray(x),
            lambda x: x * 1e308 * 10,
            lambda x: x * 5e-324,
            lambda x: -x,
            lambda x: x + 1e-7,
            lambda x: x * 0,
            lambda x: unaligned(x),
            self.read_only,
            *([self.with_one_entry] * 12),
        ]
        return self.changed_by(changes, array)

    def changed_by(self, changes: list[Callable[[Any], Any]], value: Any) -> Any:
        """One of the changes; not every one can be made to every value."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.pick(changes)(value)
            except (ArithmeticError, ValueError, TypeError, IndexError):
                return None

    def with_one_entry(self, array: Any) -> Any:
        values = [
            np.nan,
            np.inf,
            -np.inf,
            -1.0,
            -1e-12,
            0.5,
            2.0,
            1e308,
            -1e308,
            5e-324,
            2.0**31,
            2.0**32,
            2.0**62,
            -(2.0**62),
            1e19,
        ]
        changed = array.astype("f8") if array.dtype.kind == "f" or self.rng.random() < 0.3 else array.copy()
        if changed.size:
            changed.flat[int(self.rng.integers(changed.size))] = changed.dtype.type(self.pick(values))
        return changed

    def read_only(self, array: Any) -> Any:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen

    def mutated_rows(self, rows: Any) -> Any:
        if getattr(rows, "is_broken", False):
            return rows  # SciPy itself must not be asked to do anything with it
        changed = sp.csr_matrix(rows)
        part = self.pick(["indptr", "indices", "data", "shape", "format", "type"])
        if part == "shape":
            return self.pick(
                [changed.T, changed[:-1], sp.vstack([changed, changed]), sp.csr_matrix((0, 3)), sp.hstack([changed, changed])]
            )
        if part == "format":
            return self.pick([changed.tocsc, changed.tocoo, changed.tolil, changed.todok, changed.todia, changed.tobsr])()
        if part == "type":
            return changed.astype(self.pick(["f4", "c16", "?", "i4"]))
        # Not what SciPy would build itself.
        own = np.array(getattr(changed, part))
        if own.size:
            own[int(self.rng.integers(own.size))] = self.pick([-1, 0, 1, 3, 1000])
        setattr(changed, part, own)
        changed.is_broken = True
        return changed

    def next(self) -> Call:
        name, function, args, kwargs = self.pick(self.makers)(self)
        args, kwargs = list(args), dict(kwargs)
        if self.rng.random() < 0.1:
            return name, function, args, kwargs
        for _ in range(self.pick([1, 1, 1, 2, 3])):
            places: list[Any] = [*range(len(args)), *kwargs]
            if not places:
                break
            place, kind = self.pick(places), self.rng.random()
            if isinstance(place, int):
                if kind < 0.9 or function in KEEP_FIRST:
                    args[place] = self.mutated(args[place], name) if place or function not in KEEP_FIRST else args[place]
                else:
                    other = int(self.rng.integers(len(args)))
                    args[place], args[other] = args[other], args[place]
            elif kind < 0.9:
                kwargs[place] = self.mutated(kwargs[place], place)
            elif kind < 0.95 and place not in SIZES:
                del kwargs[place]
            else:
                kwargs["no_such_thing"] = 1
        return name, function, args, kwargs

    makers: ClassVar[list[Callable[[Calls], Call]]] = []


Calls.makers = [own for name, own in vars(Calls).items() if name.startswith("call_")]
Calls.makers += 3 * [
    Calls.call_model,
    Calls.call_plan,
    Calls.call_plan_many,
    Calls.call_evaluate,
    Calls.call_demonstrations,
    Calls.call_fit,
]

# Calls by these names, and arguments of these names, say how much is computed or held.
SIZES = {
    "n",
    "steps",
    "resamples",
    "width",
    "height",
    "n_states",
    "n_actions",
    "n_successors",
    "n_features",
    "n_kernels",
    "max_sweeps",
}
SIZES |= {
    "horizon",
    "neighbours",
    "roll_outs",
    "transitions",
    "sample",
    "sample_contexts",
    "set_threads",
    "record_every",
    "max_rounds",
}


def build_and_use(transitions: Any, features: Any, initial: Any, **settings: Any) -> Any:
    """What can be built can be used."""
    model = ContextualMDP(transitions, features, initial, **settings)
    context = None if model.context_dimension is None else model.sample_contexts(1)[0]
    model.plan_many(np.ones((2, model.n_features)), context=context, max_sweeps=20)
    assert model.admissible.any(axis=1).all() and repr(model) and model._repr_html_()
    return model.plan(np.ones(model.n_features), context=context, max_sweeps=20)


def learn_from(**arrays: Any) -> Any:
    """What can be built can be looked at."""
    own = Demonstrations.from_arrays(**arrays)
    assert repr(own) and own._repr_html_() and len(list(own.trajectories())) >= 0
    return own


def fit_with(cls: Any, model: Any, **given: Any) -> Any:
    data = {
        name: given.pop(name)
        for name in list(given)
        if name in ("contexts", "feature_expectations", "starts", "states", "actions", "no_such_thing")
    }
    learner = cls(max_steps=2, **given)
    learner.fit(model, Demonstrations.from_arrays(**data))
    return learner.predict(np.full((2, 3), 1.0 / 3.0))


def ask_expert(cls: Any, model: Any, contexts: Any, **expert: Any) -> Any:
    return cls(max_steps=2).fit(model, contexts, expert=SimulatedExpert(**expert))


def answer_with(model: Any, answer: Any) -> Any:
    return coirl.Ellipsoid(max_steps=2).fit(model, np.full((2, 3), 1.0 / 3.0), expert=lambda *_: answer)


def set_params(**params: Any) -> Any:
    learner = coirl.Adaptive(max_steps=2).set_params(**params)
    assert repr(learner) and learner._repr_html_()
    return learner._settings()


def pickled(model: ContextualMDP) -> bytes:
    content = model.__reduce__()[1][0]
    assert isinstance(content, bytes)
    return content


def unpickled(content: bytes) -> Any:
    """What can be read can be used."""
    model = _from_bytes(content)
    context = None if model.context_dimension is None else model.sample_contexts(1)[0]
    return model.plan(np.ones(model.n_features), context=context, max_sweeps=20)


def unaligned(array: Any) -> Any:
    raw = np.zeros(array.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)
    return raw[1:].view(array.dtype).reshape(array.shape)


#: Functions of this file whose first argument stays as it is.
KEEP_FIRST = {fit_with, ask_expert, answer_with, unpickled}


def run(seed: int, calls: int, loud: bool) -> dict[str, Any]:
    """Makes so many calls; says what came of them."""
    faulthandler.enable()
    own = Calls(seed)
    outcomes: dict[str, dict[str, int]] = {}
    faults: list[str] = []
    for number in range(calls):
        name, function, args, kwargs = own.next()
        try:
            text = f"{number} {name}{args!r}{kwargs!r}"[:2000]
        except Exception:
            text = f"{number} {name}"
        if loud:
            print(text, flush=True)
        faulthandler.dump_traceback_later(60.0, exit=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
            outcome = "result"
        except (coirl.CoirlError, TypeError) as error:
            outcome = type(error).__name__
            if "fault inside coirl" in str(error):
                faults.append(f"{text}: {error}")
        except BaseException as error:  # a panic is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome = "fault"
            faults.append(f"{text}: {type(error).__name__}: {error}")
        finally:
            faulthandler.cancel_dump_traceback_later()
        of_name = outcomes.setdefault(name, {})
        of_name[outcome] = of_name.get(outcome, 0) + 1
    return {"calls": calls, "outcomes": outcomes, "faults": faults}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "RUST_BACKTRACE": "0"}


def test_fuzzed_calls_end_in_a_result_or_an_error() -> None:
    command = [sys.executable, __file__]
    runs = [
        subprocess.Popen(
            [*command, str(seed), str(CALLS // PROCESSES)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for seed in range(PROCESSES)
    ]
    total: dict[str, dict[str, int]] = {}
    made = 0
    for seed, process in enumerate(runs):
        out, error = process.communicate(timeout=600)
        repeat = f"repeat with: python {Path(__file__).name} {seed} {CALLS // PROCESSES} loud"
        assert process.returncode == 0, f"{repeat}\n{error[-4000:]}"
        found = json.loads(out.splitlines()[-1])
        assert not found["faults"], "\n".join([repeat, *found["faults"][:10]])
        made += found["calls"]
        for name, outcomes in found["outcomes"].items():
            for outcome, count in outcomes.items():
                total.setdefault(name, {}).setdefault(outcome, 0)
                total[name][outcome] += count
    assert made == CALLS
    # The calls reach what they are about: of every kind some work, and some are refused.
    for name, outcomes in total.items():
        assert outcomes.get("result", 0) > 0 or name in ("load",), (name, outcomes)
        assert len(outcomes) > 1 or name in ("domains.driving_mapping",), (name, outcomes)
    assert sum(outcomes.get("result", 0) for outcomes in total.values()) > CALLS // 10


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_memory_does_not_grow() -> None:
    script = """
        import gc, os
        import numpy as np
        import coirl

        model = coirl.domains.garnet(300, 4, n_features=5, seed=1)
        large = coirl.domains.garnet(3000, 4, n_features=5, seed=1)
        rng = np.random.default_rng(0)

        def held():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

        def work(n):
            for i in range(n):
                weights = rng.normal(size=5)
                plan = model.plan(weights)
                if i % 20 == 0:
                    model.evaluate(plan.policy, weights)
                    large.plan(weights, tolerance=1e-3)
                    model.plan_many(rng.normal(size=(17, 5)), values=True)
                    try:
                        model.plan(rng.normal(size=4))
                    except coirl.CoirlError:
                        pass

        work(2000)
        before = held()
        work(10_000)
        print(held() - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=600, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    # What is left is the allocator's own; a leak of one plan's values would be 24 MiB.
    assert float(done.stdout) < 8.0


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3)))

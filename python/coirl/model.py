"""Contextual Markov decision processes, plans and evaluations."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _coirl, _functions, _parts
from ._arrays import Booleans, Floats, Integers, booleans, count, file_name, flag, floats, number, room
from ._arrays import contexts as as_contexts
from ._arrays import policy as as_policy
from ._notebook import table
from .errors import ArrayError, DataError, SettingError

__all__ = ["Certificate", "ContextualMDP", "Evaluation", "Plan", "Plans"]


@dataclass(frozen=True)
class Certificate:
    """What is known about a plan."""

    #: ``"exact"``, ``"converged"``, or ``"sweep_limit"`` where planning met its limit or gained nothing more; the bounds hold in every case.
    status: str
    #: No state has a larger Bellman residual.
    residual: float
    #: No policy is better than the returned one by more than this, in any state.
    suboptimality_bound: float
    #: The values are within this of the optimal ones, in every state.
    value_error_bound: float
    #: Passes over the kernel.
    sweeps: int


@dataclass(frozen=True, eq=False)
class Plan:
    """A policy with its values, and what is guaranteed about them."""

    #: One action per state ``[S]``; ``[T, S]`` for a finite horizon.
    policy: Integers
    #: V(s).
    values: Floats
    #: The value from the start distribution.
    value: float
    #: μ of the policy from the start distribution; ``None`` if not asked for.
    feature_expectations: Floats | None
    #: Status and bounds.
    certificate: Certificate
    #: Which way planning went, and why.
    way: str

    def _repr_html_(self) -> str:
        own = self.certificate
        mu = "" if self.feature_expectations is None else np.array2string(self.feature_expectations, precision=4, threshold=8)
        return table(
            "Plan",
            [
                ("value", f"{self.value:.6g}"),
                ("states", str(self.values.size)),
                ("feature expectations", mu),
                ("status", own.status),
                ("loses at most", f"{own.suboptimality_bound:.3g}"),
                ("sweeps", str(own.sweeps)),
            ],
        )


@dataclass(frozen=True, eq=False)
class Plans:
    """Plans for many rewards: row i of every array belongs to row i of the weights."""

    #: ``[n, S]``, ``[n, T, S]`` for a finite horizon; ``None`` if not asked for.
    policies: Integers | None
    #: Values from the start ``[n]``.
    value: Floats
    #: V(s) ``[n, S]``; ``None`` if not asked for.
    values: Floats | None
    #: ``[n, k]``; ``None`` if not asked for.
    feature_expectations: Floats | None
    #: Bellman residuals ``[n]``.
    residual: Floats
    #: What each policy can lose ``[n]``.
    suboptimality_bound: Floats
    #: How far values can be off ``[n]``.
    value_error_bound: Floats
    #: Passes over the kernel ``[n]``.
    sweeps: Integers
    #: Where planning met its limit of sweeps ``[n]``.
    sweep_limit: Booleans

    def __len__(self) -> int:
        return int(self.value.size)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a policy leads to."""

    #: μ from the start distribution ``[k]``.
    feature_expectations: Floats
    #: Discounted visits of every state ``[S]``.
    occupancy: Floats
    #: Value from the start; ``None`` without a reward.
    value: float | None
    #: V(s) ``[S]``.
    values: Floats | None
    #: Q(s, a) ``[S, A]``, NaN where an action cannot be taken.
    q_values: Floats | None
    #: μ from every state ``[S, k]``, if asked for.
    successor_features: Floats | None


class ContextualMDP:
    """A contextual Markov decision process without its reward: states, actions, dynamics, features, a start and a discount.

    Parameters
    ----------
    transitions
        P(s' | s, a). One kernel for all contexts, or a list of base kernels P_i that a context on the simplex mixes, P_c = Σ c_i P_i, or
        ``(kernels, centroids)``: one kernel per cluster of contexts, the nearest centroid (row) counts.
        A kernel is a dense array ``[S, A, S]``, or compressed rows numbered ``s * A + a``: a SciPy sparse matrix of shape ``[S * A, S]`` or a tuple
        ``(indptr, indices, data)``.
    features
        φ. Dense per state ``[S, k]``; per state and action dense ``[S, A, k]`` or compressed rows ``[S * A, k]`` (SciPy, or
        ``(k, indptr, indices, data)``); or ``"indicators"`` for e_state ⊕ e_action, kept sparse.
    initial
        Start distribution ``[S]``, or the number of the start state; uniform by default.
    discount
        γ in [0, 1]. One only where every policy ends in absorbing states without features, or with a ``horizon``.
    horizon
        Number of decisions; infinite by default.
    average
        The long-run average per step instead of a discounted sum; for unichain models.
    admissible
        Which actions can be taken ``[S, A]``; all by default.
    known
        Which actions people are known to take ``[S, A]``; agents that act without planning keep to them.
    context_space
        ``"simplex"``, ``("simplex", d)``, ``(lower, upper)`` for a box, or ``None`` for any vector. A mixture has its simplex.
    n_actions
        Needed only for compressed rows whose shape does not tell.
    name, action_names, feature_names, context_names
        What the parts are called.

    Nothing invalid can be constructed: rows that do not sum to one, negative or missing probabilities, states out of range and so on
    raise a :class:`~coirl.errors.ModelError` with the place and the value.
    """

    _model: _coirl.Model

    def __init__(
        self,
        transitions: Any,
        features: Any,
        initial: Any = None,
        discount: float = 0.9,
        *,
        horizon: int | None = None,
        average: bool = False,
        admissible: Any = None,
        known: Any = None,
        context_space: Any = None,
        n_actions: int | None = None,
        name: str = "",
        action_names: Sequence[str] = (),
        feature_names: Sequence[str] = (),
        context_names: Sequence[str] = (),
    ) -> None:
        mask = None if admissible is None else booleans("admissible", admissible, 2)
        kernels, centroids = _parts.dynamics(transitions, mask, n_actions)
        n_states, n_actions = kernels[0].n_states, kernels[0].n_actions
        state_features, pair_features = _parts.features(features, n_states, n_actions, mask)
        names = {
            "model": _parts.word("name", name),
            "actions": [_parts.word("action_names", word) for word in action_names],
            "features": [_parts.word("feature_names", word) for word in feature_names],
            "contexts": [_parts.word("context_names", word) for word in context_names],
        }
        known_mask = None
        if known is not None:
            known_mask = booleans("known", known, 2)
            _parts.check_shape("known", known_mask, (n_states, n_actions))
        self._model = _coirl.Model(
            kernels,
            centroids,
            state_features,
            pair_features,
            _parts.initial(initial, n_states),
            json.dumps(_parts.criterion(discount, horizon, average, n_states)),
            _parts.context_space(context_space, len(kernels)),
            json.dumps(names),
            known_mask,
        )

    @classmethod
    def _of(cls, model: _coirl.Model) -> ContextualMDP:
        own = cls.__new__(cls)
        own._model = model
        return own

    @classmethod
    def from_functions(
        cls,
        n_states: int,
        n_actions: int,
        transition: Callable[..., Any],
        features: Any,
        initial: Any = None,
        discount: float = 0.9,
        *,
        vectorised: bool = False,
        **settings: Any,
    ) -> ContextualMDP:
        """A model from a function that says where an action leads, in place of arrays.

        Parameters
        ----------
        n_states, n_actions
            How many there are; the functions are called with numbers from zero.
        transition
            ``transition(state, action)`` returns a list of pairs ``[(next state, probability), ...]``, a dictionary
            ``{next state: probability}``, a tuple of two arrays ``(next states, probabilities)``, or the number of the one state that surely
            follows. Repeated states add up. ``None``, or nothing in any of these forms, is an action that cannot be taken there.
        features
            As for :class:`ContextualMDP`, or a function ``features(state, action)`` that returns φ ``[k]``; asked for the actions that can be taken.
        vectorised
            Both functions are called once per action and block of states, which is a hundred times as fast: ``states`` is an array ``[n]``.
            ``transition(states, action)`` returns ``(next states, probabilities)``, arrays ``[n, m]``; one dimension of next states is one
            successor each, and of probabilities the same ones for every state. Rows of zeros, or ``None`` for all of the block, are actions that
            cannot be taken. ``features(states, action)`` returns ``[n, k]``, and rows of actions that cannot be taken are not looked at.
        settings
            ``horizon``, ``context_space``, ``action_names`` and so on, and ``initial`` and ``discount``: as for :class:`ContextualMDP`.

        Probabilities that are negative or no numbers, sums other than one and states that do not exist raise a
        :class:`~coirl.errors.ModelError` with ``state`` and ``action``; what the functions raise comes through.

        >>> def walk(state, action):
        ...     return [(min(state + 1, 9), 0.9), (state, 0.1)] if action == 1 else state
        >>> model = ContextualMDP.from_functions(10, 2, walk, lambda state, action: [float(state == 9)])
        >>> model.plan([1.0]).policy[:9].tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 1]
        """
        if "admissible" in settings:
            raise SettingError("admissible follows from the functions; expected no such argument", name="admissible")
        built = _functions.rows(
            count("n_states", n_states, 1), count("n_actions", n_actions, 1), transition, flag("vectorised", vectorised)
        )
        if callable(features):
            features = _functions.features(built.admissible, features, vectorised)
        return cls(built.transitions, features, initial, discount, admissible=built.admissible, **settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ContextualMDP:
        """Reads a model from a ``.npz`` or ``.safetensors`` file, whatever its name says."""
        return cls._of(_coirl.Model.load(file_name(path)))

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str]) -> ContextualMDP:
        """Reads a model from arrays that NumPy wrote: ``transitions`` dense or ``indptr``, ``indices`` and ``data``, ``features``,
        ``initial``, ``discount`` and others (see the page on model files)."""
        return cls.load(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as ``.npz`` (exchange with NumPy) or ``.safetensors`` (bit for bit). The file appears whole or not at all."""
        self._model.save(file_name(path))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_bytes, (bytes(self._model.to_bytes()),))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self._model.n_states

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self._model.n_actions

    @property
    def n_features(self) -> int:
        """Length k of a feature vector."""
        return self._model.n_features

    @property
    def discount(self) -> float:
        """γ; one for the criteria without."""
        own = json.loads(self._model.criterion())
        return float(next(iter(own.values()))["discount"]) if isinstance(own, dict) else 1.0

    @property
    def horizon(self) -> int | None:
        """Number of decisions; ``None`` for an infinite horizon."""
        own = json.loads(self._model.criterion())
        return int(own["finite_horizon"]["steps"]) if isinstance(own, dict) and "finite_horizon" in own else None

    @property
    def dynamics(self) -> str:
        """``"shared"``, ``"mixture"`` or ``"clusters"``."""
        return self._model.dynamics

    @property
    def context_dimension(self) -> int | None:
        """Length d of a context, where the model fixes it."""
        space = json.loads(self._model.context_space())
        if not isinstance(space, dict):
            return None
        return int(space["simplex"]["dimension"]) if "simplex" in space else len(space["box"]["lower"])

    @property
    def initial(self) -> Floats:
        """Start distribution ``[S]``."""
        return self._model.initial()

    @property
    def admissible(self) -> Booleans:
        """Which actions can be taken ``[S, A]``."""
        return self._model.admissible()

    @property
    def known(self) -> Booleans:
        """Which actions people are known to take ``[S, A]``."""
        return self._model.known()

    @property
    def features(self) -> Floats | None:
        """φ(s) ``[S, k]``; ``None`` where features depend on the action: see :meth:`feature_row`."""
        return self._model.state_features()

    def feature_row(self, state: int, action: int) -> Floats:
        """φ of a state and an action ``[k]``."""
        if count("state", state) >= self.n_states:
            raise DataError(f"state {state}: the model has {self.n_states} states", state=int(state), n_states=self.n_states)
        return self._model.feature_row(state, min(count("action", action), self.n_actions))

    @property
    def names(self) -> dict[str, Any]:
        """What the model, its actions, features and contexts are called."""
        found: dict[str, Any] = json.loads(self._model.names())
        return found

    def transitions(self, context: Any = None) -> tuple[Integers, Integers, Floats]:
        """P_c in compressed rows numbered ``s * A + a``: ``(indptr, indices, data)``, as ``scipy.sparse.csr_matrix`` takes them (data first).
        Rows of actions that cannot be taken are empty."""
        return self._model.transitions(_context(context))

    def sample_contexts(self, n: int, seed: int = 0) -> Floats:
        """Contexts drawn uniformly from the space of contexts ``[n, d]``; the same seed gives the same ones."""
        room("n", count("n", n), self.context_dimension or 1)
        return self._model.sample_contexts(n, count("seed", seed))

    def plan(
        self,
        weights: Any = None,
        *,
        reward: Any = None,
        context: Any = None,
        method: str = "automatic",
        tolerance: float | None = None,
        max_sweeps: int | None = None,
        start: Any = None,
        feature_expectations: bool = True,
    ) -> Plan:
        """The best policy for one reward.

        Parameters
        ----------
        weights
            w ``[k]``: the reward is w·φ.
        reward
            In place of weights: one number per state ``[S]``, or per state and action ``[S, A]``.
        context
            Whose dynamics to plan in; needed where they depend on it.
        method
            ``"automatic"``, ``"value_iteration"``, ``"modified_policy_iteration"`` or ``"policy_iteration"``; all return the same policy
            when planning exactly.
        tolerance
            Stop at this Bellman residual instead of planning exactly.
        max_sweeps
            Stop after so many passes; the certificate then says so.
        start
            Values of a similar problem ``[S]`` to start from.
        feature_expectations
            Whether μ of the policy is wanted as well.
        """
        w, by_state, by_pair = _reward(weights, reward, required=True)
        found = self._model.plan(
            w,
            by_state,
            by_pair,
            _context(context),
            _method(method),
            None if tolerance is None else number("tolerance", tolerance),
            None if max_sweeps is None else count("max_sweeps", max_sweeps),
            None if start is None else floats("start", start, 1),
            flag("feature_expectations", feature_expectations),
        )
        found["certificate"] = Certificate(**found["certificate"])
        return Plan(**found)

    def plan_many(
        self,
        weights: Any,
        *,
        context: Any = None,
        contexts: Any = None,
        method: str = "automatic",
        tolerance: float | None = None,
        max_sweeps: int | None = None,
        policies: bool = True,
        values: bool = False,
        feature_expectations: bool = True,
    ) -> Plans:
        """The best policies for every row of ``weights`` ``[n, k]``, sixteen side by side on every thread.

        ``context`` is the one context of all rows, ``contexts`` ``[n, d]`` has one for each; neither is needed where the dynamics
        do not depend on it. Turn off ``policies`` to keep memory small for a very large n.
        """
        if context is not None and contexts is not None:
            raise SettingError("context and contexts were given; expected one of them", name="contexts")
        rows = floats("weights", weights, 2)
        each = None if contexts is None else as_contexts(contexts)
        if each is not None and len(each) != len(rows):
            raise ArrayError(f"contexts has {len(each)} rows; expected {len(rows)}, one per row of weights", what="contexts")
        found = self._model.plan_many(
            rows,
            each,
            _context(context),
            _method(method),
            None if tolerance is None else number("tolerance", tolerance),
            None if max_sweeps is None else count("max_sweeps", max_sweeps),
            flag("policies", policies),
            flag("values", values),
            flag("feature_expectations", feature_expectations),
        )
        # The extension has a list of the tables of a finite horizon, and nothing to shape where there are no rows.
        stages = () if self.horizon is None else (self.horizon,)
        if policies:
            found["policies"] = np.asarray(found["policies"], dtype=np.int64).reshape(len(rows), *stages, self.n_states)
        for name, wanted, width in (
            ("values", values, self.n_states),
            ("feature_expectations", feature_expectations, self.n_features),
        ):
            if wanted and found[name] is None:
                found[name] = np.empty((0, width))
        return Plans(**found)

    def evaluate(
        self, policy: Any, weights: Any = None, *, reward: Any = None, context: Any = None, successor_features: bool = False
    ) -> Evaluation:
        """What a policy leads to: feature expectations and visits, and with ``weights`` or a ``reward`` its values.

        A policy is an array of actions ``[S]`` (integers), of probabilities ``[S, A]`` (floats), or either with one more dimension in front
        for the steps of a finite horizon.
        """
        w, by_state, by_pair = _reward(weights, reward, required=False)
        if flag("successor_features", successor_features):
            room("successor_features", self.n_states, self.n_features)
        found = self._model.evaluate(as_policy(policy), w, by_state, by_pair, _context(context), bool(successor_features))
        return Evaluation(**{"value": None, "values": None, "q_values": None, "successor_features": None, **found})

    def random_policy(self) -> Floats:
        """Every known action of a state with equal probability ``[S, A]``."""
        return self._model.random_policy()

    def sample(
        self, policy: Any, n: int = 1, *, steps: int | None = None, context: Any = None, start: int | None = None, seed: int = 0
    ) -> list[tuple[Integers, Integers]]:
        """``n`` trajectories ``(states, actions)``, one state more than actions, of ``steps`` transitions each; without ``steps`` a trajectory ends
        with probability 1 − γ at every state."""
        # Without a discount below one there is no such end, and the model says so.
        length = count("steps", steps) if steps is not None else int(1.0 / (1.0 - self.discount)) if self.discount < 1.0 else 0
        room("n", count("n", n), length + 1)
        return self._model.sample(
            as_policy(policy),
            _context(context),
            None if start is None else min(count("start", start), 2**32 - 1),
            n,
            0 if steps is None else steps,
            steps is None,
            count("seed", seed),
            0,
        )

    def __repr__(self) -> str:
        name = self.names["model"]
        named = f"{name!r}, " if name else ""
        return (
            f"ContextualMDP({named}{self.n_states} states, {self.n_actions} actions, {self.n_features} features, "
            f"{self.dynamics} dynamics, discount {self.discount:g})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("states", f"{self.n_states:,}"),
            ("actions", f"{self.n_actions:,}"),
            ("features", f"{self.n_features:,}"),
            ("contexts", "any vector" if self.context_dimension is None else f"{self.context_dimension} numbers"),
            ("dynamics", self.dynamics),
            ("discount", f"{self.discount:g}"),
        ]
        return table(self.names["model"] or "Contextual MDP", rows)


def _from_bytes(content: bytes) -> ContextualMDP:
    return ContextualMDP._of(_coirl.Model.from_bytes(content))


def _context(value: Any) -> Floats | None:
    return None if value is None else floats("context", value, 1)


def _method(value: Any) -> str:
    known = {
        "automatic": "automatic",
        "value_iteration": "value_iteration",
        "modified_policy_iteration": {"modified_policy_iteration": {"sweeps": 20}},
        "policy_iteration": "policy_iteration",
    }
    if not isinstance(value, str) or value not in known:
        raise SettingError(f"method = {value!r}: expected one of {', '.join(known)}", name="method", value=value)
    return json.dumps(known[value])


def _reward(weights: Any, reward: Any, *, required: bool) -> tuple[Floats | None, Floats | None, Floats | None]:
    if weights is not None and reward is not None:
        raise SettingError("weights and a reward were given; expected one of them", name="reward")
    if weights is not None:
        return floats("weights", weights, 1), None, None
    if reward is not None:
        array = floats("reward", reward, 1, 2)
        return (None, array, None) if array.ndim == 1 else (None, None, array)
    if required:
        raise SettingError("nothing to plan for; expected weights or a reward", name="weights")
    return None, None, None

"""What all learners share: settings in the constructor, ``fit``, results with a trailing underscore, files.

The conventions are scikit-learn's: the constructor stores what it is given and nothing else, :meth:`Learner.get_params` and
:meth:`Learner.set_params` work, and so does ``sklearn.base.clone``.
"""

from __future__ import annotations

import dataclasses
import html
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from . import _coirl
from ._arrays import Floats, Integers, file_name, floats, integers, parts
from ._arrays import contexts as as_contexts
from ._codecs import ESTIMATOR, PLAIN, Codec
from ._notebook import table
from .demonstrations import Demonstrations
from .errors import DataError, NotFittedError, SettingError
from .experts import SimulatedExpert
from .model import ContextualMDP, Plan

__all__ = ["Learner", "StreamLearner", "load"]

Own = TypeVar("Own", bound="Learner")
OwnStream = TypeVar("OwnStream", bound="StreamLearner")
#: Called with one record per step; returns ``False`` to stop.
Callback = Callable[[dict[str, Any]], Any]

_BY_METHOD: dict[str, type[Learner]] = {}


@dataclass(kw_only=True, eq=False, repr=False)
class Learner:
    """A method with its settings.

    Every learner has these settings beside its own:

    Parameters
    ----------
    seed
        Seed of everything random; the same seed gives the same result, whatever the number of threads.
    max_steps
        Steps; by default as many as the method takes.
    stop_loss, stop_gap
        Stop when the loss on the demonstrations, or the gap of methods that know one, has fallen to this.
    patience
        Early stopping: end after so many records without anything better on the validation demonstrations, by default 10 where there are
        some; the best is returned.
    watched
        What is better: a smaller ``"loss"`` (default) or a larger ``"accuracy"``.
    record_every
        Steps between two records with a loss in :attr:`history_`; 0 for the start and the end only. By default about a hundred records, or
        fewer in large models.
    record_loss
        Whether records have the loss on all demonstrations, which costs a plan for each; by default they do.
    initial
        The mapping to start from, ``[d, k]``.
    estimator
        How feature expectations are read off trajectories: ``"control_variate"`` (default), ``"truncated"``, ``"geometric"`` or
        ``"decisions"``. Choosing one makes the loss the default objective.

    Attributes
    ----------
    mapping_
        W ``[d, k]`` of methods that learn a linear mapping, else ``None``.
    loss_
        Loss(W)/‖W‖ on the demonstrations, where there is one.
    history_
        One record per recorded step.
    status_, certificate_
        Why the run ended, and what is known about its result.
    n_steps_, n_planner_calls_, n_demonstrations_
        What it took.
    """

    seed: int = 0
    max_steps: int | None = None
    stop_loss: float | None = None
    stop_gap: float | None = None
    patience: int | None = None
    watched: str | None = None
    record_every: int | None = None
    record_loss: bool | None = None
    initial: Any = None
    estimator: Any = None

    #: What the method is called in files.
    _method: ClassVar[str] = ""
    #: How settings of the method itself are written, where that is not how they are saved.
    _codecs: ClassVar[dict[str, Codec]] = {}
    #: Whether it asks an expert about one context after the other.
    interactive: ClassVar[bool] = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__dict__.get("_method"):
            _BY_METHOD[cls._method] = cls

    @classmethod
    def _own(cls) -> dict[str, Codec]:
        """Settings of the method itself, with how they are written."""
        shared = {own.name for own in dataclasses.fields(Learner)}
        return {own.name: cls._codecs.get(own.name, PLAIN) for own in dataclasses.fields(cls) if own.name not in shared}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {own.name: getattr(self, own.name) for own in dataclasses.fields(self) if own.init}

    def set_params(self: Own, **params: Any) -> Own:
        """Changes settings; unknown names are refused with the nearest one."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                import difflib

                near = difflib.get_close_matches(name, known, 1)
                meant = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
                raise SettingError(f"{type(self).__name__} has no setting {name!r}{meant}", name=name)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [
            f"{own.name}={getattr(self, own.name)!r}"
            for own in dataclasses.fields(self)
            if own.init and not _same(getattr(self, own.name), own.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        rows = [(name, repr(value)) for name, value in self.get_params().items() if not _same(value, _default(self, name))]
        if self._is_fitted():
            rows += [
                ("status", self.status_),
                ("steps", f"{self.n_steps_:,}"),
                ("plans", f"{self.n_planner_calls_:,}"),
                ("loss", "" if self.loss_ is None else f"{self.loss_:.6g}"),
            ]
        title = f"{type(self).__name__} ({'fitted' if self._is_fitted() else 'not fitted'})"
        return table(title, rows) if rows else f"<b>{html.escape(title)}</b>"

    def _own_settings(self) -> dict[str, Any]:
        """The settings of the method as the library has them."""
        return {name: codec.encode(_plain(getattr(self, name))) for name, codec in self._own().items()}

    def _settings(self) -> str:
        initial = None if self.initial is None else floats("initial", self.initial, 1, 2).ravel().tolist()
        complete = {
            "method": {"name": self._method, **self._own_settings()},
            "seed": self.seed,
            "stop": {
                "max_steps": self.max_steps,
                "loss": self.stop_loss,
                "gap": self.stop_gap,
                "patience": self.patience,
                "watched": self.watched,
            },
            "initial": initial,
            "record_every": self.record_every,
            "record_loss": self.record_loss,
        }
        try:
            return json.dumps(complete, default=_plain, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise SettingError(f"{type(self).__name__}: {error}", name="settings") from None

    @classmethod
    def _params_of(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Settings of a file as parameters."""
        stop = settings["stop"]
        params = {
            "seed": settings["seed"],
            "max_steps": stop["max_steps"],
            "stop_loss": stop["loss"],
            "stop_gap": stop["gap"],
            "patience": stop["patience"],
            "watched": stop["watched"],
            "record_every": settings["record_every"],
            "record_loss": settings["record_loss"],
            "initial": settings["initial"],
        }
        return {**params, **{name: codec.decode(settings["method"][name]) for name, codec in cls._own().items()}}

    def fit(
        self: Own,
        model: ContextualMDP,
        demonstrations: Demonstrations | Any,
        *,
        validation: Demonstrations | None = None,
        truth: tuple[Any, Any] | None = None,
        expert: SimulatedExpert | Callable[..., Any] | None = None,
        callback: Callback | None = None,
    ) -> Own:
        """Learns from demonstrations.

        Parameters
        ----------
        model
            The contextual process that was acted in.
        demonstrations
            What was seen; with an ``expert`` a matrix of contexts is enough.
        validation
            Demonstrations to stop by: see ``patience``.
        truth
            ``(mapping, contexts)``: a known mapping and test contexts to score every record against.
        expert
            The expert that interactive methods ask: a :class:`~coirl.SimulatedExpert`, or a callable
            ``expert(query, context, feature_expectations)`` that returns ``None`` where the agent does well enough, and otherwise the
            feature expectations of how it is done.
        callback
            Called with one record (a dictionary) after every step; return ``False`` to stop.

        An interruption (Ctrl-C, or an exception of the callback) is raised after what was learned so far has been stored.
        """
        self._run(model, demonstrations, validation, truth, expert, callback, None)
        return self

    def _run(
        self,
        model: ContextualMDP,
        demonstrations: Any,
        validation: Demonstrations | None,
        truth: tuple[Any, Any] | None,
        expert: Any,
        callback: Callback | None,
        from_: _coirl.Fitted | None,
    ) -> None:
        if not isinstance(model, ContextualMDP):
            raise TypeError(f"model is a {type(model).__name__}; expected a ContextualMDP")
        if not isinstance(demonstrations, Demonstrations):
            if expert is None:
                raise TypeError(
                    f"demonstrations is a {type(demonstrations).__name__}; expected Demonstrations "
                    "(a matrix of contexts is enough where an expert can be asked)"
                )
            demonstrations = Demonstrations(contexts=as_contexts(demonstrations))
        if validation is not None and not isinstance(validation, Demonstrations):
            raise TypeError(f"validation is a {type(validation).__name__}; expected Demonstrations")
        known = None
        if truth is not None:
            if not (isinstance(truth, tuple) and len(truth) == 2):
                raise TypeError("truth is no pair; expected (mapping, contexts)")
            known = (floats("true mapping", truth[0], 2), as_contexts(truth[1]))
        if expert is not None and not isinstance(expert, SimulatedExpert) and not callable(expert):
            raise TypeError("expert is neither a SimulatedExpert nor callable")
        if callback is not None and not callable(callback):
            raise TypeError("callback is not callable")
        estimator = None if self.estimator is None else ESTIMATOR.encode(self.estimator)
        fitted, interrupted = _coirl.fit(
            model._model,
            demonstrations,
            self._settings(),
            json.dumps(estimator, default=_plain),
            validation,
            known,
            expert._passed() if isinstance(expert, SimulatedExpert) else _asked(expert),
            callback,
            from_,
        )
        self._store(fitted, model)
        if interrupted is not None:
            raise interrupted

    def _store(self, fitted: _coirl.Fitted, model: ContextualMDP | None) -> None:
        summary = json.loads(fitted.summary())
        self._fitted = fitted
        self.model_ = model
        self.mapping_: Floats | None = fitted.mapping()
        own = fitted.intercept()
        self.intercept_: Floats | None = None if own is None else np.asarray(own, dtype=np.float64)
        self.status_: str = summary["status"]
        self.certificate_: dict[str, Any] = summary["certificate"]
        self.loss_: float | None = self.certificate_["loss"]
        self.history_: list[dict[str, Any]] = summary["history"]
        self.settings_: dict[str, Any] = summary["settings"]
        self.n_steps_: int = summary["steps"]
        self.n_planner_calls_: int = summary["planner_calls"]
        self.n_demonstrations_: int = summary["demonstrations"]
        self.digest_: str = summary["digest"]

    def _is_fitted(self) -> bool:
        return "_fitted" in self.__dict__

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted()

    def _ready(self, model: ContextualMDP | None = None) -> tuple[_coirl.Fitted, ContextualMDP]:
        if not self._is_fitted():
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first")
        own = model if model is not None else self.model_
        if own is None:
            raise NotFittedError("the learner was loaded without a model; give one: load(path, model=...)")
        return self._fitted, own

    def weights(self, contexts: Any) -> Floats:
        """f(c), the weights of the reward: ``[k]`` for one context, ``[n, k]`` for n."""
        fitted, model = self._ready()
        rows = as_contexts(contexts)
        found = fitted.weights(model._model, rows)
        return found[0] if np.ndim(contexts) == 1 else found

    def behaviour(self, context: Any) -> list[tuple[float, Integers | Floats, Floats]]:
        """How the agent acts in a context: policies, of which one is drawn when an episode begins, with their probabilities and feature
        expectations. Most agents have one."""
        fitted, model = self._ready()
        return fitted.act(model._model, floats("context", context, 1).reshape(1, -1))[0]

    def predict(self, contexts: Any) -> Any:
        """The policy for a context: actions ``[S]``, or probabilities ``[S, A]`` of agents that draw them; for a matrix of contexts a list.

        Agents of apprenticeship learning draw one of several policies when an episode begins. They are given here as the one policy that visits every
        state and action as often as that mixture does, and has its feature expectations.
        """
        fitted, model = self._ready()
        rows = as_contexts(contexts)
        found = fitted.act(model._model, rows)
        policies = [_one_policy(model, row, behaviours) for row, behaviours in zip(rows, found)]
        return policies[0] if np.ndim(contexts) == 1 else policies

    def plan(self, context: Any, **settings: Any) -> Plan:
        """Plans for the learned reward in a context; settings as of :meth:`ContextualMDP.plan`."""
        _, model = self._ready()
        needs = None if model.dynamics == "shared" else context
        return model.plan(self.weights(floats("context", context, 1)), context=needs, **settings)

    def score(self, demonstrations: Demonstrations) -> float:
        """How well the agent explains demonstrations that it did not learn from, more being better: the share of the demonstrated actions that it takes;
        where only feature expectations are known, the negative loss."""
        fitted, model = self._ready()
        if not isinstance(demonstrations, Demonstrations):
            raise TypeError(f"demonstrations is a {type(demonstrations).__name__}; expected Demonstrations")
        if demonstrations.has_actions:
            return fitted.accuracy(model._model, demonstrations)
        estimator = None if self.estimator is None else ESTIMATOR.encode(self.estimator)
        loss = fitted.loss(model._model, demonstrations, json.dumps(estimator, default=_plain))
        if loss is None:
            raise SettingError(f"a {fitted.kind} agent has no loss; score it on trajectories, or by examine", name="score")
        return -loss

    def examine(self, truth: Any, contexts: Any) -> dict[str, Any]:
        """How the agent does beside an expert with a known mapping ``[d, k]``, on test contexts: ``relative_value`` (the expert is 1, acting at
        random 0), ``value``, ``value_ratio``, accuracies, ``held_out_loss``. What has no value is None: ``value_ratio`` where the expert's
        value is not positive, for a worse agent would have the larger share."""
        fitted, model = self._ready()
        found = json.loads(fitted.score(model._model, floats("true mapping", truth, 2), as_contexts(contexts)))
        return {name: None if value is None else float(value) for name, value in found.items()}

    def predict_proba(self, contexts: Any, visits: Any) -> Floats:
        """Probabilities of every action ``[steps, A]`` at visited states: a list of states per context, one after the other.

        Of agents that plan the best action has probability one; the choice model, learned from actions, says how likely experts take each.
        """
        fitted, model = self._ready()
        lists: list[list[int]] = [integers("visits", states, 1).tolist() for states in parts("visits", visits)]
        for states in lists:
            for state in states:
                if not 0 <= state < model.n_states:
                    raise DataError(
                        f"visits has state {state}; the model has {model.n_states} states", state=state, n_states=model.n_states
                    )
        return fitted.predictions(model._model, as_contexts(contexts), lists)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what was learned, with settings, history and certificate (``.safetensors``). The file appears whole or not at all."""
        if not self._is_fitted():
            raise NotFittedError(f"this {type(self).__name__} is not fitted; there is nothing to save")
        self._fitted.save(file_name(path))

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and copying. Where a stream stopped is not kept, as in a file."""
        state = dict(self.__dict__)
        if self._is_fitted():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fitted.safetensors"
                self.save(path)
                state["_fitted"] = path.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._is_fitted():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fitted.safetensors"
                path.write_bytes(state["_fitted"])
                self._fitted = _coirl.Fitted.load(file_name(path))

    @classmethod
    def load(cls: type[Own], path: str | os.PathLike[str], model: ContextualMDP | None = None) -> Own:
        """Reads what :meth:`save` or ``coirl fit`` wrote; see :func:`coirl.load`."""
        found = load(path, model)
        if not isinstance(found, cls):
            raise SettingError(f"{os.fspath(path)} holds a {type(found).__name__}, not a {cls.__name__}", name="load")
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class StreamLearner(Learner):
    """A learner that can go on with what comes later: see :meth:`partial_fit`."""

    def partial_fit(
        self: OwnStream,
        model: ContextualMDP,
        demonstrations: Demonstrations,
        *,
        validation: Demonstrations | None = None,
        truth: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
    ) -> OwnStream:
        """Goes on learning with the next demonstrations of a stream, from where the last call stopped: step sizes, averages and the regret carry
        over. ``max_steps`` are the steps of this call; by default one per demonstration."""
        from_ = self._fitted if self._is_fitted() and self._fitted.can_go_on else None
        if self._is_fitted() and from_ is None:
            raise SettingError("a learner that was loaded from a file cannot go on; fit it in this session", name="partial_fit")
        if from_ is None and self.max_steps is None:
            # The first call of a stream is one pass as well.
            steps, self.max_steps = self.max_steps, len(demonstrations)
            try:
                self._run(model, demonstrations, validation, truth, None, callback, None)
            finally:
                self.max_steps = steps
            return self
        in_order = from_ is not None and getattr(self, "batch", None) == "in_order"
        if in_order and isinstance(demonstrations, Demonstrations) and len(demonstrations):
            # Step t of a run looks at demonstration t modulo their number; here the first of the stream's next ones is due.
            n = len(demonstrations)
            demonstrations = demonstrations[np.roll(np.arange(n), self.n_steps_ % n)]
        self._run(model, demonstrations, validation, truth, None, callback, from_)
        return self


def load(path: str | os.PathLike[str], model: ContextualMDP | None = None) -> Learner:
    """Reads what a learner saved, or the ``fitted.safetensors`` of ``coirl fit``, as a learner of its class.

    The file holds what was learned, not the model; give it to plan and score. How demonstrations were read
    (``estimator``) is not in it.
    """
    fitted = _coirl.Fitted.load(file_name(path))
    settings = json.loads(fitted.summary())["settings"]
    cls = _BY_METHOD[settings["method"]["name"]]
    own = cls(**cls._params_of(settings))
    own._store(fitted, model)
    if own.initial is not None and own.mapping_ is not None:
        own.initial = np.reshape(own.initial, own.mapping_.shape)
    return own


def _asked(expert: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """An expert whose answers are numbers or nothing."""
    if expert is None:
        return None

    def ask(query: int, context: Floats, agent: Floats) -> Floats | None:
        answer = expert(query, context, agent)
        return None if answer is None else floats("feature expectations of the expert", answer, 1)

    return ask


def _default(learner: Learner, name: str) -> Any:
    return next(own.default for own in dataclasses.fields(learner) if own.name == name)


def _same(value: Any, other: Any) -> bool:
    # What is of another kind is not asked: it cannot be the default, and its own comparison may do anything.
    if not isinstance(value, (type(None), bool, int, float, str, list, tuple, dict, np.generic)):
        return value is other
    try:
        return bool(value == other)
    except (TypeError, ValueError):  # an array inside
        return False


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python."""
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (str, int, float, bool, dict, list, tuple)):
        return value
    raise TypeError(f"{value!r} is no setting")


def _one_policy(model: ContextualMDP, context: Floats, behaviours: list[tuple[float, Any, Floats]]) -> Any:
    """The policy with the visits of a mixture of policies."""
    if len(behaviours) == 1:
        return behaviours[0][1]
    needs = None if model.dynamics == "shared" else context
    visits: Any = 0.0
    shares: Any = 0.0
    for share, policy, _ in behaviours:
        taken = np.eye(model.n_actions)[policy] if policy.dtype.kind == "i" else policy
        visited = _visits(model, needs, policy, taken)
        visits = visits + share * visited[..., None] * taken
        shares = shares + share * taken
    visited = visits.sum(axis=-1, keepdims=True)
    # Where nobody ever goes, what would be done there has no visits to weigh it by.
    return np.where(visited > 0.0, visits / np.where(visited > 0.0, visited, 1.0), shares / shares.sum(axis=-1, keepdims=True))


def _visits(model: ContextualMDP, context: Floats | None, policy: Any, taken: Floats) -> Floats:
    """How often every state is visited: ``[S]``, ``[T, S]`` for a finite horizon."""
    if model.horizon is None:
        return model.evaluate(policy, context=context).occupancy
    indptr, following, chance = model.transitions(context)
    stages = np.broadcast_to(taken, (model.horizon, model.n_states, model.n_actions))
    visited = [model.initial]
    for stage in stages[:-1]:
        flow = np.repeat((visited[-1][:, None] * stage).ravel(), np.diff(indptr)) * chance
        visited.append(np.asarray(np.bincount(following, flow, minlength=model.n_states), dtype=np.float64))
    return np.array(visited)

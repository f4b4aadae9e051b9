"""Gymnasium: a contextual process as an environment, and a tabular environment as a contextual process.

Needs Gymnasium, which the package does not install by itself: ``pip install coirl[gym]``.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _parts
from ._arrays import Booleans, Floats, Integers, count, floats
from .errors import ArrayError, ContextError, DataError, SettingError
from .learners import Learner
from .model import ContextualMDP

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ImportError("coirl.gym needs Gymnasium; install it with: pip install coirl[gym]") from error

__all__ = ["ContextualMDPEnv", "from_gymnasium"]


class ContextualMDPEnv(gymnasium.Env[np.int64, np.int64]):
    """A Gymnasium environment in which a contextual process is acted in, for the reward f(c)·φ.

    A step pays f(c)·φ(s, a), where s is the state in which the action is taken, not the one it leads to. The discounted sum of the
    rewards of an episode is, in expectation, the value of the policy that acted: ``model.evaluate(policy, f(c)).value``. This holds
    for every criterion with a sum:

    - An episode terminates in an absorbing state. What would be collected there for ever, γ/(1 − γ) f(c)·φ(s'), is paid with the
      step that leads there. Where features of an absorbing state make one action better than another, the agent still decides, and
      the episode goes on.
    - With a finite horizon an episode terminates after so many steps.
    - Under the average criterion an episode never terminates.

    Observations and actions are numbers of states and actions. ``info`` has the ``"context"`` of the episode, and in
    ``"action_mask"`` which actions can be taken in the state that is returned (int8, as in Gymnasium's own tables).

    Parameters
    ----------
    model
        The contextual process.
    mapping
        Where the reward comes from: W ``[d, k]``, f(c) = c W; weights ``[k]`` for all contexts; a fitted learner; or a function
        from a context to weights ``[k]``. Learners and functions are asked when an episode begins.
    context
        The context of every episode. Without, one is drawn from the model's space when an episode begins.
    max_episode_steps
        Episodes are truncated after so many steps.
    render_mode
        ``"ansi"`` for a line of text by :meth:`render`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        model: ContextualMDP,
        mapping: Learner | Callable[[Floats], Any] | Any,
        *,
        context: Any = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(model, ContextualMDP):
            raise TypeError(f"model is a {type(model).__name__}; expected a ContextualMDP")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise SettingError(f'render_mode = {render_mode!r}: expected None or "ansi"', name="render_mode", value=render_mode)
        self.model = model
        self.render_mode = render_mode
        self.max_episode_steps = None if max_episode_steps is None else count("max_episode_steps", max_episode_steps, 1)
        self.observation_space = spaces.Discrete(model.n_states)
        self.action_space = spaces.Discrete(model.n_actions)
        self._mapping = _mapping(model, mapping)
        self._fixed_context = None if context is None else _checked(model, context)
        self._without_context = np.ndim(self._mapping) == 1 and model.dynamics == "shared" and model.context_dimension is None
        self._admissible = model.admissible
        self._masks = self._admissible.astype(np.int8)
        self._initial = np.cumsum(model.initial)
        self._horizon = model.horizon
        self._discount = model.discount
        self._ends = json.loads(model._model.criterion()) != "average"
        self._kernel: _Kernel | None = None
        self._context = np.empty(0)
        self._weights = np.zeros(model.n_features)
        self._state: int | None = None
        self._over = False
        self._steps = 0
        self._last: tuple[int, float] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.int64, dict[str, Any]]:
        """Begins an episode.

        ``options`` may have a ``"context"``, which otherwise is that of the constructor or drawn, and a ``"state"`` to start in,
        which otherwise is drawn from the model's start distribution.
        """
        super().reset(seed=seed)
        given = dict(options or {})
        context, state = given.pop("context", None), given.pop("state", None)
        if given:
            unknown = ", ".join(map(repr, given))
            raise SettingError(f"options has {unknown}; expected 'context' or 'state'", name=str(next(iter(given))))
        if state is not None and count("state", state) >= self.model.n_states:
            raise DataError(f"state {state} does not exist; the model has {self.model.n_states}", state=int(state))
        self._enter(self._draw_context() if context is None else _checked(self.model, context))
        self._state = _draw(self._initial, self.np_random.random()) if state is None else int(state)
        self._over, self._steps, self._last = False, 0, None
        return np.int64(self._state), self._info()

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Takes an action; one that cannot be taken raises a :class:`~coirl.errors.DataError`."""
        if self._state is None or self._kernel is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if self._over:
            raise gymnasium.error.ResetNeeded("the episode has terminated; call reset before the next step")
        state, taken = self._state, operator.index(action)
        if not (0 <= taken < self.model.n_actions and self._admissible[state, taken]):
            raise DataError(f"action {taken} cannot be taken in state {state}", state=state, action=taken)
        reward = self._reward(state, taken)
        row = state * self.model.n_actions + taken
        begin, end = self._kernel.indptr[row], self._kernel.indptr[row + 1]
        entry = begin + _draw(self._kernel.data[begin:end].cumsum(), self.np_random.random())
        self._state = int(self._kernel.indices[entry])
        self._steps += 1
        self._last = (taken, reward)
        terminated = self._steps == self._horizon
        if self._ends and not terminated and self._kernel.absorbing[self._state]:
            for_ever = np.unique([self._reward(self._state, int(a)) for a in np.flatnonzero(self._admissible[self._state])])
            if for_ever.size == 1:
                terminated = True
                reward += self._later() * float(for_ever[0])
        self._over = terminated
        truncated = not terminated and self._steps == self.max_episode_steps
        return np.int64(self._state), reward, terminated, truncated, self._info()

    def render(self) -> str | None:
        """The state, with the last action and its reward; ``None`` without ``render_mode="ansi"``."""
        if self.render_mode is None:
            gymnasium.logger.warn('render was called without a render mode; give render_mode="ansi"')
            return None
        if self._last is None:
            return f"state {self._state}\n"
        action, reward = self._last
        names = self.model.names["actions"]
        return f"state {self._state} after {names[action] if names else f'action {action}'}, reward {reward:g}\n"

    def _draw_context(self) -> Floats:
        if self._fixed_context is not None:
            return self._fixed_context
        if self._without_context:
            return np.ones(1)
        try:
            drawn: Floats = self.model.sample_contexts(1, seed=int(self.np_random.integers(2**63 - 1)))[0]
        except ContextError as error:
            raise ContextError(f"{error}; give one: context=..., or reset(options={{'context': ...}})", **error.data) from None
        return drawn

    def _enter(self, context: Floats) -> None:
        """What depends on the context; the kernel, which is large, only where it changes."""
        weights, shared = self._weights_of(context), self.model.dynamics == "shared"
        if self._kernel is None or not (shared or np.array_equal(context, self._context)):
            self._kernel = _Kernel(self.model, None if shared else context)
        self._context, self._weights = context, weights

    def _weights_of(self, context: Floats) -> Floats:
        own = self._mapping
        if isinstance(own, Learner):
            weights: Floats = own._ready(self.model)[0].weights(self.model._model, context.reshape(1, -1))[0]
        elif callable(own):
            weights = floats("weights", own(context.copy()), 1)
        elif own.ndim == 1:
            weights = own
        elif context.size == own.shape[0]:
            weights = context @ own
        else:
            d = own.shape[0]
            raise ContextError(f"the context has {context.size} numbers; the mapping takes {d}", expected=d, found=context.size)
        k = self.model.n_features
        if weights.size != k or not np.isfinite(weights).all():
            raise ArrayError(f"the weights of a context are {weights}; expected {k} finite numbers", what="weights")
        return weights

    def _reward(self, state: int, action: int) -> float:
        return float(self.model.feature_row(state, action) @ self._weights)

    def _later(self) -> float:
        """γ + γ² + … over the steps that are left after this one."""
        gamma = self._discount
        if self._horizon is None:
            # Without a discount absorbing states have no features.
            return gamma / (1.0 - gamma) if gamma < 1.0 else 0.0
        left = self._horizon - self._steps
        return gamma * (1.0 - gamma**left) / (1.0 - gamma) if gamma < 1.0 else float(left)

    def _info(self) -> dict[str, Any]:
        assert self._state is not None
        return {"context": self._context.copy(), "action_mask": self._masks[self._state].copy()}


class _Kernel:
    """P_c, and the states that no action leaves."""

    indptr: Integers
    indices: Integers
    data: Floats
    absorbing: Booleans

    def __init__(self, model: ContextualMDP, context: Floats | None) -> None:
        self.indptr, self.indices, self.data = model.transitions(context)
        row_of = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        leaves = (row_of // model.n_actions != self.indices) & (self.data > 0.0)
        self.absorbing = np.ones(model.n_states, dtype=np.bool_)
        self.absorbing[row_of[leaves] // model.n_actions] = False


def _draw(cumulative: Floats, uniform: float) -> int:
    """An index by its probability; entries of probability zero are never drawn."""
    index = int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
    # The product can round up to the whole sum, which is first met at the last entry with a probability.
    return index if index < cumulative.size else int(cumulative.searchsorted(cumulative[-1]))


def _checked(model: ContextualMDP, context: Any) -> Floats:
    own = floats("context", context, 1).copy()
    model._model.check_contexts(own.reshape(1, -1))
    return own


def _mapping(model: ContextualMDP, given: Any) -> Any:
    """A fitted learner, a function, or a matrix or vector of the right shape."""
    if isinstance(given, Learner):
        given._ready(model)
        return given
    if callable(given):
        return given
    array = floats("mapping", given, 1, 2).copy()
    d = model.context_dimension
    expected = [model.n_features] if array.ndim == 1 else [array.shape[0] if d is None else d, model.n_features]
    if list(array.shape) != expected or not np.isfinite(array).all():
        raise ArrayError(
            f"mapping has shape {list(array.shape)}; expected {expected}, finite: rows for contexts, columns for features",
            what="mapping",
            expected=expected,
            found=list(array.shape),
        )
    return array


def from_gymnasium(
    env: Any,
    features: Any = None,
    *,
    discount: float = 0.99,
    initial: Any = None,
    context_space: Any = ("simplex", 1),
) -> tuple[ContextualMDP, Floats]:
    """A tabular environment as a model, with its own reward.

    Takes environments with a table ``env.unwrapped.P[state][action]`` of ``(probability, next state, reward, terminated)``:
    FrozenLake, Taxi, CliffWalking and others. ``model.plan(reward=reward)`` is then the best way to act in it. Limits on the number
    of steps are not part of the model.

    States keep their numbers. An episode that terminates ends in the state it leads to, which becomes absorbing and pays nothing.
    Only where that state can be acted in as well, because it can also be reached without terminating, the transition leads to one
    more, absorbing state, which then is the last.

    Parameters
    ----------
    env
        The environment, wrapped or not.
    features
        φ as of :class:`~coirl.ContextualMDP`, for the states of the environment; a state that was added has none, but for
        ``"indicators"``, of which it has its own. By default one indicator per state and action, none in absorbing states: the
        environment's own reward, which may depend on both, then has the weights ``reward.ravel()``. With other features it may have
        none.
    discount
        γ; environments do not say.
    initial
        Start distribution or state; the environment's own by default.
    context_space
        As of :class:`~coirl.ContextualMDP`. By default the only context is ``[1.0]``.

    Returns
    -------
    model, reward
        The reward ``[S, A]`` is the expected one of each state and action; zero where an action cannot be taken.
    """
    own = getattr(env, "unwrapped", env)
    table = getattr(own, "P", None)
    if table is None:
        raise DataError(f"{type(own).__name__} has no table P; expected a tabular environment, such as FrozenLake or Taxi")
    n_states, n_actions = _size(own, "observation_space"), _size(own, "action_space")
    row, p, following, paid, ends = _transitions(table, n_states, n_actions)
    if initial is None:
        initial = next((getattr(own, name) for name in ("initial_state_distrib", "isd") if hasattr(own, name)), None)
        if initial is None:
            raise SettingError(f"{type(own).__name__} does not say where episodes begin; give initial", name="initial")
    start = _parts.initial(initial, n_states)
    if start.size != n_states:
        raise ArrayError(f"initial has {start.size} entries; expected {n_states}, one per state", what="initial")

    state = row // n_actions
    acted_in = _reachable(start > 0.0, state[~ends], following[~ends])
    idle = np.ones(n_states, dtype=np.bool_)
    idle[state[(following != state) | (paid != 0.0)]] = False
    final = np.zeros(n_states, dtype=np.bool_)
    final[following[ends]] = True
    made = final & ~acted_in
    leads_away = ends & ~(made | idle)[following]
    if leads_away.any():
        following = np.where(leads_away, n_states, following)
        start = np.append(start, 0.0)
    total = n_states + bool(leads_away.any())

    admissible = np.zeros((total, n_actions), dtype=np.bool_)
    admissible.ravel()[row] = True
    made = np.append(made, np.ones(total - n_states, dtype=np.bool_))
    admissible[made] |= ~admissible[made].any(axis=1, keepdims=True)
    kept = ~made[state]
    loops = np.flatnonzero(admissible.ravel() & np.repeat(made, n_actions))
    rows = np.concatenate([row[kept], loops])
    reward = np.bincount(row[kept], weights=(p * paid)[kept], minlength=total * n_actions).astype(np.float64)
    # A table may name a successor several times.
    entries, first = np.unique(rows * total + np.concatenate([following[kept], loops // n_actions]), return_inverse=True)
    data = np.bincount(first, weights=np.concatenate([p[kept], np.ones(loops.size)]), minlength=entries.size)
    indptr = np.searchsorted(entries, np.arange(total * n_actions + 1) * total)

    absorbing = np.append(idle, np.ones(total - n_states, dtype=np.bool_)) | made
    spec = getattr(own, "spec", None)
    model = ContextualMDP(
        (indptr, entries % total, data),
        _indicators(~absorbing, n_actions) if features is None else _with_added(features, n_states, n_actions, total),
        start,
        discount,
        admissible=admissible,
        context_space=context_space,
        name=str(spec.id) if spec is not None else type(own).__name__,
    )
    return model, reward.reshape(total, n_actions)


def _size(env: Any, name: str) -> int:
    space = getattr(env, name, None)
    if not isinstance(space, spaces.Discrete) or space.start != 0:
        raise DataError(f"{name} is {space}; expected Discrete, counted from 0, as of a tabular environment")
    return int(space.n)


_Columns = tuple[Integers, Floats, Integers, Floats, Booleans]


def _transitions(table: Any, n_states: int, n_actions: int) -> _Columns:
    """The table in columns: row (s * A + a), probability, successor, reward, terminated."""
    found: list[tuple[int, float, int, float, bool]] = []
    for state, action, outcomes in _outcomes(table):
        if not (0 <= state < n_states and 0 <= action < n_actions):
            raise DataError(f"P[{state}][{action}] is beyond {n_states} states and {n_actions} actions", state=state, action=action)
        for outcome in outcomes:
            try:
                p, following, reward, terminated = outcome
                entry = (state * n_actions + action, float(p), operator.index(following), float(reward), bool(terminated))
            except (TypeError, ValueError):
                raise DataError(
                    f"P[{state}][{action}] has {outcome!r}; expected (probability, next state, reward, terminated)",
                    state=state,
                    action=action,
                ) from None
            if not 0 <= entry[2] < n_states:
                raise DataError(f"P[{state}][{action}] leads to state {entry[2]} of {n_states}", state=state, action=action)
            if entry[1] != 0.0:
                found.append(entry)
    columns = list(zip(*found)) or [()] * 5
    kinds: tuple[npt.DTypeLike, ...] = (np.int64, np.float64, np.int64, np.float64, np.bool_)
    row, p_, following_, paid, ends = (np.array(column, dtype=kind) for column, kind in zip(columns, kinds))
    return row, p_, following_, paid, ends


def _outcomes(table: Any) -> Any:
    """``(state, action, outcomes)`` of a table of dictionaries or lists."""

    def numbered(part: Any) -> Any:
        return part.items() if isinstance(part, dict) else enumerate(part)

    return ((state, action, outcomes) for state, actions in numbered(table) for action, outcomes in numbered(actions))


def _reachable(reached: Booleans, origin: Integers, target: Integers) -> Booleans:
    """The states to which some path leads."""
    reached = reached.copy()
    while True:
        new = target[reached[origin] & ~reached[target]]
        if new.size == 0:
            return reached
        reached[new] = True


def _indicators(collects: Booleans, n_actions: int) -> tuple[int, Integers, Integers, Floats]:
    """One feature per state and action; none where nothing is collected."""
    present = np.repeat(collects, n_actions)
    indptr = np.concatenate([[0], np.cumsum(present)]).astype(np.int64)
    return present.size, indptr, np.flatnonzero(present), np.ones(int(present.sum()))


def _with_added(features: Any, n_states: int, n_actions: int, total: int) -> Any:
    """Features with those of the added state, where there is one."""
    if total == n_states:
        return features
    by_state, by_pair = _parts.features(features, n_states, n_actions, None)
    if by_state is not None:
        return np.concatenate([by_state, np.zeros((1, by_state.shape[1]))]) if len(by_state) == n_states else by_state
    if by_pair is not None:
        k, indptr, indices, data = by_pair
        return k, np.append(indptr, np.repeat(indptr[-1:], n_actions)), indices, data
    return features

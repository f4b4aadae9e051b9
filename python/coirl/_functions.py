"""Compressed rows and features from functions of states and actions."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._arrays import Booleans, Floats, Integers, floats, integers, room
from .errors import ArrayError, ModelError

#: States that a vectorised function is asked about at once.
_BLOCK = 1 << 16


class Rows(NamedTuple):
    """What a function of states and actions says about transitions."""

    #: ``(indptr, indices, data)`` of rows numbered ``s * A + a``, empty where an action cannot be taken.
    transitions: tuple[Integers, Integers, Floats]
    #: ``[S, A]``.
    admissible: Booleans


def rows(n_states: int, n_actions: int, transition: Callable[..., Any], vectorised: bool) -> Rows:
    _check_callable("transition", transition)
    room("n_states", n_states, n_actions)
    return _of_blocks(n_states, n_actions, transition) if vectorised else _of_pairs(n_states, n_actions, transition)


def features(admissible: Booleans, function: Callable[..., Any], vectorised: bool) -> Floats:
    """φ ``[S, A, k]``, zero where an action cannot be taken."""
    n_states, n_actions = admissible.shape
    found: Floats | None = None
    for states, action in _calls(n_states, n_actions, vectorised):
        can = admissible[states, action]
        if not can.any():
            continue
        with _told("features", states, action, vectorised):
            answer = function(np.arange(states.start, states.stop) if vectorised else states.start, action)
            part = floats("features", answer, 2 if vectorised else 1).reshape(len(can) if vectorised else 1, -1)
            if found is None:
                room("features", n_states, n_actions, part.shape[1])
                found = np.zeros((n_states, n_actions, part.shape[1]))
            if part.shape[1] != found.shape[2]:
                raise ArrayError(f"features has {part.shape[1]} numbers; expected {found.shape[2]}, as before", what="features")
        bad = np.argwhere(can[:, None] & ~np.isfinite(part))
        if bad.size:
            state, value = states.start + int(bad[0, 0]), float(part[tuple(bad[0])])
            raise ModelError(
                f"state {state}, action {action}: feature {bad[0, 1]} is {value}; expected a finite number",
                state=state,
                action=action,
                feature=int(bad[0, 1]),
                value=value,
            )
        found[states, action] = np.where(can[:, None], part, 0.0)
    # Every state has an action, or the kernel refuses it; then there is nothing whose features count.
    return np.zeros((n_states, n_actions, 1)) if found is None else found


def _calls(n_states: int, n_actions: int, vectorised: bool) -> Iterator[tuple[slice, int]]:
    step = _BLOCK if vectorised else 1
    for first in range(0, n_states, step):
        for action in range(n_actions):
            yield slice(first, min(first + step, n_states)), action


def _check_callable(what: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{what} is a {type(value).__name__}; expected a function of a state and an action")


@contextmanager
def _told(what: str, states: slice, action: int, vectorised: bool) -> Iterator[None]:
    """Says which call it was where something is wrong with an answer, and leaves what the function itself raised as it is."""
    try:
        yield
    except Exception as error:
        where = f"states {states.start} to {states.stop - 1}" if vectorised else f"state {states.start}"
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note(f"in {what} for {where}, action {action}")
        raise


def _of_pairs(n_states: int, n_actions: int, transition: Callable[..., Any]) -> Rows:
    lengths = np.zeros((n_states, n_actions), dtype=np.int64)
    # Arrays of the standard library grow in place, at eight bytes a number.
    next_states, probabilities = array("q"), array("d")
    for state in range(n_states):
        for action in range(n_actions):
            with _told("transition", slice(state, state + 1), action, False):
                followers, shares = _row(transition(state, action), state, action)
                lengths[state, action] = len(followers)
                next_states.extend(followers)
                probabilities.extend(shares)
    if not next_states:  # NumPy takes no empty buffer
        return _compressed(lengths, np.empty(0, dtype=np.int64), np.empty(0))
    return _compressed(lengths, np.frombuffer(next_states, dtype=np.int64), np.frombuffer(probabilities, dtype=np.float64))


def _row(answer: Any, state: int, action: int) -> tuple[Any, Any]:
    """Next states and probabilities, in any of the forms that a function may answer in."""
    if answer is None:
        return (), ()
    if isinstance(answer, (int, np.integer)) and not isinstance(answer, (bool, np.bool_)):
        return (_state(answer, state, action),), (1.0,)
    if isinstance(answer, Mapping):
        followers, shares = list(answer.keys()), list(answer.values())
    elif isinstance(answer, tuple) and len(answer) == 2:
        return _two_arrays(answer, state, action)
    else:
        try:
            pairs = list(answer)
            followers, shares = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            if any(len(pair) != 2 for pair in pairs):
                raise TypeError
        except (TypeError, IndexError, KeyError):
            raise TypeError(
                f"state {state}, action {action}: transition returned {_short(answer)}; expected a list of pairs (next state, probability), "
                "a dictionary, a tuple of two arrays, the number of a state, or None"
            ) from None
    return [_state(follower, state, action) for follower in followers], [_share(share, state, action) for share in shares]


def _two_arrays(answer: tuple[Any, Any], state: int, action: int) -> tuple[Any, Any]:
    where = f"state {state}, action {action}: "
    if np.ndim(answer[0]) == 0 and np.ndim(answer[1]) == 0:
        raise TypeError(f"{where}transition returned {_short(answer)}; expected a list of pairs, [(next state, probability)]")
    # A sequence that is empty has no type of its own.
    followers = integers(f"{where}next states", answer[0], 1) if len(answer[0]) else np.empty(0, dtype=np.int64)
    shares = floats(f"{where}probabilities", answer[1], 1)
    if followers.size != shares.size:
        raise ModelError(
            f"{where}{followers.size} next states and {shares.size} probabilities; expected as many", state=state, action=action
        )
    return followers.tolist(), shares.tolist()


def _state(value: Any, state: int, action: int) -> int:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"state {state}, action {action}: the next state is {_short(value)}; expected a whole number")
    if not -(2**63) <= int(value) < 2**63:
        raise ModelError(f"state {state}, action {action}: successor state {value} does not exist", state=state, action=action)
    return int(value)


def _share(value: Any, state: int, action: int) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"state {state}, action {action}: a probability is {_short(value)}; expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ModelError(f"state {state}, action {action}: a probability is too large", state=state, action=action) from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _of_blocks(n_states: int, n_actions: int, transition: Callable[..., Any]) -> Rows:
    lengths = np.zeros((n_states, n_actions), dtype=np.int64)
    next_parts, share_parts = [], []
    beside: list[tuple[Integers, Floats, Booleans]] = []
    for states, action in _calls(n_states, n_actions, True):
        with _told("transition", states, action, True):
            next_states, shares = _block(transition(np.arange(states.start, states.stop), action), states.stop - states.start)
        # Not a number is not zero, and is refused with its place like any other entry.
        kept = shares != 0.0
        lengths[states, action] = kept.sum(axis=1)
        beside.append((next_states, shares, kept))
        if action == n_actions - 1:
            # Rows of one state after another: the actions side by side.
            mask = np.concatenate([part[2] for part in beside], axis=1)
            next_parts.append(np.concatenate([part[0] for part in beside], axis=1)[mask])
            share_parts.append(np.concatenate([part[1] for part in beside], axis=1)[mask])
            beside = []
    return _compressed(lengths, _joined(next_parts), _joined(share_parts))


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One array of all parts, which are let go one by one."""
    whole = np.empty(sum(part.size for part in parts), dtype=parts[0].dtype)
    end = whole.size
    while parts:
        part = parts.pop()
        whole[end - part.size : end] = part
        end -= part.size
    return whole


def _block(answer: Any, n: int) -> tuple[Integers, Floats]:
    """Next states and probabilities ``[n, m]``."""
    if answer is None:
        return np.zeros((n, 0), dtype=np.int64), np.zeros((n, 0))
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"transition returned {_short(answer)}; expected (next states, probabilities), arrays [{n}, m]")
    next_states, shares = integers("next states", answer[0], 1, 2), floats("probabilities", answer[1], 0, 1, 2)
    if next_states.ndim == 1:
        next_states = next_states.reshape(-1, 1)
    if next_states.shape[0] != n:
        raise ArrayError(f"next states has shape {list(next_states.shape)}; expected {n} rows, one per state", what="next states")
    # One dimension of probabilities belongs to the successors, unless there is one successor and they belong to the states.
    if shares.ndim == 1 and next_states.shape[1] == 1 and shares.size == n:
        shares = shares.reshape(-1, 1)
    try:
        return next_states, np.broadcast_to(shares, next_states.shape)
    except ValueError:
        raise ArrayError(
            f"probabilities has shape {list(shares.shape)}; expected {list(next_states.shape)}, as the next states have",
            what="probabilities",
        ) from None


def _compressed(lengths: Integers, next_states: Integers, probabilities: Floats) -> Rows:
    indptr = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths.ravel(), out=indptr[1:])
    return Rows((indptr, next_states, probabilities), lengths > 0)

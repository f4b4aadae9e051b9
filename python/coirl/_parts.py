"""The parts of a model, from what people pass."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from . import _coirl
from ._arrays import Booleans, Floats, Integers, count, flag, floats, integers, number, parts, room
from .errors import ArrayError, ModelError, SettingError


def word(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} has {value!r}; expected text")
    return value.encode("utf-8", "replace").decode()


def check_shape(what: str, array: Any, wanted: tuple[int, ...]) -> None:
    if array.shape != wanted:
        raise ArrayError(
            f"{what} has shape {list(array.shape)}; expected {list(wanted)}",
            what=what,
            expected=list(wanted),
            found=list(array.shape),
        )


def _is_sparse(value: Any) -> bool:
    """A SciPy sparse matrix or array, without SciPy."""
    return callable(getattr(value, "tocsr", None)) and hasattr(value, "shape")


def _n_dimensions(value: Any) -> int | None:
    """``None`` for lists of different lengths, which are no array."""
    try:
        return np.ndim(value)
    except ValueError:
        return None


def _is_csr_tuple(value: Any, length: int) -> bool:
    return isinstance(value, tuple) and len(value) == length and all(_n_dimensions(part) == 1 for part in value[-3:])


def _kernel(value: Any, mask: Booleans | None, n_actions: int | None) -> _coirl.Kernel:
    if _is_sparse(value):
        csr = value.tocsr()
        if len(csr.shape) != 2:
            raise ArrayError(f"transitions has shape {list(csr.shape)}; expected [states * actions, states]", what="transitions")
        n_rows, n_states = (int(n) for n in csr.shape)
        return _compressed(csr.indptr, csr.indices, csr.data, n_rows, n_states, mask)
    if _is_csr_tuple(value, 3):
        indptr, indices, data = value
        n_rows = len(indptr) - 1
        actions = mask.shape[1] if mask is not None else n_actions
        if actions is None:
            raise SettingError("transitions are compressed rows; say n_actions (or give admissible)", name="n_actions")
        actions = count("n_actions", actions, 1)
        return _compressed(indptr, indices, data, n_rows, n_rows // actions, mask)
    array = floats("transitions", value, 3)
    n, actions, last = array.shape
    if n != last and actions == last:
        raise ArrayError(
            f"transitions has shape {list(array.shape)}; expected [states, actions, states]: if it is [actions, states, states], "
            "pass transitions.transpose(1, 0, 2)",
            what="transitions",
        )
    if mask is not None:
        check_shape("admissible", mask, (n, actions))
    return _coirl.Kernel.from_dense(array, mask)


def _compressed(indptr: Any, indices: Any, data: Any, n_rows: int, n_states: int, mask: Booleans | None) -> _coirl.Kernel:
    if n_states <= 0 or n_rows <= 0 or n_rows % n_states:
        raise ArrayError(
            f"transitions has {n_rows} compressed rows over {n_states} states; expected states * actions rows", what="transitions"
        )
    n_actions = n_rows // n_states
    if mask is not None:
        check_shape("admissible", mask, (n_states, n_actions))
    return _coirl.Kernel.from_csr(
        n_states, n_actions, integers("indptr", indptr, 1), integers("indices", indices, 1), floats("data", data, 1), mask
    )


def dynamics(value: Any, mask: Booleans | None, n_actions: int | None) -> tuple[list[_coirl.Kernel], Floats | None]:
    if isinstance(value, tuple) and len(value) == 2:
        kernels, centroids = value
        return _each_kernel(kernels, mask, n_actions), floats("centroids", centroids, 2)
    if isinstance(value, list) and value and (_is_sparse(value[0]) or _is_csr_tuple(value[0], 3) or _n_dimensions(value[0]) == 3):
        return _each_kernel(value, mask, n_actions), None
    if isinstance(value, np.ndarray) and value.ndim == 4:
        return _each_kernel(list(value), mask, n_actions), None
    return [_kernel(value, mask, n_actions)], None


def _each_kernel(kernels: Any, mask: Booleans | None, n_actions: int | None) -> list[_coirl.Kernel]:
    try:
        each = [_kernel(kernel, mask, n_actions) for kernel in parts("kernels", kernels)]
    except TypeError as error:
        raise TypeError(f"transitions: {error}") from None
    if not each:
        raise ArrayError("transitions is an empty list; expected at least one kernel", what="transitions")
    return each


PairFeatures = tuple[int, Integers, Integers, Floats]


def features(value: Any, n_states: int, n_actions: int, mask: Booleans | None) -> tuple[Floats | None, PairFeatures | None]:
    if isinstance(value, str):
        if value != "indicators":
            raise SettingError(f'features = {value!r}: expected an array or "indicators"', name="features", value=value)
        return None, None
    if _is_sparse(value):
        csr = value.tocsr()
        if len(csr.shape) != 2:
            raise ArrayError(f"features has shape {list(csr.shape)}; expected [states * actions, features]", what="features")
        if csr.shape[0] == n_states and n_actions != 1:
            return _dense_rows(csr), None
        return None, _pair_rows(int(csr.shape[1]), csr.indptr, csr.indices, csr.data, n_states, n_actions, mask)
    if _is_csr_tuple(value, 4):
        k, indptr, indices, data = value
        return None, _pair_rows(count("features", k, 1), indptr, indices, data, n_states, n_actions, mask)
    array = floats("features", value, 2, 3)
    if array.ndim == 2:
        return array, None
    k = array.shape[2]
    check_shape("features", array, (n_states, n_actions, k))
    if not np.isfinite(array).all():
        index = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ArrayError(f"features[{index}] is {array.ravel()[index]}; expected a finite number", what="features", index=index)
    rows = array.reshape(n_states * n_actions, k) if mask is None else array[mask]
    owner, column = np.nonzero(rows)
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=len(rows)), out=indptr[1:])
    return None, (k, indptr, column.astype(np.int64), np.ascontiguousarray(rows[owner, column]))


def _walks(starts: Integers, columns: Integers, values: Floats) -> Integers:
    """The lengths of compressed rows, which must end where their entries do."""
    lengths = np.diff(starts)
    if starts[0] != 0 or (lengths < 0).any() or starts[-1] > values.size or columns.size != values.size:
        raise ArrayError("features: indptr does not walk through the entries", what="features")
    return lengths


def _dense_rows(csr: Any) -> Floats:
    """A sparse matrix as a dense one. Its own way to do so may trust the columns, and write wherever they say."""
    n_rows, k = (int(n) for n in csr.shape)
    room("features", n_rows, k)
    starts, columns = integers("features (indptr)", csr.indptr, 1), integers("features (indices)", csr.indices, 1)
    values = floats("features (data)", csr.data, 1)
    if starts.size != n_rows + 1:
        raise ArrayError(f"features has {starts.size - 1} compressed rows; expected {n_rows}", what="features")
    owner = np.repeat(np.arange(n_rows), _walks(starts, columns, values))
    columns, values = columns[: owner.size], values[: owner.size]
    if columns.size and not (0 <= columns.min() and columns.max() < k):
        raise ArrayError(
            f"features has columns from {columns.min()} to {columns.max()}; expected numbers below {k}", what="features"
        )
    dense = np.zeros((n_rows, k))
    np.add.at(dense, (owner, columns), values)
    return dense


def _pair_rows(k: int, indptr: Any, indices: Any, data: Any, n_states: int, n_actions: int, mask: Booleans | None) -> PairFeatures:
    room("features", k)
    starts = integers("features (indptr)", indptr, 1)
    columns, values = integers("features (indices)", indices, 1), floats("features (data)", data, 1)
    if starts.size != n_states * n_actions + 1:
        raise ArrayError(
            f"features has {starts.size - 1} rows; expected {n_states * n_actions}, one per state and action", what="features"
        )
    if mask is None or mask.all():
        return k, starts, columns, values
    lengths = _walks(starts, columns, values)
    flat = mask.ravel()
    kept = np.repeat(flat, lengths)
    return (
        k,
        np.concatenate([[0], np.cumsum(lengths[flat])]).astype(np.int64),
        columns[: kept.size][kept],
        values[: kept.size][kept],
    )


def initial(value: Any, n_states: int) -> Floats:
    if value is None:
        return np.full(n_states, 1.0 / n_states)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        state = count("initial", value)
        if state >= n_states:
            raise ArrayError(f"initial is state {state}; the model has {n_states} states", what="initial", value=state)
        one = np.zeros(n_states)
        one[state] = 1.0
        return one
    return floats("initial", value, 1)


def criterion(discount: Any, horizon: Any, average: bool, n_states: int) -> Any:
    gamma = number("discount", discount)
    if not 0.0 <= gamma <= 1.0:
        raise ModelError(f"the discount is {gamma}; expected a number in [0, 1]", value=gamma)
    if horizon is not None and flag("average", average):
        raise SettingError("a horizon and the average criterion were given; expected one of them", name="average")
    if flag("average", average):
        return "average"
    if horizon is not None:
        # Every stage of a plan has a table of its own, which takes some room even for a single state.
        room("horizon", count("horizon", horizon), n_states + 7)
        return {"finite_horizon": {"steps": int(horizon), "discount": gamma}}
    return "total_reward" if gamma == 1.0 else {"discounted": {"discount": gamma}}


def context_space(value: Any, n_kernels: int) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value == "simplex":
        if n_kernels < 2:
            raise SettingError('context_space = "simplex" has no dimension; say ("simplex", d)', name="context_space")
        return json.dumps({"simplex": {"dimension": n_kernels}})
    if isinstance(value, tuple) and len(value) == 2:
        if isinstance(value[0], str):
            if value[0] == "simplex":
                room("context_space", count("context_space", value[1], 1))
                return json.dumps({"simplex": {"dimension": int(value[1])}})
        else:
            lower, upper = (floats("context_space", bound, 1) for bound in value)
            if np.isfinite(lower).all() and np.isfinite(upper).all():
                return json.dumps({"box": {"lower": lower.tolist(), "upper": upper.tolist()}})
    raise SettingError(
        f'context_space = {value!r}: expected None, "simplex", ("simplex", d) or a pair of finite bounds', name="context_space"
    )

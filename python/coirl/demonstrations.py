"""What was seen of experts: contexts with feature expectations, or with trajectories."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np

from . import _coirl
from ._arrays import Floats, Integers, count, floats, integers, number, parts
from ._arrays import contexts as as_contexts
from ._notebook import table
from .errors import ArrayError, CoirlError, DataError, SettingError

__all__ = ["Demonstrations"]

_Paths = tuple[Integers, Integers, Integers, Integers]
#: Up to here every whole number is a number in double precision.
_LARGEST_WHOLE = 2.0**53


class Demonstrations:
    """A context each, with what was seen of an expert acting in it.

    Use one of the constructors: :meth:`from_arrays`, :meth:`from_frame`, :meth:`from_episodes`. Demonstrations know no model;
    whether they fit one is checked when they are learned from.

    Attributes
    ----------
    contexts
        ``[n, d]``.
    feature_expectations
        ``[n, k]``, or ``None`` where trajectories were seen.
    starts
        The state that each demonstration is known to start in (−1 where it is not known), or ``None``.
    """

    contexts: Floats
    feature_expectations: Floats | None
    starts: Integers | None
    _paths: _Paths | None

    def __init__(
        self,
        contexts: Any,
        feature_expectations: Any = None,
        trajectories: Sequence[Sequence[tuple[Any, Any]]] | None = None,
        starts: Any = None,
    ) -> None:
        self.contexts = as_contexts(contexts)
        n = len(self.contexts)
        if feature_expectations is not None and trajectories is not None:
            raise SettingError("feature expectations and trajectories were given; expected one of them", name="trajectories")
        self.feature_expectations = None
        if feature_expectations is not None:
            given = floats("feature_expectations", feature_expectations, 1, 2)
            self.feature_expectations = given.reshape(1, -1) if given.ndim == 1 else given
            _rows("feature_expectations", len(self.feature_expectations), n)
        self._paths = None if trajectories is None else _joined(trajectories, n)
        self.starts = None
        if starts is not None:
            self.starts = integers("starts", starts, 1)
            _rows("starts", len(self.starts), n)

    @classmethod
    def from_arrays(
        cls, contexts: Any, feature_expectations: Any = None, *, states: Any = None, actions: Any = None, starts: Any = None
    ) -> Demonstrations:
        """From arrays: a row of ``feature_expectations`` per context, or ``states`` and ``actions`` of one trajectory per context.

        ``states`` and ``actions`` are lists of arrays (of different lengths, if need be) or matrices. A trajectory has one state
        more than actions; where there are as many, it is not known what the last action led to, and that action is left out.
        """
        if states is None and actions is None:
            return cls(contexts, feature_expectations, starts=starts)
        if feature_expectations is not None:
            raise SettingError("feature expectations and states were given; expected one of them", name="feature_expectations")
        if states is None or actions is None:
            raise SettingError("states and actions go together; one of them is missing", name="states")
        rows = as_contexts(contexts)
        each_states, each_actions = _lists("states", states, len(rows)), _lists("actions", actions, len(rows))
        return cls(rows, trajectories=[[path] for path in zip(each_states, each_actions)], starts=starts)

    @classmethod
    def from_frame(
        cls, frame: Any, *, id: str, time: str | None, state: str, action: str, context: Sequence[str]
    ) -> Demonstrations:
        """From a long table: one row per step, with who (``id``), when (``time``), the state, the action and the columns of the
        context.

        Takes pandas, Polars, PyArrow and every other frame with the Arrow interface, and dictionaries of columns. Rows are ordered
        by ``time`` (``None``: as they are). The last action of a trajectory counts only where a last row without an action says
        where it led. The context of an id must not change.
        """
        context = [context] if isinstance(context, str) else list(context)
        columns = _columns(frame, [id, *([] if time is None else [time]), state, action, *context])
        names, owner = _owners(id, columns[id])
        if time is None:
            order = np.argsort(owner, kind="stable")
        else:
            when = _numbers(time, columns[time])
            _finite(time, when)
            order = np.lexsort((when, owner))
            same = (np.diff(owner[order]) == 0) & (np.diff(when[order]) == 0)
            if same.any():
                at = int(np.flatnonzero(same)[0])
                first, second = sorted((int(order[at]), int(order[at + 1])))
                who = _label(names[owner[first]])
                raise DataError(
                    f"rows {first} and {second} are of the same {id} ({who}) at the same time; expected one row per step",
                    rows=(first, second),
                    column=time,
                )
        owner = owner[order]
        visited, taken = _numbers(state, columns[state])[order], _numbers(action, columns[action])[order]
        _finite(state, visited, order)
        _indices(state, visited, order)
        _indices(action, np.where(np.isnan(taken), 0.0, taken), order)
        begins = np.flatnonzero(np.r_[True, np.diff(owner) != 0])
        ends = np.r_[begins[1:], len(owner)]
        first_of = np.repeat(begins, ends - begins)
        contexts = np.ones((len(begins), len(context) or 1))
        for j, name in enumerate(context):
            own = _numbers(name, columns[name])[order]
            _finite(name, own, order)
            changed = own != own[first_of]
            if changed.any():
                at = int(np.flatnonzero(changed)[0])
                row, who = int(order[at]), _label(names[owner[at]])
                raise DataError(
                    f"row {row}, column {name!r} is {own[at]:g}, but {own[first_of[at]]:g} in an earlier row of {id} {who}; "
                    "a context does not change",
                    row=row,
                    column=name,
                )
            contexts[:, j] = own[begins]
        unseen = np.isnan(taken)
        unseen[ends - 1] = False
        if unseen.any():
            row = int(order[np.flatnonzero(unseen)[0]])
            raise DataError(f"row {row}, column {action!r} is empty; only the last row of an id may be", row=row, column=action)
        return cls(contexts, trajectories=[[(visited[begin:end], taken[begin : end - 1])] for begin, end in zip(begins, ends)])

    @classmethod
    def from_episodes(cls, episodes: Iterable[Any], contexts: Any) -> Demonstrations:
        """From episodes with ``observations`` (T + 1) and ``actions`` (T), as Minari has them, or ``obs`` and ``acts``, as
        imitation does: objects or dictionaries. Observations are numbers of states.

        ``contexts`` has a row per episode, or is a function from an episode to its context.
        """
        every = parts("episodes", episodes)
        paths = []
        for i, episode in enumerate(every):
            states = _one_number("observations", _part(i, episode, ("observations", "obs")))
            actions = _one_number("actions", _part(i, episode, ("actions", "acts")))
            paths.append([(states, actions)])
        return cls(_context_of_each(every, contexts), trajectories=paths)

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def has_actions(self) -> bool:
        """Whether trajectories were seen, not only feature expectations."""
        return self._paths is not None

    @property
    def n_steps(self) -> int:
        """Actions seen."""
        return 0 if self._paths is None else int(self._paths[3].size)

    def trajectories(self) -> Iterator[tuple[int, Integers, Integers]]:
        """``(demonstration, states, actions)``, one after the other."""
        if self._paths is None:
            return
        for i, owner in enumerate(self._paths[0]):
            yield int(owner), *_path(self._paths, i)

    def __getitem__(self, which: Any) -> Demonstrations:
        """Some of them: a slice, a mask, a list of numbers or one number."""
        try:
            rows = np.atleast_1d(np.arange(len(self))[which])
        except (IndexError, ValueError, OverflowError) as error:
            raise ArrayError(f"demonstrations: {error}", what="demonstrations") from None
        if rows.ndim != 1:
            raise ArrayError("demonstrations: expected a slice, a mask, a list of numbers or one number", what="demonstrations")
        trajectories = None if self._paths is None else [self._of(self._paths, row) for row in rows]
        mu = None if self.feature_expectations is None else self.feature_expectations[rows]
        return Demonstrations(self.contexts[rows], mu, trajectories, None if self.starts is None else self.starts[rows])

    @staticmethod
    def _of(paths: _Paths, row: int) -> list[tuple[Integers, Integers]]:
        owners = paths[0]
        first, last = (int(i) for i in np.searchsorted(owners, (row, row + 1)))
        return [_path(paths, i) for i in range(first, last)]

    def __iter__(self) -> Iterator[Demonstrations]:
        return (self[row] for row in range(len(self)))

    def split(
        self, validation: float = 0.2, test: float = 0.2, seed: int = 0
    ) -> tuple[Demonstrations, Demonstrations, Demonstrations]:
        """``(train, validation, test)`` by shares, shuffled; every demonstration is in one part."""
        shares = [number("validation", validation), number("test", test)]
        both = f"validation = {validation}, test = {test}"
        if not all(0.0 <= share < 1.0 for share in shares) or sum(shares) >= 1.0:
            raise SettingError(f"{both}: expected shares in [0, 1) that leave some to learn from", name="test")
        order = np.random.default_rng(count("seed", seed)).permutation(len(self))
        n_validation, n_test = (round(share * len(self)) for share in shares)
        n_train = len(self) - n_validation - n_test
        if n_train == 0 and len(self) > 0:
            raise SettingError(f"{both}: none of {len(self)} demonstrations is left to learn from", name="test")
        return self[order[:n_train]], self[order[n_train : n_train + n_validation]], self[order[n_train + n_validation :]]

    def __repr__(self) -> str:
        seen = "contexts only" if self.feature_expectations is None else "feature expectations"
        if self.has_actions:
            seen = f"{self.n_steps:,} actions"
        return f"Demonstrations({len(self)} contexts of {self.contexts.shape[1]} numbers, {seen})"

    def _repr_html_(self) -> str:
        rows = [
            ("demonstrations", f"{len(self):,}"),
            ("context", f"{self.contexts.shape[1]} numbers"),
            ("actions", f"{self.n_steps:,}" if self.has_actions else ""),
            ("features", "" if self.feature_expectations is None else f"{self.feature_expectations.shape[1]}"),
        ]
        return table("Demonstrations", rows)


def _rows(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise ArrayError(
            f"{what} has {found} rows; expected {expected}, one per context", what=what, expected=expected, found=found
        )


def _lists(what: str, value: Any, n: int) -> list[Any]:
    each = parts(what, value)
    if n == 1 and each and all(np.isscalar(part) for part in each):
        each = [each]
    _rows(what, len(each), n)
    return each


def _joined(trajectories: Any, n: int) -> _Paths:
    """Trajectories end to end."""
    of_each = [parts("trajectories of a context", paths) for paths in parts("trajectories", trajectories)]
    _rows("trajectories", len(of_each), n)
    owners: list[int] = []
    begins: list[int] = []
    all_states: list[Integers] = []
    all_actions: list[Integers] = []
    length = 0
    for owner, paths in enumerate(of_each):
        for path in paths:
            try:
                given_states, given_actions = path
            except (TypeError, ValueError):
                raise TypeError(f"trajectory of demonstration {owner} is no pair (states, actions)") from None
            states, actions = integers("states", given_states, 1), integers("actions", given_actions, 1)
            if len(states) == len(actions) and len(states) > 0:
                actions = actions[:-1]
            if len(states) != len(actions) + 1:
                raise ArrayError(
                    f"demonstration {owner}: {len(states)} states and {len(actions)} actions; "
                    "expected one state more than actions, or as many",
                    what="states",
                    demonstration=owner,
                )
            if (states < 0).any() or (actions < 0).any():
                raise DataError(f"demonstration {owner}: a state or action is negative; they count from 0", demonstration=owner)
            owners.append(owner)
            begins.append(length)
            all_states.append(states)
            all_actions.append(actions)
            length += len(states)

    def whole(parts: list[Any]) -> Integers:
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    return (np.asarray(owners, dtype=np.int64), np.asarray(begins, dtype=np.int64), whole(all_states), whole(all_actions))


def _path(paths: _Paths, i: int) -> tuple[Integers, Integers]:
    """States and actions of one trajectory; each has one action fewer than states."""
    _, begins, states, actions = paths
    begin, end = int(begins[i]), int(begins[i + 1]) if i + 1 < len(begins) else states.size
    return states[begin:end], actions[begin - i : end - i - 1]


def _context_of_each(episodes: list[Any], given: Any) -> Any:
    """A row per episode, from a matrix or from a function of an episode."""
    if not callable(given):
        return given
    each = [floats("context", given(episode), 1) for episode in episodes]
    lengths = sorted({own.size for own in each})
    if len(lengths) > 1:
        raise ArrayError(f"the contexts of the episodes have different lengths: {lengths}", what="contexts", found=lengths)
    return np.vstack(each) if each else np.empty((0, 0))


def _part(i: int, episode: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if isinstance(episode, dict) and name in episode:
            return episode[name]
        if hasattr(episode, name):
            return getattr(episode, name)
    raise DataError(f"episode {i} has none of {', '.join(names)}", episode=i)


def _one_number(what: str, value: Any) -> Integers:
    """Numbers in a row, or each in an array of its own."""
    array = integers(what, value, 1, 2)
    return integers(what, array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array, 1)


def _owners(name: str, column: Any) -> tuple[Any, Integers]:
    """The ids, and of which of them each row is."""
    if len(column) == 0:
        raise DataError("the frame has no rows; expected at least one", column=name)
    if not isinstance(column, list):
        _finite(name, column)
        if np.abs(column).max() >= _LARGEST_WHOLE:
            row = int(np.argmax(np.abs(column)))
            raise DataError(
                f"row {row}, column {name!r} is beyond ±2⁵³, where numbers run together; give such ids as text",
                row=row,
                column=name,
            )
    elif None in column:
        row = column.index(None)
        raise DataError(f"row {row}, column {name!r} is empty; expected an id", row=row, column=name)
    names, owner = np.unique(np.asarray(column), return_inverse=True)
    return names, owner


def _columns(frame: Any, names: list[str]) -> dict[str, Any]:
    for name in names:
        try:
            hash(name)
        except (TypeError, ValueError):  # a memoryview has a hash, unless it can be written to
            raise TypeError(f"the name of a column is {name!r}; expected a string") from None
    wanted = list(dict.fromkeys(names))
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return _coirl.columns(_narrowed(frame, wanted), wanted)
        except ImportError:
            pass  # pandas speaks Arrow only where PyArrow is installed
        except Exception as error:  # every kind of frame has errors of its own
            # What the frame cannot give to Arrow, or the reader does not know, durations for example, is often known to NumPy.
            try:
                return {name: _column(frame, name) for name in wanted}
            except Exception:  # the first one says more
                if isinstance(error, (CoirlError, TypeError)):
                    raise error from None
                raise DataError(f"the frame cannot be read: {error}") from None
    found = {name: _column(frame, name) for name in wanted}
    lengths = {len(column) for column in found.values()}
    if len(lengths) > 1:
        raise DataError(f"the columns of the frame have different lengths: {sorted(lengths)}")
    return found


def _narrowed(frame: Any, wanted: list[str]) -> Any:
    """The frame without columns that nobody asked for, which may hold what Arrow cannot; the reader says what is amiss."""
    try:
        narrow = frame.select(wanted) if callable(getattr(frame, "select", None)) else frame[wanted]
    except Exception:  # every kind of frame has errors of its own
        return frame
    return narrow if hasattr(narrow, "__arrow_c_stream__") else frame


def _column(frame: Any, name: str) -> Floats | list[str | None]:
    """A column without Arrow: numbers, dates as numbers, or words."""
    try:
        given = frame[name]
    except (KeyError, ValueError, IndexError):
        known = frame.keys() if hasattr(frame, "keys") else getattr(getattr(frame, "dtype", None), "names", None)
        names = [] if known is None else [str(word) for word in known]
        near = difflib.get_close_matches(name, names, 1)
        others = f"; the nearest is {near[0]!r}" if near else f"; it has {', '.join(names)}" if names else ""
        raise DataError(f"the frame has no column {name!r}{others}", column=name) from None
    except TypeError:
        raise TypeError(f"frame is a {type(frame).__name__}; expected a data frame or a dictionary of columns") from None
    try:
        column = np.asarray(given)
    except ValueError as error:
        raise DataError(f"column {name!r} is no array: {error}", column=name) from None
    if column.ndim != 1:
        raise DataError(f"column {name!r} has shape {list(column.shape)}; expected one number or word per row", column=name)
    if column.dtype.kind in "US":
        column = np.asarray(given, dtype=object)  # in a list with words, NumPy would make a word of what is missing
    if column.dtype.kind == "O":
        cells = [None if _is_missing(cell) else cell for cell in column.tolist()]
        kept = [cell for cell in cells if cell is not None]
        if kept and all(isinstance(cell, date) for cell in kept):
            return np.array([np.nan if cell is None else _instant(cell) for cell in cells])
        if kept and all(isinstance(cell, timedelta) for cell in kept):
            return np.array([np.nan if cell is None else cell / timedelta(microseconds=1) for cell in cells])
        if any(isinstance(cell, (str, bytes)) for cell in kept):
            return [None if cell is None else str(cell) for cell in cells]
        try:
            return np.array([np.nan if cell is None else float(cell) for cell in cells])
        except (TypeError, ValueError, OverflowError):
            return [None if cell is None else str(cell) for cell in cells]
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    if column.dtype.kind not in "fiub":
        raise DataError(f"column {name!r} is of type {column.dtype}; expected numbers or words", column=name)
    return column.astype(np.float64)


def _is_missing(cell: Any) -> bool:
    """None, NaN, and what pandas has for them, which does not say whether it is itself."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True
    except ValueError:
        return False


def _instant(day: date) -> float:
    """Microseconds; a time without a zone is taken as it stands."""
    moment = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(microseconds=1)


def _label(name: Any) -> str:
    """An id as people write it."""
    return str(name) if isinstance(name, str) else f"{float(name):.17g}"


def _indices(name: str, column: Floats, order: Integers) -> None:
    bad = (column != np.floor(column)) | (column < 0.0) | ~(column < _LARGEST_WHOLE)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        row = int(order[at])
        found = f"row {row}, column {name!r} is {column[at]:g}"
        raise DataError(f"{found}; expected a whole number, counted from 0", row=row, column=name)


def _numbers(name: str, column: Any) -> Floats:
    if isinstance(column, list):
        # In a column of numbers one word makes words of all; that one is meant.
        row = min(range(len(column)), key=lambda i: (column[i] is None, _is_number(column[i])))
        raise DataError(f"row {row}, column {name!r} is {column[row]!r}; expected a number", row=row, column=name)
    array: Floats = column
    return array


def _is_number(word: str | None) -> bool:
    try:
        return word is not None and np.isfinite(float(word))
    except ValueError:
        return False


def _finite(name: str, column: Floats, order: Any = None) -> None:
    bad = ~np.isfinite(column)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        row = at if order is None else int(order[at])
        raise DataError(f"row {row}, column {name!r} is {column[at]}; expected a number", row=row, column=name)

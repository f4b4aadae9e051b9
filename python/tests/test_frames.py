"""Demonstrations from tables, episodes and arrays: the same paths whatever they came in; errors name the row and the column."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import coirl
from coirl import Demonstrations
from coirl.errors import ArrayError, CoirlError, DataError, SettingError

KINDS = ["dictionary", "arrays", "pandas", "pandas without PyArrow", "Polars", "PyArrow", "an Arrow stream"]
NAMES: dict[str, Any] = {"id": "who", "time": "when", "state": "state", "action": "action", "context": ["age", "sex"]}

# Shuffled: anna goes 0 → 1 → 2, and her last row has no action; ben goes 3 → 4, and where his last action led is not known; cleo
# is seen once.
TABLE: dict[str, list[Any]] = {
    "who": ["ben", "anna", "anna", "cleo", "anna", "ben"],
    "when": [2, 3, 1, 1, 2, 1],
    "state": [4, 2, 0, 7, 1, 3],
    "action": [1, None, 1, None, 0, 2],
    "age": [0.5, 0.25, 0.25, 0.75, 0.25, 0.5],
    "sex": [0.0, 1.0, 1.0, 1.0, 1.0, 0.0],
}
PATHS = [(0, [0, 1, 2], [1, 0]), (1, [3, 4], [2]), (2, [7], [])]
CONTEXTS = [[0.25, 1.0], [0.5, 0.0], [0.75, 1.0]]


class Stream:
    """What there is of a frame from another library: nothing but the interface."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def made(kind: str, columns: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A frame of a kind."""
    if kind == "dictionary":
        return columns
    if kind == "arrays":
        return {name: np.array(column) for name, column in columns.items()}
    if kind == "Polars":
        return pytest.importorskip("polars").DataFrame(columns)
    if kind == "PyArrow":
        return pytest.importorskip("pyarrow").table(columns)
    if kind == "an Arrow stream":
        return Stream(pytest.importorskip("pyarrow").table(columns))
    pandas = pytest.importorskip("pandas")
    if kind == "pandas":
        pytest.importorskip("pyarrow")
    else:

        def refuse(*_: object) -> None:
            raise ImportError("no PyArrow")

        monkeypatch.setattr(pandas.DataFrame, "__arrow_c_stream__", refuse, raising=False)
    return pandas.DataFrame(columns)


def paths(demonstrations: Demonstrations) -> list[tuple[int, list[int], list[int]]]:
    return [(owner, states.tolist(), actions.tolist()) for owner, states, actions in demonstrations.trajectories()]


def changed(**columns: Any) -> dict[str, Any]:
    return {**TABLE, **columns}


def with_cell(column: str, row: int, cell: Any) -> dict[str, Any]:
    cells = list(TABLE[column])
    cells[row] = cell
    return changed(**{column: cells})


def assert_same(one: Demonstrations, other: Demonstrations) -> None:
    assert np.array_equal(one.contexts, other.contexts)
    assert paths(one) == paths(other)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_gives_the_same_paths(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Demonstrations.from_frame(made(kind, TABLE, monkeypatch), **NAMES)
    assert paths(found) == PATHS
    assert found.contexts.tolist() == CONTEXTS
    assert len(found) == 3 and found.n_steps == 3 and found.has_actions
    assert found.feature_expectations is None


def test_pandas_is_read_where_pyarrow_is_not_installed() -> None:
    pytest.importorskip("pandas")
    program = f"""
        import sys
        sys.modules["pyarrow"] = None
        import pandas, coirl
        frame = pandas.DataFrame({TABLE!r}).astype({{"who": "category", "action": "Int64"}})
        try:
            frame.__arrow_c_stream__()
        except ImportError:
            print("no PyArrow")
        found = coirl.Demonstrations.from_frame(frame, **{NAMES!r})
        print([(owner, states.tolist(), actions.tolist()) for owner, states, actions in found.trajectories()])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True)
    assert done.stdout == f"no PyArrow\n{PATHS}\n"


def test_structured_arrays_are_frames_too() -> None:
    rows = [(1, 0, 5, 2.0, 0.5), (1, 1, 6, np.nan, 0.5)]
    kinds = [("who", "i4"), ("when", ">i8"), ("state", "u2"), ("action", "f4"), ("age", "f8")]
    found = Demonstrations.from_frame(np.array(rows, dtype=kinds), **{**NAMES, "context": "age"})
    assert paths(found) == [(0, [5, 6], [2])]
    assert found.contexts.tolist() == [[0.5]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_learned_from_as_arrays_are(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = coirl.domains.driving()
    contexts, truth = model.sample_contexts(6, seed=3), coirl.domains.driving_mapping()
    walks = [model.sample(model.plan(c @ truth).policy, steps=8, seed=i)[0] for i, c in enumerate(contexts)]
    arrays = Demonstrations.from_arrays(contexts, states=[states for states, _ in walks], actions=[actions for _, actions in walks])
    columns: dict[str, list[Any]] = {name: [] for name in ("patient", "hour", "state", "action", "x", "y", "z")}
    for i, (states, actions) in enumerate(walks):
        for t, (state, action) in enumerate(zip(states.tolist(), [*actions.tolist(), None])):
            for column, cell in zip(columns.values(), (i, t, state, action, *contexts[i].tolist())):
                column.append(cell)
    shuffled = np.random.default_rng(0).permutation(len(columns["hour"]))
    frame = made(kind, {name: [column[row] for row in shuffled] for name, column in columns.items()}, monkeypatch)
    found = Demonstrations.from_frame(frame, id="patient", time="hour", state="state", action="action", context=["x", "y", "z"])
    assert_same(found, arrays)
    one, other = (coirl.Cloning(max_steps=5).fit(model, seen) for seen in (found, arrays))
    assert np.array_equal(one.predict(contexts[0]), other.predict(contexts[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_counts_only_without_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        order = rng.permutation(6)
        shuffled = {name: [column[row] for row in order] for name, column in TABLE.items()}
        found = Demonstrations.from_frame(made(kind, shuffled, monkeypatch), **NAMES)
        assert paths(found) == PATHS
    ordered = {name: [column[row] for row in (2, 5, 4, 0, 3, 1)] for name, column in TABLE.items()}
    del ordered["when"]
    found = Demonstrations.from_frame(made(kind, ordered, monkeypatch), **{**NAMES, "time": None})
    assert paths(found) == PATHS


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_words_or_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # In order of their numbers, not of their digits.
    numbers = {"ben": 10, "anna": 9, "cleo": 100}
    found = Demonstrations.from_frame(made(kind, changed(who=[numbers[name] for name in TABLE["who"]]), monkeypatch), **NAMES)
    assert paths(found) == PATHS
    # Numbers that differ only beyond double precision are not two people: as numbers they are refused, as words they are fine.
    large = {"anna": 2**53, "ben": 2**53 + 1, "cleo": 2**53 + 2}
    with pytest.raises(DataError, match=r"2⁵³.*as text") as raised:
        Demonstrations.from_frame(made(kind, changed(who=[large[name] for name in TABLE["who"]]), monkeypatch), **NAMES)
    assert raised.value.column == "who"
    words = made(kind, changed(who=[str(large[name]) for name in TABLE["who"]]), monkeypatch)
    assert paths(Demonstrations.from_frame(words, **NAMES)) == PATHS


def test_categories_are_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    numbers = [{"anna": 1, "ben": 2, "cleo": 30}[name] for name in TABLE["who"]]
    frames = [
        polars.DataFrame(TABLE).with_columns(polars.col("who").cast(polars.Categorical)),
        polars.DataFrame(TABLE).with_columns(polars.col("who").cast(polars.Enum(["cleo", "ben", "anna", "nobody"]))),
        arrow.table(changed(who=arrow.array(TABLE["who"]).dictionary_encode())),
        arrow.table(changed(who=arrow.array(TABLE["who"], arrow.large_string()))),
        arrow.table(changed(who=arrow.array(TABLE["who"], arrow.string_view()))),
        arrow.table(changed(who=arrow.array(numbers).dictionary_encode())),
    ]
    for kind in ("pandas", "pandas without PyArrow"):
        frame = made(kind, TABLE, monkeypatch)
        frames.append(frame.astype({"who": "category"}))
        frames.append(frame.assign(who=pandas.Categorical(TABLE["who"], ["nobody", "cleo", "ben", "anna"], ordered=True)))
        frames.append(frame.assign(who=pandas.Categorical(numbers)))
        for frame in frames:
            assert paths(Demonstrations.from_frame(frame, **NAMES)) == PATHS


def test_several_batches_are_one_table() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(TABLE)
    batches = arrow.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1, 4), table.slice(5)])
    assert batches.column("who").num_chunks > 1
    assert paths(Demonstrations.from_frame(batches, **NAMES)) == PATHS
    assert (
        paths(Demonstrations.from_frame(arrow.RecordBatchReader.from_batches(table.schema, batches.to_batches()), **NAMES)) == PATHS
    )


def test_every_type_of_number_is_read() -> None:
    arrow = pytest.importorskip("pyarrow")
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"):
        own = {name: arrow.array(TABLE[name], kind) for name in ("when", "state", "action")}
        assert paths(Demonstrations.from_frame(arrow.table(changed(**own)), **NAMES)) == PATHS
    flags = arrow.table(changed(sex=arrow.array([bool(cell) for cell in TABLE["sex"]])))
    assert Demonstrations.from_frame(flags, **NAMES).contexts.tolist() == CONTEXTS


TIMES: dict[str, Callable[[int], Any]] = {
    "days": lambda step: date(1969, 12, 30) + timedelta(days=step),
    "times": lambda step: datetime(2020, 2, 28, 23, 59, 59) + timedelta(seconds=step),
    "times in zones": lambda step: datetime(2020, 1, 1, 9 + step, tzinfo=timezone(timedelta(hours=2))),
    "durations": lambda step: timedelta(hours=5 * step),
}


@pytest.mark.parametrize("unit", TIMES)
@pytest.mark.parametrize("kind", KINDS)
def test_dates_are_times(kind: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made(kind, changed(when=[TIMES[unit](step) for step in TABLE["when"]]), monkeypatch)
    if kind == "an Arrow stream" and unit == "durations":
        # The reader of Arrow does not know durations, and there is no other way to this frame.
        with pytest.raises(DataError, match="'when' is of type Duration"):
            Demonstrations.from_frame(frame, **NAMES)
        return
    assert paths(Demonstrations.from_frame(frame, **NAMES)) == PATHS


def test_times_in_different_zones_are_in_order() -> None:
    # 10:00 in a zone two hours ahead is before 9:00 in one that is not.
    when = [datetime(2020, 1, 1, 9, tzinfo=timezone.utc), datetime(2020, 1, 1, 10, tzinfo=timezone(timedelta(hours=2)))]
    columns = {"who": [1, 1], "when": when, "state": [5, 4], "action": [None, 0], "age": [1.0, 1.0]}
    assert paths(Demonstrations.from_frame(columns, **{**NAMES, "context": ["age"]})) == [(0, [4, 5], [0])]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_unit_are_read(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    when = np.array(["2020-01-01T00:00:00", "2020-01-01T00:00:01", "2020-01-01T00:00:02"], dtype=f"M8[{unit}]")[
        np.array(TABLE["when"]) - 1
    ]
    for frame in (
        changed(when=when),
        pandas.DataFrame(changed(when=when)),
        arrow.table(changed(when=arrow.array(when))),
        made("pandas without PyArrow", changed(when=when), monkeypatch),
    ):
        assert paths(Demonstrations.from_frame(frame, **NAMES)) == PATHS


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_time_twice_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"rows 1 and 4 are of the same who \(anna\)") as raised:
        Demonstrations.from_frame(made(kind, with_cell("when", 1, 2), monkeypatch), **NAMES)
    assert raised.value.rows == (1, 4) and raised.value.column == "when"
    by_number = changed(who=[10 * len(name) + 0.5 for name in TABLE["who"]], when=[1] * 6)
    with pytest.raises(DataError, match=r"rows 1 and 2 are of the same who \(40\.5\)|rows 0 and 5 are of the same who \(30\.5\)"):
        Demonstrations.from_frame(made(kind, by_number, monkeypatch), **NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_context_does_not_change(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Row 4 is the second of anna, row 2 her first.
    with pytest.raises(DataError, match=r"row 4, column 'age' is 0\.3, but 0\.25 in an earlier row of who anna") as raised:
        Demonstrations.from_frame(made(kind, with_cell("age", 4, 0.3), monkeypatch), **NAMES)
    assert (raised.value.row, raised.value.column) == (4, "age")


MISSING = [
    ("who", 3, r"row 3, column 'who'"),
    ("when", 2, r"row 2, column 'when' is nan; expected a number"),
    ("state", 5, r"row 5, column 'state' is nan; expected a number"),
    ("action", 4, r"row 4, column 'action' is empty; only the last row of an id may be"),
    ("sex", 0, r"row 0, column 'sex' is nan; expected a number"),
]


@pytest.mark.parametrize(("column", "row", "message"), MISSING)
@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_are_refused_where_they_matter(
    kind: str, column: str, row: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=message) as raised:
        Demonstrations.from_frame(made(kind, with_cell(column, row, None), monkeypatch), **NAMES)
    assert (raised.value.row, raised.value.column) == (row, column)


def test_everything_that_means_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    for nothing in (None, float("nan"), np.nan, pandas.NA, pandas.NaT):
        cells = [1, nothing, 1, nothing, 0, 2]
        assert paths(Demonstrations.from_frame(changed(action=cells), **NAMES)) == PATHS
        for kind in ("pandas", "pandas without PyArrow"):
            frame = made(kind, changed(action=pandas.Series(cells, dtype=object)), monkeypatch)
            assert paths(Demonstrations.from_frame(frame, **NAMES)) == PATHS
        with pytest.raises(DataError, match="row 3, column 'who' is empty"):
            Demonstrations.from_frame(with_cell("who", 3, nothing), **NAMES)
    for kind in ("Int64", "Float32", "boolean"):
        cells = pandas.array([1, None, 1, None, 0, 1], dtype=kind)
        assert paths(Demonstrations.from_frame(made("pandas", changed(action=cells), monkeypatch), **NAMES))[0] == PATHS[0]
    never = changed(who=[0, 1, 2, 3, 4, 5], age=[0.0] * 6, sex=[0.0] * 6, action=[None] * 6)
    for kind in KINDS:
        assert Demonstrations.from_frame(made(kind, never, monkeypatch), **NAMES).n_steps == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_not_there_is_answered_with_the_nearest(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = made(kind, TABLE, monkeypatch)
    with pytest.raises(DataError, match="no column 'stae'; the nearest is 'state'"):
        Demonstrations.from_frame(frame, **{**NAMES, "state": "stae"})
    with pytest.raises(DataError, match="no column 'weight'; it has who, when, state, action, age, sex"):
        Demonstrations.from_frame(frame, **{**NAMES, "context": ["age", "weight"]})


@pytest.mark.parametrize("column", ["when", "state", "action", "age"])
@pytest.mark.parametrize("kind", KINDS)
def test_words_are_no_numbers(kind: str, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The word that is none, not the first cell of the column.
    words = ["0", "1.5", "unknown", "3", "4", "5"]
    with pytest.raises(DataError, match=f"row 2, column '{column}' is 'unknown'; expected a number") as raised:
        Demonstrations.from_frame(made(kind, changed(**{column: words}), monkeypatch), **NAMES)
    assert (raised.value.row, raised.value.column) == (2, column)
    with pytest.raises(DataError, match=f"row 1, column '{column}' is '1'; expected a number"):
        Demonstrations.from_frame(made(kind, changed(**{column: [None, *"12345"]}), monkeypatch), **NAMES)


@pytest.mark.parametrize("column", ["state", "action"])
@pytest.mark.parametrize("kind", KINDS)
def test_states_and_actions_are_counted_from_zero(kind: str, column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (-1.0, 0.5, float("inf"), 1e300):
        cells = [float("nan") if cell is None else float(cell) for cell in TABLE[column]]
        cells[4] = wrong
        with pytest.raises(DataError, match=f"row 4, column '{column}'") as raised:
            Demonstrations.from_frame(made(kind, changed(**{column: cells}), monkeypatch), **NAMES)
        assert raised.value.row == 4


@pytest.mark.parametrize("name", [memoryview(bytearray(3)), ["action"]])
def test_a_name_of_a_column_that_cannot_be_looked_up_is_refused(name: Any) -> None:
    with pytest.raises(TypeError, match=r"the name of a column is .*; expected a string"):
        Demonstrations.from_frame(TABLE, **{**NAMES, "action": name})


def test_other_columns_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("dictionary", "pandas", "pandas without PyArrow", "Polars"):
        frame = made(kind, TABLE, monkeypatch)
        things = [object() for _ in range(6)]
        if kind == "Polars":
            polars = pytest.importorskip("polars")
            frame = frame.with_columns(polars.Series("notes", things, dtype=polars.Object))
        elif kind == "dictionary":
            frame = {**frame, "notes": things}
        else:
            frame = frame.assign(notes=things)
        assert paths(Demonstrations.from_frame(frame, **NAMES)) == PATHS


def test_ids_of_different_kinds_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = changed(who=[7, "anna", "anna", "x", "anna", 7])
    for kind in ("dictionary", "pandas", "pandas without PyArrow"):
        found = Demonstrations.from_frame(made(kind, mixed, monkeypatch), **NAMES)
        assert [path[1:] for path in paths(found)] == [PATHS[1][1:], PATHS[0][1:], PATHS[2][1:]]


def test_the_context_can_be_one_column_or_none_or_an_index() -> None:
    assert Demonstrations.from_frame(TABLE, **{**NAMES, "context": "age"}).contexts.tolist() == [[0.25], [0.5], [0.75]]
    assert Demonstrations.from_frame(TABLE, **{**NAMES, "context": []}).contexts.tolist() == [[1.0]] * 3
    frame = pytest.importorskip("pandas").DataFrame(TABLE)
    assert Demonstrations.from_frame(frame, **{**NAMES, "context": frame.columns[4:]}).contexts.tolist() == CONTEXTS
    # The state as a part of the context would change; the time as one is read twice.
    alone = {name: [column[3]] for name, column in TABLE.items()}
    assert Demonstrations.from_frame(alone, **{**NAMES, "context": ["state", "when"]}).contexts.tolist() == [[7.0, 1.0]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_without_rows_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no rows"):
        Demonstrations.from_frame(made(kind, {name: [] for name in TABLE}, monkeypatch), **NAMES)


def test_what_is_no_table_is_refused() -> None:
    for other in (None, 5, object(), [TABLE], lambda: TABLE):
        with pytest.raises((CoirlError, TypeError)):
            Demonstrations.from_frame(other, **NAMES)
    with pytest.raises(DataError, match="different lengths"):
        Demonstrations.from_frame(changed(age=[1.0]), **NAMES)
    with pytest.raises(DataError, match="'age' has shape"):
        Demonstrations.from_frame(changed(age=np.zeros((6, 2))), **NAMES)
    with pytest.raises(DataError, match="'age' has shape"):
        Demonstrations.from_frame(changed(age=1.0), **NAMES)
    with pytest.raises(DataError, match="'age' is of type complex"):
        Demonstrations.from_frame(changed(age=np.zeros(6, dtype=complex)), **NAMES)
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="LazyFrame"):
        Demonstrations.from_frame(polars.DataFrame(TABLE).lazy(), **NAMES)
    with pytest.raises(CoirlError, match="age"):
        Demonstrations.from_frame(polars.DataFrame(changed(age=[[1.0, 2.0]] * 6)), **NAMES)


@dataclass(frozen=True)
class Trajectory:
    """As imitation has them."""

    obs: Any
    acts: Any
    terminal: bool = True
    infos: Any = None


@dataclass
class Episode:
    observations: Any
    actions: Any
    infos: dict[str, Any] = field(default_factory=dict)


STATES, ACTIONS = [[0, 1, 2], [3, 4]], [[1, 0], [2]]
EPISODES = [(0, [0, 1, 2], [1, 0]), (1, [3, 4], [2])]


def test_episodes_of_minari() -> None:
    minari = pytest.importorskip("minari")
    episodes = [
        minari.EpisodeData(
            id=i,
            observations=np.array(states),
            actions=np.array(actions),
            rewards=np.zeros(len(actions)),
            terminations=np.arange(len(actions)) == len(actions) - 1,
            truncations=np.zeros(len(actions), dtype=bool),
            infos={"context": np.full(len(states), 0.25 * (i + 1))},
        )
        for i, (states, actions) in enumerate(zip(STATES, ACTIONS))
    ]
    found = Demonstrations.from_episodes(episodes, [[0.0, 1.0], [1.0, 0.0]])
    assert paths(found) == EPISODES
    assert found.contexts.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    by_function = Demonstrations.from_episodes(iter(episodes), lambda episode: episode.infos["context"][:1])
    assert paths(by_function) == EPISODES
    assert by_function.contexts.tolist() == [[0.25], [0.5]]


@pytest.mark.parametrize("terminal", [True, False])
def test_trajectories_of_imitation(terminal: bool) -> None:
    trajectories = [Trajectory(np.array(states), np.array(actions), terminal) for states, actions in zip(STATES, ACTIONS)]
    assert paths(Demonstrations.from_episodes(trajectories, np.eye(2))) == EPISODES


def test_episodes_are_objects_or_dictionaries_of_any_numbers() -> None:
    pairs = list(zip(STATES, ACTIONS))
    forms: list[list[Any]] = [
        [Episode(states, actions) for states, actions in pairs],
        [{"observations": states, "actions": actions} for states, actions in pairs],
        [{"obs": states, "acts": tuple(actions)} for states, actions in pairs],
        [Episode(np.array(states, dtype=np.float32), np.array(actions, dtype=np.uint8)) for states, actions in pairs],
        [Episode(np.array(states)[:, None], np.array(actions)[:, None]) for states, actions in pairs],
    ]
    for form in forms:
        assert paths(Demonstrations.from_episodes(form, np.eye(2))) == EPISODES
    # As many actions as states: where the last one led is not known.
    assert paths(Demonstrations.from_episodes([Episode([0, 1], [1, 0])], [[1.0]])) == [(0, [0, 1], [1])]
    assert len(Demonstrations.from_episodes([], lambda episode: [1.0])) == 0


def test_episodes_that_do_not_fit_are_refused() -> None:
    good = [Episode(states, actions) for states, actions in zip(STATES, ACTIONS)]
    with pytest.raises(ArrayError, match="2 rows; expected 3, one per context"):
        Demonstrations.from_episodes(good, np.eye(3))
    with pytest.raises(DataError, match="episode 1 has none of actions, acts") as raised:
        Demonstrations.from_episodes([good[0], {"observations": [0, 1]}], np.eye(2))
    assert raised.value.episode == 1
    with pytest.raises(ArrayError, match="demonstration 0: 3 states and 1 actions") as lengths:
        Demonstrations.from_episodes([Episode([0, 1, 2], [0])], [[1.0]])
    assert lengths.value.demonstration == 0
    with pytest.raises(ArrayError, match=r"observations\[1\] is 0.5; expected a whole number"):
        Demonstrations.from_episodes([Episode([0.0, 0.5], [0])], [[1.0]])
    with pytest.raises(ArrayError, match=r"observations has shape \[2, 4\]"):
        Demonstrations.from_episodes([Episode(np.zeros((2, 4)), [0])], [[1.0]])
    with pytest.raises(DataError, match="negative"):
        Demonstrations.from_episodes([Episode([0, -1], [0])], [[1.0]])
    with pytest.raises(ArrayError, match=r"different lengths: \[1, 2\]"):
        Demonstrations.from_episodes(good, lambda episode: [1.0] * len(episode.actions))
    with pytest.raises(TypeError):
        Demonstrations.from_episodes([Episode(["a", "b"], [0])], [[1.0]])


def test_arrays_with_feature_expectations() -> None:
    contexts, mu = np.arange(6.0).reshape(3, 2), np.arange(12.0).reshape(3, 4)
    read_only = mu.copy()
    read_only.flags.writeable = False
    for given in (
        mu,
        mu.tolist(),
        mu.astype(np.float32),
        mu.astype(">f8"),
        np.asfortranarray(mu),
        np.repeat(mu, 2, axis=1)[:, ::2],
        read_only,
    ):
        found = Demonstrations.from_arrays(contexts, given)
        assert found.feature_expectations is not None and found.feature_expectations.tolist() == mu.tolist()
        assert not found.has_actions and found.n_steps == 0 and list(found.trajectories()) == []
    one = Demonstrations.from_arrays(contexts[0], mu[0])
    assert one.feature_expectations is not None and one.contexts.shape == (1, 2) and one.feature_expectations.shape == (1, 4)
    with pytest.raises(ArrayError, match="feature_expectations has 2 rows; expected 3"):
        Demonstrations.from_arrays(contexts, mu[:2])


def test_arrays_with_trajectories() -> None:
    forms: list[tuple[Any, Any]] = [
        (STATES, ACTIONS),
        (tuple(STATES), iter(ACTIONS)),
        ([np.array(s, dtype=np.int32) for s in STATES], [np.array(a, dtype=np.float64) for a in ACTIONS]),
        (STATES, [[*ACTIONS[0], 5], [*ACTIONS[1], 6]]),
    ]
    for states, actions in forms:
        found = Demonstrations.from_arrays(np.eye(2), states=states, actions=actions)
        assert paths(found) == EPISODES and found.n_steps == 3
    matrix = np.array([[0, 1, 2], [2, 1, 0]])
    rows = Demonstrations.from_arrays(np.eye(2), states=matrix, actions=matrix[:, 1:])
    assert paths(rows) == [(0, [0, 1, 2], [1, 2]), (1, [2, 1, 0], [1, 0])]
    # One context, one trajectory, without another pair of brackets.
    assert paths(Demonstrations.from_arrays([1.0, 0.0], states=[0, 1, 2], actions=[1, 0])) == EPISODES[:1]
    assert paths(Demonstrations.from_arrays([[1.0, 0.0]], states=[[5]], actions=[[]])) == [(0, [5], [])]


def test_arrays_that_do_not_fit_are_refused() -> None:
    mu = np.ones((2, 3))
    with pytest.raises(SettingError, match="one of them"):
        Demonstrations.from_arrays(np.eye(2), mu, states=STATES, actions=ACTIONS)
    with pytest.raises(SettingError, match="one of them"):
        Demonstrations(np.eye(2), mu, [[], []])
    for parts in ({"states": STATES}, {"actions": ACTIONS}):
        with pytest.raises(SettingError, match="go together"):
            Demonstrations.from_arrays(np.eye(2), **parts)
    with pytest.raises(ArrayError, match="states has 2 rows; expected 3"):
        Demonstrations.from_arrays(np.eye(3), states=STATES, actions=ACTIONS)
    with pytest.raises(ArrayError, match="demonstration 1: 2 states and 0 actions") as raised:
        Demonstrations.from_arrays(np.eye(2), states=STATES, actions=[ACTIONS[0], []])
    assert raised.value.demonstration == 1
    with pytest.raises(DataError, match="demonstration 1: a state or action is negative"):
        Demonstrations.from_arrays(np.eye(2), states=STATES, actions=[ACTIONS[0], [-1]])
    with pytest.raises(ArrayError, match="starts has 1 rows; expected 2"):
        Demonstrations.from_arrays(np.eye(2), mu, starts=[0])
    with pytest.raises(ArrayError):
        Demonstrations.from_arrays(np.zeros((2, 2, 2)), mu)
    with pytest.raises(TypeError):
        Demonstrations.from_arrays([["a", "b"]], mu)
    with pytest.raises(TypeError):
        Demonstrations.from_arrays(np.eye(2), states=5, actions=5)


def several() -> Demonstrations:
    """Five contexts, of which one has two trajectories and one has none."""
    trajectories = [[([0, 1], [0])], [([1, 2, 3], [1, 2]), ([4], [])], [], [([5, 6], [3])], [([7, 8, 9], [4, 5])]]
    return Demonstrations(np.arange(10.0).reshape(5, 2), trajectories=trajectories, starts=[0, 1, -1, 5, 7])


ALL: list[tuple[int, list[int], list[int]]] = [
    (0, [0, 1], [0]),
    (1, [1, 2, 3], [1, 2]),
    (1, [4], []),
    (3, [5, 6], [3]),
    (4, [7, 8, 9], [4, 5]),
]


def test_trajectories_come_one_after_the_other() -> None:
    found = several()
    assert paths(found) == ALL
    assert found.n_steps == 6
    assert "5 contexts of 2 numbers, 6 actions" in repr(found) and "6" in found._repr_html_()


@pytest.mark.parametrize(
    ("which", "rows"),
    [
        (slice(None), [0, 1, 2, 3, 4]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, -2), [4, 2, 0]),
        (slice(9, None), []),
        (1, [1]),
        (-1, [4]),
        (np.int32(3), [3]),
        ([4, 1, 1], [4, 1, 1]),
        ([], []),
        (np.array([True, False, False, True, True]), [0, 3, 4]),
        ([False] * 5, []),
    ],
)
def test_parts_keep_what_belongs_together(which: Any, rows: list[int]) -> None:
    found = several()[which]
    assert len(found) == len(rows)
    assert found.contexts.tolist() == [[2.0 * row, 2.0 * row + 1.0] for row in rows]
    assert found.starts is not None and found.starts.tolist() == [[0, 1, -1, 5, 7][row] for row in rows]
    assert paths(found) == [(i, states, actions) for i, row in enumerate(rows) for owner, states, actions in ALL if owner == row]


def test_parts_of_feature_expectations() -> None:
    mu = np.arange(15.0).reshape(5, 3)
    found = Demonstrations.from_arrays(np.eye(5), mu)[[3, 0]]
    assert found.feature_expectations is not None and found.feature_expectations.tolist() == mu[[3, 0]].tolist()
    assert found.starts is None and not found.has_actions


def test_what_is_no_part_is_refused() -> None:
    for wrong in (5, -6, [0, 5], [True, False], "0", 1.5, None, [[0, 1], [2, 3]]):
        with pytest.raises(ArrayError, match="demonstrations"):
            several()[wrong]


def test_one_after_the_other() -> None:
    each = list(several())
    assert [len(own) for own in each] == [1] * 5
    assert [own.n_steps for own in each] == [1, 2, 0, 1, 2]
    assert paths(each[1]) == [(0, [1, 2, 3], [1, 2]), (0, [4], [])]


@pytest.mark.parametrize("n", [1, 7, 50])
@pytest.mark.parametrize("shares", [(0.2, 0.2), (0.0, 0.0), (0.5, 0.0), (0.1, 0.3)])
def test_every_demonstration_is_in_one_part(n: int, shares: tuple[float, float]) -> None:
    whole = Demonstrations.from_arrays(
        np.arange(n, dtype=float)[:, None], states=[[i, i] for i in range(n)], actions=[[i] for i in range(n)]
    )
    parts = whole.split(*shares, seed=4)
    contexts: list[npt.NDArray[np.float64]] = [part.contexts[:, 0] for part in parts]
    assert sorted(np.concatenate(contexts).tolist()) == list(range(n))
    for part, share in zip(parts[1:], shares):
        assert abs(len(part) - share * n) <= 0.5
    for part in parts:
        assert [states[0] for _, states, _ in part.trajectories()] == part.contexts[:, 0].tolist()
    again, other = whole.split(*shares, seed=4), whole.split(*shares, seed=5)
    assert all(np.array_equal(one.contexts, two.contexts) for one, two in zip(parts, again))
    if n == 50:
        assert contexts[0].tolist() != sorted(contexts[0].tolist())
        assert not np.array_equal(parts[0].contexts, other[0].contexts)


def test_shares_that_leave_nothing_are_refused() -> None:
    whole = several()
    for shares in ((0.5, 0.5), (1.0, 0.0), (-0.1, 0.2), (0.2, float("nan"))):
        with pytest.raises(SettingError, match="test = "):
            whole.split(*shares)
    with pytest.raises(SettingError, match="none of 1"):
        whole[:1].split(0.6, 0.0)
    with pytest.raises(TypeError):
        whole.split("half")  # type: ignore[arg-type]

"""The notebooks run from top to bottom, store no outputs, and what their text says about the results is true."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import coirl

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

#: Run as a last cell: what the text says in words, in numbers.
CLAIMS = {
    "first_steps_with_driving": """
assert plan.certificate.suboptimality_bound < 1e-9
assert np.allclose(model.plan(drivers["is careful"]).feature_expectations, model.plan(drivers["likes speed"]).feature_expectations)
assert learner.history_[-1]["loss"] < 0.01 * learner.history_[0]["loss"]
assert scores["relative_value"] > 0.98 and scores["visited_accuracy"] > 0.9 > 0.8 > scores["accuracy"]
assert np.array_equal(again.predict(passenger), policy) and reached > 0.99 * possible
assert results["MirrorDescent"][0] < 0.9 < min(results[name][0] for name in ("Adaptive", "Ellipsoid", "CuttingPlane"))
assert results["CuttingPlane"][1] < results["Ellipsoid"][1] < 50
assert from_drives.examine(truth, test_contexts)["relative_value"] > 0.95
""",
    "sepsis_zero_shot_transfer": """
assert all(states[-1] >= FIRST_END or len(actions) == 40 for _, states, actions in train.trajectories())
assert values["Adaptive"] > 0.9 > 0.8 > max(values[name] for name in ("NeuralCloning", "Cloning", "Majority"))
assert abs(values["Uniform"]) < 1e-9
assert all(agents[name].score(train) > 0.99 for name in ("NeuralCloning", "Cloning"))
assert all(agents["Adaptive"].score(new_patients) > agents[name].score(new_patients) for name in agents if name != "Adaptive")
assert prediction.how == "improved" and prediction.value > 0.999 * planned.value
assert all(gap <= bound + 1e-9 for gap, bound in zip(lost, bounds))
assert lost[-1] < 1e-3 and lost[0] < 1e-2
""",
    "your_own_table": """
assert refused.row == 1 and refused.column == "safety_first"
assert 0.95 > shares["Adaptive"] > shares["Majority"] and shares["Cloning"] > shares["Adaptive"] > 0.85
serviced = [(policy[:BROKEN] == SERVICE).sum() for policy in policies]
assert serviced == sorted(serviced) and serviced[0] < serviced[-1]
assert learner.mapping_[0].argmax() == 0 and learner.mapping_[1].argmin() == 2
assert on_sturdy["plans for the learned reward"] > 0.98 > 0.95 > on_sturdy["copies technicians"]
assert all(estimate.value is not None for estimate in found.estimates["learned"].values())
assert all(estimate.value is None for name in list(candidates)[1:] for estimate in found.estimates[name].values())
assert all(low <= actual_value <= high for name, (_, low, high, actual_value) in comparison.items() if name != "always replaced")
assert any(finding["code"] == "action-leaks" for finding in coirl.cohort.lint(leaking, preset="ai-clinician"))
assert 0.7 < measures["top_one"]["value"] < 0.85 and rules["most_frequent"]["value"] < 0.4
assert run.learner.score(cohort.test) > 0.87
refusals = [own[estimator]["status"] for _, own in scores["off_policy"]["policies"] for estimator in ("fitted_q", "weighted")]
assert set(refusals) == {"refused"}
survival = {name: own["survival"] for name, own in actual["yardsticks"].items()}
assert actual["policy"]["survival"] < 0.7 < survival["random"] < survival["clinicians"]
assert 0.2 < actual["policy"]["unknown"] < 0.45
assert page.read_text().lstrip().lower().startswith("<!doctype html")
""",
}


def _read(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(CLAIMS)


@pytest.mark.parametrize("name", CLAIMS)
def test_outputs_are_not_stored(name: str) -> None:
    book = _read(name)
    nbformat.validate(book)
    assert all(not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code")


@pytest.mark.parametrize("name", CLAIMS)
def test_a_notebook_runs_and_says_the_truth(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel runs elsewhere, and has to find the package that is tested here.
    package = str(Path(coirl.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    book = _read(name)
    book.cells.append(nbformat.v4.new_code_cell(CLAIMS[name].strip()))
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert not [output["text"] for output in shown if output.get("name") == "stderr"]

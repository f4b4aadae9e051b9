"""The benchmark of the learners, in miniature, so that it goes on running."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def path() -> Any:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


def test_a_problem_is_the_same_whenever_it_is_made_and_the_best_policies_score_100() -> None:
    from problems import KINDS, make, plan

    assert len(KINDS) >= 40
    for kind in ("garnet_mixture", "inventory", "ward_known"):
        problem, again = make(kind, 5), make(kind, 5)
        assert np.array_equal(problem.feature_expectations, again.feature_expectations)
        assert [s.tolist() for p in problem.paths for s, _ in p] == [s.tolist() for p in again.paths for s, _ in p]
        best = [
            plan(problem.kernel(context), problem.phi @ weights, problem.draft.discount, problem.allowed)[0]
            for context, weights in zip(problem.test_contexts, problem.truth(problem.test_contexts))
        ]
        assert problem.score(best) == pytest.approx(100.0)
        assert problem.score([problem.model.random_policy()] * len(best)) == pytest.approx(0.0, abs=1e-9)


def test_values_of_problems_are_those_of_the_library() -> None:
    from problems import make

    for kind in ("garnet_clusters", "shortest_path", "garnet_indicators"):
        problem = make(kind, 2)
        weights = problem.truth(problem.train_contexts)
        needs = None if problem.model.dynamics == "shared" else problem.train_contexts
        plans = problem.model.plan_many(weights, contexts=needs)
        assert plans.value == pytest.approx((weights * problem.feature_expectations).sum(axis=1))


def test_three_kinds_are_learned_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import learners

    page, out = tmp_path / "page.md", tmp_path / "fits.jsonl"
    page.write_text(f"before\n{learners.BEGIN}\nold\n{learners.END}\nafter\n", encoding="utf-8")
    chosen = ["--only", "chain,garnet_groups,garnet_few_contexts", "--learners", "adaptive;state majority"]
    fits = learners.main([*chosen, "--seed", "3", "--out", str(out), "--write", str(page)])
    assert len(fits) == 3 * (2 + 1)
    assert all(own.error is None and own.score <= 100.0 + 1e-6 for own in fits)
    assert len(out.read_text(encoding="utf-8").splitlines()) == len(fits)
    assert set(json.loads(out.read_text(encoding="utf-8").splitlines()[0])) >= {"kind", "seed", "score", "seconds"}
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "| **adaptive** |" in text and "old" not in text
    assert page.with_suffix(".svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert "garnet groups" in capsys.readouterr().out
    assert [own.score for own in learners.main(["--read", str(out)])] == [own.score for own in fits]


def test_peers_learn_something() -> None:
    from peers import LogisticCloning, MaximumCausalEntropy
    from problems import make

    problem = make("garnet_few_contexts", 1)
    assert problem.score(LogisticCloning().fit(problem)) > 40.0
    for setting in ("trajectories", "expectations"):
        assert problem.score(MaximumCausalEntropy(max_steps=60).fit(problem, setting)) > 40.0

"""The package and its examples under mypy --strict, and the example as a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import coirl

PYTHON = Path(__file__).resolve().parent.parent
FIRST_STEPS = PYTHON / "examples" / "first_steps.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def checked(cache: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """What mypy says, without any settings but --strict."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", cache, *paths]
    environment = {**os.environ, "MYPYPATH": str(PYTHON)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cache, check=False)


def test_mypy_is_content(cache: Path) -> None:
    done = checked(cache, PYTHON / "coirl", FIRST_STEPS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_sees_the_types(cache: Path) -> None:
    # Without types, mypy would be content with anything.
    wrong = cache / "wrong.py"
    wrong.write_text(
        "import coirl\n"
        "model = coirl.domains.driving()\n"
        "model.plan([1.0, 0.0, 0.0]).policy.no_such_thing\n"
        "learner: int = coirl.Adaptive().fit(model, coirl.Demonstrations([[1.0]]))\n"
        "coirl.Adaptive(max_step=3)\n"
    )
    done = checked(cache, wrong)
    assert [int(line) for line in re.findall(r"wrong\.py:(\d+): error", done.stdout)] == [3, 4, 5], done.stdout
    # What is installed says that it has types.
    assert (Path(coirl.__file__).parent / "py.typed").exists()


def test_the_example_runs() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, FIRST_STEPS], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    share = re.search(r"share of the gain over acting at random: (\S+)", done.stdout)
    assert share is not None and float(share.group(1)) > 0.9

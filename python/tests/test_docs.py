"""The chapter about Python in the book, run as it stands, and the example that it shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import coirl

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
EXAMPLE = ROOT / "python" / "examples" / "ten_lines.py"

pytest.importorskip("gymnasium")


def blocks() -> list[tuple[str, str, int]]:
    """``(language, text, line)`` of every block of the page."""
    text = PAGE.read_text(encoding="utf-8")
    fences = re.finditer(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(found[1], found[2], text.count("\n", 0, found.start()) + 2) for found in fences]


def environment() -> dict[str, str]:
    """For processes that are started elsewhere: the package that is tested here, wherever it is."""
    paths = [str(Path(coirl.__file__).resolve().parents[1]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in paths)}


def test_every_block_runs_and_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.chdir(tmp_path)
    every = blocks()
    assert sum(language == "python" for language, *_ in every) > 8
    namespace: dict[str, Any] = {"__name__": "page"}
    for i, (language, source, line) in enumerate(every):
        if language != "python":
            continue
        printed = io.StringIO()
        # Lines are numbered as on the page, so that a traceback leads there.
        code = compile("\n" * (line - 1) + source, str(PAGE), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        below = every[i + 1][1].splitlines() if every[i + 1 : i + 2] and every[i + 1][0] == "text" else []
        shown = re.findall(r"# → (.*)$", source, flags=re.MULTILINE) + below
        assert printed.getvalue().splitlines() == shown, f"{PAGE.name}, the block of line {line}"


def test_the_example_prints_the_number_of_the_page(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, EXAMPLE], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first = next(i for i, (language, *_) in enumerate(blocks()) if language == "python")
    assert blocks()[first][1] == EXAMPLE.read_text(encoding="utf-8")
    assert blocks()[first + 1][:2] == ("text", done.stdout)
    assert re.fullmatch(r"[01]\.\d{4}\n", done.stdout)


def test_the_readme_has_the_example_and_its_number() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = EXAMPLE.read_text(encoding="utf-8")
    assert example[example.index("import coirl") :] in readme
    number = next(text for language, text, _ in blocks() if language == "text").strip()
    assert f"prints {number}:" in readme


def test_the_page_names_every_learner_and_error() -> None:
    text = PAGE.read_text(encoding="utf-8")
    public = {name for name in coirl.__all__ if isinstance(own := getattr(coirl, name), type) and issubclass(own, coirl.Learner)}
    named = set(re.findall(r"`(\w+)`", text))
    assert public - {"Learner", "StreamLearner"} <= named
    assert set(coirl.errors.__all__) - {"CoirlError"} <= named


def test_the_marks_of_the_table_are_true() -> None:
    """∞ for streams, ? for those who ask."""
    rows = re.findall(r"^\| `([A-Z]\w+)` ?(∞|\?|) \| `[\w-]+`", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(rows) > 20
    for name, mark in rows:
        cls = getattr(coirl, name)
        assert mark == ("?" if cls.interactive else "∞" if issubclass(cls, coirl.StreamLearner) else ""), name


def test_links_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    anchors = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    }
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    for target in targets:
        path, _, anchor = target.partition("#")
        assert (PAGE.parent / path).is_file() if path else anchor in anchors, target
    assert "(python.md)" in (PAGE.parent / "SUMMARY.md").read_text(encoding="utf-8")

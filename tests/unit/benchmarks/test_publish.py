"""The page of measurements takes new tables in place of old ones, and keeps the others."""

from __future__ import annotations

import pytest

from benchmarks import __main__ as bench


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("above\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nbelow\n")
    return tmp_path


def test_table_takes_the_place_of_the_one_of_its_name(root):
    bench._publish(["first\n", "### Load\n\n1\n", "### Delegated execution, ms\n\n2\n"])
    bench._publish(["second\n", "### Load\n\n3\n"])
    page = (root / "docs" / "benchmarks.md").read_text()
    assert page.count("### ") == 2
    assert "### Load\n\n3\n\nMeasured on second.\n" in page
    assert "### Delegated execution, ms\n\n2\n\nMeasured on first.\n" in page
    readme = (root / "README.md").read_text()
    assert readme.startswith("above\n") and readme.endswith("<!-- figures: end -->\nbelow\n")
    assert "### Delegated execution, ms\n\n2\n\nMeasured on first.\n" in readme
    assert "Load" not in readme and "old" not in readme


def test_readme_without_marks_is_refused(root):
    (root / "README.md").write_text("nothing\n")
    with pytest.raises(SystemExit):
        bench._publish(["first\n", "### Load\n\n1\n"])

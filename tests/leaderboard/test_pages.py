"""Test model pages, submissions by owner, downloads and remarks on submissions."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import yaml

from cardiobench.leaderboard import model_page
from cardiobench.leaderboard.export import write_downloads
from cardiobench.leaderboard.submit import submit_text
from tests.leaderboard.test_boards import OTHER, TASK, collected, entry

VIEW = collected(
    replace(entry("a/a", 0.8), pushed_by="lab", submissions=2),
    replace(entry("a/a", 0.7, OTHER), pushed_by="lab"),
    replace(entry("b/b", 0.5), pushed_by="bob"),
)


def test_model_has_a_page_with_places_among_all_models():
    found = model_page.model_tasks(VIEW, "b/b")
    assert found.texts("task") == [TASK] and found.texts("place") == ["2"]
    assert model_page.versions(VIEW, "a/a").texts("results") == ["2"]
    assert model_page.owners(VIEW).texts("most for one task") == ["1", "2"], "bob, then lab"
    assert "Apache-2.0" in model_page.card_text("cardiobench/constant") and "no card" in model_page.card_text("b/b")


def test_downloads_hold_every_digit(tmp_path):
    paths = write_downloads(VIEW, tmp_path)
    for frame in (pd.read_csv(paths["CSV"]), pd.read_parquet(paths["Parquet"])):
        assert len(frame) == 3 and frame["value"].tolist() == [0.8, 0.5, 0.7]
        assert frame["place_first"].tolist() == [1, 2, 1]


def test_citation_equals_the_repository():
    facts = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    assert facts["title"] in submit_text() and "--to-dataset org/x " in submit_text("org/x")

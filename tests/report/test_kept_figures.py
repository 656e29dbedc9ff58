"""Check that a second report draws only figures whose results changed."""

import os
import shutil

import pytest

from cardiobench.core.config import default_cache
from cardiobench.core.errors import UnwritableOutput
from cardiobench.report.plots import draw, kept
from cardiobench.report.plots.draw import draw_report
from cardiobench.report.plots.kept import FOLDER, NOTE
from cardiobench.results.collect import collect
from tests.report.example_results import write_result

TASK = "phantom_echo/ef"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    write_result(folder / "results", task=TASK)
    return folder, draw_report(collect([folder / "results"]), folder / "out", processes=1)


@pytest.fixture
def drawn(monkeypatch):
    """Return the names of the drawn figures."""
    names, real = [], draw.draw_job
    monkeypatch.setattr(draw, "draw_job", lambda job, *more: names.append(job.name) or real(job, *more))
    return names


def again(folder):
    return draw_report(collect([folder / "results"]), folder / "out", processes=1)


def test_unchanged_results_keep_their_figures(first, drawn):
    folder, figures = first
    assert again(folder) == figures and drawn == []


def test_changed_picture_is_replaced_by_the_kept_one(first, drawn):
    folder, figures = first
    (path, *_) = figures.of("task", TASK)[0].files
    before = path.read_text("utf-8")
    path.write_text(before.replace("<svg", "<svg onload='alert(1)'", 1), encoding="utf-8")
    assert again(folder) == figures and drawn == []
    assert path.read_text("utf-8") == before


def test_nothing_that_lies_beside_results_is_taken_for_a_kept_figure(first, drawn):
    folder, figures = first
    assert {path.suffix for path in (folder / "out" / "figures").iterdir()} == {".svg", ".csv"}
    for note in default_cache().joinpath(FOLDER).glob(f"*/{NOTE}"):
        shutil.copy(note, folder / "out" / "figures")
        note.unlink()
    assert again(folder) == figures and TASK in drawn


def test_figures_unused_for_a_month_are_removed(first, drawn):
    folder, figures = first
    again(folder)
    drawn.clear()
    for home in default_cache().joinpath(FOLDER).iterdir():
        os.utime(home, (0, 0))
    kept.remove_unused()
    assert again(folder) == figures and TASK in drawn


def test_folder_of_figures_that_is_a_link_is_refused(first, tmp_path):
    folder, _ = first
    (tmp_path / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnwritableOutput, match="is a link to another place"):
        draw_report(collect([folder / "results"]), tmp_path, processes=1)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", '{"figures": 1}', '{"figures": [{}]}', "[]"])
def test_damaged_figure_index_is_ignored(first, drawn, text):
    folder, figures = first
    for note in default_cache().joinpath(FOLDER).glob(f"*/{NOTE}"):
        note.write_text(text, encoding="utf-8")
    assert again(folder) == figures and TASK in drawn


@pytest.mark.slow
def test_another_version_redraws_figures(first, drawn, monkeypatch):
    folder, figures = first
    monkeypatch.setattr(kept, "_program", lambda: "another")
    assert again(folder) == figures and TASK in drawn


@pytest.mark.slow
def test_new_predictions_are_drawn(first, drawn):
    folder, figures = first
    again(folder)
    drawn.clear()
    write_result(folder / "results", "org/two", TASK, 0.5)
    assert again(folder) != figures and set(drawn) >= {TASK}

"""Test masks and landmarks in a complete run: tokens, fit, scores, floors, options and refusals."""

import dataclasses
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog, open_dataset
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.report.page.examples import write_examples
from cardiobench.report.plots.draw import draw_report
from cardiobench.results.collect import collect
from cardiobench.results.paths import predictions_path
from cardiobench.runner.names import default_protocols
from cardiobench.runner.references import expected_units, limited_references
from cardiobench.runner.run import run
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.tiny import tiny_open_clip

MASKS, POINTS = "phantom_echo/lv_seg", "phantom_echo/landmarks"


def config(folder, **what):
    """Return the settings of a small run."""
    usual = {"output_dir": folder / "results", "cache_dir": folder / "cache", "resamples": 40, "workers": 0}
    return RunConfig(**{**usual, "options": {"dense": {"penalties": [0.001, 0.1]}}, **what})


@pytest.mark.slow
def test_masks_and_landmarks_of_phantoms(tmp_path):
    model = str(tiny_open_clip(tmp_path / "org" / "clip"))
    settings = config(tmp_path, models=(model,), tasks=(MASKS, POINTS), limit=6)
    outcome = run(settings)
    assert outcome.exit_code == 0
    assert {(result.task, result.variant) for result in outcome.results} == {
        (MASKS, ""), (POINTS, "heatmap"), (POINTS, "global"),
    }  # fmt: skip
    for result in outcome.results:
        assert {"best_uninformed", "pixel_patches", "random_vit", "cell_grid_oracle"} <= set(result.floors)
        assert ("token_grid_oracle" in result.floors) == (result.task == MASKS)
        value = result.overall[result.metric].value
        assert np.isfinite(value)
        assert result.options["grid"] == [4, 4]
        assert result.options["cells"] == [56, 56]
        assert result.options["unseen_share"] == pytest.approx(0, abs=0.02)
        oracle = result.floors["cell_grid_oracle"].value
        assert (value < oracle) if result.higher_is_better else (value > oracle)
    again = run(settings)
    assert [result.stamp for result in again.results] == [result.stamp for result in outcome.results]
    file = next(path for path in outcome.files if path.suffix == ".json" and "lv_seg" in path.name)
    frames = pd.read_parquet(predictions_path(file))
    assert {"id", "patient_id", "recording", "frame", "dice_cavity", "dice_myocardium"} <= set(frames)


def test_model_without_tokens_is_refused(tmp_path):
    outcome = run(config(tmp_path, models=("cardiobench/constant",), tasks=(MASKS,), limit=3))
    assert not outcome.results
    [(model, task, protocol, reason)] = outcome.not_applicable
    assert (model, task, protocol) == ("cardiobench/constant", MASKS, "dense")
    assert "no tokens" in reason


def test_dense_tasks_run_by_default():
    assert default_protocols(()) == ("zero_shot", "probe", "knn")
    assert default_protocols(("phantom_echo",)) == ("zero_shot", "probe", "knn")
    assert default_protocols((MASKS,)) == ("dense",)
    assert default_protocols(("phantom_echo/ef", MASKS)) == ("zero_shot", "probe", "knn", "dense")


@pytest.mark.slow
def test_changed_option_gives_a_separate_result(tmp_path):
    settings = config(tmp_path, models=("cardiobench/random-vit",), tasks=(MASKS,), limit=4)
    first = run(settings)
    assert "random_vit" not in first.results[0].floors  # The model is itself this floor.
    fewer = dataclasses.replace(settings, options={"dense": {"penalties": [0.1], "train_frames": 4}})
    other = run(fewer)
    assert other.results[0].stamp["key"] != first.results[0].stamp["key"]
    assert other.results[0].options["train_frames"] <= 4


@pytest.mark.slow
def test_few_shot_results_are_separate(tmp_path):
    """Test a curve at 2 and 4 patients and the usual result of all patients; larger sizes are not applicable."""
    options = {"dense": {"penalties": [0.1], "patients": [2, 4, 500]}}
    settings = config(tmp_path, models=("cardiobench/random-vit",), tasks=(MASKS, POINTS), limit=8, options=options)
    outcome = run(settings)
    learned = {(one.task, one.variant): one.options["train_patients"] for one in outcome.results}
    assert {variant: learned[MASKS, variant] for variant in ("2_patients", "4_patients")} == {
        "2_patients": 2, "4_patients": 4,
    }  # fmt: skip
    assert learned[MASKS, ""] > 4
    assert {variant for task, variant in learned if task == POINTS} == {
        f"{kind}{few}" for kind in ("heatmap", "global") for few in ("", "_2_patients", "_4_patients")
    }
    reasons = {(task, label): reason for _, task, label, reason in outcome.not_applicable}
    assert f"{learned[MASKS, '']} training patients here, not more than 500" in reasons[MASKS, "dense.500_patients"]
    frames = {one.variant: one.options["train_frames"] for one in outcome.results if one.task == MASKS}
    assert frames["2_patients"] < frames["4_patients"] < frames[""]
    for result in outcome.results:
        assert np.isfinite(result.overall[result.metric].value)
        assert {"best_uninformed", "pixel_patches", "cell_grid_oracle"} <= set(result.floors)


TWINS = {
    "camus": "camus/lv_seg",
    "echonet_dynamic": "echonet_dynamic/lv_seg",
    "echonet_pediatric": "echonet_pediatric/lv_seg",
    "echonet_lvh": "echonet_lvh/landmarks",
}
MASKS_OF = {"echonet/EchoPrime": "echonet_dynamic", "CarDS-Yale/PanEcho": "camus", "sekeun/EchoFM": "camus"}
MASKS_OF = {name: twin for name, twin in MASKS_OF.items() if name in CHECKPOINTS}
"""Video model -> the one twin with masks on which it runs, because each takes half a minute; image models run on all."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Return a folder with four releases written by their twins; the runs store the tokens of their floors next to them."""
    folder = tmp_path_factory.mktemp("releases")
    for twin in TWINS:
        write_twin(twin, folder / "data" / twin, patients=8)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cardiobench/random-vit", "org/clip", *MASKS_OF])
def test_every_twin_with_every_kind_of_model(name, releases, tmp_path, monkeypatch):
    """Encode images and videos with smaller networks."""
    what = {"models": (name,)}
    tasks = [task for twin, task in TWINS.items() if twin in (MASKS_OF.get(name, twin), "echonet_lvh")]
    if name == "org/clip":
        what = {"models": (str(tiny_open_clip(tmp_path / "org" / "clip")),)}
    elif name in MASKS_OF:
        (tmp_path / "files").mkdir()
        monkeypatch.setattr(
            "cardiobench.report.markdown.write_markdown", lambda *_, **__: []
        )  # The pages draw other frames.
    stiff = 10.0 if name in MASKS_OF else 0.01  # Only masks in one piece have a volume to draw.
    what["options"] = {"dense": {"penalties": [stiff], "ridge_penalties": [stiff], "further": ["clip", "ridge"]}}
    with smaller_networks():
        if name in MASKS_OF:
            change_card(monkeypatch, name)
            what["weights"] = CHECKPOINTS[name](tmp_path / "files")
        outcome = run(
            config(
                tmp_path,
                **what,
                tasks=tuple(tasks),
                data_dir=releases / "data",
                cache_dir=releases / "cache",
                allow_missing=True,
                limit=2,
            )
        )
    moving = name in ("echonet/EchoPrime", "sekeun/EchoFM")
    masks, points = ["", "ridge"], ["heatmap", "global", "heatmap_ridge"]
    if moving:
        masks, points = [*masks, "clip"], [*points, "heatmap_clip", "global_clip"]
    assert {(result.task, result.variant) for result in outcome.results} == {
        *((task, variant) for task in tasks if task.endswith("seg") for variant in masks),
        *(("echonet_lvh/landmarks", variant) for variant in points),
    }
    reasons = {reason for *_, label, reason in outcome.not_applicable if "clip" in label}
    assert len(reasons) == (0 if moving else 1)
    assert moving or ("mixes three frames" if name == "CarDS-Yale/PanEcho" else "single frames") in reasons.pop()
    for result in outcome.results:
        assert np.isfinite(result.overall[result.metric].value)
        assert result.floors.keys() >= {"best_uninformed", "pixel_patches", "cell_grid_oracle"}
        assert result.options["window_residual"] < 3 and 0 < result.options["window"][2] <= 1.01
    if name in MASKS_OF:
        assert_pictures(tmp_path, releases / "data", tasks)


def assert_pictures(folder, data, tasks):
    """Check scores and ejection fraction of the masks of each task, and pages sorted from worst to best frames."""
    collection, out = collect([folder / "results"]), folder / "report"
    figures = draw_report(collection, out, png=True, processes=1, kinds=("task",))
    assert not figures.problems and not figures.note
    for task in tasks:
        captions = " ".join(figure.caption for figure in figures.of("task", task))
        assert ("the difference against" in captions) == task.endswith("seg"), task
    links, problems = write_examples(collection, out, (), data)
    assert not problems and set(links) == set(tasks)
    for task, pages in links.items():
        for _, address in pages:
            page = (out / unquote(address)).read_text()
            assert "<b>worst</b>" in page and 'src="data:image/jpeg' in page, task
            assert "cannot be read" not in page and "is not here" not in page, task
            assert "dice" in page if task.endswith("seg") else " mm" in page


def test_absent_rows_lower_the_mask_coverage():
    whole = open_dataset("phantom_echo")
    partial = dataclasses.replace(whole, table=dataclasses.replace(whole.table, absent={"test": 5}))
    task = catalog.task(MASKS)
    references = limited_references(partial, task, None)
    here = int((references["split"] == "test").sum())
    assert expected_units(whole, task, references, None) == here
    assert expected_units(partial, task, references, None) > here == expected_units(partial, task, references, 3)


@pytest.mark.slow
def test_prepared_folder_gives_the_scores_of_the_raw_release(tmp_path):
    """Check that another hospital without the raw release gets the same masks, tokens and numbers."""
    write_twin("camus", tmp_path / "data" / "camus", patients=8)
    prepare("camus", tmp_path / "data" / "camus", tmp_path / "prepared", allow_missing=True)
    outcomes = [
        run(
            config(
                tmp_path / place, models=("cardiobench/random-vit",), tasks=(TWINS["camus"],),
                data_dir=tmp_path / place, allow_missing=True,
            )
        )
        for place in ("data", "prepared")
    ]  # fmt: skip
    (one,), (other,) = (outcome.results for outcome in outcomes)
    assert {name: score.value for name, score in one.overall.items()} == {
        name: pytest.approx(score.value, nan_ok=True) for name, score in other.overall.items()
    }
    assert one.coverage == other.coverage and one.options == other.options

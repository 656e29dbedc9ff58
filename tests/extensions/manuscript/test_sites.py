"""Test `cardiobench sites` and `cardiobench flow`: scores of sites, refused requests, counts that add up."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig, BadData
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import AGE_GROUPS
from cardiobench.data.twin import list_twins, write_twin
from cardiobench.extensions.manuscript import sites
from cardiobench.extensions.manuscript.flow import check_sums, lines, participant_flow
from cardiobench.extensions.manuscript.meta import Summary
from cardiobench.metrics.number import Number
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.report.contests import predictions_of
from cardiobench.results.collect import Collection, ResultEntry, collect
from cardiobench.results.paths import predictions_path, result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.scoring.predictions import Predictions
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler
from cardiobench.tasks.task import Group
from tests.leaderboard.submissions import NAME, submit, write_dataset

TASK = f"{NAME}/sick"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        for target in ("sick", "ef"):
            one = submit(folder, target=target, model="lab/a", skill=0.4)
            task = catalog.task(f"{NAME}/{target}")
            references = open_dataset(NAME, one.data_dir, need_media=False).references(task)
            path = result_path(folder / "results" / "lab__a" / "1", "probe", task.name)
            save_scored(one.result, Predictions.join(references, one.answers, task).frame, path)
    return folder


@pytest.fixture
def home(made, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", made / "builders")
    return made


def entry(home, target="sick"):
    path = result_path(home / "results" / "lab__a" / "1", "probe", f"{NAME}/{target}")
    (found,) = collect([path]).entries
    return ResultEntry(path, found.result, predictions_path(path))


@pytest.mark.parametrize("target", ["sick", "ef"])
def test_sites_of_a_column_are_scored_and_combined(home, capsys, tmp_path, target):
    words = [
        "sites",
        home / "results",
        "--task",
        f"{NAME}/{target}",
        "--site-column",
        "view",
        "--data-dir",
        home / "raw",
    ]
    assert main([*map(str, words), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert set(told["sites"]) == {"A2C", "A4C", "PLAX"} and not told["left_out"]
    assert sum(one["n_patients"] for one in told["sites"].values()) == 100
    own = told["summary"]
    assert own["scale"] == ("logit" if target == "sick" else "log") and own["sites"] == 3
    assert own["next_low"] < own["low"] < own["value"] < own["high"] < own["next_high"]
    assert main([*map(str, words), "--out", str(tmp_path)]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".svg", ".png"}
    table = pd.read_csv(tmp_path / "sites.csv")
    assert list(table["site"]) == ["A2C", "A4C", "PLAX", "summary", "a further site"]


def test_score_of_a_site_is_that_of_its_rows(home):
    found, _ = sites.of_column([home / "results"], TASK, "sex")
    frame = predictions_of(entry(home)).frame
    for sex, one in found[0].sites.items():
        rows = frame[frame["sex"] == sex]
        tables = pd.crosstab(rows["y_true"], rows["y_pred"])
        hits, sums = np.diag(tables), tables.sum(axis=0).to_numpy() + tables.sum(axis=1).to_numpy()
        assert one.value == pytest.approx(np.mean(2 * hits / sums)) and one.n == len(rows)
    assert "no prediction interval: 2 sites" in found[0].reason and found[0].summary is not None


def test_sites_that_cannot_be_scored_are_named(home):
    answers = predictions_of(entry(home))
    frame = answers.frame
    place = np.where(frame["y_true"] == "sick", "ill", "mixed")
    place[:1], place[1:6], place[6:40:2], place[7:41:2] = "lone", "few", "north", "south"
    found = sites._scored("lab/a", entry(home), answers, pd.Series(place, index=frame.index), "hospital")
    assert found.left_out["lone"] == "no: 1 patient" and found.left_out["ill"] == "no: one class"
    assert "5 patients, 10 needed" in found.left_out["few"] or "one class" in found.left_out["few"]
    assert {"north", "south"} <= set(found.sites) - set(found.left_out)
    shown = {row[2]: row[-1] for row in found.rows()}
    assert shown["lone"] == "no: 1 patient" and shown["north"] == "yes"


@pytest.mark.parametrize(
    ("truth", "here", "reason"),
    [
        ([0, 1, 2, 0, 1, 1], 3, ""),
        ([0, 1, 1, 0, 2, 2], 4, "1 of 3 classes do not occur: c"),
        ([0, 0, 0, 1, 2, 2], 3, "one class"),
        ([[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]], 3, ""),
        ([[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]], 2, "1 of 3 labels occur in no row or in all rows: b"),
        ([[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 1]], 2, "1 of 3 labels occur in no row or in all rows: b"),
    ],
)
def test_site_without_a_class_or_with_a_label_in_all_rows_has_no_score(truth, here, reason):
    """With several labels, `present` means both answers; a label of all rows is not one that does not occur."""
    truth = np.array(truth)
    sample = ScoringInput(truth, truth, None, truth.shape[1] if truth.ndim > 1 else 3)
    clusters = Clusters.of(np.arange(len(truth)).astype(str))
    part = Sampler(sample, clusters, sample.present_classes(3)).take(np.arange(here))
    assert sites._reason(part, ("a", "b", "c")) == reason


def test_sites_that_are_groups_have_the_order_of_the_dataset(home):
    """As in other tables of the groups; the codes of the characters would put ≤45 after >80."""
    found = entry(home)
    answers = predictions_of(found)
    groups = Group("age", "age_group", labels=AGE_GROUPS.labels)
    answers = replace(answers, task=replace(answers.task, groups=(groups,)))
    site = pd.Series(np.resize([">80", "unknown", "66-80", "≤45"], len(answers.frame)))
    site = site.groupby(answers.frame["patient_id"].to_numpy()).transform("first")
    assert list(sites._scored("a", found, answers, site, "age_group").sites) == ["≤45", "66-80", ">80", "unknown"]
    assert list(sites._scored("a", found, answers, site, "ward").sites) == ["66-80", ">80", "unknown", "≤45"]


@pytest.mark.parametrize(("tau", "shown"), [(0.0, "tau 0.00"), (0.004, "tau < 0.01"), (0.006, "tau 0.01")])
def test_small_spread_between_sites_is_not_shown_as_none(tau, shown):
    summary = Summary(0.8, 0.7, 0.9, math.nan, math.nan, tau, 0.1, 3, "logit")
    one = sites.SiteScores("lab/a", "probe", Number("auroc"), "", {}, {}, summary)
    assert shown in one.rows()[0][-1]


def test_patients_at_several_sites_are_refused():
    sites.check_patients(np.array(["a", "a", "b"]), np.array(["x", "x", "y"]), "hospital")
    with pytest.raises(BadData, match="1 patients are at several values of hospital, such as a"):
        sites.check_patients(np.array(["a", "a", "b"]), np.array(["x", "y", "y"]), "hospital")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--task", TASK, "--site-column", "split"), "split has one value, test"),
        (("--task", TASK, "--site-column", "nowhere"), "no column 'nowhere'. Give --site-column one of: id"),
        (("--task", TASK), "give either --task TASK with --site-column"),
        (("--target", "sick"), "so there is one site. Give"),
        (("--target", "nothing"), f"; there are results of {NAME}/ef, {NAME}/sick. Run the evaluation first."),
        (
            ("--task", TASK, "--site-column", "sex", "--protocol", "knn"),
            "is by knn; there are probe. Choose one with --protocol.",
        ),
    ],
)
def test_requests_that_make_no_sense_are_refused(home, capsys, words, reason):
    assert main(["sites", str(home / "results"), *words, "--data-dir", str(home / "raw")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert reason in told and "Traceback" not in told


def test_datasets_with_one_target_are_sites(home, monkeypatch):
    first = entry(home)
    others = [
        ResultEntry(first.path, replace(first.result, task=f"{name}/sick"), first.predictions)
        for name in ("one", "two")
    ]
    monkeypatch.setattr(sites, "collect", lambda folders: Collection((first, *others)))
    (found,), _ = sites.of_target([home], "sick")
    assert set(found.sites) == {NAME, "one", "two"} and found.summary.value == pytest.approx(
        first.result.score.value, abs=1e-6
    )
    made_up = replace(others[0], result=replace(others[0].result, generated=True))
    monkeypatch.setattr(sites, "collect", lambda folders: Collection((first, made_up)))
    with pytest.raises(BadConfig, match="generated ones count apart"):
        sites.of_target([home], "sick")


def test_flow_states_what_is_absent_unlabelled_and_scored(home, tmp_path, monkeypatch):
    """Of 240 recordings 2 files are absent; the dataset has no other losses."""
    import shutil

    raw = tmp_path / NAME
    shutil.copytree(home / "raw" / NAME, raw)
    for name in ("3.avi", "230.avi"):
        (raw / name).unlink()
    task = catalog.task(TASK)
    result = entry(home).result
    flow = participant_flow(open_dataset(NAME, tmp_path, allow_missing=True), task, [result])
    assert check_sums(flow) == [] and [box.count for box in flow.recordings] == [240, 240, 238, 238]
    assert {name: box.count for name, box in flow.splits.items()} == {"train": 99, "validation": 40, "test": 99}
    assert len(flow.other) == 1, "the result is of the complete data"
    whole = participant_flow(open_dataset(NAME, home / "raw"), task, [result])
    assert whole.scored == {"lab/a, probe": 100} and not whole.other
    text = "\n".join(lines(flow))
    assert "file absent or empty: 2" in text and "test: 99 (99 patients)" in text


def test_flow_command_writes_text_and_diagram(home, capsys, tmp_path):
    words = ["flow", "--task", TASK, "--data-dir", home / "raw", "--results", home / "results", "--out", tmp_path]
    assert main([*map(str, words)]) == 0
    assert "scored for lab/a, probe: 100 of 100 recordings" in " ".join(capsys.readouterr().out.split())
    assert {path.suffix for path in tmp_path.iterdir()} == {".txt", ".svg", ".png"}
    svg = next(tmp_path.glob("*.svg")).read_text("utf-8")
    assert "recordings of the release" in svg and "patients" in svg


@pytest.mark.slow
@pytest.mark.parametrize("name", list_twins())
def test_counts_add_up_on_every_twin(name, tmp_path):
    write_twin(name, tmp_path / name, patients=6)
    dataset = open_dataset(name, tmp_path / name, allow_missing=True)
    for task in dataset.spec.all_tasks:
        flow = participant_flow(dataset, task)
        assert check_sums(flow) == [], task.name
        units = set(dataset.references(task)["id"])
        assert flow.units.count + dataset.unread_units(task) == len(units), task.name
        for split, box in flow.splits.items():
            left = {reason: count for one in flow.recordings for reason, count in one.left_out.items()}
            assert box.count >= 0 and all(count >= 0 for count in left.values()), split
        assert lines(flow) and not math.isnan(flow.units.count)


def test_same_recordings_in_two_datasets_are_one_site(home):
    first = entry(home)
    names = ("ptb_xl_500", "ptb_xl", "ptb_xl_sample", "georgia")
    group = {
        name: ResultEntry(first.path, replace(first.result, task=f"{name}/cd"), first.predictions) for name in names
    }
    problems = sites._without_same_recordings(group)
    assert list(group) == ["ptb_xl_500", "georgia"]
    assert [one.message for one in problems] == [
        f"the recordings of {name} are among those of ptb_xl_500" for name in ("ptb_xl", "ptb_xl_sample")
    ]

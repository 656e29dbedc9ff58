"""Test floors computed from the splits alone, compared with published numbers."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cardiobench.cli.main import main
from cardiobench.core.errors import MissingData, UnknownName
from cardiobench.data import catalog
from cardiobench.extensions.papers.anchors import published_scores
from cardiobench.extensions.papers.floor_table import (
    BALANCED,
    BEATS,
    COUNTS,
    NO_BETTER,
    bundled_references,
    compare_to_floor,
    counts_by_table,
    floor_table,
    task_floors,
    tasks_by_name,
)
from cardiobench.metrics.load import list_metrics
from cardiobench.report.page.naming import published_row
from tests.results.test_formatting import result

ECHO, ECG = "arXiv:2510.00520", "arXiv:2601.21830"


def test_numbers_equal_the_papers(shared):
    printed = pd.concat(
        [pd.read_csv(path, dtype=str) for path in sorted((shared / "data/published").glob("*.csv"), reverse=True)]
    )
    papers = [row for row in published_scores() if row.source.startswith((ECHO, ECG))]
    assert [row.printed for row in papers] == printed["value"].tolist()
    assert [row.source for row in papers] == printed["source"].tolist()
    assert len(papers) == 380


def test_other_ecg_benchmarks_name_model_and_data():
    rows = [row for row in published_scores() if not row.source.startswith((ECHO, ECG))]
    assert {row.protocol for row in rows} == {"attention_probe", "probe", "fine-tuned", "supervised"}
    assert {row.metric for row in rows} == {"auroc_macro"} and all(0.5 < row.value < 1 for row in rows)
    assert all(row.condition for row in rows if row.task in ("ptb_xl/super", "code15/six", "mean_of_open_tasks"))
    means = {(row.protocol, row.model): row.value for row in rows if row.task == "mean_of_open_tasks"}
    assert round(means["attention_probe", "ECGFM-KED"] - means["probe", "ECGFM-KED"], 3) == 0.102, "the cost of pooling"


def test_published_interval_is_shown_with_value(capsys):
    rows = {
        row.model: row for row in published_scores("ptb_xl/all") if row.protocol in ("supervised", "attention_probe")
    }
    assert rows["S4"].interval == "[0.909, 0.943]" and rows["ECG-JEPA"].interval == ""
    assert all(row.low < row.value < row.high for row in published_scores() if row.interval)
    assert main(["floors", "ptb_xl/all"]) == 0 and "0.941 [0.909, 0.943]" in " ".join(capsys.readouterr().out.split())
    like = result(0.9, metric="auroc_macro")
    shown = {name: published_row(rows[name], like)["interval"] for name in ("S4", "ECG-JEPA")}
    assert shown == {"S4": "90.90 – 94.30 (by the source's method)", "ECG-JEPA": "–"}


def test_number_in_percent_becomes_a_fraction():
    row = next(row for row in published_scores("tmed2/as") if row.model == "EchoPrime")
    assert (row.metric, row.value, row.printed, row.protocol) == ("f1_macro", 0.4413, "44.13", "zero_shot")
    assert row.source == f"{ECHO} Table 1" and row.decimals == 2
    mae = published_scores("echonet_lvh/ivsd")[0]
    assert (mae.metric, mae.value) == ("mae", 0.57)
    folds = published_scores("ptb_xl/cd_paper")[0]
    assert (folds.metric, folds.condition, folds.value) == ("f1_median", "15 folds, size XS", 0.75)
    assert published_scores("no/such") == ()


def test_published_tasks_exist():
    across_datasets = {"cd_paper", "af_paper", "mean_of_open_tasks"}
    known = {*catalog.list_tasks(), *catalog.list_defined_tasks()}
    assert {row.task for row in published_scores()} - across_datasets <= known


# Published counts of negatives and positives in the test split, and macro F1 of each constant prediction.
@pytest.mark.parametrize(
    ("task", "counts", "percent"),
    [
        ("cardiacnet/asd", (27, 20), (36.49, 29.85)),
        ("cardiacnet/pah", (31, 75), (22.63, 41.44)),
        ("hmc_qu/stemi", (24, 26), (32.43, 34.21)),
        ("tmed2/as", (25, 94), (17.36, 44.13)),
        ("segrwma/rwma_a2c", (44, 4), (47.83, 7.69)),
        ("segrwma/rwma_a3c", (48, 4), (48.00, 7.14)),
        ("segrwma/rwma_a4c", (52, 4), (48.15, 6.67)),
    ],
)
def test_floors_of_the_published_splits(task, counts, percent):
    known = task_floors(catalog.task(task))
    assert tuple(known.classes.values()) == counts
    assert tuple(round(100 * score, 2) for score in known.constants.values()) == percent
    truth = np.repeat([0, 1], counts)
    expected = [f1_score(truth, np.full(len(truth), c), average="macro", zero_division=0) for c in (0, 1)]
    assert list(known.constants.values()) == pytest.approx(expected, abs=1e-12)
    assert known.floors["best_constant"].value == pytest.approx(max(expected), abs=1e-12)
    assert known.floors["best_uninformed"].value == 0.5


@pytest.fixture(scope="module")
def every_floor():
    return floor_table(tasks_by_name([]))


@pytest.mark.slow
def test_contents_of_table_1(every_floor):
    """Check that 30 of 33 zero-shot numbers are no better than guessing at the class rates, and 13 equal a constant."""
    counts = counts_by_table(every_floor).set_index("source")
    assert counts.loc[f"{ECHO} Table 1"].tolist() == [33, 30, 13]
    assert counts.loc[f"{ECHO} Table 2"].tolist() == [42, 23, 19]


def test_table_1_equals_scikit_learn():
    """Compute the same counts independently from the paper's table and the published class counts."""
    test = {"cardiacnet/asd": (27, 20), "cardiacnet/pah": (31, 75), "hmc_qu/stemi": (24, 26), "tmed2/as": (25, 94)}
    test |= {"segrwma/rwma_a2c": (44, 4), "segrwma/rwma_a3c": (48, 4), "segrwma/rwma_a4c": (52, 4)}
    constants = {}
    for task, counts in test.items():
        truth = np.repeat([0, 1], counts)
        answers = [f1_score(truth, np.full(len(truth), answer), average="macro", zero_division=0) for answer in (0, 1)]
        constants[task] = [round(100 * value, 2) for value in answers]
    table = [row for row in published_scores() if row.source == f"{ECHO} Table 1" and row.metric.startswith("f1_macro")]
    assert len(table) == 33
    no_better = [float(row.printed) <= 50.0 for row in table]  # The value for two classes is 1 / K.
    equal = [row.task for row in table if float(row.printed) in constants[row.task]]
    assert (sum(no_better), len(equal)) == (30, 13)
    assert Counter(equal) == {
        "tmed2/as": 4, "cardiacnet/asd": 2, "hmc_qu/stemi": 2, "segrwma/rwma_a4c": 2,
        "cardiacnet/pah": 1, "segrwma/rwma_a2c": 1, "segrwma/rwma_a3c": 1,
    }  # fmt: skip


def test_shipped_counts_agree_with_the_splits_of_the_release(shared):
    splits = json.loads((shared / "data/splits_counts.json").read_text())["files"]
    studies = splits["tmed2/per_study.csv"]["label_by_split"]
    counts = pd.read_csv(COUNTS).set_index(["task", "split", "label"])["count"]
    for split in ("train", "test"):
        assert counts["tmed2/as", split, "no_AS"] == studies[split]["0"]
        assert counts["tmed2/as", split, "AS"] == studies[split]["1"]
    images = pd.read_csv(shared / "data/splits/tmed2/per_image.csv")
    for (split, view), count in images.groupby(["split", "view"]).size().items():
        if split != "val":
            assert counts["tmed2/view", split, view if len(view) < 5 else "Other"] == count


def test_shipped_labels_are_classes_of_their_tasks():
    for name in set(pd.read_csv(COUNTS)["task"]):
        task = catalog.task(name)
        table, _ = bundled_references(task)
        assert set(table["y_true"]) <= set(task.classes), name
        assert set(table["split"]) <= {"train", "validation", "test"}, name


def test_number_and_floor():
    known = task_floors(catalog.task("cardiacnet/asd"))
    by_model = {
        row.model: compare_to_floor(row, known)
        for row in published_scores("cardiacnet/asd")
        if row.protocol == "zero_shot"
    }
    assert by_model == {
        "EchoCLIP": NO_BETTER,
        "BioMedCLIP": NO_BETTER,
        "DINOv3": "equals the constant no_ASD",
        "SigLIP2": "equals the constant no_ASD",
    }
    wall = task_floors(catalog.task("segrwma/rwma_a4c"))
    verdicts = {
        row.model: compare_to_floor(row, wall)
        for row in published_scores("segrwma/rwma_a4c")
        if row.protocol == "zero_shot"
    }
    assert verdicts["BioMedCLIP"] == "equals the constant abnormal"
    assert verdicts["PanEcho"] == NO_BETTER
    assert compare_to_floor(published_scores("ptb_xl/cd_paper")[0], None) == BALANCED


def test_error_is_better_when_smaller(tmp_path):
    """Test EchoNet-Dynamic with three test videos: the median has a mean error of 20/3."""
    folder = tmp_path / "EchoNet-Dynamic"
    (folder / "Videos").mkdir(parents=True)
    rows = [("a", 50, "TEST"), ("b", 60, "TEST"), ("c", 70, "TEST"), ("d", 40, "TRAIN"), ("e", 44, "VAL")]
    table = pd.DataFrame(rows, columns=["FileName", "EF", "Split"])
    table = table.assign(ESV=40.0, EDV=90.0, FrameHeight=112, FrameWidth=112, FPS=50, NumberOfFrames=60)
    table.to_csv(folder / "FileList.csv", index=False)
    known = task_floors(catalog.task("echonet_dynamic/ef"), tmp_path)
    assert known.n == 3 and not known.higher_is_better
    assert known.floors["best_uninformed"].value == known.floors["best_constant"].value == pytest.approx(20 / 3)
    assert known.floors["train_constant"].value == pytest.approx(20)
    verdicts = {
        row.model: compare_to_floor(row, known) for row in published_scores("echonet_dynamic/ef") if row.metric == "mae"
    }
    assert verdicts["PanEcho"] == BEATS and verdicts["EchoCLIP"] == NO_BETTER


@pytest.mark.slow
def test_no_score_exceeds_the_best_reachable(every_floor):
    """Regression test: a mean of few random predictions exceeded the bound, and guessing a single class reached 100 %."""
    table = every_floor.drop_duplicates("task")
    table = table[table["known"] & table["best_uninformed"].notna()]
    sign = np.where(table["metric"] == "mae", -1, 1)
    assert len(table) > 15
    for name in ("best_constant", "train_constant"):
        assert not (sign * (table[name] - table["best_uninformed"]) > 1e-12).any(), name


def test_one_class_test_set_has_no_floor(capsys):
    row = next(row for row in published_scores("cardiacnet/view_named") if row.model == "BioMedCLIP")
    assert compare_to_floor(row, task_floors(catalog.task(row.task))) == "one class in the test set"
    assert main(["floors", "cardiacnet/view", "tmed2/as"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "no floor of cardiacnet/view: one class in the test set" in printed
        and "cardiacnet/view f1_macro" not in printed
    )
    assert main(["floors", "camus/ef"]) == 0 and "raw data only" in capsys.readouterr().out


def test_missing_labels_are_named():
    with pytest.raises(MissingData, match=r"labels are in the raw data only.*EchoNet-Dynamic was not found"):
        task_floors(catalog.task("echonet_dynamic/ef"))


def test_task_without_its_metric_is_left_out(capsys, monkeypatch):
    here = list_metrics()
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [one for one in here if one != "mae"])
    assert main(["floors", "tmed2/as", "camus/ef"]) == 0
    told = capsys.readouterr().out
    assert "44.13 %" in told and "camus/ef needs mae, not among the metrics here" in told


def test_floors_of_masks_are_beside_their_scores():
    with pytest.raises(MissingData, match="the protocol dense prints them"):
        task_floors(catalog.task("phantom_echo/lv_seg"))


def test_names():
    assert [task.name for task in tasks_by_name(["tmed2/as", "phantom_ecg"])] == [
        "tmed2/as",
        "phantom_ecg/cd",
        "phantom_ecg/af",
        "phantom_ecg/findings",
    ]
    assert {task.name for task in tasks_by_name([])} == {*catalog.list_tasks(), *catalog.list_defined_tasks()}
    with pytest.raises(UnknownName, match="Did you mean 'tmed2'"):
        tasks_by_name(["tmed"])


def test_command_prints_and_writes(tmp_path, capsys):
    path = tmp_path / "floors.csv"
    assert main(["floors", "tmed2/as", "camus/ef", "--csv", str(path)]) == 0
    out = capsys.readouterr().out
    assert "44.13 %" in out and "equals the constant AS" in out and "no floor of camus/ef" in out
    assert (
        "1 of 6 classification numbers exceed what guessing at the class rates reaches on average; 4 equal a constant"
        in out
    )
    table = pd.read_csv(path)
    assert table["task"].tolist() == ["tmed2/as"] * 6 + ["camus/ef"] * 6
    assert table["best_constant"].iloc[0] == pytest.approx(94 / 213, abs=1e-15)
    assert main(["floors", "tmed2/ass"]) == 2


@pytest.mark.slow
def test_published_numbers_have_floor_or_reason():
    table = floor_table(tasks_by_name([]), others=True)
    assert table["published"].notna().sum() == len(published_scores())
    silent = table[table["published"].notna() & (table["verdict"] == "")]
    alignment = silent["published_metric"] == "text_axis_pearson"
    assert (~silent["known"]).all() and (silent.loc[~alignment, "labels"].str.contains("raw data only")).all()

"""Test coverage of external predictions: that of the release, with a file of references or with the data."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cardiobench
from cardiobench.cli.main import main
from cardiobench.core.config import ScoreConfig
from cardiobench.core.errors import BadData, MissingData, UnknownName
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.references_file import References, read_references
from cardiobench.data.rows import row_table
from cardiobench.data.twin import write_twin
from cardiobench.results.collect import collect
from cardiobench.results.formatting import coverage, flags
from cardiobench.runner.external_predictions import score_file, task_references

SUPER = catalog.task("ptb_xl/super")
SAMPLE = "ptb_xl_sample/cd"


def copy_of_ptb_xl(test: int, without_label: int = 3) -> OpenDataset:
    """Return a copy of PTB-XL that lists only some recordings of the test split, without their files."""
    numbers = range(1, 41 + test + without_label)
    labels = [None] * without_label + list(
        np.resize(["NORM", "MI;CD", "STTC", "HYP", "CD"], len(numbers) - without_label)
    )
    rows = pd.DataFrame({"id": [f"{number:05d}" for number in numbers], "super": labels[::-1]})
    rows["patient_id"], rows["media"] = rows["id"], "none.dat"
    rows["split"] = ["train"] * 40 + ["test"] * (test + without_label)
    table = row_table(catalog.spec("ptb_xl"), rows, None, need_media=False, allow_missing=True)
    return OpenDataset(catalog.spec("ptb_xl"), None, table)


def answers(ids, classes=SUPER.classes, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"id": ids, **{f"p_{name}": rng.random(len(ids)) for name in classes}})


@pytest.fixture
def partial(monkeypatch):
    """Test 64 of the 2,158 units of a task, and three further test recordings without a label."""
    dataset = copy_of_ptb_xl(64)
    monkeypatch.setattr("cardiobench.runner.external_predictions.open_dataset", lambda *_, **__: dataset)
    return dataset


@pytest.mark.parametrize("source", ["references", "data"])
def test_coverage_is_counted_against_the_release(partial, tmp_path, source):
    references = References.of(partial, SUPER)
    test = partial.frame.loc[partial.frame["split"] == "test", "id"]
    answers(test).to_csv(tmp_path / "mine.csv", index=False)
    given = {"references": references.write(tmp_path / "refs.csv")} if source == "references" else {}
    config = ScoreConfig(
        predictions=tmp_path / "mine.csv", task=SUPER.name, output_dir=tmp_path / "out", resamples=20, **given
    )
    result, _ = score_file(config)
    assert coverage(result) == "64/2158" and "incomplete" in flags(result)
    assert "answers for units of the test split that have no label of ptb_xl/super were left out: 3" in result.warnings
    assert result.dataset["version"] == catalog.spec("ptb_xl").version
    if source == "references":
        assert result.dataset["references_digest"] == references.digest
    else:
        assert result.dataset == partial.facts
    assert [entry.result.task for entry in collect([tmp_path / "out"]).entries] == [SUPER.name]


def test_copy_with_more_labels_than_the_release_is_noticed(tmp_path):
    references = References.of(copy_of_ptb_xl(2198, 0), SUPER)
    assert references.expected("test") is None and "2198 test units, but the release has 2158" in references.problem
    with pytest.raises(BadData, match="are not those of the release: they have 2198 test units"):
        references.write(tmp_path / "refs.csv")


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Return a folder with the references of the bundled ECGs, and predictions for all test units."""
    monkeypatch.chdir(tmp_path)
    assert main(["references", SAMPLE, "--out", "refs.csv"]) == 0
    table = read_references("refs.csv", catalog.task(SAMPLE)).table
    test = table[table["split"] == "test"]
    test.assign(y_pred=test["y_true"])[["id", "y_pred"]].to_csv("mine.csv", index=False)
    return tmp_path


LINE = ["eval", "--predictions", "mine.csv", "--task", SAMPLE, "--references", "refs.csv", "--resamples", "20"]


def last_result(folder):
    (entry,) = collect([folder / "results"]).entries
    return entry.result


@pytest.mark.slow
def test_one_answer_may_be_missing(sample, capsys):
    table = pd.read_csv("mine.csv", dtype=str)
    table.iloc[1:].to_csv("mine.csv", index=False)
    assert main(LINE) == 2
    assert "has 121 of the 122 test units" in (said := capsys.readouterr().err) and "--allow-missing" in said
    assert main([*LINE, "--allow-missing"]) == 0
    assert "1 of 122 unanswered: between " in capsys.readouterr().out
    result = last_result(sample)
    assert coverage(result) == "121/122" and "incomplete" in flags(result)
    assert result.score.value == 1 and result.bounds.missing == 1 and result.bounds.worst < result.bounds.best == 1
    again = cardiobench.score("mine.csv", SAMPLE, "refs.csv", allow_missing=True, resamples=20)
    assert (again.bounds, again.verdict, again.coverage) == (result.bounds, result.verdict, result.coverage)


@pytest.mark.parametrize("line", [LINE, LINE[:5] + LINE[7:]], ids=["references", "data"])
def test_scores_of_a_full_release_are_complete(sample, line):
    assert main(line) == 0
    result = last_result(sample)
    assert coverage(result) == "122/122" and not {"incomplete", "coverage unknown"} & set(flags(result))


@pytest.mark.slow
def test_references_of_an_older_version_are_scored_and_not_ranked(sample, capsys):
    pd.read_csv("refs.csv", dtype=str)[["id", "patient_id", "split", "y_true", "sex", "age_group"]].to_csv(
        "refs.csv", index=False
    )
    assert main(LINE) == 0
    said = capsys.readouterr().out
    assert "122/unknown" in said and f"cardiobench references {SAMPLE} --out refs.csv" in " ".join(said.split())
    assert not collect([sample / "results"]).entries
    assert main(["references", SAMPLE, "--out", "refs.csv"]) == 0, "the command in the message"
    assert main(LINE) == 0 and coverage(last_result(sample)) == "122/122"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "label_files"), [("georgia/af", "*.hea"), ("chapman_ningbo/af", "*.hea"), ("camus/ef", "Info_*.cfg")]
)
def test_missing_labels_lower_the_coverage(tmp_path, task, label_files):
    """The labels of these releases are stored next to each recording."""
    write_twin(task.partition("/")[0], tmp_path, patients=20)
    whole = task_references(task, tmp_path)[0]
    test = set(whole.table.loc[whole.table["split"] == "test", "patient_id"])
    some = sorted(test)[: len(test) // 2]
    for path in tmp_path.rglob(label_files):
        if any(name in (path.stem, path.parent.name) for name in some):
            path.unlink()
    part = task_references(task, tmp_path)[0]
    assert (part.table["split"] == "test").sum() == len(test) - len(some)
    assert part.expected("test") == len(test) == whole.expected("test")


def test_task_without_any_label_here_has_no_references(tmp_path):
    """Intervals of PTB-XL come from PTB-XL+, a separate download."""
    write_twin("ptb_xl", tmp_path, patients=4)
    shutil.rmtree(tmp_path / "ptb_xl_plus")
    with pytest.raises(MissingData, match=r"none of the .* units in .* has a label of ptb_xl/pr"):
        task_references("ptb_xl/pr", tmp_path)


@pytest.mark.slow
def test_references_of_a_twin_make_a_result_of_a_twin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_twin("echonet_dynamic", tmp_path / "twin", patients=20)
    assert main(["references", "echonet_dynamic/ef", "--data-dir", "twin", "--out", "refs.csv"]) == 0
    table = pd.read_csv("refs.csv")
    rows = table[table["split"] == "test"]
    result = cardiobench.score(rows[["id"]].assign(y_pred=55.0), "echonet_dynamic/ef", "refs.csv", resamples=20)
    assert result.generated and "synthetic twin" in flags(result)


def test_folder_without_recordings_gives_the_same_references(tmp_path):
    """This test uses one dataset; tests/contracts covers all of them."""
    write_twin("echonet_dynamic", tmp_path / "twin", patients=6)
    files = []
    for name in ("before.csv", "after.csv"):
        line = ["references", "echonet_dynamic/ef", "--data-dir", tmp_path / "twin", "--out", tmp_path / name]
        assert main([str(part) for part in line]) == 0
        files.append((tmp_path / name).read_bytes())
        shutil.rmtree(tmp_path / "twin" / "EchoNet-Dynamic" / "Videos", ignore_errors=True)
    assert files[0] == files[1]


def test_references_of_a_task_with_an_unknown_metric_are_refused(monkeypatch, tmp_path, capsys):
    task = replace(catalog.task(SAMPLE), metrics=("auroc_macroo",))
    monkeypatch.setattr(catalog, "task", lambda name: task)
    with pytest.raises(UnknownName, match="auroc_macro"):
        task_references(SAMPLE, None)
    assert main(["references", SAMPLE, "--out", str(tmp_path / "references.csv")]) == 2
    said = capsys.readouterr().err
    assert "auroc_macroo" in said and "Traceback" not in said and not (tmp_path / "references.csv").exists()

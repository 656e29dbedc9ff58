import dataclasses

import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.data.references import check_references, references_of, unlabelled_units
from cardiobench.data.references_file import References, Release, read_references
from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, Task
from cardiobench.data.twin import write_twin
from cardiobench.scoring.score import GENERATED
from tests.scoring.factories import BINARY, VALUE, references

FINDINGS = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("MI", "AS"))
STUDY = Task(
    "toy/as",
    "binary",
    "as",
    ("f1_macro",),
    ("no_AS", "AS"),
    unit_column="study_id",
    where={"view": ("PLAX", "PSAX")},
    groups=(SEX_GROUPS, AGE_GROUPS),
)


def rows():
    return pd.DataFrame(
        {
            "id": ["a1", "a2", "a3", "b1", "c1"],
            "study_id": ["a", "a", "a", "b", "c"],
            "patient_id": ["1", "1", "1", "2", "3"],
            "split": ["test", "test", "test", "train", "test"],
            "view": ["PLAX", "PSAX", "A4C", "PLAX", "PLAX"],
            "as": ["AS", "AS", "AS", "no_AS", None],
            "sex": ["F", "F", "F", None, "M"],
        }
    )


def test_references_have_one_row_per_labelled_unit():
    table = references_of(rows(), STUDY)
    # pandas 3 reads None of a text column as NaN.
    assert table.astype(object).where(table.notna(), None).to_dict("records") == [
        {"id": "a", "patient_id": "1", "split": "test", "y_true": "AS", "sex": "F"},
        {"id": "b", "patient_id": "2", "split": "train", "y_true": "no_AS", "sex": None},
    ]


@pytest.mark.parametrize("column", ["as", "patient_id", "split"])
def test_unit_with_conflicting_rows_is_refused(column):
    table = rows()
    table.loc[1, column] = {"as": "no_AS", "patient_id": "9", "split": "train"}[column]
    with pytest.raises(BadData, match="rows of the same study_id disagree: a"):
        references_of(table, STUDY)


def made(task, table=None, twin=False, **units):
    table = references(task) if table is None else table
    unlabelled = pd.DataFrame({"id": ["u900", "t900"], "patient_id": ["9", "8"], "split": ["test", "train"]})
    return References(task, table, unlabelled, Release("1.0.0", twin, units or {"train": 40, "test": 2158}))


@pytest.mark.parametrize("task", [BINARY, VALUE, FINDINGS])
@pytest.mark.parametrize("name", ["refs.csv", "refs.parquet"])
def test_references_are_written_and_read_back(tmp_path, task, name):
    table = references(task if task is not FINDINGS else BINARY)
    table.loc[0, "id"] = "007"
    table.loc[1, ["sex", "age"]] = [None, np.nan]
    if task is FINDINGS:
        table["y_true"] = np.where(np.arange(len(table)) % 3 == 0, "", "MI;AS")
    again = read_references(made(task, table, twin=True).write(tmp_path / name), task)
    columns = ["id", "patient_id", "split", "y_true"] + (["sex", "age"] if task.groups else [])
    written, read = (one.astype(object).where(one.notna(), None) for one in (table[columns], again.table[columns]))
    pd.testing.assert_frame_equal(read, written)
    assert again.unlabelled.to_dict("list") == {
        "id": ["u900", "t900"], "patient_id": ["9", "8"], "split": ["test", "train"],
    }  # fmt: skip
    assert again.release == Release("1.0.0", True, {"train": 40, "test": 2158}) and not again.problem
    assert again.expected("test") == 2158 and again.expected("validation") == 0


def test_frame_read_by_pandas_is_recognised(tmp_path):
    """Check text that `pandas.read_csv` would change: leading zeros, last digits and empty text."""
    findings = references(BINARY).assign(y_true="")
    findings["id"] = [f"{number:05d}" for number in range(len(findings))]
    for task, table in ((FINDINGS, findings), (VALUE, None)):
        frame = pd.read_csv(made(task, table).write(tmp_path / "refs.csv"))
        again = read_references(frame.sample(frac=1, random_state=0), task)
        assert again.expected("test") == 2158, again.problem
        assert task is VALUE or set(again.table["y_true"]) == {""}


def changed_label(table):
    table.loc[0, "y_true"] = {"well": "sick", "sick": "well"}[table.loc[0, "y_true"]]
    return table


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns=["release_units", "digest"]), "written by hand or by an older version"),
        (lambda t: t[["id", "patient_id", "split", "y_true"]].dropna(), "written by hand or by an older version"),
        (lambda t: t.iloc[:50], "differ from those written by `cardiobench references`"),
        (
            lambda t: pd.concat([t, t.iloc[[0]].assign(id="new")]),
            "differ from those written by `cardiobench references`",
        ),
        (lambda t: t.assign(release_units=t["release_units"].astype(int) + 1), "their rows differ"),
        (lambda t: t.assign(twin="1"), "their rows differ"),
        (changed_label, "their rows differ"),
        (lambda t: t.assign(dataset_version=["2.0.0", *t["dataset_version"][1:]]), "from several releases"),
    ],
)
def test_edited_references_lose_the_release(tmp_path, change, words):
    table = change(pd.read_csv(made(BINARY).write(tmp_path / "refs.csv"), dtype=str))
    again = read_references(table, BINARY)
    assert again.release is None and words in again.problem
    assert again.expected("test") is None and again.facts == {"name": "toy"}


def test_claimed_release_size_is_checked(tmp_path):
    """Check the size, because anyone can compute a valid digest that claims the available units as the release."""
    task = dataclasses.replace(BINARY, expected={"rows": {"test": 2158}})
    few = read_references(made(task, test=64, train=40).write(tmp_path / "few.csv"), task)
    assert few.release is None and "they state 64 test units, but the release has 2158" in few.problem
    assert read_references(made(task).write(tmp_path / "whole.csv"), task).expected("test") == 2158
    assert read_references(made(task, twin=True, test=64, train=40).write(tmp_path / "twin.csv"), task).release


def test_references_of_another_task_are_refused(tmp_path):
    table = pd.read_csv(made(BINARY).write(tmp_path / "refs.csv"))
    with pytest.raises(BadData, match="contains references of toy/sick, not of toy/well"):
        read_references(table, dataclasses.replace(BINARY, name="toy/well"))


@pytest.mark.parametrize("count", [2158, 2198])
def test_more_units_than_the_release_are_noticed(count):
    rows = np.arange(count)
    table = pd.DataFrame({"id": rows, "patient_id": rows, "split": "test", "y_true": "NORM"})
    again = read_references(table, catalog.task("ptb_xl/super"))
    assert again.release is None
    assert ("they have 2198 test units, but the release has 2158" in again.problem) == (count > 2158)


def test_units_without_a_label_keep_their_split():
    table = references_of(rows(), STUDY)
    assert unlabelled_units(rows(), STUDY, table["id"]).to_dict("records") == [
        {"id": "c", "patient_id": "3", "split": "test"},
    ]


def test_classes_may_be_written_as_codes(tmp_path):
    path = tmp_path / "refs.csv"
    path.write_text("\ufeffid;patient_id;split;y_true\n007;7;test;1\n8;8;test;0.0\n9;9;train;sick\n")
    table = read_references(path, BINARY).table
    assert table["y_true"].tolist() == ["sick", "well", "sick"] and table["id"].tolist() == ["007", "8", "9"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="split"), "lack the column split"),
        (lambda t: pd.concat([t, t.iloc[:2]]), "repeat 2 ids: t000, t001"),
        (lambda t: t.assign(y_true="dead"), "unknown labels dead; expected well, sick"),
        (lambda t: t.assign(patient_id=[None, *t["patient_id"][1:]]), "1 of 100 rows have no patient_id"),
    ],
)
def test_bad_references_are_refused(change, words):
    with pytest.raises(BadData, match=words):
        check_references(change(references(BINARY)), BINARY)


def test_non_finite_labels_are_refused():
    table = references(VALUE)
    table.loc[3, "y_true"] = np.inf
    with pytest.raises(BadData, match="1 of 100 labels are not finite numbers: t003"):
        check_references(table, VALUE)


def test_references_of_a_twin_are_marked_as_generated(tmp_path, capsys):
    write_twin("georgia", tmp_path / "georgia", patients=4)
    out = str(tmp_path / "refs.csv")
    assert main(["references", "georgia/af", "--data-dir", str(tmp_path / "georgia"), "--out", out]) == 0
    assert f"! {GENERATED}" in capsys.readouterr().out
    assert main(["references", "ptb_xl_sample/cd", "--out", out]) == 0
    assert GENERATED not in capsys.readouterr().out

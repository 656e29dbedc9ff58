import numpy as np
import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData
from cardiobench.data.references import check_references, read_references, references_of, write_references
from cardiobench.data.spec import AGE_GROUPS, SEX_GROUPS, Task
from cardiobench.data.twin import write_twin
from cardiobench.scoring.score import GENERATED
from tests.scoring.factories import BINARY, VALUE, references

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


def test_a_row_a_unit_without_other_views_and_without_null_labels():
    table = references_of(rows(), STUDY)
    assert table.to_dict("records") == [
        {"id": "a", "patient_id": "1", "split": "test", "y_true": "AS", "sex": "F"},
        {"id": "b", "patient_id": "2", "split": "train", "y_true": "no_AS", "sex": None},
    ]


@pytest.mark.parametrize("column", ["as", "patient_id", "split"])
def test_a_unit_whose_rows_disagree_is_refused(column):
    table = rows()
    table.loc[1, column] = {"as": "no_AS", "patient_id": "9", "split": "train"}[column]
    with pytest.raises(BadData, match="rows of one study_id disagree: a"):
        references_of(table, STUDY)


@pytest.mark.parametrize("task", [BINARY, VALUE])
def test_write_and_read_back(tmp_path, task):
    table = references(task)
    table.loc[0, "id"] = "007"
    table.loc[1, ["sex", "age"]] = [None, np.nan]
    again = read_references(write_references(table, tmp_path / "refs.csv"), task)
    columns = ["id", "patient_id", "split", "y_true"] + (["sex", "age"] if task.groups else [])
    pd.testing.assert_frame_equal(again[columns], table[columns])


def test_classes_may_be_written_as_codes(tmp_path):
    path = tmp_path / "refs.csv"
    path.write_text("\ufeffid;patient_id;split;y_true\n007;7;test;1\n8;8;test;0.0\n9;9;train;sick\n")
    table = read_references(path, BINARY)
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


def test_labels_that_are_not_finite_are_refused():
    table = references(VALUE)
    table.loc[3, "y_true"] = np.inf
    with pytest.raises(BadData, match="1 of 100 labels are not finite numbers: t003"):
        check_references(table, VALUE)


def test_references_of_a_twin_are_said_to_be_generated(tmp_path, capsys):
    write_twin("georgia", tmp_path / "georgia", patients=4)
    out = str(tmp_path / "refs.csv")
    assert main(["references", "georgia/af", "--data-dir", str(tmp_path / "georgia"), "--out", out]) == 0
    assert f"! {GENERATED}" in capsys.readouterr().out
    assert main(["references", "ptb_xl_sample/cd", "--out", out]) == 0
    assert GENERATED not in capsys.readouterr().out

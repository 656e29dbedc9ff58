"""Test labels of multilabel tasks as cells and as arrays."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData
from cardiobench.core.tables import write_csv
from cardiobench.data.references import check_references, references_of
from cardiobench.data.references_file import read_references
from cardiobench.data.release_counts import check_class_counts, expected_counts
from cardiobench.data.spec import DatasetSpec, Task
from cardiobench.tasks.labels import label_cells, label_set, label_values, split_labels, strange_labels

FINDINGS = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("MI", "LAFB/LPFB", "PRC(S)"))
MEASURED = Task("toy/measured", "multilabel", "m", ("auroc_macro",), ("MI", "AS", "TR"), partially_labelled=True)


def rows(cells, **columns):
    ids = [f"r{number}" for number in range(len(cells))]
    return pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", **columns, "findings": cells})


def test_label_cell_follows_class_order():
    cell = label_set({"TR", "MI"}, MEASURED.classes, ["AS"])
    assert cell == "MI;?AS;TR" and split_labels(cell) == (["MI", "TR"], ["AS"])
    assert label_set([], MEASURED.classes) == "" and split_labels("") == ([], [])


@pytest.mark.parametrize(("present", "unmeasured"), [(["XX"], []), ([], ["XX"]), (["MI"], ["MI"])])
def test_unknown_class_name_is_refused_in_a_cell(present, unmeasured):
    with pytest.raises(ValueError, match="are not classes"):
        label_set(present, MEASURED.classes, unmeasured)


def test_unmeasured_is_not_negative():
    values = label_values(pd.Series(["MI;?AS;TR", "", "?TR"]), MEASURED)
    np.testing.assert_array_equal(values, [[1, np.nan, 1], [0, 0, 0], [0, 0, np.nan]])


def test_predicted_cells_hold_the_classes_of_at_least_one_half():
    assert label_cells(np.array([[0.5, 0.49, 0.9], [0, 0, 0]]), MEASURED.classes).tolist() == ["MI;TR", ""]


def test_unmeasured_classes_need_a_task_that_has_them():
    assert strange_labels(["MI;?AS"], MEASURED) == []
    assert strange_labels(["MI;?PRC(S)"], FINDINGS) == ["?PRC(S)"]


def test_references_keep_empty_class_sets_not_unlabelled(tmp_path):
    table = references_of(rows(["MI;PRC(S)", "", None]), FINDINGS)
    assert table["y_true"].tolist() == ["MI;PRC(S)", ""]
    again = read_references(write_csv(table, tmp_path / "references.csv"), FINDINGS).table
    assert again["y_true"].tolist() == ["MI;PRC(S)", ""]


def test_null_differs_from_an_empty_set_of_classes(tmp_path):
    table = rows(["MI", None]).rename(columns={"findings": "y_true"})
    table.to_parquet(tmp_path / "references.parquet")
    for source in (table, tmp_path / "references.parquet"):
        with pytest.raises(BadData, match=r"1 of 2 rows have no label: r1.*empty text, not a null"):
            read_references(source, FINDINGS)


def test_unknown_class_is_named():
    table = rows(["MI;XX"]).rename(columns={"findings": "y_true"})
    with pytest.raises(BadData, match=r"unknown labels XX; expected MI, LAFB/LPFB, PRC\(S\)"):
        check_references(table, FINDINGS)


@pytest.mark.parametrize("classes", [("MI",), ("MI", "MI"), ("MI;AS", "TR"), ("?MI", "AS")])
def test_class_names_with_separators_are_refused(classes):
    with pytest.raises(ValueError, match="two different classes or more"):
        Task("toy/findings", "multilabel", "findings", ("auroc_macro",), classes)


def test_complete_release_with_other_labels_is_refused():
    counts = expected_counts("rows 2/1, MI 1/0, LAFB/LPFB 1/1", ("train", "test"))
    assert counts["LAFB/LPFB"] == {"train": 1, "test": 1}
    task = replace(FINDINGS, expected=counts)
    spec = DatasetSpec("toy", "Toy", "1", "ecg", "ecg", "CC0", "https://example.org", True, (task,), {})
    table = rows(["MI;LAFB/LPFB", "", "LAFB/LPFB", None]).assign(split=["train", "train", "test", "test"])
    check_class_counts(spec, table)
    with pytest.raises(BadData, match="MI in train: 0 instead of 1"):
        check_class_counts(spec, table.assign(findings=["LAFB/LPFB", "", "LAFB/LPFB", None]))
    with pytest.raises(BadData, match="rows in test: 2 instead of 1"):
        check_class_counts(spec, table.assign(findings=["MI;LAFB/LPFB", "", "LAFB/LPFB", ""]))
    total = replace(spec, tasks=(replace(FINDINGS, expected=expected_counts("rows 3, MI 1", ())),))
    check_class_counts(total, table)

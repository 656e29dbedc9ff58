"""Test balanced subsets: sizes, nesting, patients, and too few records."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, NotApplicable, UnwritableOutput
from cardiobench.data import Task, catalog, open_dataset
from cardiobench.data.ecg_subsets import SIZES, Subset, draw_subset, draw_subsets, read_subset, write_subset

TASK = Task("toy/cd", "binary", "cd", ("f1_macro",), ("no CD", "CD"))


def references(positives, negatives, records=1):
    """Return records of the given numbers of patients per class and records per patient."""
    patients = [("p", "CD", number) for number in range(positives)] + [("n", "no CD", n) for n in range(negatives)]
    rows = [
        {"id": f"{kind}{number}-{record}", "patient_id": f"{kind}{number}", "y_true": label}
        for kind, label, number in patients
        for record in range(records)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    "positives, counts",
    [
        (15, {"XS": 30}),
        (249, {"XS": 498}),
        (250, {"XS": 498, "S": 500}),
        (1300, {"XS": 498, "S": 2498, "M": 2600}),
        (4000, {"XS": 498, "S": 2498, "M": 4998, "L": 8000}),
    ],
)
def test_each_size_is_a_subset_of_the_next(positives, counts):
    table = references(positives, 5000)
    labels = table.set_index("id")["y_true"]
    smaller = set()
    for size in SIZES:
        if size not in counts:
            with pytest.raises(NotApplicable, match=" needs "):
                draw_subset(table, TASK, size)
            continue
        ids = draw_subset(table, TASK, size).ids
        assert len(ids) == len(set(ids)) == counts[size]
        assert (labels[list(ids)] == "CD").sum() == counts[size] / 2
        assert smaller < set(ids) or size == "XS"
        smaller = set(ids)


def test_too_few_records_are_reported_with_counts():
    with pytest.raises(NotApplicable, match=r"size S of toy/cd needs 250 positives.* there are 37"):
        draw_subset(references(37, 5000), TASK, "S")
    with pytest.raises(NotApplicable, match=r"needs 15 negatives.* there are 3"):
        draw_subset(references(100, 3), TASK, "XS")


def test_patient_is_drawn_once_with_any_positive():
    table = references(100, 100, records=3)
    table.loc[table["id"].isin([f"p{n}-0" for n in range(100)]), "y_true"] = "no CD"
    chosen = draw_subset(table, TASK, "XS").rows(table)
    assert len(chosen) == 200 and chosen["patient_id"].is_unique
    assert set(chosen.loc[chosen["y_true"] == "no CD", "patient_id"].str[0]) == {"n"}
    assert not set(chosen["id"]) & {f"p{n}-0" for n in range(100)}
    assert len(set(chosen["id"].str[-1])) == 3, "each record of a patient can be drawn"


def test_draw_depends_only_on_the_seed():
    table = references(400, 400)
    first = draw_subset(table, TASK, "XS", seed=1)
    shuffled = table.iloc[np.random.default_rng(5).permutation(len(table))].reset_index(drop=True)
    assert draw_subset(shuffled, TASK, "XS", seed=1) == first
    other = draw_subset(table, TASK, "XS", seed=2)
    # Two random draws of 249 from 400 share about 155 in each class.
    assert 200 < len(set(first.ids) & set(other.ids)) < 420


def test_subsets_survive_a_round_trip(tmp_path):
    subset = draw_subset(references(40, 40), TASK, "XS", seed=3)
    path = write_subset(subset, tmp_path / "subsets" / "toy_xs.json")
    assert read_subset(path) == subset and path.read_text().count("\n") > 80, "one id per line"


@pytest.mark.parametrize(
    "text, message",
    [
        ("[]", "is not a subset file with task, size, seed and ids"),
        ("{", "is not a subset"),
        ('{"task": "t", "size": "XS", "seed": 0}', "is not a subset.*ids"),
        ('{"task": "t", "size": "XS", "seed": 0, "ids": ["a", "a"]}', "be unique"),
        ('{"task": "t", "size": "XS", "seed": 0, "ids": [1]}', "must be unique strings"),
    ],
)
def test_invalid_subset_file_is_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadData, match=message):
        read_subset(tmp_path / "x.json")
    with pytest.raises(BadData, match="does not exist"):
        read_subset(tmp_path / "y.json")


def test_unknown_ids_are_named():
    with pytest.raises(BadData, match=r"subset XS of toy/cd: 1 of 2 ids are not in the data: z"):
        Subset("toy/cd", "XS", 0, ("p0-0", "z")).rows(references(3, 3))


def test_other_tasks_and_sizes_are_refused():
    with pytest.raises(ValueError, match="expected one of XS, S, M, L"):
        draw_subset(references(3, 3), TASK, "XL")
    with pytest.raises(NotApplicable, match="regression"):
        draw_subset(references(3, 3), Task("toy/ef", "regression", "ef", ("mae",)), "XS")


def test_real_records():
    """Check the bundled sample: 58 records with and 58 without a conduction disturbance, some of the same patient."""
    source, task = open_dataset("ptb_xl_sample"), catalog.task("ptb_xl_sample/cd")
    table = source.references(task)
    sick = table.loc[table["y_true"] == "CD", "patient_id"]
    well = table.loc[(table["y_true"] == "no CD") & ~table["patient_id"].isin(sick), "patient_id"]
    chosen = draw_subset(table, task, "XS").rows(source.frame)
    assert chosen["cd"].value_counts().tolist() == [min(sick.nunique(), well.nunique())] * 2


def test_all_sizes_together():
    table = references(1300, 5000)
    drawn, reasons = draw_subsets(table, TASK, seed=4)
    assert drawn == {size: draw_subset(table, TASK, size, seed=4) for size in ("XS", "S", "M")}
    assert reasons == {"L": "size L of toy/cd needs 2500 positives, one per patient, and there are 1300."}
    with pytest.raises(NotApplicable, match="regression"):
        draw_subsets(table, Task("toy/ef", "regression", "ef", ("mae",)))


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput, match="is a file, not a folder"):
        write_subset(Subset("toy/cd", "XS", 0, ("a",)), tmp_path / "file" / "x.json")

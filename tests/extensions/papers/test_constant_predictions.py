"""Compare the published scores of constant predictions with constants on the test splits."""

import pandas as pd
import pytest

from cardiobench import api
from cardiobench.data import catalog, open_dataset
from cardiobench.data.rows import RowTable
from cardiobench.extensions.papers.floor_table import bundled_references


def references(name, raw):
    table: RowTable = (source := open_dataset(name.partition("/")[0], raw, need_media=False)).table
    assert table.absent == {}, "the complete split"
    return source.references(catalog.task(name))


def percent(task, answer, truth):
    """Return the macro F1 (in percent) of one constant prediction on the test split."""
    test = truth.loc[truth["split"] == "test", "id"]
    result = api.score(pd.DataFrame({"id": test, "y_pred": answer}), task, truth, resamples=20)
    assert result.collapsed
    return round(100 * result.overall["f1_macro"].value, 2)


@pytest.mark.parametrize(
    "task, negative, positive",
    [
        ("cardiacnet/asd", 36.49, 29.85),
        ("cardiacnet/pah", 22.63, 41.44),
        ("hmc_qu/stemi", 32.43, 34.21),
        ("segrwma/rwma_a2c", 47.83, 7.69),
        ("segrwma/rwma_a3c", 48.00, 7.14),
        ("segrwma/rwma_a4c", 48.15, 6.67),
        ("tmed2/as", 17.36, 44.13),
    ],
)
def test_constant_answers_score_as_published(task, negative, positive):
    """Compute from class counts, because labels of single recordings are not shipped."""
    truth, _ = bundled_references(catalog.task(task))
    truth["id"] = truth["patient_id"] = [f"unit{number}" for number in range(len(truth))]
    classes = catalog.task(task).classes
    assert (percent(task, classes[0], truth), percent(task, classes[1], truth)) == (negative, positive)


@pytest.mark.slow
def test_constant_answers_on_tmed2_score_as_published(shared, tmp_path):
    images = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_image.csv", dtype=str)
    table = pd.DataFrame(
        {
            "query_key": images["query_key"],
            "view_label": images["view"],
            "diagnosis_label": images["diagnosis_label"].map({"0": "no_AS", "1": "moderate_AS"}),
            "diagnosis_classifier_split": images["split"],
        }
    )
    (tmp_path / "DEV479").mkdir()
    table.to_csv(tmp_path / "labels_per_image.csv", index=False)
    table.to_csv(tmp_path / "DEV479" / "TMED2_fold0_labeledpart.csv", index=False)
    truth = references("tmed2/as", tmp_path)
    assert (percent("tmed2/as", "AS", truth), percent("tmed2/as", "no_AS", truth)) == (44.13, 17.36)

"""Test label files of prepared folders, including damaged ones."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.data.prepared_labels import read_labels, write_labels
from cardiobench.tasks.dense_label import DenseLabel

TASK = catalog.task("camus/lv_seg")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "labels" / "lv_seg.parquet"
    mask = np.arange(6, dtype=np.uint8).reshape(2, 3) % 4
    facts = {"task": TASK.name, "unit": "p1", "patient": "p1", "split": "test", "recording": "r1", "frame": 0}
    write_labels([DenseLabel(**facts, mask=mask, spacing=(0.3, 0.2))], file, None)
    return file


def test_labels_survive_a_round_trip(path):
    (label,) = read_labels(path, TASK, {"r1"})
    assert label.mask.tolist() == [[0, 1, 2], [3, 0, 1]] and label.spacing == (0.3, 0.2)
    assert not list(read_labels(path, TASK, {"other"}))


@pytest.mark.parametrize("damage", ["a column less", "no height", "a height too many", "cut short"])
def test_damaged_label_file_gives_one_message(path, damage):
    table = pq.read_table(path)
    if damage == "a column less":
        pq.write_table(table.drop_columns(["unit"]), path)
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        rows = table.to_pylist()
        rows[0]["height"] = None if damage == "no height" else 3
        pq.write_table(type(table).from_pylist(rows, table.schema), path)
    with pytest.raises(BadData, match=r"lv_seg.parquet has no readable labels .* Prepare the dataset again"):
        list(read_labels(path, TASK, {"r1"}))

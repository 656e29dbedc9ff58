"""Recompute the published cells of Table 3 of arXiv:2510.00520 from the released predictions of DINOv3."""

import dataclasses

import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.extensions.papers import echo_tables
from cardiobench.results.context import ResultContext
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score

CONSTANT = {"echonet_dynamic": "A4C", "echonet_lvh": "PLAX", "cardiacnet": "A4C"}
"""Datasets with one view."""
FILES = {
    "echonet_dynamic": ("EchoNet-Dynamic/view/modelname.csv", "FileName"),
    "echonet_lvh": ("EchoNet-LVH/view/modelname.csv", "HashedFileName"),
    "cardiacnet": ("CardiacNet/view/modelname_*.csv", "unique_id"),
    "camus": ("CAMUS/view/modelname.csv", "unique_id"),
    "hmc_qu": ("HMCQU/view/modelname.csv", "unique_id"),
    "segrwma": ("segRWMA/view/modelname.csv", "patient_view_id"),
    "tmed2": ("TMED2/view/modelname.csv", "query_key"),
}
ENDINGS = {"2CH": "A2C", "4CH": "A4C"}


def true_views(name, ids, splits):
    """Return the true view of each recording: constant, from the split of TMED-2, or from the end of its name."""
    if name in CONSTANT:
        return [CONSTANT[name]] * len(ids)
    if name == "tmed2":
        table = pd.read_csv(splits / "tmed2" / "per_image.csv").set_index("query_key")["view"]
        return ["Other" if "or" in view else view for view in table.loc[ids]]
    return [ENDINGS.get(ending, ending) for ending in (name.rpartition("_")[2] for name in ids)]


@pytest.mark.parametrize("name", FILES)
def test_layout_shows_the_published_number(name, shared):
    inputs = shared / "golden" / "reference_eval" / "inputs"
    pattern, key = FILES[name]
    files = sorted((inputs / "example_predictions").glob(pattern))
    answers = pd.concat([pd.read_csv(file) for file in files]).drop_duplicates(key).rename(columns={key: "id"})
    task = catalog.task(next(task for task in echo_tables.VIEWED if task.startswith(f"{name}/")))
    truth = pd.DataFrame({"id": answers["id"], "patient_id": answers["id"], "split": "test"})
    truth["y_true"] = true_views(name, answers["id"], inputs / "splits")
    given = answers.rename(columns={"view_pred": "y_pred"} | {f"prob_{label}": f"p_{label}" for label in task.classes})
    given = given[["id", "y_pred", *(f"p_{label}" for label in task.classes)]]
    scored = score(Predictions.join(truth, given, task), truth, ResultContext(resamples=20))
    made = dataclasses.replace(scored, protocol="zero_shot", model={"name": "released"}, generated=False)
    grid = echo_tables.echo_grids([made], floor=lambda task: 0.0)[2]
    column = [head.split()[0] for head in grid.head].index(task.name) - 1
    cells = {label: cells[column] for block in grid.blocks for label, cells in block}
    assert cells["released (zero_shot)"].text.split()[0] == cells["DINOv3, published"].text

"""TMED-2's studies answered from the images whose view the model recognises, without the true view labels."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.own_views import keep_own_views
from cardiobench.runner.run import run

TASK = catalog.task("tmed2/as")


class Answers:
    """Answers views as it is told, whatever the image."""

    name = "told"

    def __init__(self, views):
        self.views = views

    def check(self, task):
        if task.kind != "multiclass":
            raise NotApplicable("views only")

    def variants(self, task):
        return ("",)

    def predict(self, data, encoder, variant):
        assert data.task.target == "view"
        codes = [data.task.classes.index(name) for name in self.views]
        return ProtocolOutput(np.arange(len(codes)), np.eye(len(data.task.classes))[codes], {})


def cell(views):
    spec = catalog.spec("tmed2")
    dataset = SimpleNamespace(spec=spec)
    return SimpleNamespace(
        task=TASK,
        dataset=dataset,
        protocol=Answers(views),
        variant="",
        model=SimpleNamespace(encoder=None),
    )


def test_a_study_keeps_the_images_of_the_views_that_the_model_calls_and_all_of_them_where_it_calls_none():
    rows = pd.DataFrame({"study_id": ["a", "a", "a", "b", "b"], "view": "PLAX"})  # the true view plays no part
    data = TaskData(TASK, rows, None, "mean")
    output = ProtocolOutput(np.arange(5), np.arange(10).reshape(5, 2) / 10, {}, refits=(np.ones((5, 2)),))
    kept = keep_own_views(cell(["PLAX", "A4C", "PSAX", "Other", "A2C"]), data, output)
    assert kept.indices.tolist() == [0, 2, 3, 4]
    assert kept.values.tolist() == output.values[[0, 2, 3, 4]].tolist() and kept.refits[0].shape == (4, 2)
    assert (kept.details["images"], kept.details["images_of_these_views"]) == (5, 2)


@pytest.mark.slow
def test_all_images_and_own_views_are_two_results(tmp_path):

    write_twin("tmed2", tmp_path / "tmed2", patients=12)
    config = RunConfig(
        models=("cardiobench/random-vit",),
        tasks=("tmed2/as",),
        protocols=("knn",),
        data_dir=tmp_path,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=20,
        workers=0,
    )

    run(config)
    run(replace(config, views="own"))
    paths = sorted((tmp_path / "results").glob("*/*/knn*/tmed2__as.json"))
    assert [path.parent.name for path in paths] == ["knn", "knn.own_views"]
    both, own = map(ScoreResult.load, paths)
    assert own.variant == "own_views" and "PLAX, PSAX" in own.options["views"]
    assert own.coverage == both.coverage, "no study is lost"

"""Check TMED-2 studies predicted from images whose view the model recognises, without the true view labels."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.extensions.own_views.condition import apply
from cardiobench.leaderboard.rebuild import has_variant
from cardiobench.protocols import protocol
from cardiobench.protocols.base import ProtocolOutput, TaskData
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.run import run

TASK = catalog.task("tmed2/as")


class Answers:
    """Model that returns the given views for any image."""

    name = "told"

    def __init__(self, views):
        self.views = views

    def check(self, task):
        if task.kind != "multiclass":
            raise NotApplicable("views only")

    def variants(self, task):
        return ("",)

    def without_refits(self):
        return self

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


def test_study_keeps_images_of_predicted_views_or_all():
    rows = pd.DataFrame({"study_id": ["a", "a", "a", "b", "b"], "view": "PLAX"})  # The true view is not used.
    data = TaskData(TASK, rows, None, "mean")
    output = ProtocolOutput(np.arange(5), np.arange(10).reshape(5, 2) / 10, {}, refits=(np.ones((5, 2)),))
    kept = apply(cell(["PLAX", "A4C", "PSAX", "Other", "A2C"]), data, output, "")
    assert kept.indices.tolist() == [0, 2, 3, 4]
    assert kept.values.tolist() == output.values[[0, 2, 3, 4]].tolist() and kept.refits[0].shape == (4, 2)
    assert (kept.details["images"], kept.details["images_of_these_views"]) == (5, 2)


def test_names_and_keys_of_stored_results():
    """Check that path, variant and key facts equal those from when `views: own` was a separate setting."""
    rows = pd.DataFrame({"id": ["i"], "patient_id": ["p"], "split": ["test"]})
    dataset = SimpleNamespace(table=SimpleNamespace(digest="d"), task_rows=lambda task: rows)
    plan = SimpleNamespace(dataset=dataset, inputs=lambda: {"embeddings": "e"})
    model = SimpleNamespace(name="org/net", revision="r", setting="")

    def made(name, **settings):
        task = catalog.task(name)
        return Cell(model, protocol("knn"), RunConfig(**settings), name, (task,), plan, "", frozenset("ix"))

    own = made("tmed2/as", conditions="own_views")
    facts = {"dataset": "d", "embeddings": "e", "metrics": (), "unreadable": ["i"]}
    assert own.inputs() == {**facts, "variant": "own_views", "own_views": 1}
    assert own.path.as_posix() == "results/org__net/r/knn.own_views/tmed2__as.json"
    assert made("tmed2/as").inputs() == {**facts, "variant": ""}
    assert made("tmed2/view", conditions="own_views").inputs() == {**facts, "variant": ""}


def test_a_value_is_refused_before_any_work(tmp_path):
    request = {"models": "cardiobench/constant", "tasks": "ptb_xl_sample/cd", "output_dir": tmp_path}
    with pytest.raises(BadConfig, match=r"own_views takes no value\. Leave out 'PLAX'"):
        run(RunConfig(**request, conditions="own_views=PLAX"))
    assert not list(tmp_path.iterdir())


def test_submission_is_verified_under_the_variant_of_the_condition():
    knn = protocol("knn")
    assert has_variant(knn, TASK, "own_views") and not has_variant(knn, TASK, "own_views=PLAX")
    assert not has_variant(knn, catalog.task("tmed2/view"), "own_views"), "not applicable"
    assert not has_variant(knn, TASK, "mine.own_views")


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
    run(replace(config, conditions="own_views"))
    paths = sorted((tmp_path / "results").glob("*/*/knn*/tmed2__as.json"))
    assert [path.parent.name for path in paths] == ["knn", "knn.own_views"]
    both, own = map(ScoreResult.load, paths)
    assert own.variant == "own_views" and "PLAX, PSAX" in own.options["views"]
    assert own.coverage == both.coverage, "no study is lost"

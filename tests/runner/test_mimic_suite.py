"""Run the suite on the twin of MIMIC-IV-ECHO: every task under every protocol, with the mean over findings."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.runner.run import run
from cardiobench.scoring.suites import load_suite
from tests.models.tiny import tiny_open_clip

TASKS = catalog.spec("mimic_iv_echo").tasks
FEW = {protocol: {"comparison_refits": 2} for protocol in ("probe", "knn", "zero_shot")}
OF_EACH_KIND = tuple({(task.kind, len(task.classes)): task for task in TASKS}.values())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_twin("mimic_iv_echo", folder / "mimic_iv_echo", patients=14)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("text", "tasks"), [(True, TASKS), (False, OF_EACH_KIND)], ids=["text", "no text"])
def test_every_task_is_answered(text, tasks, data, tmp_path, monkeypatch):
    """Run all tasks with a model that answers prompts, and one of each kind with a model that cannot."""
    suite = replace(load_suite("mimic_echo_v1"), options=FEW)
    suite = suite if text else replace(suite, tasks=tuple(task.name for task in tasks))
    monkeypatch.setattr("cardiobench.runner.run.load_suite", lambda name: suite)
    model = str(tiny_open_clip(tmp_path / "clip")) if text else "cardiobench/constant"
    outcome = run(
        RunConfig(
            models=(model,),
            suite="mimic_echo_v1",
            data_dir=data,
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            overlays="mask",
            workers=0,
            resamples=20,
            jobs=1,
        )
    )
    assert not outcome.failures
    wanted = {(task.name, protocol) for task in tasks for protocol in ("probe", "knn")}
    wanted |= {(task.name, "zero_shot") for task in tasks} if text else set()
    assert {(result.task, result.protocol) for result in outcome.results} == wanted
    for result in outcome.results:
        assert result.dataset["overlays"] == "masked" and np.isfinite(result.score.value)
        assert any("--overlays mask" in sentence for sentence in result.warnings)
    assert [record.protocol for record in outcome.analyses] == ["retrieval"] * text
    page = (tmp_path / "results" / "report.md").read_text(encoding="utf-8")
    assert ("## Means over tasks" in page) == ("other labels, other images" in page) == text

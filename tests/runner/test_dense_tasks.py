"""Check tasks of single frames under protocols that predict per recording: not applicable, and nothing is encoded."""

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.runner.run import run


@pytest.mark.slow
def test_protocols_of_recordings_refuse_frames(tmp_path):
    protocols = ("probe", "knn", "zero_shot", "native", "representation")
    config = RunConfig(
        models=("cardiobench/pixel-motion",),
        tasks=("phantom_echo/lv_seg", "phantom_echo/landmarks"),
        protocols=protocols,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        workers=0,
    )
    summary = run(config)
    assert not summary.results and not summary.failures
    named = {(subject, label): reason for _, subject, label, reason in summary.not_applicable}
    assert set(named) == {(task, protocol) for task in config.tasks for protocol in protocols}
    assert named["phantom_echo/lv_seg", "probe"].startswith(
        "phantom_echo/lv_seg requires segmentation of single frames"
    )
    assert not list((tmp_path / "cache").rglob("*.parquet"))

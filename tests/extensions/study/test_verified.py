"""A study's result from a run on the generated hearts: it is built anew from its answers, floor included."""

from dataclasses import replace

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.extensions.study.protocol import FLOOR
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.leaderboard import verify
from cardiobench.results.collect import ResultEntry
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.run import run

pytestmark = pytest.mark.slow


def problems(result, content):
    entry = ResultEntry(result, result, pushed_by="bob")
    return verify.check(entry, {predictions_path(result, "bob"): content}).problems


def test_the_floor_of_a_submission_is_trained_again_and_a_lower_one_is_refused(tmp_path):
    config = RunConfig(
        models=("cardiobench/metadata",),
        tasks=("phantom_echo/ef",),
        protocols=("study",),
        options={"study": {"read_outs": ("mean",)}},
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        workers=0,
    )
    summary = run(config)
    (path,) = (path for path in summary.files if path.suffix == ".json" and "study.mean" in str(path))
    result, content = ScoreResult.load(path), path.with_suffix(".predictions.parquet").read_bytes()
    assert FLOOR in result.floors and problems(result, content) == ("generated recordings",)
    floors = {**result.floors, FLOOR: replace(result.floors[FLOOR], value=99.0)}
    record = {name: value for name, value in replace(result, floors=floors).to_json().items() if name != CHECKSUM}
    lie = ScoreResult.from_json({**record, CHECKSUM: checksum(record)})
    assert any(FLOOR in one for one in problems(lie, content))

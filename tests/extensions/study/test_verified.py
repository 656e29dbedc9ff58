"""Test verification of a study result from generated echo clips, rebuilt from its predictions with its floor."""

from dataclasses import replace

import pytest

from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.data.twin import write_twin
from cardiobench.extensions.study.protocol import FLOOR
from cardiobench.hub.results_dataset import predictions_path
from cardiobench.hub.submission import without_additions
from cardiobench.leaderboard import verify
from cardiobench.results.collect import ResultEntry
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.run import run
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import sent_predictions

BOARD = "org/cardiobench-results"
pytestmark = pytest.mark.slow


def resealed(result):
    """Return a result with the checksum of its content."""
    record = {name: value for name, value in result.to_json().items() if name != CHECKSUM}
    return ScoreResult.from_json({**record, CHECKSUM: checksum(record)})


def problems(result, content):
    entry = ResultEntry(result, result, pushed_by="bob")
    return verify.check(entry, {predictions_path(result, "bob"): content}).problems


def test_submission_floor_is_retrained_and_checked(hub, client, tmp_path, capsys):  # noqa: F811
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
    result = resealed(without_additions(ScoreResult.load(path)))
    content = sent_predictions(path.with_suffix(".predictions.parquet"), catalog.task(result.task))
    assert FLOOR in result.floors and problems(result, content) == ("generated recordings",)
    floors = {**result.floors, FLOOR: replace(result.floors[FLOOR], value=99.0)}
    lie = resealed(replace(result, floors=floors))
    assert any(FLOOR in one for one in problems(lie, content))

    hub.store.put("dataset", BOARD, {"README.md": b"a card"})
    pushed = ["push", str(tmp_path / "results"), "--to-dataset", BOARD, "--with-predictions", "--include-rehearsals"]
    assert main([*pushed, "--yes"]) == 0, capsys.readouterr()
    (checked,) = verify.verify_submission(BOARD, "main")
    assert checked.problems == ("generated recordings",) and "study.mean" in checked.name


@pytest.mark.parametrize("task", ["camus/ef", "mimic_iv_echo/ef"])
def test_studies_of_releases_with_several_recordings(task, tmp_path):
    """Check that a study has both views of a CAMUS patient, or all recordings of a MIMIC-IV-ECHO study."""
    name = task.partition("/")[0]
    write_twin(name, tmp_path / name, patients=24)
    summary = run(
        RunConfig(
            models=("cardiobench/pixel-motion",),
            tasks=(task,),
            protocols=("study",),
            options={"study": {"epochs": 2, "seeds": 1}},
            data_dir=tmp_path,
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            resamples=20,
            workers=0,
        )
    )
    assert {one.label for one in summary.results} == {"study.attention", "study.mean", "study.best_view"}
    for one in summary.results:
        assert FLOOR in one.floors and one.scored == one.expected and one.options["recordings"][1] > 1

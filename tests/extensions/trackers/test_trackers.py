"""Check that scores are logged to trackers of accelerate, and that a missing tracker is rejected before any work."""

import math
from dataclasses import replace

import pytest
from accelerate import tracking

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.extensions.trackers.report import tracked_values
from cardiobench.runner.run import run


class Notebook(tracking.GeneralTracker):
    """Tracker that records its calls."""

    name = "notebook"
    requires_logging_directory = True
    seen: list = []

    def __init__(self, run_name, logging_dir):
        super().__init__()
        self.seen.append(("folder", run_name, logging_dir))

    @property
    def tracker(self):
        return self.seen

    def store_init_configuration(self, values):
        self.seen.append(("config", values))

    def log(self, values, step=None):
        self.seen.append(("log", values, step))

    def finish(self):
        self.seen.append(("finish",))


@pytest.fixture
def config(tmp_path):
    def make(*trackers):
        return RunConfig(
            models="cardiobench/constant",
            tasks="ptb_xl_sample/cd",
            protocols="probe",
            report_to=trackers,
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            resamples=50,
            workers=0,
        )

    return make


@pytest.mark.slow
def test_each_score_is_logged_with_interval_and_floor(config, monkeypatch, tmp_path):
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "notebook", Notebook)
    monkeypatch.setattr(Notebook, "seen", [])
    (result,) = run(config("notebook")).results
    (_, name, folder), (_, settings), (_, values, step), last = Notebook.seen
    assert (name, folder, step, last) == ("cardiobench", str(tmp_path / "results" / "trackers"), 0, ("finish",))
    assert "ptb_xl_sample/cd" in settings["config"]
    prefix = "cardiobench/constant/ptb_xl_sample/cd/probe"
    expected = {result.metric: result.score.value, "low": result.score.low, "high": result.score.high}
    expected["floor"] = result.floor.value
    assert values == {f"{prefix}/{key}": value for key, value in expected.items() if math.isfinite(value)}
    assert f"{prefix}/floor" in values


def test_missing_tracker_is_refused_before_the_run(config, monkeypatch, tmp_path):
    monkeypatch.setattr(tracking, "get_available_trackers", list)
    with pytest.raises(BadConfig, match="pip install wandb"):
        run(config("wandb"))
    with pytest.raises(UnknownName, match="Did you mean 'wandb'"):
        run(config("wandbb"))
    assert not list((tmp_path / "results").rglob("*.json"))


def test_score_of_a_local_model_is_logged_without_its_folder(config, tmp_path):
    (result,) = run(config()).results
    local = replace(result, model={**result.model, "name": str(tmp_path / "anna" / "net")})
    assert all(name.startswith("net/") for name in tracked_values([local]))

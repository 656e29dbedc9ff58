"""Check that the command in the message of `calibration` without results works."""

from tests.printed import execute_advice


def test_command_that_makes_results_works(printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = "cardiobench.extensions.calibration.answers"
    assert execute_advice(printed, "calibration", module, "cardiobench/constant") == ["ID"]

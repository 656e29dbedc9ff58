"""Check that the command in the message of `choose` without results works."""

from tests.printed import execute_advice


def test_command_that_makes_results_works(printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models = ("cardiobench/constant", "cardiobench/metadata")
    assert execute_advice(printed, "choose", "cardiobench.extensions.choose.run", *models) == ["A", "B"]

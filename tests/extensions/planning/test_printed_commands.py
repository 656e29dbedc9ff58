"""Check that the command in the message of `equal-groups` without results works."""

from tests.printed import execute_advice


def test_command_that_makes_results_works(printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = "cardiobench.extensions.planning.equality"
    assert execute_advice(printed, "equal-groups", module, "cardiobench/constant") == ["ID"]

"""Check that the command in the message about missing results works."""

from cardiobench.cli.main import main
from cardiobench.results.paths import result_path
from tests.hub.results import result
from tests.printed import execute

SAMPLE = "ptb_xl_sample/cd"
SHORT = ("--protocols", "probe", "--workers", "0", "--dry-run")


def test_command_that_makes_results_works(printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result().save(result_path(tmp_path / "others", "probe", "tmed2/as"))
    assert main(["equal-groups", "others", "--task", SAMPLE]) == 2
    made = printed.of("cardiobench.extensions.planning.equality")
    assert made == [("cardiobench", "eval", "--model", "ID", "--tasks", SAMPLE)]
    assert execute(made[0], {"ID": "cardiobench/constant"}, *SHORT) == 0

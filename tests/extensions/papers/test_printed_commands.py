"""Check that the command after `reproduce` works."""

from dataclasses import replace

from cardiobench.cli import eval as eval_command
from cardiobench.cli.main import main
from cardiobench.extensions.papers import reproduce
from tests.extensions.papers.test_reproduce import cached  # noqa: F401 - a fixture
from tests.printed import execute
from tests.report import example_results


def test_report_is_made_from_the_results(cached, printed, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(eval_command, "run_and_print", lambda config: 0)
    # A report of generated data would have no table, so that no command is printed.
    state = reproduce.dataset_state
    monkeypatch.setattr(reproduce, "dataset_state", lambda *given: replace(state(*given), generated=False))
    example_results.write_result(tmp_path / "out", "org/one", "echonet_lvh/lvidd")
    assert main(["reproduce", "ecg", "--data-dir", str(cached), "--output-dir", "out"]) == 0
    (words,) = printed.of("cardiobench.extensions.papers.reproduce")
    assert words == ("cardiobench", "report", "out", "--layout", "paper")
    assert execute(words, {}) == 0

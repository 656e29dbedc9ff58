"""Test the screen output of the demo: one line per model, a short table and a log."""

from types import SimpleNamespace

import pytest

from cardiobench.cli import eval as evaluation
from cardiobench.cli.commands import demo
from cardiobench.cli.main import main
from cardiobench.core.console import Console
from cardiobench.data import catalog
from cardiobench.report.plots.draw import ReportFigures
from cardiobench.results.paths import result_path
from cardiobench.results.printing import PrintedTable
from tests.hub.results import result


@pytest.mark.parametrize("code", [0, 3])
def test_screen_shows_lines_and_log_everything(tmp_path, monkeypatch, capsys, code):
    def run(line):
        for text in ("model org/a @ 1", "a plan", "model org/b @ 2"):
            Console().print(text)
        Console().failure("org/b", "broken")
        return code

    monkeypatch.setattr(evaluation, "main", run)
    assert demo.run_quietly([], tmp_path / "out", Console()) == code
    shown, log = capsys.readouterr().out, (tmp_path / "out" / demo.LOG).read_text()
    assert log.splitlines() == ["model org/a @ 1", "a plan", "model org/b @ 2", "FAILED org/b: broken"]
    assert "1 of 6: org/a" in shown and "2 of 6: org/b" in shown
    assert ("a plan" in shown) == bool(code), "the cause of a failure is shown"


def test_extensions_print_before_the_run(tmp_path, monkeypatch, capsys):
    shown = ["A sentence.", PrintedTable("a table", ("a", "b"), [["1", "2"]])]
    monkeypatch.setattr("cardiobench.runner.hooks.run_hooks", lambda: [SimpleNamespace(demo=lambda: iter(shown))])
    monkeypatch.setattr(demo, "run_quietly", lambda line, folder, console: 3)
    assert main(["demo", "--output-dir", str(tmp_path)]) == 3
    printed = capsys.readouterr().out
    assert -1 < printed.index("A sentence.") < printed.index("a table") < printed.index("$ cardiobench eval --model")


def test_what_needs_a_removed_folder_is_left_out(tmp_path, monkeypatch, capsys):
    def removed():
        yield "A sentence before the dataset is read."
        catalog.task("gone/cd")

    shown = [SimpleNamespace(demo=removed), SimpleNamespace(demo=lambda: iter(["Another example."]))]
    monkeypatch.setattr("cardiobench.runner.hooks.run_hooks", lambda: shown)
    monkeypatch.setattr("cardiobench.tasks.task.unscorable", lambda task: "why" * (task.name == "phantom_echo/ef"))
    monkeypatch.setattr(demo, "run_quietly", lambda line, folder, console: 3)
    assert main(["demo", "--output-dir", str(tmp_path)]) == 3
    printed = capsys.readouterr().out
    assert "A task is left out: why" in printed and "phantom_echo" not in printed and "phantom_ecg/cd" in printed
    assert "An example is left out: no task 'gone/cd'." in printed and "before" not in printed
    assert printed.index("Another example.") < printed.index("$ cardiobench eval --model")


def test_markdown_page_of_the_run_is_not_written_again(tmp_path, monkeypatch, capsys):
    result().save(result_path(tmp_path / "org__a" / "r1", "probe", "tmed2/as"))
    monkeypatch.setattr("cardiobench.runner.hooks.run_hooks", list)
    monkeypatch.setattr("cardiobench.report.page.write.draw_report", lambda *shown, **settings: ReportFigures())
    monkeypatch.setattr(demo, "run_quietly", lambda line, folder, console: 0)
    assert main(["demo", "--output-dir", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.glob("report.*")) == ["report.html"]


def test_table_shows_patient_results_and_the_best_generated_ones():
    real = [result(value=value, protocol=f"p{value}") for value in (0.5, 0.9)]
    drawn = [result("phantom_ecg/cd", value=value, generated=True) for value in (0.6, 0.8)]
    chosen = demo.select_rows([*drawn, *real])
    assert [(one.task, one.score.value) for one in chosen] == [
        ("tmed2/as", 0.9),
        ("tmed2/as", 0.5),
        ("phantom_ecg/cd", 0.8),
    ]
    assert len(demo.select_rows(real * 20)) == demo.ROWS

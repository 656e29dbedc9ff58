"""Test what a run prints after its work: at most five warnings."""

from types import SimpleNamespace

from cardiobench.cli.output import print_results, print_summary
from cardiobench.core.console import Console
from cardiobench.runner.context import RunSummary
from tests.hub.results import result

MODELS = ("lab/a", "lab/b", "lab/c", "lab/d")
TASKS = ("ptb_xl/cd", "ptb_xl/af", "georgia/cd", "georgia/af", "camus/view", "tmed2/view")


def results():
    """Return four models on six tasks, with warnings of each kind."""
    return [
        result(
            task=task,
            dataset={"name": task.partition("/")[0]},
            model={**result().model, "name": model},
            warnings=("of the data", f"about {task}", f"about {model}", f"about {model} on {task}"),
        )
        for task in TASKS
        for model in MODELS
    ]


def lines(capsys):
    return capsys.readouterr().out.splitlines()


def test_at_most_five_warnings_follow_the_table_and_the_others_are_counted(capsys, tmp_path):
    facts = {"models": [{"name": MODELS[0]}], "tasks": TASKS[:1], "values": {}, "datasets": (), "scored_by": None}
    analysis = SimpleNamespace(protocol="stress", subject=TASKS[0], seen_in_pretraining={}, warnings=("slow",), **facts)
    summary = RunSummary(results=results(), analyses=[analysis], files=[tmp_path / "report.md"])
    print_summary(Console(), summary, tmp_path)
    said = lines(capsys)
    shown = [line for line in said if line.startswith("! ")]
    assert shown[0] == "! all tasks: of the data" and len(shown) == 5
    # One about the data, four about models, six about tasks, 24 about cells, one about the analysis.
    assert f"... and 31 more warnings; all are in {tmp_path / 'report.md'}" in said


def test_few_warnings_are_all_shown(capsys):
    print_results(Console(), results()[:1], place="results")
    said = lines(capsys)
    assert sum(line.startswith("! ") for line in said) == 4 and not any("more warning" in line for line in said)

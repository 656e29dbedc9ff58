"""Test means over the tasks of a suite: on both pages, with the published number and the differences from it."""

from cardiobench.report.markdown import write_markdown
from cardiobench.report.plots.draw import ReportFigures
from cardiobench.report.task_means import COLUMNS, mean_rows
from cardiobench.results.collect import collect
from cardiobench.scoring.means import task_means
from tests.report.example_results import scored_example, write_result


def test_task_without_its_metric_is_left_out_of_a_mean(tmp_path, monkeypatch):
    """A folder of a metric can be deleted after its results were written."""
    first, *_ = task_means()[0].tasks
    write_result(tmp_path, "org/text", first, protocol="zero_shot")
    found = collect([tmp_path])
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: ["mae"])
    cells, *_ = (dict(zip(COLUMNS, row, strict=True)) for row in mean_rows(found.entries, resamples=50))
    assert cells["value, %"] == "undefined" and f"without {first}: {first} needs" in cells["note"]


def test_mean_is_shown_with_published_number(tmp_path):
    first, second, *_ = task_means()[0].tasks
    for task in (first, second):
        write_result(tmp_path, "org/text", task, protocol="zero_shot")
    write_result(tmp_path, "org/other", first, protocol="probe")
    found = collect([tmp_path])
    cells, _ = (dict(zip(COLUMNS, row, strict=True)) for row in mean_rows(found.entries, resamples=50))
    scores = [scored_example(task, 0.9, 1)[1].overall["auroc"].value for task in (first, second)]
    assert cells["value, %"] == f"{50 * sum(scores):.2f}" and cells["tasks"].startswith("2 of ")
    assert cells["published, %"] == "86.5 (EchoVLM, arXiv:2512.12107; other labels, other images)"
    assert cells["floor, %"] == "50.00" and cells["note"] == "–" and cells["patients"] == "60"
    write_markdown(found, tmp_path / "out", figures=ReportFigures({}))
    page = (tmp_path / "out" / "report.md").read_text()
    assert "## Means over tasks" in page and "other labels, other images" in page

"""Test two kinds of task with other forms of prediction, from an external package: predict, score, file, report, verify."""

import io
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score, mean_pinball_loss

from cardiobench.core import plugins
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadPredictions
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.hub.results_dataset import predictions_path as pushed_path
from cardiobench.leaderboard.verify import check
from cardiobench.metrics import load
from cardiobench.report.overview import find_task
from cardiobench.report.page.examples import write_examples
from cardiobench.report.plots.draw import draw_report
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.results.context import ResultContext
from cardiobench.results.paths import predictions_path
from cardiobench.runner.run import run
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score
from cardiobench.tasks.task import KINDS

PACKAGE = {
    "outside_kinds.py": '''
        """An interval of two numbers, and an ordinal grade as probabilities of lying above each cut."""

        from dataclasses import replace

        import numpy as np
        import pandas as pd

        from cardiobench.core.errors import BadPredictions
        from cardiobench.results.score_result import Floor
        from cardiobench.tasks.checks import check_probabilities
        from cardiobench.tasks.classes import Multiclass
        from cardiobench.tasks.regression import Regression
        from cardiobench.tasks.tables import ScoredTable

        ENDS = ["low", "high"]


        class ScoredIntervals(ScoredTable):
            """Rows with an interval each."""

            def floors(self):
                return {"best_uninformed": self.uninformed(self.sampler.sample)}

            def uninformed(self, sample):
                """The interval of the central 80 % of the scored labels, which no constant beats."""
                ends = np.quantile(sample.y_true, [0.1, 0.9], method="inverted_cdf")
                same = replace(sample, probabilities=np.tile(ends, (len(sample), 1)))
                return Floor(float(self.metric.value(same)[self.key]), reached_by="one interval for everybody")


        class Interval(Regression):
            """An interval that holds the label with a probability of 80 %."""

            answer, table = "interval", ScoredIntervals

            def reports(self, task):
                return ()

            def answer_columns(self, task):
                return ["y_pred", *ENDS]

            def check_answers(self, answers, task, source):
                super().check_answers(answers, task, source)
                if (answers["low"] > answers["high"]).any():
                    raise BadPredictions(f"{source}: intervals of {task.name} end before they begin.")

            def unit_answers(self, means, task):
                return pd.DataFrame(means, columns=ENDS).assign(y_pred=means.mean(axis=1))

            def sample(self, frame, task):
                return replace(super().sample(frame, task), probabilities=frame[ENDS].to_numpy(float))

            def cells(self, sample, task):
                return {**super().cells(sample, task), **dict(zip(ENDS, sample.probabilities.T))}

            def completed(self, answered, missing, task, *, worst):
                low, high = task.label_range
                far = np.where(missing - low > high - missing, low, high)
                ends = np.stack([far if worst else missing] * 2, axis=1)
                return type(answered)(
                    np.concatenate([answered.y_true, missing]),
                    np.concatenate([answered.y_pred, ends[:, 0]]),
                    np.concatenate([answered.probabilities, ends]),
                )


        class Grade(Multiclass):
            """Classes in order; of each but the first the probability that a unit lies there or above."""

            answer = "grade"

            def cuts(self, task):
                return [f"at_least_{name}" for name in task.classes[1:]]

            def answer_columns(self, task):
                return ["y_pred", *self.cuts(task)]

            def check_answers(self, answers, task, source):
                check_probabilities(answers, self.cuts(task), source, task.name)

            def complete_answers(self, answers, task):
                cut = (answers[self.cuts(task)].to_numpy(float) >= 0.5).sum(axis=1)
                return answers[self.cuts(task)].assign(y_pred=np.array(task.classes, dtype=object)[cut])

            def fill_answers(self, answers, task):
                return answers

            def doubts(self, answers, task):
                return []

            def unit_answers(self, means, task):
                return self.complete_answers(pd.DataFrame(means, columns=self.cuts(task)), task)

            def sample(self, frame, task):
                above = frame[self.cuts(task)].to_numpy(float)
                shares = -np.diff(np.pad(above, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))), axis=1)
                return replace(super().sample(frame, task), probabilities=np.clip(shares, 0, 1))

            def cells(self, sample, task):
                above = sample.probabilities[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
                return {"y_pred": super().cells(sample, task)["y_pred"], **dict(zip(self.cuts(task), above.T))}

            def errors(self, frame, task):
                wrong = (self.label_values(frame["y_pred"], task) - self.label_values(frame["y_true"], task))
                return pd.Series(abs(wrong), index=frame.index, dtype=float)
    ''',
    "outside_score.py": '''
        """Interval score at 80 % (Gneiting and Raftery 2007)."""

        NUMBERS = {"interval_score": {"better": "lower", "range": (0, float("inf")), "unit": "label", "perfect": 0}}


        def compute(references, predictions, probabilities):
            low, high = probabilities.T
            below, above = (low - references).clip(0), (references - high).clip(0)
            return {"interval_score": float((high - low + 10 * below + 10 * above).mean())}
    ''',
    "outside_protocol.py": '''
        """Both forms from the labels of the nearest training recordings."""

        from dataclasses import dataclass

        import numpy as np
        from sklearn.neighbors import NearestNeighbors

        from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput


        @dataclass(frozen=True)
        class Neighbourhood(PredictionProtocol):
            """Quantiles of the numbers, or shares above each cut, of ten neighbours."""

            name, forms = "neighbourhood", ("interval", "grade")

            def predict(self, data, encoder, variant):
                train, test = data.indices("train", "validation"), data.indices("test")
                near = NearestNeighbors(n_neighbors=10).fit(data.features[train]).kneighbors(
                    data.features[test], return_distance=False
                )
                labels = data.labels[train][near]
                if data.task.rules.answer == "interval":
                    return ProtocolOutput(test, np.quantile(labels, [0.1, 0.9], axis=1).T)
                cuts = range(1, len(data.task.classes))
                return ProtocolOutput(test, np.stack([(labels >= cut).mean(axis=1) for cut in cuts], axis=1))
    ''',
    "outside-1.0.dist-info/METADATA": """
        Metadata-Version: 2.1
        Name: outside
        Version: 1.0
    """,
    "outside-1.0.dist-info/entry_points.txt": """
        [cardiobench.kinds]
        interval = outside_kinds:Interval
        grade = outside_kinds:Grade
        [cardiobench.metrics]
        interval_score = outside_score
        [cardiobench.protocols]
        neighbourhood = outside_protocol:Neighbourhood
    """,
}
SAMPLE = "ptb_xl_sample"


@pytest.fixture
def tasks(tmp_path, monkeypatch, request):
    """Return two tasks on the bundled sample: an interval of the age, and its group as a grade."""
    folder = tmp_path / "installed"
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text).lstrip(), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    caches = (plugins.entry_points, find_task, *(one for one in vars(load).values() if hasattr(one, "cache_clear")))
    for cached in caches:
        cached.cache_clear()
        request.addfinalizer(cached.cache_clear)
    for name in ("interval", "grade"):
        request.addfinalizer(lambda name=name: KINDS.pop(name, None))
    builder = catalog.builder(SAMPLE)
    cd = builder.SPEC.task("cd")
    shared = {"groups": cd.groups[:1], "description": "of a package outside"}
    own = (
        Task(f"{SAMPLE}/span", "interval", "age", ("interval_score",), unit="years", label_range=(0, 120), **shared),
        Task(f"{SAMPLE}/band", "grade", "age_group", ("f1_macro",), classes=("≤45", "46-65", "66-80", ">80"), **shared),
    )
    monkeypatch.setattr(builder, "SPEC", replace(builder.SPEC, tasks=(cd, *own)))
    return own


def answered(task):
    """Return references of twelve units, and correct predictions."""
    numbers = np.arange(12)
    truth = 40.0 + numbers if not task.classes else np.array(task.classes)[numbers % 4]
    table = pd.DataFrame({"id": [f"u{n}" for n in numbers], "patient_id": numbers.astype(str), "y_true": truth})
    table["split"] = np.where(numbers < 6, "train", "test")
    if task.classes:
        code = numbers % 4
        columns = {f"at_least_{name}": (code >= cut) * 0.8 for cut, name in enumerate(task.classes) if cut}
    else:
        columns = {"y_pred": truth, "low": truth - 2.0, "high": truth + 2.0}
    return table, pd.DataFrame({"id": table["id"], **columns})[numbers >= 6]


def test_file_of_predictions_is_read_and_completed(tasks):
    for task in tasks:
        table, answers = answered(task)
        joined = Predictions.join(table, read_predictions(answers.rename(columns=str.upper), task), task)
        assert set(task.rules.answer_columns(task)) <= set(joined.frame) and list(joined.frame["y_true"]) == list(
            joined.frame["y_pred"]
        )
        again = pd.DataFrame(task.rules.cells(joined.sample(), task))
        pd.testing.assert_frame_equal(again, joined.frame[list(again)], check_exact=False)
        fewer = Predictions.join(table, answers.iloc[1:], task, allow_missing=True)
        assert len(fill_missing(fewer, worst=False).sample()) == 6
        found = score(fewer, table, ResultContext(resamples=20))
        assert found.bounds and found.coverage == {"scored": 5, "expected": 6}
    span, band = tasks
    table, answers = answered(span)
    with pytest.raises(BadPredictions, match="end before they begin"):
        Predictions.join(table, answers.assign(low=200.0), span)
    with pytest.raises(
        BadPredictions, match=r"predictions lacks high for ptb_xl_sample/span. It needs y_pred, low, high"
    ):
        Predictions.join(table, answers.drop(columns="high"), span)
    table, answers = answered(band)
    with pytest.raises(BadPredictions, match="outside \\[0, 1\\]"):
        Predictions.join(table, answers.assign(**{"at_least_>80": 80}), band)


@pytest.mark.slow
def test_new_forms_go_through_a_run_its_report_and_verify(tasks, tmp_path):
    found = run(
        RunConfig(
            models=("cardiobench/ecg-morphology",),
            tasks=tuple(task.name for task in tasks),
            protocols=("neighbourhood", "probe", "knn", "zero_shot"),
            output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache",
            resamples=1000,
            workers=0,
        )
    )
    assert not found.failures
    span, band = sorted(found.results, key=lambda one: one.task, reverse=True)
    assert (span.task, band.task) == tuple(task.name for task in tasks)
    reasons = {(task, label): why for _, task, label, why in found.not_applicable}
    assert set(reasons) == {(task.name, name) for task in tasks for name in ("probe", "knn", "zero_shot")}
    assert (
        reasons[span.task, "probe"]
        == "ptb_xl_sample/span requires interval, and probe predicts a number, a class or labels per recording"
    )

    files = {path.name.partition("__")[2].partition(".")[0]: path for path in found.files if path.suffix == ".json"}
    spans, bands = (pd.read_parquet(predictions_path(files[name])) for name in ("span", "band"))
    # The interval score is the sum of two pinball losses, times 2 / 0.2.
    losses = (mean_pinball_loss(spans["y_true"], spans[end], alpha=a) for end, a in (("low", 0.1), ("high", 0.9)))
    assert span.overall["interval_score"].value == pytest.approx(10 * sum(losses))
    assert band.overall["f1_macro"].value == pytest.approx(f1_score(bands["y_true"], bands["y_pred"], average="macro"))
    assert not span.higher_is_better and np.isfinite(span.floors["best_uninformed"].value)
    assert len(span.groups["sex"].values) == 2 and span.verdict.word

    collection, out = collect([tmp_path / "results"]), tmp_path / "report"
    assert not collection.problems
    figures = draw_report(collection, out, png=True, processes=1, kinds=("task",))
    assert not figures.problems and all(figures.of("task", task.name) for task in tasks)
    links, problems = write_examples(collection, out, (), None)
    assert set(links) == {task.name for task in tasks} and not problems

    for result, frame in ((span, spans), (band, bands)):
        task = catalog.task(result.task)
        sent = frame[["id", *task.rules.answer_columns(task)]]
        sink = io.BytesIO()
        sent.to_parquet(sink, index=False)
        entry = ResultEntry(files[result.task.partition("/")[2]], result, pushed_by="bob")
        checked = check(entry, {pushed_path(result, "bob"): sink.getvalue()})
        assert checked.outcome == "ok", checked.problems

"""Hand-written results of existing tasks."""

import io
from dataclasses import replace

import pyarrow.parquet as pq

from cardiobench.hub.submission import answers_format
from cardiobench.results.predictions_file import parquet_options
from cardiobench.results.score_result import Breakdown, Estimate, Floor, Gap, Judgement, ScoreResult
from cardiobench.results.verdict import Verdict

MODEL = "org/model"


def result(task="tmed2/as", protocol="probe", value=0.7123456789012345, **changes) -> ScoreResult:
    """Return a classification result; `changes` sets further fields."""
    fields = {
        "task": task,
        "metric": "f1_macro",
        "higher_is_better": True,
        "unit": "",
        "overall": {
            "f1_macro": Estimate(value, 0.61, 0.79, 119, 118),
            "auroc": Estimate(0.81, 0.7, 0.9, 119, 118),
        },
        "floors": {
            "best_uninformed": Floor(0.5, reached_by="guessing at the class rates"),
            "best_constant": Floor(0.4413, "AS"),
            "train_constant": Floor(0.4413, "AS"),
            "chance": Floor(0.5, None),
        },
        "verdict": Judgement("above the floor", "a sentence", value - 0.5, 0.11, 0.29, 0.001, 0.001),
        "collapsed": False,
        "coverage": {"scored": 119, "expected": 119},
        "protocol": protocol,
        "options": {"penalty": 1.0},
        "dataset": {
            "name": task.partition("/")[0],
            "version": "1.0.0",
            "digest": "abc123",
            "twin": False,
            "limit": None,
        },
        "model": {"name": MODEL, "revision": "f" * 40, "loaded_by": "a rule", "preprocessing": {"fs": 500}},
        "groups": {
            "sex": Breakdown(
                {"F": Estimate(0.7, 0.6, 0.8, 60, 60), "M": Estimate(0.8, 0.7, 0.9, 52, 52)},
                Gap(0.1, 0.08, 0.02, 0.3, 0.3),
                "F",
            )
        },
        "seen_in_pretraining": None,
        "warnings": ("a sentence for the reader",),
        "stamp": {
            "cardiobench": "0.1.0",
            "seed": 0,
            "resamples": 1000,
            "date": "2026-03-04T05:06:07+00:00",
            "key": f"{task}{protocol}{value}",
        },
    }
    return ScoreResult(**{**fields, **changes})


def regression(task="camus/ef", protocol="probe", value=7.25, **changes) -> ScoreResult:
    """Return a regression result."""
    facts = {
        "metric": "mae",
        "higher_is_better": False,
        "unit": "%",
        "overall": {"mae": Estimate(value, 6.1, 8.2, 50, 50)},
        "floors": {"best_uninformed": Floor(9.5), "best_constant": Floor(9.5, 55.0)},
        "coverage": {"scored": 50, "expected": 50},
        "verdict": Judgement("above the floor", "a sentence", 9.5 - value, 1.0, 3.0, 0.001, 0.001),
        "collapsed": True,
    }
    return result(task, protocol, value, **{**facts, **changes})


def consistent(**changes) -> ScoreResult:
    """Return a classification result whose interval and verdict are consistent with its value."""
    one = result(**changes)
    value, low, high = one.score.value, one.score.value - 0.05, min(one.score.value + 0.05, 1.0)
    word = Verdict.ABOVE if low > 0.5 else Verdict.INFORMED
    return replace(
        one,
        overall={**one.overall, one.metric: replace(one.score, low=low, high=high)},
        verdict=replace(one.verdict, word=word, difference=value - 0.5, low=low - 0.5, high=high - 0.5),
    )


def sent_predictions(path, task):
    """Return the predictions of a local file as `push` sends them: ids and answers alone."""
    table = pq.read_table(path)
    table = table.select([name for name in table.column_names if name in answers_format(task).columns])
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(None), sink, **parquet_options(table))
    return sink.getvalue()

"""Test the sentences on verdicts and rankings that noise alone would give."""

from dataclasses import replace
from math import nan
from pathlib import Path

from cardiobench.leaderboard import table
from cardiobench.report.noise import false_verdicts
from cardiobench.results.collect import Collection, ResultEntry
from tests.hub.results import consistent


def family(one, name):
    return replace(one, verdict=replace(one.verdict, family=name))


def test_families_count_once_and_exploratory_results_each():
    """Count two models with a family of two tasks each, and three exploratory results: five tests at level .05."""
    models = [{"name": name, "revision": "1"} for name in ("a/a", "b/b")]
    tasks = ("tmed2/as", "cardiacnet/asd")
    primary = [family(consistent(task=task, model=model), "suite/probe") for model in models for task in tasks]
    others = [consistent(task=task, model=models[0], protocol="knn") for task in (*tasks, "cardiacnet/pah")]
    text = false_verdicts([*primary, *others])
    assert "7 verdicts on 2 models and 2 protocols: 2 families corrected together and 3 exploratory results" in text
    assert "each at level 0.05" in text and "at most about 0.25 of these" in text
    assert "2 verdicts on 1 model and 1 protocol: 1 family corrected together, at level 0.05." in false_verdicts(
        primary[:2]
    )
    assert ": 1 exploratory result, at level 0.05." in false_verdicts(others[:1])
    untested = replace(others[0], verdict=replace(others[0].verdict, p_value=nan))
    assert false_verdicts([untested]) == false_verdicts([]) == ""
    board = table.noise(Collection(tuple(ResultEntry(Path("r.json"), one) for one in (*primary, *others))))
    assert text in board and "at most about 0.05 of the 1 overview tables" in board

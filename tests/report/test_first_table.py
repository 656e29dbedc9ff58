"""Compare the first table of the page and the numbers above it with hand-worked values."""

import dataclasses
from pathlib import Path

import pytest

from cardiobench.report.overview import overview_tables
from cardiobench.report.page.content import counts, minute_row, signs_in_use, widest_gap
from cardiobench.results import formatting
from cardiobench.results.collect import Collection, ResultEntry
from cardiobench.results.score_result import Breakdown, Estimate, Gap
from tests.results.test_formatting import result


def breakdown(gap, expected=0.08, worst="F"):
    groups = {"F": Estimate(0.5, 0.4, 0.6, 60, 60), "M": Estimate(0.5 + gap, 0.5, 0.7, 60, 60)}
    return Breakdown(groups, Gap(gap, expected, gap - expected, 0.4, 0.8), worst)


def entry(path, **more):
    return ResultEntry(Path(path), result(**more))


def test_widest_gap_names_its_worst_group():
    groups = {"sex": breakdown(0.1), "image_quality": breakdown(0.2, worst="Poor")}
    said = "image quality: Poor worst, gap 20.00 points (8.00 expected), p = 0.8"
    assert widest_gap(result(groups=groups)) == said
    assert minute_row([entry("r.json", groups=groups)])["weak"] == said
    assert widest_gap(result()) == "no groups scored"


@pytest.mark.parametrize("gap", [0.0, 0.000049])
def test_zero_gap_has_no_worst_group(gap):
    one = result(groups={"sex": breakdown(gap)})
    assert widest_gap(one) == "sex: no gap"
    assert formatting.worst_group(one.groups["sex"], one) == ""
    assert formatting.worst_group(breakdown(0.001), one) == "F", "printed as 0.10"


def test_head_counts_flags_and_verdicts_of_scores_on_patients():
    real, phantom = entry("a.json", collapsed=True), entry("b.json", generated=True)
    confirmed = entry("c.json")
    verdict = dataclasses.replace(confirmed.result.verdict, family="suite")
    confirmed = dataclasses.replace(confirmed, result=dataclasses.replace(confirmed.result, verdict=verdict))
    found = counts(Collection((real, phantom, confirmed), (), ()))
    assert (found["scores"], found["generated"]) == (2, 1)
    assert found["exploratory"] == 1, "the phantom is exploratory, too, but no score on patients"
    assert found["collapsed"] == 1
    assert sum(count for _, count in found["verdicts"]) == 2


def test_legend_has_only_signs_in_use():
    entries = [entry("a.json", collapsed=True, task="camus/view"), entry("b.json", model="org/two", task="camus/view")]
    used = signs_in_use(overview_tables(entries))
    assert list(used["marks"]) == ["no information shown", "collapsed", "incomplete"]
    assert not used["not_applicable"], "every model has a score"
    ecg = entry("c.json", model="cardiobench/minirocket", task="camus/view")
    zero_shot = dataclasses.replace(entries[0].result, protocol="zero_shot")
    assert signs_in_use(overview_tables([ecg, ResultEntry(Path("d.json"), zero_shot)]))["not_applicable"]

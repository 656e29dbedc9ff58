"""Test formatting for readers: late rounding, directions, marks, and escaping of text."""

import dataclasses
import re

import pytest

from cardiobench.core.errors import MissingData
from cardiobench.report.markdown import write_markdown
from cardiobench.results import formatting as tables
from cardiobench.results.collect import collect
from cardiobench.results.score_result import Estimate, Floor, Judgement, ScoreResult

NAN = float("nan")


def result(
    value=0.441315, model="org/name", task="tmed2/as", metric="f1_macro", higher=True, unit="", pooling="", **more
):
    return ScoreResult(
        task=task,
        metric=metric,
        higher_is_better=higher,
        unit=unit,
        overall={metric: Estimate(value, value - 0.1, value + 0.1, 119, 110)},
        floors={
            "best_uninformed": Floor(0.5, reached_by="guessing at the class rates"),
            "best_constant": Floor(0.441315, "AS"),
            "train_constant": Floor(0.44, "AS"),
            "chance": Floor(0.4, None),
        },
        coverage={"scored": 119, "expected": 120},
        protocol="probe",
        model={"name": model, "token_pooling": pooling},
        dataset={"name": "tmed2"},
        **{
            "collapsed": False,
            "verdict": Judgement("no information shown", "a sentence", value - 0.5, -0.1, 0.1, 0.4, 0.4),
            **more,
        },
    )


def test_row_by_hand():
    cells = dict(zip(tables.COLUMNS, tables.row(result(collapsed=True, seen_in_pretraining=True)), strict=True))
    assert cells == {
        "task": "tmed2/as",
        "model": "org/name",
        "protocol": "probe",
        "metric": "f1_macro % ↑",
        "score": "44.13",
        "95 % CI": "34.13 – 54.13",
        "floor": "50.00",
        "verdict": "no information shown (exploratory)",
        "n": "119 (110 patients)",
        "coverage": "119/120",
        "flags": "collapsed, seen in pretraining, incomplete",
    }


def test_rows_of_two_poolings_can_be_told_apart():
    one, other = (tables.row(result(pooling=pooling)) for pooling in ("mean", "max"))
    assert one[-1].startswith("pooling mean") and other[-1].startswith("pooling max")


def test_measurement_keeps_its_unit():
    cells = tables.row(result(6.409, task="camus/ef", metric="mae", higher=False, unit="%"))
    assert cells[3] == "mae % ↓" and cells[4] == "6.41"


def test_undefined_numbers_are_written_as_words():
    undefined = result()
    undefined = dataclasses.replace(undefined, overall={"f1_macro": Estimate(NAN, NAN, NAN, 3, 1, "one class")})
    assert tables.row(undefined)[4:6] == ("undefined", "none")


def test_warning_is_shown_once_with_its_models():
    results = [result(0.5, "a", warnings=("few", "odd")), result(0.4, "b", warnings=("few",)), result(0.3, task="x/y")]
    found = [(one.sentence, one.tasks, one.who) for one in tables.warnings(results)]
    assert found == [("few", ("tmed2/as",), ()), ("odd", ("tmed2/as",), ("a probe",))]
    assert tables.warning_lines(results) == ["tmed2/as: few", "tmed2/as: odd (a probe)"]


def test_warnings_shared_by_results_are_joined():
    absent = ("no scored row is PSAX", "shared", "no scored row is PLAX")
    seen = [
        result(
            task=f"tmed2/{target}",
            model=model,
            warnings=("collapsed: all the same", *absent[: None if target == "view" else 2]),
        )
        for target in ("view", "as")
        for model in ("a", "b")
    ]
    other = dataclasses.replace(result(task="camus/view", warnings=("shared",)), dataset={"name": "camus"})
    assert tables.warning_lines([*seen, other]) == [
        "all tasks: shared",
        "tmed2/as: no scored row is PSAX",
        "tmed2/view: no scored row is PSAX, PLAX",
        "tmed2: collapsed: all the same",
    ]
    assert tables.data_warnings([*seen, other]) == {"tmed2": ["shared"]}
    section = tables.warnings(seen[:2], ["shared"])
    assert [one.sentence for one in section] == ["collapsed: all the same", "no scored row is PSAX, PLAX"]


def test_collapsed_answers_that_carry_information_are_explained():
    told = "carries information, not above the floor"
    both = result(collapsed=True, verdict=Judgement(told, "a sentence", -0.1, -0.2, 0.1, 0.01, 0.01))
    assert tables.notes([both]) == [tables.COLLAPSED_INFORMED]
    assert tables.notes([result(collapsed=True), dataclasses.replace(both, collapsed=False)]) == []


def test_best_is_first_in_both_directions():
    high = [result(0.5, "a"), result(0.7, "b"), result(NAN, "c")]
    assert [r.model["name"] for r in tables.ordered(high)] == ["b", "a", "c"]
    low = [result(v, m, metric="mae", higher=False) for v, m in ((5.0, "a"), (3.0, "b"))]
    assert [r.model["name"] for r in tables.ordered(low)] == ["b", "a"]


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "[x](javascript:alert(1))", "a|b\n| c |", "`code` *bold*"]
)
def test_hostile_names_are_escaped(name):
    text = tables.markdown([result(model=name)])
    assert len(text.splitlines()) == 3
    assert not re.search(r"<script|(?<!\\)\]\(|(?<!\\)[`*]", text)


def test_no_results_gives_advice(tmp_path):
    with pytest.raises(MissingData, match="Run: cardiobench eval --model ID"):
        collect([tmp_path])


@pytest.mark.usefixtures("figures")
def test_page_needs_nothing_but_results(tmp_path):
    path = result(task="ptb_xl_sample/cd", collapsed=True).save(
        tmp_path / "m" / "r" / "probe" / "ptb_xl_sample__cd.json"
    )
    page, vector, table = write_markdown(collect([tmp_path]), tmp_path)
    assert path.is_file() and "44.13" in page.read_text()
    assert [file.suffix for file in (vector, table)] == [".svg", ".csv"]
    assert "<svg" in vector.read_text() and f"(figures/{vector.name})" in page.read_text()


def test_folders_of_the_same_content_have_the_name_of_the_newest_result():
    def of(name, date, revision="a" * 12, **facts):
        one = result(model=name, **facts)
        return dataclasses.replace(
            one, model={**one.model, "revision": revision, "local": True}, stamp={**one.stamp, "date": date}
        )

    copies = [of("copy", "2026-01-02"), of("net", "2026-01-01", task="camus/view"), of("other", "2026-01-03", "b" * 12)]
    assert [one.model["name"] for one in tables.tell_apart(copies)] == ["copy", "copy", "other"]
    # Folders of two accounts have a name each, although their content is the same.
    submitted = [of("copy (run by a)", "2026-01-02"), of("net (run by b)", "2026-01-01")]
    assert tables.tell_apart(submitted) == submitted


def test_models_of_one_name_are_labelled_by_what_differs():
    one = {"name": "a", "revision": "1" * 40, "token_pooling": "mean", "preprocessing": {"variant": "paper"}}
    labels = tables.model_labels
    assert labels([one, {**one, "revision": "2" * 40}, {"name": "b"}]) == ["a 1111111", "a 2222222", "b"]
    assert labels([one, {**one, "token_pooling": "max"}]) == ["a mean", "a max"]
    assert labels([one, {**one, "preprocessing": {}}]) == ["a paper", "a"]
    assert labels([one, one]) == ["a", "a"] and labels([{"name": "a"}, {"name": "b"}]) == ["a", "b"]


def test_local_models_of_one_name_are_told_apart_in_tables_and_warnings():
    one, other = (
        result(model="net", warnings=("it is dark",)) if not revision else result(model="net", warnings=(revision,))
        for revision in ("", "it is bright")
    )
    local = [
        dataclasses.replace(each, model={**each.model, "revision": revision, "local": True})
        for each, revision in ((one, "a" * 12), (other, "b" * 12))
    ]
    assert [each.model["name"] for each in tables.tell_apart(local)] == ["net@aaaaaaa", "net@bbbbbbb"]
    assert tables.tell_apart(tables.tell_apart(local)) == tables.tell_apart(local)
    lines = tables.warning_lines(local)
    assert any("net@aaaaaaa" in line for line in lines) and any("net@bbbbbbb" in line for line in lines)
    assert [each.model["name"] for each in tables.tell_apart(local[:1])] == ["net"], "one content needs no digest"
    public = [dataclasses.replace(each, model={**each.model, "local": False}) for each in local]
    assert [each.model["name"] for each in tables.tell_apart(public)] == ["net", "net"]

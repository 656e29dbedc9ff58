"""Compare the numbers behind figures with hand-worked values and numpy; check that files are reproducible."""

import dataclasses
import io
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.report.plots.curves import decision_curve
from cardiobench.report.plots.draw import draw_report
from cardiobench.report.plots.figure import ReportFigure, save_report_figure
from cardiobench.report.plots.groups import QUANTILES, error_quantiles, groups_figure
from cardiobench.report.plots.predictions import agreement_figure, classification_figure
from cardiobench.report.plots.scores import scores_figure
from cardiobench.report.plots.style import DPI, figure_style, heatmap, save_figure, shorten, subplots
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Problem, assemble, collect
from cardiobench.results.record import CHECKSUM, checksum
from tests.report import example_results
from tests.report.example_results import similarity_record


def test_roc_reliability_operating_point_and_confusion_by_hand():
    """Return four patients: one ill patient has the highest predicted probability, and one healthy patient the lowest."""
    frame = pd.DataFrame({"y_true": ["no", "yes", "no", "yes"], "y_pred": ["yes", "yes", "no", "no"]})
    frame["p_yes"], frame["p_no"] = [0.6, 0.9, 0.3, 0.1], [0.4, 0.1, 0.7, 0.9]
    with figure_style():
        drawn = classification_figure({"m": frame[["y_true", "y_pred", "p_no", "p_yes"]]}, "m", "x/y", ("no", "yes"))
    curves = drawn.tables["curves"].groupby("curve")[["x", "y"]].agg(list)
    # Patients in descending order: 2 (ill), 1 (well), 3 (well), 4 (ill); scikit-learn omits collinear points.
    assert list(zip(*curves.loc["ROC"], strict=True)) == [(0, 0), (0, 0.5), (1, 0.5), (1, 1)]
    assert curves.loc["reliability", "y"] == [1, 0, 0, 1] and curves.loc["reliability", "x"] == [0.1, 0.3, 0.6, 0.9]
    # Recall 1/2 is reached by patient 2 alone, recall 1 by all four.
    steps = list(zip(*curves.loc["precision-recall"], strict=True))
    assert steps == [(0, 1), (0.5, 1), (0.5, 0.5), (1, 0.5)]
    assert (curves.loc["operating point", "x"], curves.loc["operating point", "y"]) == ([0.5], [0.5])
    confusion = next(axes for axes in drawn.figure.axes if axes.get_xlabel() == "predicted")
    texts = [text.get_text() for text in confusion.texts]
    assert texts == ["1", "1", "1", "1"], "one each of true and false, positive and negative"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", ["no", "yes"])
def test_one_class_has_no_two_class_curve(label, tmp_path):
    frame = pd.DataFrame({"y_true": [label] * 3, "y_pred": ["no", "no", "yes"], "p_no": [0.9, 0.8, 0.3]})
    with figure_style():
        drawn = classification_figure({"m": frame.assign(p_yes=1 - frame["p_no"])}, "m", "x/y", ("no", "yes"))
        save_figure(drawn.figure, tmp_path / "curves", png=False)
    curves = set(drawn.tables["curves"].dropna(subset=["x", "y"])["curve"])
    assert curves == {"reliability", "decision curve"}


@pytest.mark.filterwarnings("error")
def test_scores_without_a_floor_have_no_legend(tmp_path):
    _, result = example_results.scored_example("phantom_echo/ef", 0.6, 1)
    with figure_style():
        drawn = scores_figure([dataclasses.replace(result, floors={}, model={"name": "m"})])
        save_figure(drawn.figure, tmp_path / "scores", png=False)
    assert drawn.figure.axes[0].get_legend() is None


@pytest.mark.filterwarnings("error")
def test_heatmaps_have_room_for_long_model_names(tmp_path):
    names = ["./projects/foundation/experiments/checkpoints/2026-05-05/model_large_patch14", "org/model"]
    with figure_style():
        figure, axes = subplots(height=3.2)
        heatmap(axes, np.eye(2), names, names, rotation=30)
        save_figure(figure, tmp_path / "map", png=False)
    assert [text.get_text() for text in axes.get_yticklabels()] == [names[0][:31] + "…", "org/model"]


def test_texts_are_cut_to_a_width_with_few_measurements(monkeypatch):
    from cardiobench.report.plots import style

    measured = []
    monkeypatch.setattr(style, "_text_width", lambda text: measured.append(text) or len(text) * 0.1)
    name = "org/" + "long" * 250_000
    assert style.fit(name, 2.0) == shorten(name, 20) and len(measured) < 12
    assert style.fit(name, -1.0) == "…" and style.fit("org/short", 2.0) == "org/short"


def test_rows_of_models_with_long_names_differ_and_state_the_protocol():
    _, result = example_results.scored_example("phantom_ecg/cd", 0.6, 1)
    names = [
        "cardiobench/random-xresnet1d101",
        *(f"some-hospital/ecg-foundation-vit-l{n}-{'x' * 60}" for n in (16, 32)),
    ]
    with figure_style():
        drawn = scores_figure([dataclasses.replace(result, model={"name": name}) for name in names])
    labels = [text.get_text() for text in drawn.figure.axes[0].texts][: len(names)]
    assert f"{names[0]} · {result.label}" in labels and len(set(labels)) == len(names)
    assert all(label.endswith(f" · {result.label}") for label in labels)


@pytest.mark.parametrize(
    "task", [pytest.param("phantom_echo/ef", marks=pytest.mark.slow), "phantom_echo/view", "phantom_ecg/cd"]
)
def test_margins_fit_every_text(task):
    """Check that margins are computed from the texts, and matplotlib's tight bounding box is inside the figure."""
    joined, result = example_results.scored_example(task, 0.6, 1)
    results = [dataclasses.replace(result, model={"name": f"./{letter * 60}/model"}) for letter in "wi"]
    named = {f"{one.model['name']}"[:40] + ", probe": joined.frame for one in results}
    found = catalog.task(task)
    with figure_style():
        drawn = [scores_figure(results)]
        if found.classes:
            drawn.append(classification_figure(named, next(iter(named)), task, found.classes))
        else:
            wide = joined.frame.assign(y_pred=1000 * joined.frame["y_pred"])
            drawn += [agreement_figure(results[0], joined.frame), agreement_figure(results[0], wide)]
        if result.groups:
            drawn.append(groups_figure(results, results[0], found, joined.frame))
        for figure in (one.figure for one in drawn):
            box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
            assert box.x0 > 0 and box.y0 > 0 and box.x1 < width and box.y1 < height, (drawn, box)


def test_net_benefit_by_hand():
    """Check net benefit at threshold 0.2 (odds 1/4, four of ten positive, three correct): 3/10 - 1/10 x 1/4; at 0.9 it is 0."""
    truth = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 1], dtype=bool)
    probability = np.array([0.8, 0.6, 0.3, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    thresholds, benefit = decision_curve(truth, probability)
    assert benefit[thresholds.round(2) == 0.2] == pytest.approx(0.3 - 0.1 / 4)
    assert benefit[thresholds.round(2) == 0.9] == 0
    assert benefit[0] == pytest.approx(0.4 - 0.6 * 0.01 / 0.99), "all patients are predicted ill"


def test_limits_of_agreement_by_hand():
    """Test differences 1, 1, 4: mean 2, standard deviation sqrt(3), limits 2 -+ 1.96 sqrt(3)."""
    _, result = example_results.scored_example("phantom_echo/ef", 0.6, 1)
    frame = pd.DataFrame({"id": list("abc"), "patient_id": list("abc"), "y_true": [1.0, 2, 3], "y_pred": [2.0, 3, 7]})
    with figure_style():
        caption = agreement_figure(dataclasses.replace(result, model={"name": "m"}), frame).caption
    assert "bias 2.00, 95 % limits of agreement -1.39 to 5.39" in caption


def test_error_quantiles_use_rows_of_the_group():
    task = catalog.task("phantom_echo/ef")
    joined, result = example_results.scored_example("phantom_echo/ef", 0.6, 1)
    row = error_quantiles(task, result, joined.frame).set_index(["breakdown", "group"]).loc[("sex", "F")]
    women = joined.frame[joined.frame["sex"] == "F"]
    off = (women["y_pred"] - women["y_true"]).abs()
    assert row["mean"] == pytest.approx(off.mean())
    assert row[list(QUANTILES)].tolist() == pytest.approx(np.percentile(off, [5, 25, 50, 75, 95]).tolist())
    assert row["mean"] == pytest.approx(result.groups["sex"].values["F"].value), "the mean is the group's MAE"


def test_hostile_name_in_a_figure_is_text_and_ids_of_two_figures_differ(tmp_path):
    name = "<script>alert(1)</script> $x$ 0.123456 & \u202e"
    saved = []
    for stem in ("one", "two"):
        with figure_style():
            axes = (figure := Figure()).add_subplot(title=name)
            axes.plot([0, 1], [0, 1], "o")
            saved.append(save_report_figure(ReportFigure("f", "", figure, {}), tmp_path, stem, png=False).svg)
    trees = [ElementTree.fromstring(svg.replace("xlink:", "")) for svg in saved]
    assert "<script" not in saved[0] and name in ["".join(text.itertext()) for text in trees[0].iter("text")]
    ids = [{node.get("id") for node in tree.iter() if node.get("id")} for tree in trees]
    assert ids[0] and not ids[0] & ids[1]
    used = {node.get("href")[1:] for node in trees[0].iter("use")}
    assert used and used <= ids[0], "all references exist"


@pytest.mark.slow
def test_one_process_and_several_draw_the_same_bytes(tmp_path):
    example_results.folder_of_results(tmp_path / "r")
    collection = collect([tmp_path / "r"])
    one = draw_report(collection, tmp_path / "one", processes=1)
    two = draw_report(collection, tmp_path / "two", processes=2)
    assert len(one.figures) == 6 and not one.problems + two.problems
    files = sorted((tmp_path / "one" / "figures").iterdir())
    assert {file.suffix for file in files} == {".svg", ".csv"}
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / "figures" / file.name).read_bytes(), file.name


@pytest.mark.slow
def test_figure_has_the_same_bytes_every_time(tmp_path):
    path = example_results.write_result(tmp_path / "r", "org/one", "phantom_ecg/cd")
    once, again = (draw_report(collect([tmp_path / "r"]), tmp_path / name, processes=1, png=True) for name in "ab")
    assert [file.name for file in once.files] == [file.name for file in again.files] and path.is_file()
    for one, other in zip(once.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.slow
def test_damaged_predictions_are_named_and_the_rest_is_drawn(tmp_path):
    path = example_results.write_result(tmp_path / "r", "org/one", "phantom_echo/ef")
    example_results.write_result(tmp_path / "r", "org/two", "phantom_echo/ef", 0.5, seed=2)
    path.with_suffix(".predictions.parquet").write_bytes(b"PAR1 cut off")
    report = draw_report(collect([tmp_path / "r"]), tmp_path / "out", processes=1)
    assert [problem.kind for problem in report.problems] == ["no answers"]
    assert [figure.name for figure in report.of("task", "phantom_echo/ef")] == ["scores", "agreement", "groups"]


def test_analysis_with_missing_column_is_named(tmp_path, monkeypatch):
    figures = SimpleNamespace(draw=lambda record: record.tables["curve"]["score"])
    monkeypatch.setattr("cardiobench.report.plots._module", {"toy": figures}.get)
    broken = AnalysisResult("toy", "x/y", (), {}, {"curve": pd.DataFrame([{"a": 1}])}, models=({"name": "m"},))
    report = draw_report(assemble([], [(tmp_path / "a__b.json", broken)]), tmp_path, processes=1)
    assert [(problem.kind, problem.subject) for problem in report.problems] == [("no picture", "toy")]


def test_analysis_of_other_data_is_reported_and_not_shown(tmp_path):
    example_results.write_result(tmp_path, "org/one", "phantom_echo/ef")
    folder = tmp_path / "org__one" / "r1" / "frame_similarity"
    similarity_record("org/one", 0.9).save(folder / "phantom_echo__a.json")
    similarity_record("org/one", 0.9, digest="e" * 16).save(folder / "phantom_echo__b.json")
    dataclasses.replace(similarity_record("org/one", 0.9), datasets=({"name": "camus", "version": "9"},)).save(
        folder / "camus__c.json"
    )
    found = collect([tmp_path])
    assert sorted(path.name for path, _ in found.analyses) == ["camus__c.json", "phantom_echo__a.json"]
    (problem,) = found.problems
    assert problem.kind == "other data" and problem.file.endswith("phantom_echo__b.json")
    assert "digest eeeeeeeeeeee" in problem.message and "digest dddddddddddd" in problem.message


def test_study_size_is_inferred_from_its_data(tmp_path):
    example_results.write_result(tmp_path, "org/one", "phantom_echo/ef", dataset={"limit": 5})
    folder = tmp_path / "org__one" / "r1" / "frame_similarity"
    whole = similarity_record("org/one", 0.9)
    silent = {key: value for key, value in whole.datasets[0].items() if key != "limit"}
    dataclasses.replace(whole, datasets=(silent,)).save(folder / "phantom_echo__a.json")
    whole.save(folder / "phantom_echo__b.json")
    found = collect([tmp_path])
    assert [path.name for path, _ in found.analyses] == ["phantom_echo__a.json"]
    assert "first 5 patients" in found.problems[0].message


def test_numbers_of_a_study_are_marked_like_scores():
    record = similarity_record("org/one", 0.9, seen_in_pretraining={"phantom_echo": True, "camus": None})
    limited = dataclasses.replace(record, datasets=({"name": "phantom_echo", "twin": True, "limit": 5},))
    assert tables.analysis_flags(limited) == [
        "seen in pretraining: phantom_echo",
        "synthetic twin: phantom_echo",
        "first 5 patients",
    ]
    (row, *_), columns = tables.analysis_rows(limited), tables.ANALYSIS_COLUMNS
    assert dict(zip(columns, row, strict=True))["flags"].startswith("seen in pretraining: phantom_echo")
    assert tables.analysis_rows(dataclasses.replace(record, seen_in_pretraining={}))[0][-1] == "–"


@pytest.mark.parametrize("junk", [{"models": [{}]}, {"datasets": ["x"]}, {"seen_in_pretraining": "yes"}])
def test_nonsensical_record_is_refused(tmp_path, junk):
    import json

    path = tmp_path / "phantom_echo__a.json"
    similarity_record("org/one", 0.9).save(path)
    content = {**json.loads(path.read_text()), **junk}
    path.write_text(json.dumps({**content, CHECKSUM: checksum(content)}))
    with pytest.raises(BadData, match="no AnalysisResult of schema"):
        AnalysisResult.load(path)


def test_missing_image_is_not_called_unranked():
    kinds = ("no picture", "no answers", "no examples", "edited by hand", "other data")
    told = [Problem("x", kind, "why").consequence for kind in kinds]
    assert told == ["not drawn", "not drawn", "not shown", "not ranked", "not ranked"]


@pytest.mark.slow
def test_figure_is_saved_as_matplotlib_lays_it_out(tmp_path):
    """Check that one layout serves both files, and the SVG equals that of a plain `savefig`."""

    def drawn() -> Figure:
        figure, (left, right) = subplots(1, 2, width=5, height=3, title=("both",))
        left.plot([0, 1000], [0, 1e-3], label="a line with a long name")
        left.set(title="left", xlabel="below", ylabel="beside", aspect="auto")
        left.legend()
        right.plot([3, 4], [1, 2], "o")
        right.set_aspect("equal", adjustable="datalim")
        right.annotate("outside", (4, 1.5), (6, 0), textcoords="offset points")
        return figure

    plain = io.StringIO()
    with figure_style():
        saved = save_figure(drawn(), tmp_path / "one.svg")
        with matplotlib.rc_context({"svg.hashsalt": "one"}):
            drawn().savefig(plain, format="svg", dpi=DPI, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    assert saved == plain.getvalue() == (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_saved_figure_has_its_caption_below_and_the_page_has_it_once(tmp_path):
    """Check that both files state what the page says beside the figure, on a canvas that is taller by the caption."""
    caption = "Scores on one/task with 95 % intervals over patients, n = 60 (58 patients). " + "A longer sentence. " * 9
    with figure_style():
        figure, axes = subplots(height=2)
        axes.plot([0, 1], [0, 1])
        saved = save_report_figure(ReportFigure("f", caption, figure, {}), tmp_path, "one", png=True)
    svg, png = saved.files[:2]
    words = " ".join(
        "".join(node.itertext())
        for node in ElementTree.fromstring(svg.read_text()).iter("{http://www.w3.org/2000/svg}text")
    )
    assert caption.strip() in " ".join(words.split()) and "95 %" not in saved.svg
    sizes = [
        [float(number) for number in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups()]
        for text in (svg.read_text(), saved.svg)
    ]
    (width, whole), (same, inner) = sizes
    assert width == same == 4 * 72 and inner == 2 * 72 < whole
    with Image.open(png) as image:
        assert image.size == (4 * DPI, round(whole / 72 * DPI))
        assert np.asarray(image.convert("L"))[-int((whole - inner) / 72 * DPI) :].min() < 100, "the text is drawn"


@pytest.mark.parametrize("place", ["outside lower left", "outside upper left"])
def test_legend_of_a_figure_keeps_its_place_above_the_caption(tmp_path, place):
    drawn = []
    for caption in ("", "A sentence about this figure. " * 6):
        with figure_style():
            figure, axes = subplots(height=2)
            axes.plot([0, 1], [0, 1], label="one/model")
            figure.legend(loc=place)
            svg = save_figure(figure, tmp_path / "f.svg", caption, png=False)
        (name,) = re.findall(r"<text [^>]*>one/model</text>", svg)
        drawn.append([float(number) for number in re.search(r' x="([\d.]+)" y="([\d.]+)"', name).groups()])
    assert drawn[0] == pytest.approx(drawn[1], abs=0.1) and 0 < drawn[1][1] < 2 * 72


def test_names_of_floor_lines_are_apart_from_the_first_row():
    _, result = example_results.scored_example("phantom_ecg/cd", 0.6, 1)
    for count in (1, 4):
        with figure_style():
            drawn = scores_figure([dataclasses.replace(result, model={"name": f"m{n}"}) for n in range(count)])
            drawn.figure.draw_without_rendering()
        (axes,) = drawn.figure.axes
        label = max(text.get_bbox_patch().get_window_extent().y1 for text in axes.texts)
        names = min(text.get_window_extent().y0 for text in axes.get_legend().get_texts())
        assert names - label > 4 * drawn.figure.dpi / 72, "in points"

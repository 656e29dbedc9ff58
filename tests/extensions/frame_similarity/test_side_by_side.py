"""Test the figure of several models side by side in a report."""

import pandas as pd
import pytest

from cardiobench.extensions.frame_similarity import figures
from cardiobench.report.page.render import write_html
from cardiobench.report.plots.draw import draw_report
from cardiobench.results.collect import assemble
from tests.report.example_results import similarity_record


@pytest.mark.slow
def test_frame_similarities_share_one_colour_scale(tmp_path):
    records = [
        similarity_record("org/one", 0.9),
        similarity_record("org/two", 0.5, seen_in_pretraining={"phantom_echo": True}),
    ]
    collection = assemble([], [(tmp_path / f"{n}__.json", record) for n, record in enumerate(records)])
    report = draw_report(collection, tmp_path, processes=1, kinds=("side_by_side",))
    ((saved,),) = report.figures.values()
    assert "n = 12" in saved.caption and [file.suffix for file in saved.files] == [".svg", ".png", ".csv", ".csv"]
    table = pd.read_csv(next(file for file in saved.files if file.name.endswith(".matrix.csv")))
    assert table.groupby("model")["cosine"].min().tolist() == pytest.approx([0.81, 0.25])
    figure = figures.draw_side_by_side(records)["side_by_side"]
    assert {axes.images[0].get_clim() for axes in figure.axes if axes.images} == {(0.25, 1.0)}, "one colour scale"
    page = write_html(collection, tmp_path, figures=report).read_text()
    assert "Between models" in page and "org/two: seen in pretraining: phantom_echo" in page

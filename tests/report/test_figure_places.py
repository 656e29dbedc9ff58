"""Check that every figure of the page stands above its own caption and files."""

import re

import pytest

from cardiobench.report.page import render
from cardiobench.report.page.write import write_report
from tests.report import example_results


@pytest.mark.slow
def test_figures_match_their_links(tmp_path, monkeypatch):
    monkeypatch.setattr(render, "MAX_BYTES", 0)  # Figures become images that name their file.
    for name in ("org/one", "org/two"):
        example_results.write_result(tmp_path / "results", name, "phantom_ecg/cd")
    page = write_report([tmp_path / "results"], tmp_path / "report")[1][0].read_text(encoding="utf-8")
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    shown = [re.findall(r'src="([^"]+\.svg)"', figure) for figure in figures]
    assert len(figures) >= 2 and len({source for (source,) in shown}) == len(figures)
    for figure, (source,) in zip(figures, shown, strict=True):
        assert f'href="{source}"' in figure

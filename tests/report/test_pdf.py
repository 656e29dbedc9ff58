"""Test the page as PDF, and the message if it cannot be printed."""

import re
import shutil
import sys

import pytest

from cardiobench.cli.main import main
from cardiobench.core.errors import UnwritableOutput
from cardiobench.report.page import pdf
from tests.report import example_results
from tests.report.browser import chromium


@pytest.mark.slow
def test_command_prints_every_part(tmp_path, capsys):
    with chromium():
        pass
    example_results.folder_of_results(tmp_path / "r")
    assert main(["report", str(tmp_path / "r"), "--out", str(tmp_path / "out"), "--pdf"]) == 0
    content = (tmp_path / "out/report.pdf").read_bytes()
    assert content.startswith(b"%PDF") and "report.pdf" in capsys.readouterr().out
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 3, "with all parts closed, two pages are enough"
    sizes = re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", content)
    assert {tuple(round(float(one)) for one in size) for size in sizes} == {(842, 595)}, "A4 landscape"


def test_missing_playwright_is_named_first(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    example_results.write_result(tmp_path / "r")
    assert main(["report", str(tmp_path / "r"), "--out", str(tmp_path / "out"), "--pdf"]) == 2
    assert "pip install 'cardiobench[pdf]'" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_tables_are_not_printed(tmp_path, capsys):
    assert main(["report", str(tmp_path), "--layout", "latex", "--pdf"]) == 2
    assert "Remove one of these flags" in capsys.readouterr().err


@pytest.mark.slow
def test_failing_browser_is_named(tmp_path):
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with pytest.raises(UnwritableOutput, match="Open it in a browser"):
        pdf.write_pdf(tmp_path / "report.html", shutil.which("false"))

"""Check that CSV files for spreadsheets contain no executable formula, and that a round trip preserves all text."""

import pandas as pd
import pytest

from cardiobench.core.tables import escape_formula, unescape_formula, write_csv
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.runner.summarize import write_failures

TEXTS = ["=1+1", "+x", "-x", "@SUM(A1)", "\t=1", "'=1", "''=1", "a=1", "'quoted'", "", "–"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_unchanged_by_a_round_trip(text):
    assert unescape_formula(escape_formula(text)) == text
    assert not escape_formula(text).startswith(("=", "+", "-", "@", "\t"))


@pytest.mark.parametrize("number", ["-0.5", "+3", "1e-3", "-1.", -0.5, None])
def test_numbers_keep_type(number):
    assert escape_formula(number) == number


def test_every_written_csv_is_safe(tmp_path):
    table = pd.DataFrame({"=name": ["=cmd", "ok"], "value": [-0.5, 1.0], "n": [-1, 2]})
    assert write_csv(table, tmp_path / "a.csv").read_text() == "'=name,value,n\n'=cmd,-0.5,-1\nok,1.0,2\n"
    written = write_failures([("=model", "d", "id", "-reason")], tmp_path).read_text()
    assert written.splitlines()[1] == "'=model,d,id,'-reason"
    analysis = AnalysisResult("alignment", "camus/ef", ("camus/ef",), {}, tables={"rows": table})
    path = analysis.save(tmp_path / "camus__ef.json")
    assert path.with_suffix(".rows.csv").read_text().startswith("'=name")
    pd.testing.assert_frame_equal(AnalysisResult.load(path).tables["rows"], table)

"""Test the enum of verdicts, the single list for files, pages and the manual."""

import copy
import pickle

import pytest

from cardiobench.core.errors import BadData
from cardiobench.report.overview import MARKS
from cardiobench.results.record import checksum
from cardiobench.results.score_result import Judgement, ScoreResult
from cardiobench.results.verdict import Rank, Verdict, verdict_table

from .test_score_result import result


def test_manual_has_the_table_of_the_enum(root):
    """Check that every verdict and its text is in the manual."""
    page = (root / "docs" / "verdict.md").read_text("utf-8")
    assert verdict_table() in page, f"replace the table of docs/verdict.md by:\n{verdict_table()}"


def test_signs_and_texts_are_unambiguous():
    assert len({verdict.sign for verdict in Verdict}) == len(Verdict) == len({str(verdict) for verdict in Verdict})
    assert all(verdict.meaning and isinstance(verdict.rank, Rank) for verdict in Verdict)
    assert Verdict.ABOVE.rank is Rank.WINS and Verdict.INCOMPARABLE.rank is Rank.NONE


@pytest.mark.parametrize("verdict", list(Verdict))
def test_verdicts_equal_their_texts(verdict):
    """Check that verdicts compare with plain text, as older code, users and files need."""
    text = str(verdict)
    assert type(text) is str and verdict == text and MARKS[text] == (verdict.sign, verdict.meaning)
    judgement = Judgement(text, "a sentence")
    assert judgement.word is verdict
    assert copy.deepcopy(judgement).word is verdict
    assert pickle.loads(pickle.dumps(judgement)).word is verdict  # noqa: S301  # Our own bytes.
    record = result(verdict=judgement).to_json()
    assert record["verdict"]["word"] == text and ScoreResult.from_json(record).verdict.word is verdict


def test_unknown_verdict_is_refused():
    record = result().to_json()
    record["verdict"] = {**record["verdict"], "word": "the best of all"}
    record["seal"] = checksum(record)
    with pytest.raises(BadData, match=r"verdict\.word: Input should be 'above the floor'"):
        ScoreResult.from_json(record)
    with pytest.raises(ValueError, match="the best of all"):
        Judgement("the best of all", "a sentence")

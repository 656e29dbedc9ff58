"""Check that a test skipped for an unlisted reason fails the run."""

from types import SimpleNamespace

from .skips import unlisted_skips


def test_only_listed_skip_reasons_pass():
    reasons = ("needs a GPU", "gradio is not installed: make test-leaderboard", "needs a GPU from Mars", "no reason")
    reports = [SimpleNamespace(longrepr=("tests/a.py", 1, f"Skipped: {reason}")) for reason in reasons]
    assert unlisted_skips(reports, ".venv") == ["tests/a.py: needs a GPU from Mars", "tests/a.py: no reason"]
    assert unlisted_skips(reports[:2], ".venv-leaderboard") == [f"tests/a.py: {reasons[1]}"]

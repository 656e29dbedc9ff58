"""Check that a test skipped for an unlisted reason fails the run."""

import re
from types import SimpleNamespace

from .skips import unlisted_skips


def test_only_listed_skip_reasons_pass():
    reasons = ("needs a GPU", "gradio is not installed: make test-leaderboard", "needs a GPU from Mars", "no reason")
    reports = [SimpleNamespace(longrepr=("tests/a.py", 1, f"Skipped: {reason}")) for reason in reasons]
    assert unlisted_skips(reports, ".venv") == ["tests/a.py: needs a GPU from Mars", "tests/a.py: no reason"]
    assert unlisted_skips(reports[:2], ".venv-leaderboard") == [f"tests/a.py: {reasons[1]}"]


def test_every_test_that_needs_the_folder_beside_the_checkout_is_listed(root):
    """Compare the files that request the fixture `shared` with those named in CONTRIBUTING.md, as far as they are here."""
    listed = set(re.findall(r"`([\w/]+/test_\w+\.py)`", (root / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    requested = re.compile(r"^(?:    )?def \w+\([^)]*\bshared\b|getfixturevalue\(.shared", re.MULTILINE)
    folder = root / "tests"
    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("test_*.py")
        if requested.search(text := path.read_text(encoding="utf-8")) and 'parametrize("shared"' not in text
    }
    assert found - listed == set()
    assert {name for name in listed if (folder / name).exists()} <= found

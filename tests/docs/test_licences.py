"""Check that the licence page lists the pinned packages, and that the audit distinguishes findings from a missing index."""

import re

import pytest

from tests.audit import verdict


def test_every_pinned_package_is_on_the_page_of_licences(root):
    pins = re.findall(r"^([^#=\s]+)==(\S+)$", (root / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    page = (root / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (.*) \|$", page, re.MULTILINE)
    assert [row[:2] for row in rows[1:]] == pins, "run: python docs/make_licences.py"
    assert not [name for name, _, licence in rows if licence in ("", "not said", "UNKNOWN", "OSI Approved")]


def test_page_names_the_gpl_code_that_the_video_wheels_bundle(root):
    """Check the licences in the wheel, whose libraries include x264 and x265."""
    av = pytest.importorskip("av")
    page = (root / "docs" / "licences.md").read_text(encoding="utf-8")
    bundled = {name for name in ("libx264", "libx265") if name in av.codecs_available}
    assert all(name.removeprefix("lib") in page for name in bundled) and "GPL, version 2 or later" in page


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([{"name": "a", "skip_reason": "not there"}], 0, "skipped: the index that was reached knows none of the 1"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "no"}], 0, "1 of 2 packages"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}],
            1,
            "a 1: CVE-1.*mended in 2",
        ),
    ],
)
def test_audit_ends_with_a_clear_exit_code(packages, code, said):
    got, text = verdict({"dependencies": packages})
    assert got == code and re.search(said, text)

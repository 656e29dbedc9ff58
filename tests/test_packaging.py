"""Check that pyproject.toml, CITATION.cff and the build agree on the facts of the package."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import cardiobench

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def is_build_of(build, release):
    """Return whether a version is this release, or the development version that follows it."""
    following = (*release.release[:2], release.release[2] + 1)
    return build.release == following if build.is_devrelease else build == release


@pytest.mark.parametrize(
    ("build", "matches"), [("0.2.0", True), ("0.2.1.dev5", True), ("0.1.1.dev5", False), ("0.3.0", False)]
)
def test_build_must_match_the_release_version(build, matches):
    assert is_build_of(Version(build), Version("0.2.0")) is matches


def test_citation_names_the_built_release():
    cited = Version(str(CITATION["version"]))
    assert PROJECT["tool"]["hatch"]["version"]["fallback-version"] == str(cited)
    assert is_build_of(Version(cardiobench.__version__), cited), (
        f"CITATION.cff names {cited}, and the build is {cardiobench.__version__}: write the released version into "
        "CITATION.cff and fallback-version of pyproject.toml before tagging"
    )


def test_project_urls_equal_those_of_the_citation():
    assert set(PROJECT["project"]["urls"].values()) == {one["url"] for one in CITATION["references"]}

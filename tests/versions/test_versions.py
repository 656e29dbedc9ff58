"""Check that no component changes its output without a new version; `components.py` describes how to increment it."""

import copy

import numpy as np
import pytest

from tests.versions import components
from tests.versions.components import CASES, FILE, Written, forgotten, rewrite, run_case, tolerance, versions
from tests.versions.sketch import TOLERANCE, distance, sketch

MARKED = [pytest.param(name, marks=pytest.mark.slow if case.slow else ()) for name, case in CASES.items()]
AGAIN = "Run: python -m tests.versions.components"


@pytest.fixture(scope="module")
def stated():
    """Return the versions in all files of the package; reading them takes longer than most cases."""
    return versions()


@pytest.mark.parametrize("name", MARKED)
def test_outputs_change_only_with_a_version(name, stated):
    written, new = Written.read(), run_case(name)
    assert name in written.cases, f"{name} is new. {AGAIN}"
    problem = forgotten(name, new, written, stated)
    assert not problem, problem
    assert new["components"] == written.cases[name]["components"], AGAIN
    assert distance(written.cases[name]["sketch"], new["sketch"]) <= tolerance(name, written), (
        f"a version was incremented. {AGAIN}"
    )


def test_file_has_the_version_of_every_component(stated):
    written = Written.read().versions
    other = {name: (written.get(name), version) for name, version in stated.items() if written.get(name) != version}
    assert not other, f"written and stated versions differ: {other}. {AGAIN}"


def test_every_component_has_an_output(stated):
    # If an extension is not installed, its case may be the only one of an installed component.
    tried = {one for entry in Written.read().cases.values() for one in entry["components"]}
    assert set(stated) <= tried, f"without a case: {sorted(set(stated) - tried)}"


def test_sketches_ignore_the_last_digit():
    values = np.random.default_rng(0).normal(size=(300, 40))
    before = sketch([values, [400.0]])
    assert distance(before, sketch([values * (1 + 1e-7), [400.0]])) < TOLERANCE / 10
    assert distance(before, sketch([values * 1.001, [400.0]])) > TOLERANCE
    assert distance(before, sketch([values, [400.4]])) > TOLERANCE
    turned = values.copy()
    turned[:, 3] *= 1.01
    assert distance(before, sketch([turned, [400.0]])) > TOLERANCE
    assert distance(before, sketch([values[::-1], [400.0]])) > TOLERANCE
    assert distance(before, sketch([values[1:], [400.0]])) == np.inf
    holed = values.copy()
    holed[0, 0] = np.nan
    assert distance(before, sketch([holed, [400.0]])) == np.inf


@pytest.fixture
def another_file(tmp_path, monkeypatch):
    """Return a writable copy of the committed file."""
    copied = tmp_path / "versions.json"
    copied.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(components, "FILE", copied)
    return copied


def change_reader(monkeypatch, version):
    """Let the reader of still images return other images under a given version."""
    real, stated = CASES["reader still"], versions()
    changed = copy.copy(real)
    object.__setattr__(changed, "make", lambda folder: ([a + 1 for a in real.make(folder)[0]], set()))
    monkeypatch.setitem(components.CASES, "reader still", changed)
    monkeypatch.setattr(components, "versions", lambda: {**stated, "reader still": version})


@pytest.mark.slow
def test_versions_are_not_written_if_a_version_was_not_raised(another_file, monkeypatch):
    before = another_file.read_bytes()
    change_reader(monkeypatch, Written.read().versions["reader still"])
    (problem,) = rewrite(["reader still"])
    assert "no version did" in problem and "reader still" in problem
    assert another_file.read_bytes() == before


@pytest.mark.slow
def test_raised_version_requires_all_its_cases(another_file, monkeypatch):
    change_reader(monkeypatch, "2")
    assert all("give this case too" in line for line in rewrite(["reader still"]))
    written = Written.read()
    for name, entry in written.cases.items():  # Pretend that no other case uses this reader.
        if name != "reader still":
            entry["components"] = [one for one in entry["components"] if one != "reader still"]
    another_file.write_text(components.as_text(written))
    assert rewrite(["reader still"]) == []
    assert Written.read().versions["reader still"] == "2"
    assert distance(Written.read().cases["reader still"]["sketch"], run_case("reader still")["sketch"]) == 0

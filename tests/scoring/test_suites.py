"""Check that every name in a suite exists, and that released suites are unchanged."""

import json

import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, UnknownName
from cardiobench.core.extensions import Extension
from cardiobench.core.io import sha256_of_json, to_plain
from cardiobench.data import catalog
from cardiobench.protocols import check_installed, list_protocols
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.run import apply_suite
from cardiobench.scoring import suites
from cardiobench.scoring.families import family_of, margin
from cardiobench.scoring.means import task_means
from cardiobench.scoring.suites import list_suites, load_suite, suites_in

# A released suite never changes; changes need a new version with a new name.
RELEASED = {"cardiobench_ecg_v1": "7ce8b645d03f", "cardiobench_echo_v1": "925a56f8cae1"}


@pytest.mark.parametrize("name", list_suites())
def test_every_name_of_a_suite_exists(name):
    suite = load_suite(name)
    assert suite.title and resolve_tasks(suite.tasks)
    if set(suite.protocols) <= set(list_protocols()):
        check_installed(name, suite.protocols)
    else:  # An extension was deleted.
        with pytest.raises(UnknownName, match="no installed extension provides"):
            check_installed(name, suite.protocols)
    assert set(suite.primary_tasks) <= {*catalog.list_tasks(), "echo/view"}
    assert set(suite.primary_variants) <= set(suite.protocols) and set(suite.options) <= set(suite.protocols)


def test_suite_with_absent_protocol_is_refused():
    with pytest.raises(
        UnknownName, match=r"suite 'mine' needs .* no installed extension provides protocol other, more"
    ):
        check_installed("mine", ("probe", "other", "more"))


PUBLISHED = tuple(suites_in(suites))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_suites_name_missing_extensions(name, monkeypatch):
    suite = load_suite(name)
    monkeypatch.setattr("cardiobench.core.extensions.extensions", dict)
    absent = [one for one in suite.protocols if one not in list_protocols()]
    if absent:
        with pytest.raises(UnknownName, match=f"no installed extension provides protocol {', '.join(absent)}"):
            apply_suite(RunConfig(suite=name))
    else:
        assert apply_suite(RunConfig(suite=name)).protocols == suite.protocols


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Install a package `toy_suites` with a suite of an extension."""
    (tmp_path / "toy_suites").mkdir()
    text = json.dumps({"title": "t", "tasks": ["phantom_ecg"], "protocols": ["knn"], "margins": {"f1_macro": 0.5}})
    (tmp_path / "toy_suites" / "toy_v1.json").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    manifests = {"toy": Extension(suites="toy_suites")}
    monkeypatch.setattr("cardiobench.core.extensions.extensions", lambda: manifests)
    load_suite.cache_clear()
    yield tmp_path / "toy_suites"
    load_suite.cache_clear()


def test_extension_suites_follow_published_ones(toy):
    assert list_suites() == (*PUBLISHED, "toy_v1") and load_suite("toy_v1").tasks == ("phantom_ecg",)
    assert margin("f1_macro") == 0.02, "published names come first"
    (toy / "quick.json").write_text("{}")
    with pytest.raises(BadConfig, match=r"two suites are called 'quick': .*quick\.json and .*toy_suites"):
        list_suites()


def test_released_suites_are_frozen():
    assert {name: sha256_of_json(to_plain(load_suite(name)))[:12] for name in RELEASED} == RELEASED


def test_means_are_over_tasks_of_their_suite():
    for mean in task_means():
        asked = {task.name: task for task in resolve_tasks(load_suite(mean.suite).tasks)}
        assert set(mean.tasks) <= set(asked) and len(set(mean.tasks)) == len(mean.tasks) > 1
        assert all(asked[name].classes for name in mean.tasks) and mean.protocol in load_suite(mean.suite).protocols
    diseases = next(mean for mean in task_means() if mean.published == 0.865)
    assert diseases.note == "other labels, other images" and "arXiv:2512.12107" in diseases.published_by


def test_families_match_the_suites():
    assert family_of("camus/ef", "probe").name == "cardiobench_echo_v1/probe"
    assert family_of("ptb_xl/af", "cross_validation", "L.logistic").name == "cardiobench_ecg_v1/cross_validation"
    assert family_of("ptb_xl/af", "cross_validation", "XS.tree") is None
    assert family_of("phantom_ecg/cd", "probe") is None
    assert margin("f1_macro") == 0.02 and margin("mae", "cm") == 0.05 and margin("mae", "kg") is None
    with pytest.raises(UnknownName, match="Did you mean 'cardiobench_ecg_v1'"):
        load_suite("cardiobench_ecg")


@pytest.mark.skipif("cross_validation" not in list_protocols(), reason="its extension is not here")
def test_suite_takes_options_that_only_select():
    suite = "cardiobench_ecg_v1"
    few = apply_suite(RunConfig(suite=suite, options=["cross_validation.sizes=XS"]))
    assert few.options == {"probe": {"refits": 20}, "knn": {"refits": 20}, "cross_validation": {"sizes": "XS"}}
    with pytest.raises(BadConfig, match=f"--suite {suite} fixes options"):
        apply_suite(RunConfig(suite=suite, options=["cross_validation.folds=3"]))

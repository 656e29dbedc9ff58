"""Test profiles by name: a toy profile from an extension, and none."""

from typing import ClassVar

import pytest

from cardiobench.core import extensions
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import UnknownName
from cardiobench.core.extensions import Extension
from cardiobench.protocols import protocol
from cardiobench.protocols.profile import RunProfile, find_profile
from cardiobench.runner.plan import resolve_tasks
from cardiobench.runner.run import resolve

CONFIG = RunConfig(models=("cardiobench/constant",), tasks=("phantom_ecg/cd",), profile="toy")


class Toy(RunProfile):
    """Profile with three neighbours, seed 9, and the first task of a dataset."""

    options: ClassVar = {"knn": {"neighbours": (3,), "folds": 4}}
    seed = 9

    def tasks(self, spec):
        return spec.tasks[:1]


@pytest.fixture
def toy(monkeypatch):
    manifest = Extension(profiles={"toy": f"{__name__}:Toy"})
    monkeypatch.setattr(extensions, "extensions", lambda: {"toy": manifest})


def test_profile_sets_unset_options(toy):
    request = resolve(CONFIG)
    (knn,) = (one for one in request.protocols if one.name == "knn")
    assert (knn.neighbours, knn.folds, knn.seed) == ((3,), 4, 9)
    given = RunConfig(models=("m",), profile="toy", seed=2, options={"knn": {"folds": 3}})
    chosen = protocol("knn", find_profile("toy").apply(given))
    assert (chosen.neighbours, chosen.folds, chosen.seed) == ((3,), 3, 2)
    assert [task.name for task in resolve_tasks(["phantom_ecg"], "toy")] == ["phantom_ecg/cd"]
    assert len(resolve_tasks(["phantom_ecg"])) > 1


def test_unknown_profile_is_refused_before_work():
    with pytest.raises(UnknownName, match=r"no profile 'toy'. .*may provide it"):
        resolve(CONFIG)

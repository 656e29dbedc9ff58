"""Test every kind of damage at every file that is read: a helpful error or a listed problem, and nothing else.

Missing read permission is not among the kinds, because containers run tests as root, who may read every file.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from cardiobench.core.errors import CardioBenchError
from tests.faults.kinds import CONTENTS, OF_MAPPINGS, OF_TEXTS, REPLACEMENTS
from tests.faults.model_files import MODEL_FILES
from tests.faults.recordings import RECORDINGS
from tests.faults.releases import RELEASES
from tests.faults.results import RESULTS

PLACES = RESULTS | MODEL_FILES | RECORDINGS | RELEASES

GIVEN = ("run.yaml", "prompts.json", "subset")
"""Files named by the user, which may be pipes: `--config <(command)`."""


def same(damaged: bytes, content: bytes) -> bool:
    """Return whether the damage changed nothing: the JSON is the same except for a space or an equal value."""
    try:
        return json.dumps(json.loads(damaged)) == json.dumps(json.loads(content))
    except ValueError:
        return damaged == content


def cases() -> Iterator[tuple[str, str]]:
    for name, place in PLACES.items():
        for kind in (*CONTENTS, *REPLACEMENTS):
            if kind in OF_MAPPINGS and place.form != "mapping":
                continue
            if kind in OF_TEXTS and place.form == "binary":
                continue
            if kind == "a pipe in its place" and name in GIVEN:
                continue
            yield name, kind


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Callable[[str], tuple[Path, Path]]:
    """Return the folder of a file, and the valid file relative to that folder."""

    @cache
    def make(name: str) -> tuple[Path, Path]:
        folder = tmp_path_factory.mktemp(name.replace(" ", "_")) / "place"
        folder.mkdir()
        return folder, PLACES[name].make(folder).relative_to(folder)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_undamaged_file_is_read(original, name):
    folder, file = original(name)
    assert PLACES[name].read(folder / file), "otherwise all damage would appear to be detected"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_damage_is_an_error_or_a_listed_problem(original, name, kind, tmp_path):
    place, (folder, file) = PLACES[name], original(name)
    content = (folder / file).read_bytes()
    variants = list(CONTENTS[kind](content)) if kind in CONTENTS else [None]
    fell = []
    for number, variant in enumerate(variants):
        copy = shutil.copytree(folder, tmp_path / str(number) / "place")
        path = copy / file
        if variant is None:
            REPLACEMENTS[kind](path)
        else:
            path.write_bytes(variant)
        try:
            good = bool(place.read(path))
        except CardioBenchError:
            good = False
        except BaseException as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            fell.append(f"{number}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if good and place.checked and not same(variant, content):
            fell.append(f"{number}: taken for a good file")
        shutil.rmtree(tmp_path / str(number))
    assert not fell, "\n".join(fell)

"""Check that digests detect random bit flips."""

import shutil

import numpy as np
import pytest

from cardiobench.core.errors import CardioBenchError
from tests.faults.model_files import MODEL_FILES
from tests.faults.recordings import RECORDINGS
from tests.faults.releases import RELEASES
from tests.faults.results import RESULTS
from tests.faults.test_matrix import same

PLACES = {name: place for name, place in (RESULTS | MODEL_FILES | RECORDINGS | RELEASES).items() if place.checked}
FLIPS = 100
QUICK = 8


def silent_flips(place, folder, count, seed):
    """Flip one random bit at a time; return the positions for which the file is still accepted."""
    path = place.make(folder)
    content, rng = path.read_bytes(), np.random.default_rng(seed)
    good = shutil.copytree(folder, folder.parent / "good")
    silent = []
    for _ in range(count):
        position, bit = int(rng.integers(len(content))), int(rng.integers(8))
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        shutil.rmtree(folder)
        shutil.copytree(good, folder)
        path.write_bytes(damaged)
        try:
            passed = bool(place.read(path))
        except CardioBenchError:
            passed = False
        if passed and not same(bytes(damaged), content):
            silent.append((position, bit))
    return silent


@pytest.mark.parametrize(
    ("name", "count", "seed"),
    [(name, QUICK, 0) for name in PLACES] + [pytest.param(name, FLIPS, 1, marks=pytest.mark.slow) for name in PLACES],
)
def test_every_flipped_bit_is_detected(name, count, seed, tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    silent = silent_flips(PLACES[name], folder, count, seed)
    assert not silent, f"{len(silent)} of {count} undetected flips, as (position, bit): {silent[:5]}"

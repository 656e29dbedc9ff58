"""Every kind of damage at every file that is read: an error that says what to do, or a listed problem, and nothing else.

The last lines of a run of pytest say how many were tried and survived. A file without permission is no kind of its own here:
containers run tests as root, who may read all.
"""

import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import cardiobench
from cardiobench.core.config import RunConfig, make_config, read_config
from cardiobench.core.errors import CardioBenchError
from cardiobench.data import catalog
from cardiobench.data.media import read_clip, read_ecg
from cardiobench.data.prompts import COMMON, prompts
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.load import load_model
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import collect
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import load_predictions
from cardiobench.results.score_result import ScoreResult
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.test_ecg_wfdb_files import write_record
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames, write_video
from tests.faults.kinds import CONTENTS, OF_MAPPINGS, OF_TEXTS, REPLACEMENTS
from tests.models.tiny import tiny_open_clip, tiny_siglip
from tests.report import example_results

TASK = "phantom_ecg/cd"


@dataclass(frozen=True)
class Place:
    """A file that the package reads.

    Attributes:
        make: writes a good one, and what belongs to it, into a folder; returns the file.
        read: reads it through a public function; returns whether it was taken for a good one.
        form: what the content is: binary, text (with numbers) or a mapping (JSON, which is YAML too).
        checked: a checksum covers the content, so that no damage to it passes for a good file.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    form: str = "binary"
    checked: bool = False


def analysis(folder: Path) -> Path:
    record = AnalysisResult("alignment", "camus/ef", ("camus/ef",), {"n": point_estimate(3.0)})
    return record.save(folder / "camus__ef.json")


def ranked(path: Path) -> bool:
    return not collect([path.parent]).problems


def predictions_file(folder: Path) -> Path:
    return predictions_path(example_results.write_result(folder))


def scored(path: Path) -> bool:
    result = next(path.parent.glob("*.json"))
    listed = collect([path.parent]).problems
    load_predictions(ScoreResult.load(result), path)
    return not listed


def foreign(folder: Path, damaged: str) -> Path:
    task = catalog.task(TASK)
    references = example_results.truth(task, n=40)
    references.to_csv(folder / "references.csv", index=False)
    example_results.answers(task, references, 0.9, 0).to_csv(folder / "predictions.csv", index=False)
    return folder / damaged


def columnar(folder: Path, damaged: str) -> Path:
    path = foreign(folder, f"{damaged}.csv")
    pd.read_csv(path, dtype={"id": str}).to_parquet(path.with_suffix(".parquet"))
    path.unlink()
    return path.with_suffix(".parquet")


def score(path: Path) -> object:
    other = {"predictions": "references", "references": "predictions"}[path.stem]
    tables = {path.stem: path, other: path.with_name(f"{other}.csv")}
    return cardiobench.score(tables["predictions"], TASK, tables["references"], resamples=60)


def store(folder: Path) -> EmbeddingStore:
    return EmbeddingStore(folder, "org/name", "camus", {"revision": "abc"})


def shard(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    return store(folder).append(["a", "b"], ["1", "1"], [rng.normal(size=(3, 8)), rng.normal(size=(1, 8))])


def vectors(path: Path) -> object:
    folder = next(parent for parent in path.parents if parent.name == "place")
    return store(folder).load(["a", "b"], ["1", "1"])


def run_file(folder: Path) -> Path:
    values = {"models": ["baseline/ecg-statistics"], "tasks": [TASK], "seed": 3, "limit": 40, "options": {}}
    path = folder / "run.yaml"
    path.write_text(json.dumps(values))
    return path


def prompt_file(folder: Path) -> Path:
    sources = (COMMON, catalog.dataset_folder("tmed2") / "prompts.json")
    path = folder / "prompts.json"
    path.write_text(
        json.dumps({name: value for source in sources for name, value in json.loads(source.read_text()).items()})
    )
    return path


def asked(path: Path) -> object:
    """Ask for the prompts of a number and of classes; an answer that is no list of texts per key is none."""
    for name in ("camus/ef", "tmed2/as"):
        chosen, _ = prompts(catalog.task(name), path)
        assert all(isinstance(text, str) for texts in chosen.values() for text in texts)
        assert all(isinstance(texts, list) for texts in chosen.values())
    return True


def model_file(name: str) -> Callable[[Path], Path]:
    return lambda folder: tiny_siglip(folder) / name


def pickled(folder: Path) -> Path:
    weights = tiny_siglip(folder) / "model.safetensors"
    path = folder / "pytorch_model.bin"
    torch.save(load_file(weights), path)
    weights.unlink()
    return path


def loaded(path: Path) -> object:
    return load_model(str(path.parent))


def waveform(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        digital = np.random.default_rng(0).integers(-500, 500, size=(200, 12))
        return write_record(folder, digital).with_suffix(suffix)

    return make


def tracings(folder: Path) -> Path:
    path = folder / "exams.hdf5"
    with h5py.File(path, "w") as file:
        file["tracings"] = np.random.default_rng(1).normal(size=(3, 400, 12)).astype(np.float32)
        file["exam_id"] = np.array([5, 6, 7])
    return path


def recording(name: str, content: Callable[[np.ndarray], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content(moving_frames(6, 32, 48)))
        return path

    return make


def still(form: str) -> Callable[[np.ndarray], bytes]:
    def content(frames: np.ndarray) -> bytes:
        stream = io.BytesIO()
        Image.fromarray(frames[0]).save(stream, form)
        return stream.getvalue()

    return content


def mp4(folder: Path) -> Path:
    return write_video(folder / "a.mp4", moving_frames(6, 32, 48), "libx264")


def nifti(frames: np.ndarray) -> bytes:
    return nibabel.Nifti1Image(frames[..., 0].transpose(2, 1, 0), np.eye(4)).to_bytes()


PLACES = {
    "result JSON": Place(example_results.write_result, ranked, "mapping", checked=True),
    "predictions Parquet": Place(predictions_file, scored, checked=True),
    "analysis JSON": Place(analysis, ranked, "mapping", checked=True),
    "embedding shard": Place(shard, vectors, checked=True),
    "run.yaml": Place(run_file, lambda path: make_config(RunConfig, read_config(path)), "mapping"),
    "prompts.json": Place(prompt_file, asked, "mapping"),
    "references CSV": Place(lambda folder: foreign(folder, "references.csv"), score, "text"),
    "predictions CSV": Place(lambda folder: foreign(folder, "predictions.csv"), score, "text"),
    "references Parquet": Place(lambda folder: columnar(folder, "references"), score),
    "predictions of others as Parquet": Place(lambda folder: columnar(folder, "predictions"), score),
    "config.json": Place(model_file("config.json"), loaded, "mapping"),
    "weights": Place(model_file("model.safetensors"), loaded),
    "processor_config.json": Place(model_file("processor_config.json"), loaded, "mapping"),
    "tokenizer.json": Place(model_file("tokenizer.json"), loaded, "mapping"),
    "tokenizer_config.json": Place(model_file("tokenizer_config.json"), loaded, "mapping"),
    "tokenizer.json of open_clip": Place(
        lambda folder: tiny_open_clip(folder, text="tokenizer") / "tokenizer.json", loaded, "mapping"
    ),
    "pickled weights": Place(pickled, loaded),
    "WFDB header": Place(waveform(".hea"), read_ecg, "text"),
    "WFDB signal": Place(waveform(".dat"), read_ecg),
    "HDF5": Place(tracings, lambda path: read_ecg(path, 1)),
    "NIfTI": Place(recording("a.nii", nifti), read_clip),
    "AVI": Place(recording("a.avi", lambda frames: avi_of(mjpg_packets(frames), (32, 48))), read_clip),
    "DICOM": Place(recording("a.dcm", lambda frames: dicom_bytes(frames, "RGB")), read_clip),
    "PNG": Place(recording("a.png", still("PNG")), read_clip),
    "JPEG": Place(recording("a.jpg", still("JPEG")), read_clip),
    "GIF": Place(recording("a.gif", still("GIF")), read_clip),
    "MP4": Place(mp4, read_clip),
    "compressed NIfTI": Place(recording("a.nii.gz", lambda frames: gzip.compress(nifti(frames), mtime=0)), read_clip),
}


GIVEN = ("run.yaml", "prompts.json")
"""Files that the user names, who may mean a pipe: `--config <(command)`."""


def same(damaged: bytes, content: bytes) -> bool:
    """Return whether the damage changed nothing: the same JSON, less a blank or with a value put in its own place."""
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
    """Return the folder of a place, and the good file in it relative to that folder."""

    @cache
    def make(name: str) -> tuple[Path, Path]:
        folder = tmp_path_factory.mktemp(name.replace(" ", "_")) / "place"
        folder.mkdir()
        return folder, PLACES[name].make(folder).relative_to(folder)

    return make


@pytest.mark.parametrize("name", PLACES)
def test_an_undamaged_file_is_read(original, name):
    folder, file = original(name)
    assert PLACES[name].read(folder / file), "else every damage would seem to be seen"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_damage_is_an_error_or_a_listed_problem(original, name, kind, tmp_path, record_property):
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
    record_property("faults_tried", len(variants))
    record_property("faults_survived", len(variants) - len(fell))
    assert not fell, "\n".join(fell)

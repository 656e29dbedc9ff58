"""Every kind of damage at every file that is read: an error that says what to do, or a listed problem, and nothing else.

The last lines of a run of pytest say how many were tried and survived. A file without permission is no kind of its own here:
containers run tests as root, who may read all.
"""

import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pandas as pd
import pydicom
import pytest
import torch
from PIL import Image
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGBaseline8Bit, RLELossless
from safetensors.torch import load_file, save_file

import cardiobench
from cardiobench.core.config import RunConfig, make_config, read_config
from cardiobench.core.errors import CardioBenchError
from cardiobench.core.resources import folder as package_folder
from cardiobench.data import catalog, open_dataset
from cardiobench.data.ecg_subsets import Subset, read_subset, write_subset
from cardiobench.data.media import read_clip, read_ecg
from cardiobench.data.phantom.cache import cached_bytes
from cardiobench.data.prepare import prepare
from cardiobench.data.prompts import COMMON, prompts
from cardiobench.data.published_prompts import _CLASSES as CLASSES
from cardiobench.data.published_prompts import _MEASUREMENTS as MEASUREMENTS
from cardiobench.data.published_prompts import read_clone
from cardiobench.data.twin import write_twin
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.hub.outgoing import ids_below
from cardiobench.hub.push_results import find_results
from cardiobench.hub.results_dataset import records
from cardiobench.leaderboard.source import read_entries
from cardiobench.models.cards import read_card
from cardiobench.models.echo.echoprime_files import read_retrieval
from cardiobench.models.files import given_files
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
from tests.hub.results import result
from tests.models.echo.fake import candidate_bank, section_weights
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


def root(path: Path) -> Path:
    """Return the folder that was given to `make`."""
    return next(parent for parent in path.parents if parent.name == "place")


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
    return store(root(path)).load(["a", "b"], ["1", "1"])


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


def jpeg_dicom(frames: np.ndarray) -> bytes:
    pictures = []
    for frame in frames:
        stream = io.BytesIO()
        Image.fromarray(frame).save(stream, "JPEG", quality=95, subsampling=0)
        pictures.append(stream.getvalue())
    return dicom_bytes(frames, "YBR_FULL_422", syntax=JPEGBaseline8Bit, PixelData=encapsulate(pictures))


def rle_dicom(frames: np.ndarray) -> bytes:
    file = pydicom.dcmread(io.BytesIO(dicom_bytes(frames, "RGB")))
    file.compress(RLELossless)
    stream = io.BytesIO()
    file.save_as(stream)
    return stream.getvalue()


def twin(name: str, pattern: str) -> Callable[[Path], Path]:
    """Return what writes a release, as its twin, and gives the first file of a pattern in it."""

    def make(folder: Path) -> Path:
        write_twin(name, folder / name, patients=4)
        return sorted((folder / name).rglob(pattern))[0]

    return make


def release(path: Path) -> object:
    (raw,) = root(path).iterdir()
    return open_dataset(raw.name, raw, allow_missing=True)


def prepared(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write_twin("georgia", folder.parent / "raw", patients=4)
        return next(prepare("georgia", folder.parent / "raw", folder).rglob(name))

    return make


def opened(path: Path) -> object:
    dataset = open_dataset("georgia", root(path), verify=True)
    return [dataset.recording(number) for number in range(len(dataset.frame))]


def arrays_of(path: Path) -> object:
    """Read the table of a release and every row of its arrays."""
    dataset = release(path)
    return [dataset.recording(number) for number in range(len(dataset.frame))]


def features(path: Path) -> object:
    """Read the arrays that only the audit opens; it lists those whose rows are of other ECGs."""
    *_, order = catalog.builder("echonext").findings(root(path) / "echonext", pd.DataFrame())
    return not order.count


def candidates(name: str) -> Callable[[Path], Path]:
    """Return what writes the bank of studies that EchoPrime answers from, and gives one file of it."""

    def make(folder: Path) -> Path:
        candidate_bank(folder)
        section_weights(folder / "MIL_weights.csv")
        return folder / name

    return make


def retrieval(path: Path) -> object:
    return read_retrieval(given_files("echonet/EchoPrime", path.parent))


def model_card(folder: Path) -> Path:
    return Path(shutil.copy(package_folder("model_cards") / "CarDS-Yale__PanEcho.md", folder))


def clone(folder: Path) -> Path:
    """Write prompts in the form of the released ones, which are Python literals."""
    (folder / "src").mkdir()
    (folder / "src" / "regression.py").write_text("".join(f'{n}_prompts = ("{n} IS <#>",)\n' for n in MEASUREMENTS))
    keys = ("ejection_fraction", *(key for classes in CLASSES.values() for key in classes.values()))
    path = folder / "src" / "prompts.py"
    path.write_text(f"zero_shot_prompts = {json.dumps({key: [key] for key in keys})}\nview_prompt = {{}}\n")
    return path


def incomplete(folder: Path) -> Path:
    """Prepare a dataset, and list a row of the release that the copy lacks."""
    path = prepared("cardiobench.json")(folder).with_name("left_out.parquet")
    pd.DataFrame({"id": ["gone"], "patient_id": ["gone"], "split": ["test"]}).to_parquet(path, index=False)
    return path


def subset(folder: Path) -> Path:
    return write_subset(Subset("ptb_xl/cd", "XS", 0, ("a", "b", "c")), folder / "subset.json")


def leaderboard_rows(folder: Path) -> Path:
    path = folder / f"alice-{1:016}.parquet"
    one = result()
    rows = records(replace(one, verdict=replace(one.verdict, difference=one.score.value - one.floor.value)), "alice")
    pd.DataFrame(rows).to_parquet(path)
    return path


def ranked_rows(path: Path) -> object:
    """Read a file of the dataset as it comes from the Hub, which has neither folders nor pipes."""
    if not path.is_file():
        return False
    entries, _ = read_entries({f"data/{path.name}": path.read_bytes()})
    return entries


def pushed(path: Path) -> object:
    return find_results(path.parent)


def ids_of_predictions(path: Path) -> object:
    return ids_below(path.parent)


def kept_clip(folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_CACHE", str(folder))
        cached_bytes("clip.avi", "generator", lambda: bytes(range(256)))
    return next(folder.rglob("clip.avi"))


def clip_again(path: Path) -> object:
    """Give the clip whatever the cache holds; a damaged one is drawn again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_CACHE", str(root(path)))
        drawn: list[str] = []
        cached_bytes("clip.avi", "generator", lambda: drawn.append("again") or bytes(range(256)))
    return not drawn


def sharded(name: str) -> Callable[[Path], Path]:
    """Return what splits a model's weights over two files with an index."""

    def make(folder: Path) -> Path:
        weights = tiny_siglip(folder) / "model.safetensors"
        state = load_file(weights)
        halves = {f"model-0000{n + 1}-of-00002.safetensors": sorted(state)[n::2] for n in (0, 1)}
        for file, names in halves.items():
            save_file({tensor: state[tensor] for tensor in names}, folder / file, metadata={"format": "pt"})
        weights.unlink()
        index = {"metadata": {}, "weight_map": {tensor: file for file, names in halves.items() for tensor in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder / name

    return make


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
    "index of shards": Place(sharded("model.safetensors.index.json"), loaded, "mapping"),
    "shard of weights": Place(sharded("model-00001-of-00002.safetensors"), loaded),
    "result that is pushed": Place(example_results.write_result, pushed, "mapping", checked=True),
    "predictions beside a result that is pushed": Place(predictions_file, ids_of_predictions),
    "leaderboard dataset": Place(leaderboard_rows, ranked_rows),
    "release CSV": Place(twin("ptb_xl", "ptbxl_database.csv"), release, "text"),
    "release text of a recording": Place(twin("camus", "Info_2CH.cfg"), release, "text"),
    "release list of a split": Place(twin("camus", "subgroup_testing.txt"), release),
    "release XLSX": Place(twin("hmc_qu", "A2C.xlsx"), release),
    "release NumPy array": Place(twin("echonext", "EchoNext_test_waveforms.npy"), arrays_of),
    "release NumPy array of the audit": Place(twin("echonext", "EchoNext_test_tabular_features.npy"), features),
    "model card of a folder": Place(model_card, read_card, "text"),
    "prompts of a clone": Place(clone, lambda path: read_clone(root(path)), "text"),
    "rows that prepared data leaves out": Place(incomplete, opened),
    "candidate labels, a pickle": Place(candidates("candidate_labels.pkl"), retrieval),
    "candidate embeddings": Place(candidates("candidate_embeddings_p1.pt"), retrieval),
    "candidate studies": Place(candidates("candidate_studies.csv"), retrieval, "text"),
    "section weights": Place(candidates("MIL_weights.csv"), retrieval, "text"),
    "twin manifest": Place(twin("georgia", "SYNTHETIC_TWIN.json"), release, "mapping"),
    "challenge header": Place(twin("georgia", "*.hea"), release, "text"),
    "challenge .mat": Place(twin("georgia", "*.mat"), read_ecg),
    "prepared note": Place(prepared("cardiobench.json"), opened, "mapping"),
    "prepared Parquet": Place(prepared("train-*.parquet"), opened),
    "subset": Place(subset, read_subset, "mapping"),
    "generated clip that is kept": Place(kept_clip, clip_again, checked=True),
    "DICOM of JPEG pictures": Place(recording("a.dcm", jpeg_dicom), read_clip),
    "DICOM of RLE pictures": Place(recording("a.dcm", rle_dicom), read_clip),
    "compressed NIfTI": Place(recording("a.nii.gz", lambda frames: gzip.compress(nifti(frames), mtime=0)), read_clip),
}


GIVEN = ("run.yaml", "prompts.json", "subset")
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

"""Twins of releases, prepared copies and subsets."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from cardiobench.data import catalog, open_dataset
from cardiobench.data.ecg_subsets import Subset, read_subset, write_subset
from cardiobench.data.media import read_ecg
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from tests.faults.place import Place, root


def twin(name: str, pattern: str) -> Callable[[Path], Path]:
    """Return a function that writes a release as its twin, and returns the first file that matches a pattern."""

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
    """Read the arrays that only the audit opens, which lists those with rows of other ECGs."""
    *_, order = catalog.builder("echonext").audit_findings(root(path) / "echonext", pd.DataFrame())
    return not order.count


def incomplete(folder: Path) -> Path:
    """Prepare a copy of a release with one recording missing."""
    raw = folder.parent / "raw"
    write_twin("georgia", raw, patients=4)
    sorted(raw.rglob("*.mat"))[-1].unlink()
    return prepare("georgia", raw, folder, allow_missing=True) / "left_out.parquet"


def labelled(folder: Path) -> Path:
    write_twin("camus", folder.parent / "raw", patients=2)
    return sorted((prepare("camus", folder.parent / "raw", folder) / "labels").glob("*.parquet"))[0]


def labels(path: Path) -> object:
    dataset = open_dataset("camus", root(path))
    (task,) = (task for task in dataset.spec.dense_tasks if task.target == path.stem)
    return list(dataset.dense_labels(task))


def subset(folder: Path) -> Path:
    return write_subset(Subset("ptb_xl/cd", "XS", 0, ("a", "b", "c")), folder / "subset.json")


RELEASES = {
    "release CSV": Place(twin("ptb_xl", "ptbxl_database.csv"), release, "text"),
    "release text of a recording": Place(twin("camus", "Info_2CH.cfg"), release, "text"),
    "release list of a split": Place(twin("camus", "subgroup_testing.txt"), release),
    "release XLSX": Place(twin("hmc_qu", "A2C.xlsx"), release),
    "release NumPy array": Place(twin("echonext", "EchoNext_test_waveforms.npy"), arrays_of),
    "release NumPy array of the audit": Place(twin("echonext", "EchoNext_test_tabular_features.npy"), features),
    "rows that prepared data leaves out": Place(incomplete, opened, checked=True),
    "twin manifest": Place(twin("georgia", "SYNTHETIC_TWIN.json"), release, "mapping"),
    "challenge header": Place(twin("georgia", "*.hea"), release, "text"),
    "challenge .mat": Place(twin("georgia", "*.mat"), read_ecg),
    "prepared note": Place(prepared("cardiobench.json"), opened, "mapping", checked=True),
    "prepared Parquet": Place(prepared("train-*.parquet"), opened, checked=True),
    "prepared labels of frames": Place(labelled, labels, checked=True),
    "subset": Place(subset, read_subset, "mapping"),
}

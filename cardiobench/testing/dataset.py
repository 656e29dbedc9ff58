"""Check a dataset's specification, card, prompts, shipped files and rows."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cardiobench.core import plugins
from cardiobench.core.errors import NotApplicable
from cardiobench.core.front_matter import split_card
from cardiobench.data import catalog, decode, open_dataset
from cardiobench.data.builder import features
from cardiobench.data.media import Clip, Ecg
from cardiobench.data.prompts import prompts
from cardiobench.data.spec import DatasetSpec
from cardiobench.metrics.load import list_metrics
from cardiobench.testing.require import require

IDS = {"id", "patient_id", "study_id", "split"}
MEDIA = ("video", "image", "ecg")


def check_dataset(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, datasets_dir: str | os.PathLike[str] | None = None
) -> None:
    """Check a dataset that is installed or in a folder.

    Args:
        name: Name of the dataset.
        data_dir: Folder with raw data, or with a small copy in the same layout. Without it, rows and recordings are
            only read if they are generated or bundled.
        datasets_dir: Folder with `NAME/builder.py`.

    Raises:
        AssertionError: A check failed; the message states the check and both values.
        CardioBenchError: The data is missing or contradicts the specification.
    """
    plugins.add_folder("hf_datasets", Path(datasets_dir) if datasets_dir else None)
    for check in CHECKS:
        check(name)
    if data_dir or catalog.spec(name).generated or is_bundled(name):
        check_rows(name, data_dir)
        with tempfile.TemporaryDirectory() as cache:
            data = None if data_dir is None else str(data_dir)
            build = catalog.builder(name)(data_dir=data, cache_dir=cache)
            build.download_and_prepare()
            check_loaded(name, build.as_dataset(), data_dir)


def card_of(name: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and text of a dataset card."""
    path = catalog.dataset_folder(name) / "README.md"
    require(path.is_file(), f"{name} has no card: {path} is missing")
    front, body = split_card(path.read_text(encoding="utf-8"))
    require(bool(front), f"{path} has no YAML front matter between two '---' lines")
    return yaml.safe_load(front), body


def is_bundled(name: str) -> bool:
    """Return whether the recordings are part of the dataset folder."""
    return (catalog.dataset_folder(name) / "data").is_dir()


def check_spec(name: str) -> None:
    """Check that columns, metrics and subgroups in the specification exist."""
    spec = catalog.spec(name)
    known = spec.access.startswith("https://") and spec.detect_files
    require(
        spec.generated or is_bundled(name) or known,
        f"{name}: access '{spec.access}' and detect_files {spec.detect_files} must say where its data comes from",
    )
    columns = features(spec)
    needed = {"id", "patient_id", "split", spec.media} | ({"key_frame"} if spec.modality == "echo" else set())
    require(needed <= set(columns), f"{name} lacks the columns {sorted(needed - set(columns))}")
    counts = Counter(task.name for task in spec.all_tasks)
    require(counts and max(counts.values()) == 1, f"{name}: tasks {dict(counts)}; expected one or more, each once")
    for task in spec.all_tasks:
        require(task.name.startswith(f"{name}/"), f"task {task.name} of {name} must be called {name}/<target>")
        require(catalog.task(task.name) is task, f"{task.name} is not found by its name")
        require(task.description, f"{task.name} has no description")
        unknown = set(task.metrics) - set(list_metrics())
        require(task.metrics and not unknown, f"{task.name}: metrics {task.metrics}, unknown: {sorted(unknown)}")
        used = {task.unit_column, task.target, *task.where, *(group.column for group in task.groups)}
        require(used <= set(columns), f"{task.name} uses columns that {name} lacks: {sorted(used - set(columns))}")
        labels = getattr(columns[task.target], "feature", columns[task.target])
        names = tuple(getattr(labels, "names", ()))
        require(names == task.classes, f"{task.name}: classes {task.classes}, and the column has {names}")
        if task.rules.answer == "number":
            complete = task.unit and task.label_range and (task.prompt_grid or spec.modality == "ecg")
            require(complete, f"{task.name} needs a unit, a label_range and, for echo, a prompt_grid")


def check_card(name: str) -> None:
    """Check that the card has the splits, licence, access and tasks required by `load_dataset` and readers."""
    spec, (front, body) = catalog.spec(name), card_of(name)
    for key in ("pretty_name", "license", "configs"):
        require(front.get(key), f"the card of {name} has no '{key}' in its front matter")
    require(front["configs"][0]["config_name"] == "default", f"{name}: the first configuration is called 'default'")
    for config in front["configs"]:
        splits = [part["split"] for part in config["data_files"]]
        require(splits == list(spec.splits), f"{name}: splits {splits} in the card, {list(spec.splits)} in the spec")
        for part in config["data_files"]:
            paths = [part["path"]] if isinstance(part["path"], str) else part["path"]
            right = paths and all(path.endswith(f"{part['split']}-*.parquet") for path in paths)
            require(right, f"{name}: data_files {paths}; expected data/{part['split']}-*.parquet")
    require(body.strip().startswith("# "), f"the card of {name} has no title")
    require(spec.access in body, f"the card of {name} does not say where to ask for the data: {spec.access}")
    for task in spec.all_tasks:
        require(f"`{task.name}`" in body, f"the card of {name} does not explain `{task.name}`")


def check_prompts(name: str) -> None:
    """Check task prompts: one number placeholder per template, and no sentence for two classes."""
    for task in catalog.spec(name).tasks:
        try:
            chosen, version = prompts(task)
        except NotApplicable:
            continue
        require(version, f"the prompts of {task.name} have no version")
        if task.rules.answer == "number":
            require(all(text.count("<#>") == 1 for text in chosen["templates"]), f"{task.name}: one <#> a template")
            continue
        require(set(chosen) == set(task.classes), f"{task.name}: prompts for {set(chosen)}, classes {task.classes}")
        counts = Counter(text.casefold() for texts in chosen.values() for text in texts)
        twice = [text for text, count in counts.items() if count > 1]
        require(not twice, f"{task.name}: the same sentence is used for two classes: {twice}")


def check_shipped(name: str) -> None:
    """Check that the folder loads without other files and has no labels that its licence protects."""
    spec, folder = catalog.spec(name), catalog.dataset_folder(name)
    require((folder / "builder.py").is_file(), f"the builder of {name} must be in a file builder.py")
    script = folder / f"{name}.py"
    require(
        not script.exists(), f"`datasets` from version 4 on refuses a folder with a script of its own name: {script}"
    )
    for path in folder.glob("splits/*.csv"):
        labels = set(pd.read_csv(path, nrows=0).columns) - IDS
        require(spec.redistributable or not labels, f"{path} has columns of a restricted dataset: {sorted(labels)}")


CHECKS: tuple[Callable[[str], None], ...] = (check_spec, check_card, check_prompts, check_shipped)


def check_rows(name: str, data_dir: str | os.PathLike[str] | None = None) -> None:
    """Check the rows and the first recording of each split."""
    spec, dataset = catalog.spec(name), open_dataset(name, data_dir)
    again = open_dataset(name, data_dir)
    require(dataset.table.digest == again.table.digest, f"{name}: its rows read twice have two digests")
    require(len(dataset.frame), f"{name} has no row in {data_dir}")
    for split in spec.splits:
        numbers = np.flatnonzero(dataset.frame["split"] == split)
        if len(numbers):
            first, second = dataset.recording(int(numbers[0])), again.recording(int(numbers[0]))
            check_recording(spec, first)
            same = [np.array_equal(getattr(first, key), getattr(second, key)) for key in _arrays(first)]
            require(all(same), f"{name}: reading a recording twice gives different results")
    for task in spec.tasks:
        ids = dataset.references(task)["id"]
        require(len(ids), f"{task.name} has no label in {data_dir}")
        require(ids.is_unique, f"{task.name} has a unit twice: {sorted(ids[ids.duplicated()])[:5]}")


def _arrays(recording: Clip | Ecg) -> tuple[str, ...]:
    return ("signal",) if isinstance(recording, Ecg) else ("frames", "indices")


def check_recording(spec: DatasetSpec, recording: Clip | Ecg) -> None:
    """Check the canonical form: clips are uint8 (T, H, W, 3), ECGs finite float32 (samples, 12) with a rate in Hz."""
    if isinstance(recording, Ecg):
        form = recording.signal.dtype, recording.signal.shape[1:]
        require(spec.modality == "ecg" and form == (np.dtype(np.float32), (12,)), f"{spec.name}: an ECG of {form}")
        require(np.isfinite(recording.signal).all() and recording.fs > 0, f"{spec.name}: an ECG at {recording.fs} Hz")
    else:
        frames = recording.frames
        right = frames.dtype == np.uint8 and frames.ndim == 4 and frames.shape[-1] == 3 and len(frames)
        require(spec.modality == "echo" and right, f"{spec.name}: a clip of {frames.dtype} {frames.shape}")


def rows_of(loaded: Any) -> pd.DataFrame:
    """Return the rows of all splits of a `datasets.DatasetDict` without recordings, with class names."""
    frames = []
    for split, rows in loaded.items():
        frame = rows.remove_columns([name for name in MEDIA if name in rows.features]).to_pandas()
        for name, feature in rows.features.items():
            if classes := getattr(feature, "names", ()):
                frame[name] = [None if pd.isna(code) else classes[int(code)] for code in frame[name]]
            elif (classes := getattr(getattr(feature, "feature", None), "names", ())) and not _is_unmeasured(name):
                frame[name] = _class_sets(frame, name, classes)
        frames.append(frame.assign(loaded_as=split))
    return pd.concat(frames, ignore_index=True)


def _is_unmeasured(column: str) -> bool:
    return column.endswith("_unmeasured")


def _class_sets(frame: pd.DataFrame, name: str, classes: Sequence[str]) -> list[str | None]:
    """Return ordered class names of each row, joined by ";"; unmeasured classes end with "?"."""
    unmeasured = frame.get(f"{name}_unmeasured", pd.Series([()] * len(frame)))
    return [
        None
        if present is None
        else ";".join(
            "?" * (number in set(unknown)) + label
            for number, label in enumerate(classes)
            if number in {*present, *unknown}
        )
        for present, unknown in zip(frame[name], unmeasured, strict=True)
    ]


def check_loaded(name: str, loaded: Any, data_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Check that a `datasets.DatasetDict` agrees with the raw folder; return its rows without recordings."""
    spec, rows = catalog.spec(name), rows_of(loaded)
    expected = catalog.builder(name).table(data_dir).frame
    require((rows["loaded_as"] == rows["split"]).all(), f"{name}: rows in a split that is not theirs")
    columns = list(dict.fromkeys(["patient_id", "split", *(task.target for task in spec.tasks)]))
    left, right = (frame.set_index("id")[columns].sort_index() for frame in (rows, expected))
    pd.testing.assert_frame_equal(left.mask(left.isna()), right.mask(right.isna()), check_dtype=False)
    for part in loaded.values():
        check_recording(spec, decode(part[0]))
    return rows

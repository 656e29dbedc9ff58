"""Test unusable labels of frames in a complete run: the message names the file, and the frames count as not covered."""

import gzip
import re
import shutil

import nibabel
import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.data import catalog, open_dataset
from cardiobench.data.media.write import avi
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.data.twin_manifest import write_manifest
from cardiobench.runner.run import run


def masks_of(raw, unit):
    return sorted(raw.rglob(f"{unit}_?CH_E?_gt.nii.gz"))


def another_size(raw, unit):
    for path in masks_of(raw, unit):
        nibabel.save(nibabel.Nifti1Image(np.ones((5, 5), np.uint8), np.eye(4)), path)


def unknown_value(raw, unit):
    for path in masks_of(raw, unit):
        image = nibabel.load(path)
        values = np.asarray(image.dataobj).astype(np.uint8)
        values[values == 1] = 9
        nibabel.save(nibabel.Nifti1Image(values, image.affine), path)


def no_spacing(raw, unit):
    for path in masks_of(raw, unit):
        content = bytearray(gzip.decompress(path.read_bytes()))
        content[80:88] = bytes(8)
        path.write_bytes(gzip.compress(bytes(content)))


def lines_of(raw, name, change):
    """Rewrite the tables of a name; `change` maps the cells of a row to new ones, or to None to drop the row."""
    for path in raw.rglob(name):
        head, *rows = path.read_text().splitlines()
        changed = [change(row.split(",")) for row in rows]
        path.write_text("\n".join([head, *(",".join(cells) for cells in changed if cells)]) + "\n")


def one_chord(raw, unit):
    seen = {}

    def first_two(cells):
        if not cells[0].startswith(unit):
            return cells
        frame = cells[-1]
        seen[frame] = seen.get(frame, 0) + 1
        return cells if seen[frame] <= 2 else None  # Keep the long axis and one chord.

    lines_of(raw, "VolumeTracings.csv", first_two)


def outside(raw, unit):
    def moved(cells):
        return [*cells[:5], str(int(cells[5]) + 5000), *cells[6:]] if cells[1] == unit else cells

    lines_of(raw, "MeasurementsList.csv", moved)


def one_frame(raw, unit):
    for path in raw.rglob(f"{unit}/Info_?CH.cfg"):
        path.write_text(re.sub("^ES: .*$", "ES: 1", path.read_text(), flags=re.MULTILINE))


BAD = {
    one_frame: ("camus/lv_seg", "frame 0 has 2 labels of camus/lv_seg"),
    another_size: ("camus/lv_seg", "the mask has 5 x 5 pixels, but its frame"),
    unknown_value: ("camus/lv_seg", "the mask has the label 9; expected 0 to 3"),
    no_spacing: ("camus/lv_seg", "the pixel size is 0 x 0 mm"),
    one_chord: ("echonet_dynamic/lv_seg", "the tracing has 1 chords"),
    outside: ("echonet_lvh/landmarks", "lies outside the image"),
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Return undamaged twins of the releases by name; the runs store the tokens of their frames next to them."""
    folder = tmp_path_factory.mktemp("releases")
    for name in ("camus", "echonet_dynamic", "echonet_lvh", "echonet_pediatric"):
        write_twin(name, folder / name, patients=12)
    return folder


def results_of(task, data_dir, folder, cache=None):
    """Return the results of a small run with all test patients."""
    outcome = run(
        RunConfig(
            models=("cardiobench/random-vit",), tasks=(task,) if isinstance(task, str) else task, data_dir=data_dir, allow_missing=True, limit=100,
            output_dir=folder / "results", cache_dir=cache or folder / "cache", workers=0, resamples=40,
            options={"dense": {"penalties": [0.1]}},
        ),
        Console(),
    )  # fmt: skip
    return outcome.results


@pytest.mark.slow
@pytest.mark.parametrize("damage", BAD, ids=lambda damage: damage.__name__)
def test_patient_with_unusable_labels_is_not_covered(damage, releases, tmp_path, capsys):
    name, reason = BAD[damage]
    task = catalog.task(name)
    raw = tmp_path / "data" / task.dataset
    shutil.copytree(releases / task.dataset, raw)
    source = open_dataset(task.dataset, raw, allow_missing=True)
    labels = [label for label in source.dense_labels(task) if label.split == "test"]
    usable = [label.unit for label in labels if not label.reason]
    unit = min(usable)
    damage(raw, unit)
    write_manifest(raw, {})
    results = results_of(name, tmp_path / "data", tmp_path, releases / "cache")
    said = capsys.readouterr().out
    assert f"! {name}: " in said and reason in said
    scored = len(usable) - usable.count(unit)
    for result in results:
        assert result.coverage == {"scored": scored, "expected": len(labels)}
        assert f"{len(labels) - scored} of {len(labels)} labelled test frames have no score" in result.warnings
        assert result.score.n == len(set(usable)) - 1
        assert result.bounds.missing == len(labels) - scored, "the verdict takes the worst case"
    assert results


@pytest.mark.slow
def test_patient_coverage_is_share_of_frames(releases, tmp_path):
    """Damage 3 of 4 frames of one patient: 2 get an unusable mask, and 1 lies beyond the end of its sequence."""
    raw, task = tmp_path / "raw" / "camus", catalog.task("camus/lv_seg")
    shutil.copytree(releases / "camus", raw)
    source = open_dataset("camus", raw, allow_missing=True)
    test = [label for label in source.dense_labels(task) if label.split == "test"]
    unit = min(label.unit for label in test)
    assert {
        result.coverage["scored"] / result.coverage["expected"]
        for result in results_of(task.name, tmp_path / "raw", tmp_path)
    } == {1}
    one, other, *_ = masks_of(raw, unit)
    one.unlink()
    other.write_bytes(other.read_bytes()[:100])
    (info,) = raw.rglob(f"{unit}/Info_4CH.cfg")
    info.write_text(re.sub("^ES: .*$", "ES: 999", info.read_text(), flags=re.MULTILINE))
    write_manifest(raw, {})
    prepare("camus", raw, tmp_path / "prepared", allow_missing=True)
    for folder in ("raw", "prepared"):
        (result,) = results_of(task.name, tmp_path / folder, tmp_path / f"of_{folder}")
        assert result.coverage == {"scored": len(test) - 3, "expected": len(test)}, folder
        assert result.score.n == len({label.unit for label in test}), "its other frame is scored"
        assert f"3 of {len(test)} labelled test frames have no score" in result.warnings
        assert result.bounds.missing == 3 and result.bounds.worst < result.score.value


@pytest.mark.slow
def test_untraced_phase_is_named_and_unlabelled(releases, tmp_path, capsys):
    """Otherwise, no copy of EchoNet-Pediatric would have full coverage, and none of its results could be pushed."""
    raw, task = tmp_path / "data" / "echonet_pediatric", catalog.task("echonet_pediatric/lv_seg")
    shutil.copytree(releases / task.dataset, raw)
    test = [label for label in open_dataset(task.dataset, raw).dense_labels(task) if label.split == "test"]
    unit = min(label.unit for label in test)

    def emptied(cells):
        return cells if cells[3] == "0" or not cells[0].startswith(unit) else [cells[0], "", "", "No Systolic"]

    lines_of(raw, "VolumeTracings.csv", emptied)
    write_manifest(raw, {})
    (result,) = results_of(task.name, tmp_path / "data", tmp_path)
    left = sum(label.unit != unit or label.frame == 0 for label in test)
    assert left < len(test) and result.coverage == {"scored": left, "expected": left}
    assert result.bounds is None
    said = capsys.readouterr().out
    assert f"! {task.name}: " in said and f"({unit}" in said and "frame No Systolic): this phase was not traced" in said


@pytest.mark.slow
def test_bad_video_size_and_table_do_not_stop_others(releases, tmp_path, capsys):
    raw = tmp_path / "data" / "echonet_dynamic"
    shutil.copytree(releases / "echonet_dynamic", raw)
    shutil.copytree(releases / "echonet_lvh", tmp_path / "data" / "echonet_lvh")
    task = catalog.task("echonet_dynamic/lv_seg")
    label, *others = (one for one in open_dataset(task.dataset, raw).dense_labels(task) if one.split == "test")
    (video,) = raw.rglob(f"{label.recording}.avi")
    clip = np.random.default_rng(0).integers(0, 255, (label.frame + 40, 80, 112, 3), dtype=np.uint8)
    video.write_bytes(avi(clip, 50))
    write_manifest(raw, {})
    (result,) = results_of(task.name, tmp_path / "data", tmp_path)
    assert result.coverage == {"scored": len(others) - 1, "expected": len(others) + 1}
    assert "frames of 80 x 112 pixels, and the mask of frame" in (tmp_path / "results" / "failures.csv").read_text()
    (table,) = raw.rglob("VolumeTracings.csv")
    table.write_text(table.read_text().replace("X1", "first", 1))
    write_manifest(raw, {})
    results = results_of((task.name, "echonet_lvh/landmarks"), tmp_path / "data", tmp_path)
    assert {result.task for result in results} == {"echonet_lvh/landmarks"}
    assert f"FAILED {task.name}: " in capsys.readouterr().err


@pytest.mark.slow
def test_limit_selects_first_patients_with_recordings(releases, tmp_path):
    """The first test patient has no recording; the second is the first one to be scored, for masks and for numbers."""
    raw = tmp_path / "data" / "camus"
    shutil.copytree(releases / "camus", raw)
    (listed,) = raw.rglob("subgroup_testing.txt")
    first, second, *_ = listed.read_text().split()
    for path in raw.rglob(f"{first}_?CH_half_sequence.nii.gz"):
        path.unlink()
    write_manifest(raw, {})
    outcome = run(
        RunConfig(
            models=("cardiobench/random-vit",), tasks=("camus/lv_seg", "camus/ef"), protocols=("dense", "probe"),
            data_dir=tmp_path / "data", allow_missing=True, limit=1, output_dir=tmp_path / "results",
            cache_dir=tmp_path / "cache", workers=0, resamples=40, options={"dense": {"penalties": [0.1]}},
        )
    )  # fmt: skip
    assert {result.task: result.coverage for result in outcome.results} == {
        "camus/lv_seg": {"scored": 4, "expected": 4}, "camus/ef": {"scored": 1, "expected": 1},
    }  # fmt: skip
    saved = (pd.read_parquet(file) for file in outcome.files if file.suffix == ".parquet")
    assert {name for frame in saved for name in frame["id"]} == {second}

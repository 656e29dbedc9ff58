"""Test dense labels of each release: valid labels are read, and invalid ones have a reason."""

import gzip
import json
from collections import Counter

import nibabel
import numpy as np
import pytest

from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.media.types import FrameSampling
from cardiobench.data.media.write import avi
from cardiobench.data.prepare import prepare
from cardiobench.data.prepared_labels import label_path
from cardiobench.data.prepared_note import NOTE
from cardiobench.data.twin import write_twin
from cardiobench.results.record import CHECKSUM
from tests.data.dense_labels import expected_of, labels_of
from tests.data.recordings import write_avi

CFG = "ED: {ed}\nES: 3\nNbFrame: 3\nSex: F\nAge: 60\nImageQuality: Good\nEF: 55\nFrameRate: 50\n"


# ---- CAMUS ----------------------------------------------------------------------------------------------------------


def write_mask(folder, name, values=(0, 1, 2, 3), shape=(12, 8), spacing=(0.3, 0.15)):
    mask = np.zeros(shape, np.uint8)
    mask[2:6, 3] = values[1:2] * 4  # Columns 2 to 5 in row 3.
    mask[0, : len(values)] = values
    image = nibabel.Nifti1Image(mask, np.eye(4))
    image.header["pixdim"][1:3] = spacing
    content = bytearray(image.to_bytes())
    content[80:88] = np.float32(spacing).tobytes()  # Damaged header; nibabel does not write such values.
    (folder / name).write_bytes(gzip.compress(bytes(content)))


@pytest.fixture
def camus(tmp_path):
    (tmp_path / "database_split").mkdir()
    for name, patient in (("training", "patient0002"), ("validation", "patient0003"), ("testing", "patient0001")):
        (tmp_path / "database_split" / f"subgroup_{name}.txt").write_text(patient)
        folder = tmp_path / "database_nifti" / patient
        folder.mkdir(parents=True)
        for view in ("2CH", "4CH"):
            volume = np.arange(12 * 8 * 3, dtype=np.uint8).reshape(12, 8, 3)
            nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), folder / f"{patient}_{view}_half_sequence.nii.gz")
            (folder / f"Info_{view}.cfg").write_text(CFG.format(ed=1))
            for phase in ("ED", "ES"):
                write_mask(folder, f"{patient}_{view}_{phase}_gt.nii.gz")
    return tmp_path


def test_camus_masks_are_turned_and_have_pixel_sizes(camus):
    source, labels = labels_of("camus/lv_seg", camus)
    label = next(one for one in labels if one.recording == "patient0001_4CH" and one.phase == "ES")
    assert (label.unit, label.patient, label.split, label.frame, label.view) == (
        "patient0001",
        "patient0001",
        "test",
        2,
        "A4C",
    )
    assert label.mask.shape == (8, 12) and label.mask.dtype == np.uint8 and not label.reason
    assert label.mask[:4, 0].tolist() == [0, 1, 2, 3] and label.mask[3, 2:6].tolist() == [1] * 4, "x runs along the row"
    assert label.spacing == pytest.approx((0.15, 0.3)), "height first"
    assert len(labels) == 12
    references = source.references(catalog.task("camus/lv_seg")).set_index("id")
    assert references["y_true"].to_dict() == dict.fromkeys(["patient0002", "patient0003", "patient0001"], 4)
    assert source.labelled_frame(label).frames.shape == (1, 8, 12, 3)
    assert source.labelled_frame(label).indices.tolist() == [2]
    around = source.labelled_frame(label, FrameSampling(count=6, stride=1, start="first"))
    assert around.indices.tolist() == [0, 0, 1, 2, 2, 2], "the fourth of six, whether or not others are missing"
    np.testing.assert_array_equal(around.frames[3], source.labelled_frame(label).frames[0])
    assert source.labelled_frame(label, FrameSampling(count=4, stride=2)).indices.tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shape": (11, 8)}, r"the mask has 8 x 11 pixels, but its frame has 8 x 12"),
        ({"values": (0, 1, 2, 7)}, r"the mask has the label 7; expected 0 to 3"),
        ({"values": (0, 0, 0, 0)}, r"the mask is empty"),
        ({"spacing": (0.3, 0.0)}, r"the pixel size is 0 x 0\.3 mm"),
        ({"spacing": (np.nan, 0.15)}, r"the pixel size is 0.15 x nan mm"),
        ({"spacing": (-0.3, 0.15)}, r"the pixel size is 0.15 x -0.3 mm"),
        ({"spacing": (0.0003, 0.15)}, r"the pixel size is 0.15 x 0.0003 mm; expected lengths from 0.001 to 100"),
    ],
)
def test_bad_mask_of_camus_is_named_and_the_others_are_read(camus, change, reason):
    folder = camus / "database_nifti" / "patient0001"
    write_mask(folder, "patient0001_2CH_ED_gt.nii.gz", **change)
    source, labels = labels_of("camus/lv_seg", camus)
    (bad,) = [label for label in labels if label.reason]
    assert expected_of(source, "camus/lv_seg") == {"patient0001"}, "its patient counts, with or without a score"
    assert (bad.recording, bad.phase) == ("patient0001_2CH", "ED")
    assert bad.mask is None and bad.points is None and bad.spacing is None
    assert reason.replace("\\", "") in bad.reason and "patient0001_2CH_ED_gt.nii.gz" in bad.reason


def test_damaged_and_misplaced_masks_of_camus_are_named(camus):
    folder = camus / "database_nifti" / "patient0001"
    (folder / "patient0001_2CH_ED_gt.nii.gz").write_bytes(b"\x1f\x8b damaged")
    (folder / "Info_4CH.cfg").write_text(CFG.format(ed="nan"))
    nibabel.save(
        nibabel.Nifti1Image(np.full((12, 8), 0.5, np.float32), np.eye(4)), folder / "patient0001_2CH_ES_gt.nii.gz"
    )
    reasons = {
        (label.recording, label.phase): label.reason for label in labels_of("camus/lv_seg", camus)[1] if label.reason
    }
    assert set(reasons) == {("patient0001_2CH", "ED"), ("patient0001_2CH", "ES"), ("patient0001_4CH", "ED")}
    assert "cannot be decoded as NIfTI" in reasons["patient0001_2CH", "ED"]
    assert "values that are not labels" in reasons["patient0001_2CH", "ES"]
    assert "Info_4CH.cfg does not state the frame of" in reasons["patient0001_4CH", "ED"]


def test_changed_mask_changes_dataset_and_missing_is_counted(camus):
    task, before = catalog.task("camus/lv_seg"), open_dataset("camus", camus, allow_missing=True)
    folder = camus / "database_nifti" / "patient0001"
    write_mask(folder, "patient0001_2CH_ED_gt.nii.gz", values=(0, 2, 2, 3))
    assert open_dataset("camus", camus, allow_missing=True).table.digest != before.table.digest
    (folder / "patient0001_2CH_ED_gt.nii.gz").unlink()
    (folder / "patient0001_2CH_ES_gt.nii.gz").unlink()
    source, labels = labels_of("camus/lv_seg", camus)
    assert source.references(task).set_index("id")["y_true"]["patient0001"] == 4, "two of which have no label"
    reasons = [label.reason for label in labels if label.unit == "patient0001"]
    assert [phase in reason for phase, reason in zip(("ED_gt", "ES_gt"), reasons, strict=False)] == [True, True]
    assert reasons[2:] == ["", ""] and all("does not exist. Complete the download." in line for line in reasons[:2])
    assert len(source.references(catalog.task("camus/ef"))) == 3, "its other tasks are unchanged"


@pytest.mark.slow
def test_prepared_folder_keeps_masks_and_reasons_for_invalid_ones(camus, tmp_path_factory):
    folder = camus / "database_nifti" / "patient0001"
    write_mask(folder, "patient0001_2CH_ES_gt.nii.gz", values=(0, 1, 2, 7))
    source, labels = labels_of("camus/lv_seg", camus)
    prepared = prepare("camus", camus, tmp_path_factory.mktemp("out"), allow_missing=True)
    made, again = labels_of("camus/lv_seg", prepared)
    assert_same_labels(source, labels, made, again)
    (reason,) = (label.reason for label in again if label.reason)
    assert reason.startswith("database_nifti/patient0001/patient0001_2CH_ES_gt.nii.gz: the mask has the label 7")
    label_path(prepared, catalog.task("camus/lv_seg")).unlink()
    with pytest.raises(BadData, match=r"labels/lv_seg\.parquet is missing .*cardiobench prepare camus"):
        labels_of("camus/lv_seg", prepared)
    note = json.loads((prepared / NOTE).read_text())
    note["labels"] = {}
    earlier = {key: value for key, value in note.items() if key not in (CHECKSUM, "left_out")}
    (prepared / NOTE).write_text(json.dumps(earlier))
    with pytest.raises(MissingData, match=r"has no labels of camus/lv_seg .*Prepare the dataset again"):
        labels_of("camus/lv_seg", prepared)


def assert_same_labels(source, labels, made, again):
    """Return labels of two copies of a dataset, and the frames that they label."""
    order = {split: number for number, split in enumerate(source.spec.splits)}
    labels = sorted(labels, key=lambda label: order[label.split])
    assert len(labels) == len(again) > 0
    for one, other in zip(labels, again, strict=True):
        for field in ("task", "unit", "patient", "split", "recording", "frame", "spacing", "phase", "view"):
            assert getattr(one, field) == getattr(other, field), field
        assert bool(one.reason) == bool(other.reason)
        np.testing.assert_array_equal(one.mask, other.mask)
        np.testing.assert_array_equal(one.points, other.points)
        if not one.reason:
            np.testing.assert_array_equal(source.labelled_frame(one).frames, made.labelled_frame(other).frames)


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", ["camus/lv_seg", "echonet_dynamic/lv_seg", "echonet_pediatric/lv_seg", "echonet_lvh/landmarks",
             "phantom_echo/landmarks"],
)  # fmt: skip
def test_every_release_with_labels_keeps_them_when_it_is_prepared(task, tmp_path):
    name, raw = task.partition("/")[0], None
    if name != "phantom_echo":
        raw = tmp_path / name
        write_twin(name, raw, patients=8)
    source, labels = labels_of(task, raw)
    listed = source.references(catalog.task(task)).set_index("id")["y_true"].to_dict()
    traced = [label.unit for label in labels if "this phase was not traced" not in label.reason]
    assert Counter(traced) == listed, "the denominator of coverage"
    folder = prepare(name, raw, tmp_path / "out", allow_missing=True)
    assert_same_labels(source, labels, *labels_of(task, folder))


# ---- EchoNet-Dynamic --------------------------------------------------------------------------------------------------

BOX = [(40, 20, 60, 20), (40, 30, 60, 30), (40, 39, 60, 39)]
LONGER = [(40, 20, 60, 20), (40, 30, 60, 30), (40, 49, 60, 49)]


def tracing(name, frame, chords):
    lines = [(50, 20, 50, 60), *chords]
    return "".join(f"{name}.avi,{','.join(map(str, line))},{frame}\n" for line in lines)


@pytest.fixture
def dynamic(tmp_path):
    clip = np.full((3, 112, 112, 3), 90, np.uint8)
    names = ("0X1A", "0X2B", "0X3C", "0X4D")
    for name in names:
        path = tmp_path / "Videos" / f"{name}.avi"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(avi(clip, 25))
    rows = "".join(
        f"{name},50,40,80,112,112,50,3,{split}\n"
        for name, split in zip(names, ("TRAIN", "VAL", "TEST", "TEST"), strict=True)
    )
    (tmp_path / "FileList.csv").write_text(
        "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split\n" + rows
    )
    (tmp_path / "VolumeTracings.csv").write_text(
        "FileName,X1,Y1,X2,Y2,Frame\n"
        + tracing("0X1A", 2, BOX)
        + tracing("0X1A", 0, LONGER)
        + tracing("0X2B", 1, BOX)
        + tracing("0X3C", 2, BOX[:1])
        + tracing("0X3C", 9, LONGER)
    )
    return tmp_path


def test_tracings_of_echonet_dynamic(dynamic):
    source, labels = labels_of("echonet_dynamic/lv_seg", dynamic)
    assert [(one.recording, one.frame, one.phase) for one in labels] == [
        ("0X1A", 2, "ES"), ("0X1A", 0, "ED"), ("0X3C", 2, "ES"), ("0X3C", 9, "ED"),
    ], "end-systole is listed first; videos with one traced frame are skipped"  # fmt: skip
    assert [int(one.mask.sum()) for one in labels[:2]] == [21 * 20, 21 * 30]
    assert labels[0].mask.shape == (112, 112) and labels[0].spacing is None
    assert (
        labels[2].mask is None
        and "VolumeTracings.csv, line 14 (0X3C, frame 2): the tracing has 1 chords" in labels[2].reason
    )
    assert expected_of(source, "echonet_dynamic/lv_seg") == {"0X3C"}
    counts = {finding.check: finding for finding in audit(source)}
    assert counts["echonet_dynamic/lv_seg: frames whose label cannot be used"].examples == (labels[2].reason,)
    assert counts["videos without two traced frames (no lv_seg)"].examples == ("0X2B", "0X4D")
    assert counts["echonet_dynamic/lv_seg test"].count == 1
    with pytest.raises(BadMedia, match=r"0X3C\.avi has no frame 9"):
        source.labelled_frame(labels[3])
    write_avi(dynamic / "Videos" / "0X1A.avi")
    with pytest.raises(BadMedia, match=r"frames of 16 x 16 pixels, and the mask of frame 2 has 112 x 112"):
        open_dataset("echonet_dynamic", dynamic, allow_missing=True).labelled_frame(labels[0])


@pytest.mark.parametrize(
    ("chords", "frame", "reason"),
    [
        ([("nan", 20, 60, 20), *BOX[1:]], 2, "frame 2): a point has no coordinates"),
        ([(40, "", 60, 20), *BOX[1:]], 2, "frame 2): a point has no coordinates"),
        ([(40, 20, 40, 20)] * 5, 2, "frame 2): the tracing has 1 chords"),
        ([(40, y, 40, y) for y in range(20, 30)], 2, "frame 2): all points of the outline lie on one line"),
        ([tuple(value + 500 for value in line) for line in BOX], 2, "frame 2): the outline lies outside its frame"),
        (BOX, -3, "frame -3): frames are counted from 0"),
    ],
)
def test_invalid_tracing_is_named_and_others_are_read(dynamic, chords, frame, reason):
    (dynamic / "VolumeTracings.csv").write_text(
        "FileName,X1,Y1,X2,Y2,Frame\n" + tracing("0X3C", frame, chords) + tracing("0X3C", 1, LONGER)
    )
    source, (bad, good) = labels_of("echonet_dynamic/lv_seg", dynamic)
    assert "VolumeTracings.csv, line 2 (0X3C, " + reason in bad.reason and bad.mask is None
    assert not good.reason and source.references(catalog.task("echonet_dynamic/lv_seg"))["y_true"].tolist() == [2]
    assert len(audit(source)) > 0


def test_tracing_listed_twice_counts_once(dynamic):
    once = tracing("0X3C", 2, BOX) + tracing("0X3C", 1, LONGER)
    (dynamic / "VolumeTracings.csv").write_text("FileName,X1,Y1,X2,Y2,Frame\n" + once + once)
    labels = labels_of("echonet_dynamic/lv_seg", dynamic)[1]
    assert [int(one.mask.sum()) for one in labels] == [21 * 20, 21 * 30]


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_order_of_the_chords_makes_no_difference(dynamic, order):
    (dynamic / "VolumeTracings.csv").write_text(
        "FileName,X1,Y1,X2,Y2,Frame\n" + tracing("0X3C", 2, BOX[order]) + tracing("0X3C", 1, LONGER[order])
    )
    labels = labels_of("echonet_dynamic/lv_seg", dynamic)[1]
    assert [int(one.mask.sum()) for one in labels] == [21 * 20, 21 * 30]


def test_no_labels_without_tracings(dynamic):
    before = open_dataset("echonet_dynamic", dynamic, allow_missing=True).table.digest
    (dynamic / "VolumeTracings.csv").unlink()
    source, labels = labels_of("echonet_dynamic/lv_seg", dynamic)
    assert labels == [] and source.table.digest != before
    assert len(source.references(catalog.task("echonet_dynamic/ef"))) == 4


# ---- EchoNet-Pediatric --------------------------------------------------------------------------------------------------


def test_echonet_pediatric_polygons_and_untraced_phases(tmp_path):
    head = "FileName,EF,Sex,Age,Weight,Height,Split\n"
    outlines = {"4": [(10, 10), (30, 10), (30, 30), (10, 30)], "9": [(10, 10), (20, 10), (20, 20), (10, 20)]}
    for view in ("A4C", "PSAX"):
        name = f"CR1-V1-{view}.avi"
        write_avi(tmp_path / view / "Videos" / name)
        (tmp_path / view / "FileList.csv").write_text(f"{head}{name},60,F,5,20,110,0\n")
        rows = [f"{name},{x},{y},{frame}\n" for frame, points in outlines.items() for x, y in points]
        if view == "PSAX":
            rows = [*rows[:4], f"{name},,,No Systolic\n"]
        (tmp_path / view / "VolumeTracings.csv").write_text("FileName,X,Y,Frame\n" + "".join(rows))
    source, labels = labels_of("echonet_pediatric/lv_seg", tmp_path)
    assert [(one.view, one.frame, one.phase) for one in labels] == [
        ("A4C", 4, "ED"), ("A4C", 9, "ES"), ("PSAX", 4, None), ("PSAX", -1, None),
    ]  # fmt: skip
    assert [int(one.mask.sum()) for one in labels[:3]] == [441, 121, 441]
    assert (
        labels[3].mask is None
        and "PSAX/VolumeTracings.csv, line 6" in labels[3].reason
        and "No Systolic" in labels[3].reason
    )
    (unit,) = source.references(catalog.task("echonet_pediatric/lv_seg")).to_dict("records")
    assert (unit["id"], unit["y_true"]) == ("CR1", 3) and expected_of(source, "echonet_pediatric/lv_seg") == {"CR1"}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("4.0", ""),
        ("-4", "frame -4): expected a frame counted from 0 or No Systolic"),
        ("\u00b2", "frame \u00b2): expected a frame counted from 0"),
        ("No Diastolic", "this phase was not traced"),
    ],
)
def test_names_of_frames_in_echonet_pediatric(tmp_path, frame, reason):
    for view in ("A4C", "PSAX"):
        name = f"CR1-V1-{view}.avi"
        write_avi(tmp_path / view / "Videos" / name)
        (tmp_path / view / "FileList.csv").write_text(
            f"FileName,EF,Sex,Age,Weight,Height,Split\n{name},60,F,5,20,110,0\n"
        )
        corners = [(10, 10), (30, 10), (30, 30), (10, 30)]  # All of them are listed twice.
        rows = "".join(f"{name},{x},{y},{frame}\n" for x, y in corners)
        (tmp_path / view / "VolumeTracings.csv").write_text("FileName,X,Y,Frame\n" + rows * 2, encoding="utf-8")
    for label in labels_of("echonet_pediatric/lv_seg", tmp_path)[1]:
        assert (reason in label.reason) if reason else (label.frame == 4 and label.mask.sum() == 441)


# ---- The phantoms -----------------------------------------------------------------------------------------------------


def test_phantoms_have_exact_labels_of_both_kinds():
    source = open_dataset("phantom_echo")
    mask = next(source.dense_labels(catalog.task("phantom_echo/lv_seg")))
    assert set(np.unique(mask.mask)) == {0, 1, 2} and mask.phase == "ED" and mask.view in ("A2C", "A4C")
    points = next(source.dense_labels(catalog.task("phantom_echo/landmarks")))
    row = source.frame.set_index("id").loc[points.recording]
    lengths = np.hypot(*np.diff(points.points * points.spacing, axis=0).T) / 10
    assert lengths == pytest.approx(row[["ivsd", "lvidd", "lvpwd"]].to_numpy(float)), "cm"

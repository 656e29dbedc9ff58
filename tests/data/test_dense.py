"""Dense labels of each release, written by hand: what is read, and that bad ones carry their reason and nothing else stops."""

import gzip

import nibabel
import numpy as np
import pytest

from cardiobench.core.errors import BadMedia, MissingData
from cardiobench.data import catalog, open_dataset
from cardiobench.data.audit import audit
from cardiobench.data.media.types import FrameSampling
from cardiobench.data.media.write import avi
from cardiobench.data.prepare import prepare
from tests.data.recordings import write_avi

CFG = "ED: {ed}\nES: 3\nNbFrame: 3\nSex: F\nAge: 60\nImageQuality: Good\nEF: 55\nFrameRate: 50\n"


def labels_of(name, raw):
    source = open_dataset(name.partition("/")[0], raw, allow_missing=True)
    return source, list(source.dense_labels(catalog.task(name)))


def expected_of(source, name):
    """The test units that the coverage is counted against."""
    references = source.references(catalog.task(name))
    return set(references.loc[references["split"] == "test", "id"])


# ---- CAMUS ----------------------------------------------------------------------------------------------------------


def write_mask(folder, name, values=(0, 1, 2, 3), shape=(12, 8), spacing=(0.3, 0.15)):
    mask = np.zeros(shape, np.uint8)
    mask[2:6, 3] = values[1:2] * 4  # x 2 to 5 in row 3
    mask[0, : len(values)] = values
    image = nibabel.Nifti1Image(mask, np.eye(4))
    image.header["pixdim"][1:3] = spacing
    content = bytearray(image.to_bytes())
    content[80:88] = np.float32(spacing).tobytes()  # as a damaged header may have it and nibabel writes none
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


def test_masks_of_camus_are_turned_for_display_and_know_their_pixels(camus):
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
    assert around.indices.tolist() == [0, 0, 1, 2, 2, 2], "it is the fourth of six, whatever is missing"
    np.testing.assert_array_equal(around.frames[3], source.labelled_frame(label).frames[0])
    assert source.labelled_frame(label, FrameSampling(count=4, stride=2)).indices.tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"shape": (11, 8)}, r"the mask has 8 x 11 pixels and its frame 8 x 12"),
        ({"values": (0, 1, 2, 7)}, r"the mask holds the label 7, known are 0 to 3"),
        ({"values": (0, 0, 0, 0)}, r"the mask is empty"),
        ({"spacing": (0.3, 0.0)}, r"a pixel measures 0 x 0\.3 mm"),
    ],
)
def test_a_bad_mask_of_camus_is_named_and_the_others_are_read(camus, change, reason):
    folder = camus / "database_nifti" / "patient0001"
    write_mask(folder, "patient0001_2CH_ED_gt.nii.gz", **change)
    source, labels = labels_of("camus/lv_seg", camus)
    (bad,) = [label for label in labels if label.reason]
    assert expected_of(source, "camus/lv_seg") == {"patient0001"}, "its patient counts, with a score or without"
    assert (bad.recording, bad.phase) == ("patient0001_2CH", "ED")
    assert bad.mask is None and bad.points is None and bad.spacing is None
    assert reason.replace("\\", "") in bad.reason and "patient0001_2CH_ED_gt.nii.gz" in bad.reason


def test_damaged_and_unplaced_masks_of_camus_are_named(camus):
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
    assert "values that are no labels" in reasons["patient0001_2CH", "ES"]
    assert "Info_4CH.cfg does not say which frame" in reasons["patient0001_4CH", "ED"]


def test_another_mask_is_another_dataset_and_a_missing_one_is_unlabelled(camus):
    task, before = catalog.task("camus/lv_seg"), open_dataset("camus", camus, allow_missing=True)
    folder = camus / "database_nifti" / "patient0001"
    write_mask(folder, "patient0001_2CH_ED_gt.nii.gz", values=(0, 2, 2, 3))
    assert open_dataset("camus", camus, allow_missing=True).table.digest != before.table.digest
    (folder / "patient0001_2CH_ED_gt.nii.gz").unlink()
    (folder / "patient0001_2CH_ES_gt.nii.gz").unlink()
    source = open_dataset("camus", camus, allow_missing=True)
    assert source.references(task).set_index("id")["y_true"]["patient0001"] == 2
    assert len(source.references(catalog.task("camus/ef"))) == 3, "its other tasks are as they were"


def test_a_prepared_folder_says_that_it_has_no_masks(camus, tmp_path_factory):
    folder = prepare("camus", camus, tmp_path_factory.mktemp("out"), allow_missing=True)
    with pytest.raises(MissingData, match=r"holds no labels of camus/lv_seg\. Give the raw folder"):
        next(open_dataset("camus", folder, allow_missing=True).dense_labels(catalog.task("camus/lv_seg")))


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
    ], "end-systole is listed first; one traced frame is none"  # fmt: skip
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


def test_without_the_table_of_tracings_nothing_is_labelled(dynamic):
    before = open_dataset("echonet_dynamic", dynamic, allow_missing=True).table.digest
    (dynamic / "VolumeTracings.csv").unlink()
    source, labels = labels_of("echonet_dynamic/lv_seg", dynamic)
    assert labels == [] and source.table.digest != before
    assert len(source.references(catalog.task("echonet_dynamic/ef"))) == 4


# ---- EchoNet-Pediatric --------------------------------------------------------------------------------------------------


def test_polygons_of_echonet_pediatric_and_phases_that_were_not_traced(tmp_path):
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
    assert (unit["id"], unit["y_true"]) == ("CR1", 4) and expected_of(source, "echonet_pediatric/lv_seg") == {"CR1"}


# ---- EchoNet-LVH ------------------------------------------------------------------------------------------------------


def lvh(folder, rows):
    write_avi(folder / "Batch1" / "0XA.avi")
    table = ",HashedFileName,Calc,CalcValue,Frame,X1,X2,Y1,Y2,Frames,FPS,Width,Height,split\n"
    for number, (calc, value, (x1, y1), (x2, y2)) in enumerate(rows):
        table += f"{number},0XA,{calc},{value},1,{x1},{x2},{y1},{y2},3,50,64,64,test\n"
    (folder / "MeasurementsList.csv").write_text(table)
    return labels_of("echonet_lvh/landmarks", folder)[1]


SEPTUM, DIAMETER, WALL = (
    ("IVSd", 1.0, (8, 10), (8, 20)),
    ("LVIDd", 4.0, (8, 61), (8, 21)),
    ("LVPWd", 0.2, (8, 61), (8, 63)),
)


def test_calipers_become_four_points_and_the_size_of_a_pixel(tmp_path):
    (label,) = lvh(tmp_path, [DIAMETER, WALL, SEPTUM])
    assert label.points.tolist() == [[8, 10], [8, 20.5], [8, 61], [8, 63]], "ends that are shared are the mean of both"
    assert label.spacing == (1.0, 1.0) and (label.frame, label.phase, label.unit) == (1, "ED", "0XA")


def test_a_caliper_that_is_absent_leaves_its_own_points_out(tmp_path):
    (label,) = lvh(tmp_path, [DIAMETER, SEPTUM])
    assert np.isnan(label.points).all(axis=1).tolist() == [False, False, False, True]
    (label,) = lvh(tmp_path, [("LVIDd", 4.0, ("", ""), ("", "")), SEPTUM])
    assert np.isnan(label.points).all(axis=1).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([SEPTUM, DIAMETER, ("LVPWd", 0.2, (8, 61), (8, 70))], "line 4 (0XA, LVPWd): the point (8, 70) lies outside the picture of 64 x 64"),
        ([("IVSd", 0, (8, 10), (8, 20)), DIAMETER], "line 2 (0XA, IVSd): a caliper of 10 pixels measures 0 cm"),
        ([("IVSd", 1, (8, 10), (8, 10)), DIAMETER], "line 2 (0XA, IVSd): a caliper of 0 pixels measures 1 cm"),
        ([("IVSd", 2, (8, 10), (8, 20)), DIAMETER, WALL], "line 2 (0XA, IVSd): the caliper makes a pixel 2 mm, those of its frame 1 mm"),
    ],
)  # fmt: skip
def test_bad_calipers_are_named_by_file_and_row(tmp_path, rows, reason):
    (label,) = lvh(tmp_path, rows)
    assert expected_of(open_dataset("echonet_lvh", tmp_path, allow_missing=True), "echonet_lvh/landmarks") == {"0XA"}
    assert label.points is None and f"MeasurementsList.csv, {reason}" in label.reason


# ---- the phantoms -----------------------------------------------------------------------------------------------------


def test_phantoms_have_exact_labels_of_both_kinds():
    source = open_dataset("phantom_echo")
    mask = next(source.dense_labels(catalog.task("phantom_echo/lv_seg")))
    assert set(np.unique(mask.mask)) == {0, 1, 2} and mask.phase == "ED" and mask.view in ("A2C", "A4C")
    points = next(source.dense_labels(catalog.task("phantom_echo/landmarks")))
    row = source.frame.set_index("id").loc[points.recording]
    lengths = np.hypot(*np.diff(points.points * points.spacing, axis=0).T) / 10
    assert lengths == pytest.approx(row[["ivsd", "lvidd", "lvpwd"]].to_numpy(float)), "cm"

"""Test the twins of the three EchoNet releases with pandas and OpenCV."""

import cv2
import numpy as np
import pandas as pd
import pytest

from cardiobench.data.twin import write_twin


def frames_of(path) -> np.ndarray:
    capture, frames = cv2.VideoCapture(str(path)), []
    while (answer := capture.read())[0]:
        frames.append(answer[1][..., 0])
    return np.array(frames)


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dynamic")
    write_twin("echonet_dynamic", folder, patients=12, seed=1)
    return folder / "EchoNet-Dynamic"


@pytest.fixture(scope="module")
def pediatric(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pediatric")
    write_twin("echonet_pediatric", folder, patients=12, seed=1)
    return folder


@pytest.fixture(scope="module")
def lvh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lvh")
    write_twin("echonet_lvh", folder, patients=12, seed=1)
    return folder


def test_dynamic_lists_its_videos(dynamic):
    table = pd.read_csv(dynamic / "FileList.csv")
    assert list(table.columns) == [
        "FileName", "EF", "ESV", "EDV", "FrameHeight", "FrameWidth", "FPS", "NumberOfFrames", "Split",
    ]  # fmt: skip
    assert table["FileName"].str.fullmatch("0X[0-9A-F]{16}").all()
    assert set(table["Split"]) == {"TRAIN", "VAL", "TEST"}
    np.testing.assert_allclose(table["EF"], 100 * (1 - table["ESV"] / table["EDV"]), atol=1e-6)
    assert {path.stem for path in (dynamic / "Videos").glob("*.avi")} == set(table["FileName"])
    for row in table.itertuples():
        video = frames_of(dynamic / "Videos" / f"{row.FileName}.avi")
        assert video.shape == (row.NumberOfFrames, 112, 112)
        capture = cv2.VideoCapture(str(dynamic / "Videos" / f"{row.FileName}.avi"))
        assert capture.get(cv2.CAP_PROP_FPS) == row.FPS
        assert int(capture.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little") == b"MJPG"


def test_dynamic_tracings_give_the_ejection_fraction_by_discs(dynamic):
    table = pd.read_csv(dynamic / "FileList.csv").set_index("FileName")
    tracings = pd.read_csv(dynamic / "VolumeTracings.csv")
    assert list(tracings.columns) == ["FileName", "X1", "Y1", "X2", "Y2", "Frame"]
    once = tracings.groupby("FileName")["Frame"].nunique() == 1
    assert once.sum() == 1, "one video has only one traced frame, as in the release"
    for name, rows in tracings.groupby("FileName"):
        if once[name]:
            continue
        volumes = []
        for frame in rows["Frame"].unique():
            lines = rows[rows["Frame"] == frame][["X1", "Y1", "X2", "Y2"]].to_numpy()
            lengths = np.hypot(lines[:, 0] - lines[:, 2], lines[:, 1] - lines[:, 3])
            volumes.append((lengths[1:] ** 2).sum() * lengths[0])
            assert len(lines) == 21
        smallest, largest = volumes  # End-systole is listed first.
        assert rows["Frame"].iloc[-1] == 0
        assert 100 * (1 - smallest / largest) == pytest.approx(table.loc[name.removesuffix(".avi"), "EF"], abs=6)


@pytest.mark.slow
def test_pediatric_lists_its_videos(pediatric):
    for view in ("A4C", "PSAX"):
        table = pd.read_csv(pediatric / view / "FileList.csv")
        assert list(table.columns) == ["FileName", "EF", "Sex", "Age", "Weight", "Height", "Split"]
        assert table["FileName"].str.fullmatch(r"CR[0-9a-f]{8}-CR[0-9a-f]{8}-\d{6}\.avi").all()
        assert table["FileName"].is_unique
        assert {path.name for path in (pediatric / view / "Videos").glob("*.avi")} == set(table["FileName"])
        assert set(table["Split"]) == set(range(10))
        assert (table.groupby(table["FileName"].str[:10])["Split"].nunique() == 1).all()
        assert (table.groupby(table["FileName"].str[:21])["EF"].nunique() == 1).all()
        assert table["Age"].between(0, 18).all()
        assert table["Weight"].isna().any()
        bmi = table["Weight"] / (table["Height"] / 100) ** 2
        assert bmi.dropna().between(10, 35).all()
        assert frames_of(pediatric / view / "Videos" / table["FileName"][0]).shape[1:] == (112, 112)
    both = [set(pd.read_csv(pediatric / view / "FileList.csv")["FileName"].str[:21]) for view in ("A4C", "PSAX")]
    assert both[0] == both[1]  # Every visit has both views.


@pytest.mark.slow
def test_pediatric_tracings_are_polygons_or_missing(pediatric):
    for view in ("A4C", "PSAX"):
        tracings = pd.read_csv(pediatric / view / "VolumeTracings.csv")
        assert list(tracings.columns) == ["FileName", "X", "Y", "Frame"]
        missing = tracings["Frame"] == "No Systolic"
        assert missing.any()
        assert tracings.loc[missing, ["X", "Y"]].isna().all().all()
        assert tracings.loc[~missing, ["X", "Y"]].to_numpy().max() < 112
        for _, outline in tracings[~missing].groupby(["FileName", "Frame"]):
            assert cv2.contourArea(outline[["X", "Y"]].to_numpy(np.float32)) > 100


@pytest.mark.slow
def test_lvh_measurements_match_the_phantoms(lvh):
    table = pd.read_csv(lvh / "MeasurementsList.csv", index_col=0)
    assert list(table.columns) == [
        "HashedFileName", "Calc", "CalcValue", "Frame", "X1", "X2", "Y1", "Y2", "Frames", "FPS", "Width", "Height", "split",
    ]  # fmt: skip
    assert set(table["split"]) == {"train", "val", "test"}
    assert {"IVSd", "LVIDd", "LVPWd"} < set(table["Calc"])
    batches = {path.parent.name for path in lvh.glob("Batch*/*.avi")}
    assert batches == {"Batch1", "Batch2", "Batch3", "Batch4"}
    assert {path.stem for path in lvh.glob("Batch*/*.avi")} == set(table["HashedFileName"])
    for name, rows in table.groupby("HashedFileName"):
        video = frames_of(next(lvh.glob(f"Batch*/{name}.avi")))
        assert (video.shape == rows[["Frames", "Height", "Width"]].to_numpy()).all()
        assert (rows["Frame"] < len(video)).all()
        # All lengths in pixels have the same scale, up to the rounding of end points.
        pixels = np.hypot(rows["X1"] - rows["X2"], rows["Y1"] - rows["Y2"])
        scale = rows["CalcValue"].sum() / pixels.sum()
        contradicting = not (np.abs(pixels * scale - rows["CalcValue"]) < 1.8 * scale).all()
        assert contradicting == (name == table["HashedFileName"].unique()[5]), (
            "one caliper of a video is twice too long"
        )
        values = rows.set_index("Calc")["CalcValue"]
        assert 0.5 < values["IVSd"] < 2.5
        assert 3.0 < values["LVIDd"] < 8.0
        if "LVIDs" in values:
            assert values["LVIDs"] < values["LVIDd"]
            assert values["IVSs"] > values["IVSd"]


@pytest.mark.slow
def test_lvh_calipers_span_the_dark_cavity_and_bright_walls(lvh):
    table = pd.read_csv(lvh / "MeasurementsList.csv", index_col=0)
    brightness = {"LVIDd": [], "LVPWd": []}
    for row in table[table["Calc"].isin(brightness)].itertuples():
        frame = frames_of(next(lvh.glob(f"Batch*/{row.HashedFileName}.avi")))[row.Frame]
        along = np.linspace(0.15, 0.85, 30)
        xs, ys = row.X1 + along * (row.X2 - row.X1), row.Y1 + along * (row.Y2 - row.Y1)
        brightness[row.Calc].append(frame[ys.round().astype(int), xs.round().astype(int)].mean())
    assert np.mean(brightness["LVPWd"]) > np.mean(brightness["LVIDd"]) + 30

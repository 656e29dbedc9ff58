"""Test DICOM images in every colour space on real files and hand-worked examples."""

import contextlib
import io
from pathlib import Path

import cv2
import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate, generate_frames
from pydicom.uid import (
    ExplicitVRLittleEndian,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    UltrasoundMultiFrameImageStorage,
    generate_uid,
)

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, read_clip
from cardiobench.data.media.dicom_regions import recording_kind, ultrasound_boxes
from cardiobench.data.media.ecg_dicom import read_dicom_ecg
from tests.data.ecg_files import write_dicom
from tests.data.media.videos import moving_frames


@pytest.fixture
def real(samples) -> Path:
    return samples / "dicom"


def dicom_bytes(pixels: np.ndarray, photometric: str = "MONOCHROME2", **tags) -> bytes:
    """Return a DICOM file of uncompressed frames (T, H, W) or (T, H, W, 3); `tags` add or replace header elements."""
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = UltrasoundMultiFrameImageStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = generate_uid(entropy_srcs=["cardiobench"])
    made.file_meta.TransferSyntaxUID = tags.pop("syntax", ExplicitVRLittleEndian)
    made.Modality = "US"
    made.NumberOfFrames, made.Rows, made.Columns = pixels.shape[:3]
    made.SamplesPerPixel = 3 if pixels.ndim == 4 else 1
    if pixels.ndim == 4:
        made.PlanarConfiguration = 0
    made.PhotometricInterpretation = photometric
    made.BitsAllocated = made.BitsStored = pixels.dtype.itemsize * 8
    made.HighBit = made.BitsStored - 1
    made.PixelRepresentation = int(pixels.dtype.kind == "i")
    made.PixelData = pixels.tobytes() + b"\0" * (pixels.nbytes % 2)
    made["PixelData"].VR = "OB" if pixels.dtype.itemsize == 1 else "OW"
    for tag, value in tags.items():
        setattr(made, tag, value)
    stream = io.BytesIO()
    pydicom.dcmwrite(stream, made, enforce_file_format=True)
    return stream.getvalue()


def levels(content: bytes, **options) -> np.ndarray:
    """Return the grey levels of a clip, after checking that its three channels are equal."""
    frames = read_clip(content, **options).frames
    assert (frames == frames[..., :1]).all()
    return frames[..., 0]


# ---- Real files ---------------------------------------------------------------------------------------------------------


def test_real_cine_is_decoded(real):
    """Compare 30 frames of 240 x 320 in YBR_FULL_422 JPEG with OpenCV on the same JPEG streams."""
    path = real / "examples_ybr_color.dcm"
    streams = generate_frames(pydicom.dcmread(path).PixelData, number_of_frames=30)
    expected = np.stack([cv2.imdecode(np.frombuffer(data, np.uint8), 1)[..., ::-1] for data in streams])
    clip = read_clip(path)
    assert clip.frames.shape == (30, 240, 320, 3)
    assert clip.n_frames == 30
    assert clip.fps == pytest.approx(1000 / 33.333)
    np.testing.assert_array_equal(clip.frames, expected)
    some = read_clip(path, FrameSampling(4, start="uniform"))
    assert some.indices.tolist() == [0, 10, 19, 29]
    np.testing.assert_array_equal(some.frames, expected[[0, 10, 19, 29]])
    late = read_clip(path.read_bytes(), FrameSampling(16), key_frame=25)
    np.testing.assert_array_equal(late.frames, expected[25:])
    # The frames show a nearly grey apical view on black.
    assert np.ptp(clip.frames.astype(int), axis=-1)[:, 40:200].mean() < 3
    assert clip.frames[:, 100:140, :40].max() < 30


def test_equal_pictures_in_three_encodings_decode_equally(real):
    """Check that US1_J2KR and examples_jpeg2k contain the same lossless image, and examples_rgb_color a smaller copy."""
    first, second = (read_clip(real / name).frames[0] for name in ("US1_J2KR.dcm", "examples_jpeg2k.dcm"))
    assert first.shape == (480, 640, 3)
    np.testing.assert_array_equal(first, second)
    smaller = read_clip(real / "examples_rgb_color.dcm").frames[0]
    assert smaller.shape == (240, 320, 3)
    shrunk = cv2.resize(first, (320, 240), interpolation=cv2.INTER_AREA)
    assert np.abs(shrunk.astype(int) - smaller).mean() < 8
    # Power Doppler has much red and little blue. Swapped channels would reverse this.
    doppler = (np.ptp(first.astype(int), axis=-1) > 100) & (first.sum(-1) > 200)
    assert doppler.sum() > 5000
    red, _, blue = first[doppler].mean(axis=0)
    assert red > 200 > 100 > blue


def test_real_palette_image_is_decoded(real):
    """Check each level against the three tables of 16-bit entries, looked up by hand."""
    path = real / "examples_palette.dcm"
    header = pydicom.dcmread(path)
    stored = np.frombuffer(header.PixelData, np.uint8, 350 * 800).reshape(350, 800)
    names = ("Red", "Green", "Blue")
    tables = [np.frombuffer(header[f"{n}PaletteColorLookupTableData"].value, "<u2") for n in names]
    expected = np.stack([(table >> 8)[stored] for table in tables], axis=-1)
    clip = read_clip(path)
    np.testing.assert_array_equal(clip.frames[0], expected)
    assert clip.frames[0, 5, 5, 2] > clip.frames[0, 5, 5, 0] + 30  # The title bar is blue.


def test_real_big_endian_planar_image_is_decoded(real):
    path = real / "ExplVR_BigEnd.dcm"
    planes = np.frombuffer(pydicom.dcmread(path).PixelData, np.uint8, 3 * 60 * 80).reshape(3, 60, 80)
    clip = read_clip(path)
    np.testing.assert_array_equal(clip.frames[0], planes.transpose(1, 2, 0))
    np.testing.assert_array_equal(clip.frames[0, 30, 40], (255, 255, 0))


# ---- Colour by hand -----------------------------------------------------------------------------------------------------


def test_rgb_survives_a_round_trip():
    frames = moving_frames(3, 20, 24)
    clip = read_clip(dicom_bytes(frames, "RGB", CineRate=50))
    np.testing.assert_array_equal(clip.frames, frames)
    assert clip.fps == 50.0


def test_ybr_full_follows_the_equations_of_the_standard():
    """Check the conversion of PS3.3 C.7.6.3.1.2: Y = .299 R + .587 G + .114 B, with Cb and Cr around 128."""
    rgb = moving_frames(2, 20, 24).astype(float)
    red, green, blue = np.moveaxis(rgb, -1, 0)
    ybr = np.stack(
        [
            0.299 * red + 0.587 * green + 0.114 * blue,
            -0.1687 * red - 0.3313 * green + 0.5 * blue + 128,
            0.5 * red - 0.4187 * green - 0.0813 * blue + 128,
        ],
        axis=-1,
    )
    clip = read_clip(dicom_bytes(np.rint(ybr).clip(0, 255).astype(np.uint8), "YBR_FULL"))
    assert np.abs(clip.frames - rgb).max() <= 3


def test_planar_configuration_is_decoded():
    frames = moving_frames(2, 20, 24)
    planes = np.ascontiguousarray(frames.transpose(0, 3, 1, 2)).tobytes()
    clip = read_clip(dicom_bytes(frames, "RGB", PlanarConfiguration=1, PixelData=planes))
    np.testing.assert_array_equal(clip.frames, frames)


# ---- Grey by hand -------------------------------------------------------------------------------------------------------

RAMP = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)


def test_eight_bits_are_unchanged_and_monochrome1_is_inverted():
    dim = RAMP // 2  # A dim image stays dim.
    np.testing.assert_array_equal(levels(dicom_bytes(dim)), dim)
    np.testing.assert_array_equal(levels(dicom_bytes(dim, "MONOCHROME1")), 255 - dim)
    np.testing.assert_array_equal(levels(dicom_bytes(dim, RescaleSlope=1, RescaleIntercept=0)), dim)


def test_sixteen_bits_are_scaled_per_recording():
    volume = np.array([[[100, 200], [300, 400]], [[500, 600], [1000, 1100]]], np.uint16)
    expected = np.rint((volume.astype(float) - 100) * 255 / 1000)
    np.testing.assert_array_equal(levels(dicom_bytes(volume)), expected)
    np.testing.assert_array_equal(levels(dicom_bytes(volume), sampling=FrameSampling(1), key_frame=1), expected[1:])
    signed = volume.astype(np.int16) - 600
    np.testing.assert_array_equal(levels(dicom_bytes(signed)), expected)


def test_window_linear():
    """Check the window of PS3.3 C.11.2.1.2.1 for centre 40 and width 5: 0 up to 37.5, 255 from 41.5, linear in between."""
    values = np.array([[[0, 37, 38, 39], [40, 41, 42, 99]]], np.uint16)
    expected = [[[0, 0, 32, 96], [159, 223, 255, 255]]]
    np.testing.assert_array_equal(levels(dicom_bytes(values, WindowCenter=40, WindowWidth=5)), expected)
    several = dicom_bytes(values, WindowCenter=[40, 500], WindowWidth=[5, 1000])
    np.testing.assert_array_equal(levels(several), expected)


def test_window_after_rescale():
    values = np.array([[[0, 1], [2, 3]]], np.int16)
    content = dicom_bytes(
        values, RescaleSlope=10, RescaleIntercept=-5, WindowCenter=10, WindowWidth=30, VOILUTFunction="LINEAR_EXACT"
    )
    # Values -5, 5, 15 and 25 in a window from -5 to 25.
    np.testing.assert_array_equal(levels(content), [[[0, 85], [170, 255]]])


def test_window_sigmoid():
    values = np.array([[[0, 10], [20, 1000]]], np.uint16)
    content = dicom_bytes(values, WindowCenter=10, WindowWidth=10, VOILUTFunction="SIGMOID")
    expected = 255 / (1 + np.exp(-4 * (np.array([0, 10, 20, 1000.0]) - 10) / 10))
    np.testing.assert_array_equal(levels(content).ravel(), np.rint(expected))


def test_voi_table():
    table = Dataset()
    table.LUTDescriptor = [4, 10, 8]  # Table of 4 entries for values from 10, with 8 bits.
    table.LUTData = np.array([0, 50, 100, 200], "<u2").tobytes()
    values = np.array([[[0, 10, 11], [12, 13, 99]]], np.uint16)
    content = dicom_bytes(values, VOILUTSequence=[table])
    np.testing.assert_array_equal(levels(content), [[[0, 0, 50], [100, 200, 200]]])


def test_frame_rates():
    frames = RAMP.repeat(3, axis=0)
    assert read_clip(dicom_bytes(frames, FrameTime=20.0, CineRate=30)).fps == 50.0
    assert read_clip(dicom_bytes(frames, FrameTimeVector=[0, 30.0, 50.0])).fps == 25.0
    assert read_clip(dicom_bytes(frames, RecommendedDisplayFrameRate=40)).fps == 40.0
    assert read_clip(dicom_bytes(frames)).fps is None


# ---- Unreadable files ------------------------------------------------------------------------------------------------


def test_truncation_at_any_position_is_refused(real, tmp_path):
    for name in ("examples_ybr_color.dcm", "US1_J2KR.dcm", "examples_palette.dcm"):
        content = (real / name).read_bytes()
        for share in (0.001, 0.05, 0.5, 0.9, 0.99):
            path = tmp_path / "cut.dcm"
            path.write_bytes(content[: int(len(content) * share)])
            with pytest.raises(BadMedia, match=r"cut\.dcm"):
                read_clip(path)


def test_truncated_last_frame_is_detected_by_its_length():
    """Test truncated JPEG streams, which some decoders silently fill with grey."""
    jpeg = cv2.imencode(".jpg", moving_frames(1, 64, 64)[0], [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    grey = np.zeros((1, 64, 64), np.uint8)
    tags = {"PhotometricInterpretation": "YBR_FULL_422", "SamplesPerPixel": 3, "PlanarConfiguration": 0}
    content = dicom_bytes(grey, **tags, syntax=JPEGExtended12Bit, PixelData=encapsulate([jpeg]))
    assert read_clip(content).frames.shape == (1, 64, 64, 3)
    kept = len(content) - len(jpeg) // 3
    with pytest.raises(BadMedia, match=rf"a compressed image ends at byte \d+, the file at {kept}"):
        read_clip(content[:kept])


def test_no_image_inside():
    content = dicom_bytes(RAMP)
    report = pydicom.dcmread(io.BytesIO(content))
    del report.PixelData
    stream = io.BytesIO()
    report.save_as(stream)
    with pytest.raises(BadMedia, match="report cannot be decoded as DICOM"):
        read_clip(stream.getvalue(), name="report")
    del report.Rows
    stream = io.BytesIO()
    report.save_as(stream)
    with pytest.raises(BadMedia, match="report is a DICOM file without an image"):
        read_clip(stream.getvalue(), name="report")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: dicom_bytes(np.zeros((2, 4, 4), np.uint16)), "is a blank image: every value is 0"),
        (lambda: dicom_bytes(RAMP, NumberOfFrames=5), "cannot be decoded as DICOM"),
        (lambda: dicom_bytes(RAMP, NumberOfFrames=-1), "declares -1 frames"),
        (lambda: dicom_bytes(RAMP, WindowCenter=10, WindowWidth=0), "window width 0"),
        (lambda: dicom_bytes(moving_frames(1, 4, 4), "HSV"), "colour space HSV"),
        (lambda: dicom_bytes(moving_frames(1, 4, 4).astype(np.uint16), "RGB"), "stores colour as uint16"),
        (
            lambda: dicom_bytes(
                moving_frames(1, 4, 4), "RGB", syntax=JPEGBaseline8Bit, PixelData=encapsulate([b"no JPEG."])
            ),
            "cannot be decoded as DICOM",
        ),
    ],
)
def test_refused_with_the_reason(content, message):
    with pytest.raises(BadMedia, match=message):
        read_clip(content(), name="clip 3")


def test_image_with_spectrum_counts_as_spectrum(tmp_path):
    """Test a duplex image: one region is 2D and the other Doppler (PS3.3 C.8.5.5.1.1: 1 is 2D, 2 is colour flow, 3 is spectral)."""

    def kind(*regions, colour=0):
        items = []
        for left, (space, data) in enumerate(regions):
            item = Dataset()
            item.RegionSpatialFormat, item.RegionDataType = space, data
            item.RegionLocationMinX0, item.RegionLocationMinY0 = 4 * left, 1
            item.RegionLocationMaxX1, item.RegionLocationMaxY1 = 4 * left + 3, 6
            items.append(item)
        pixels = np.zeros((3, 8, 8), np.uint8)
        header = {"SequenceOfUltrasoundRegions": items, "UltrasoundColorDataPresent": colour}
        (tmp_path / "one.dcm").write_bytes(dicom_bytes(pixels, **header))
        boxes = ultrasound_boxes(pydicom.dcmread(tmp_path / "one.dcm"))
        assert boxes == tuple((4 * left, 1, 4 * left + 4, 7) for left in range(len(regions)))
        return recording_kind(tmp_path / "one.dcm")

    assert kind((1, 1), (3, 3)) == kind((3, 3), (1, 1)) == kind((1, 2), (2, 1)) == "spectral"
    assert kind((1, 1), (1, 2)) == kind((1, 2), (1, 1)) == kind((1, 1), colour=1) == "colour"
    assert kind((1, 1), (1, 1)) == kind() == "2D"


@pytest.mark.parametrize("read", [read_clip, read_dicom_ecg, recording_kind])
def test_bytes_of_a_damaged_header_are_not_printed(read, tmp_path, recwarn, caplog):
    write_dicom(tmp_path, "one", np.zeros((10, 12)))
    damaged = (tmp_path / "one.dcm").read_bytes().replace(b"1.2.840.10008.1.2.1\0", b"M.2.840.10008.1.2.1\0")
    (tmp_path / "one.dcm").write_bytes(damaged)
    with contextlib.suppress(BadMedia):
        read(tmp_path / "one.dcm")
    assert not recwarn.list and not caplog.records

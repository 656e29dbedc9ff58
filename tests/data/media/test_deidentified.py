"""Plant a name in every place of a DICOM file that can hold one, and look for it in what leaves the machine."""

import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.datadict import DicomDictionary, keyword_for_tag
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate, generate_frames
from pydicom.uid import (
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    RLELossless,
)

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import jpeg, read_clip
from cardiobench.data.media.deidentify import IMAGE, KEPT, LEVELS, REGION, deidentified
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.videos import moving_frames

NAME, DATE, UID = "DOE^JANE", "19551231", "1.2.826.0.1.19551231"
FRAMES = moving_frames(2, 48, 64)


def jpeg_frames(**options) -> list[bytes]:
    made = []
    for frame in FRAMES:
        stream = io.BytesIO()
        Image.fromarray(frame).save(stream, "JPEG", quality=90, **options)
        made.append(stream.getvalue())
    return made


def jpeg_2000_frames(box: bool = False) -> list[bytes]:
    made = []
    for frame in FRAMES:
        stream = io.BytesIO()
        Image.fromarray(frame).save(stream, "JPEG2000", no_jp2=not box, mct=1)
        made.append(stream.getvalue())
    return made


def compressed(streams: list[bytes], declared: str, syntax, *, table: bool = True, **tags) -> bytes:
    return dicom_bytes(FRAMES, declared, syntax=syntax, PixelData=encapsulate(streams, has_bot=table), **tags)


def run_lengths() -> bytes:
    dataset = pydicom.dcmread(io.BytesIO(dicom_bytes(FRAMES, "RGB", FrameTime=20)))
    dataset.compress(RLELossless, generate_instance_uid=False)
    return saved(dataset)


def saved(dataset: Dataset) -> bytes:
    stream = io.BytesIO()
    dataset.save_as(stream)
    return stream.getvalue()


SYNTAXES = {
    "explicit": lambda: dicom_bytes(FRAMES, "RGB", FrameTime=20),
    "implicit": lambda: dicom_bytes(FRAMES, "RGB", FrameTime=20, syntax=ImplicitVRLittleEndian),
    "grey": lambda: dicom_bytes(FRAMES[..., 0].astype(np.uint16) * 9, FrameTime=20, WindowCenter=800, WindowWidth=1600),
    "JPEG": lambda: compressed(jpeg_frames(), "YBR_FULL_422", JPEGBaseline8Bit, FrameTime=20),
    "JPEG 2000": lambda: compressed(jpeg_2000_frames(), "YBR_RCT", JPEG2000Lossless, FrameTime=20),
    "run lengths": run_lengths,
}


def check(path: Path, *planted: str) -> None:
    """Check that the file is refused, or written without the texts and with the same frames."""
    before = path.read_bytes()
    try:
        after = deidentified(path)
    except BadMedia:
        return
    for text in planted:
        assert text.encode() not in after and text.encode("utf-16-le") not in after
    kept = pydicom.dcmread(io.BytesIO(after))
    added = {"SOPInstanceUID", "PatientIdentityRemoved", "DeidentificationMethod"}
    assert {element.keyword for element in kept} <= KEPT | added
    raw, ours = read_clip(before, name="clip"), read_clip(after, name="clip")
    np.testing.assert_array_equal(raw.frames, ours.frames)
    assert raw.fps == ours.fps and raw.regions == ours.regions
    assert deidentified(path) == after


VALUES = {
    "DA": DATE, "DT": DATE, "TM": "195512", "AS": "071Y", "UI": UID, "IS": DATE, "DS": DATE, "AE": NAME, "CS": NAME,
    "SH": NAME, "LO": NAME, "PN": NAME, "ST": NAME, "LT": NAME, "UT": NAME, "UC": NAME, "UR": NAME,
    "OB": NAME.encode(), "OW": NAME.encode(), "UN": NAME.encode(),
    "US": 19551, "SS": 19551, "UL": int(DATE), "SL": int(DATE), "FL": float(DATE), "FD": float(DATE),
}  # fmt: skip


def value(vr: str):
    if vr == "SQ":
        item, nested = Dataset(), Dataset()
        nested.PatientName, nested.StudyDate = NAME, DATE
        item.PatientName, item.ReferencedSOPInstanceUID, item.ReferencedImageSequence = NAME, UID, [nested]
        return [item]
    return VALUES.get(vr)


MADE = ("PixelData", "FloatPixelData", "DoubleFloatPixelData", "TransferSyntaxUID")


@pytest.mark.parametrize(
    "syntax", [pytest.param(one, marks=[] if one == "JPEG" else pytest.mark.slow) for one in SYNTAXES]
)
def test_names_in_all_other_elements_of_the_dictionary_are_left_out(tmp_path, syntax):
    content = SYNTAXES[syntax]()
    dataset, path = pydicom.dcmread(io.BytesIO(content)), tmp_path / "one.dcm"
    kept = {*KEPT, *MADE, "ExtendedOffsetTable", "ExtendedOffsetTableLengths"}
    kept |= {"ModalityLUTSequence", "VOILUTSequence"}  # A file with a table of another kind is not an image.
    for tag, (vr, _, _, _, keyword) in DicomDictionary.items():
        if keyword and keyword not in kept and tag >> 16 > 2 and (planted := value(vr.split(" or ")[0])) is not None:
            dataset.add_new(tag, vr.split(" or ")[0], planted)
    block = dataset.private_block(0x0011, NAME, create=True)
    block.add_new(1, "LO", NAME)
    dataset.file_meta.SourceApplicationEntityTitle = NAME
    dataset.file_meta.PrivateInformationCreatorUID, dataset.file_meta.PrivateInformation = UID, NAME.encode()
    dataset.preamble = NAME.encode() * 16
    dataset.SOPInstanceUID = UID
    for overlay in range(0x6000, 0x6020, 2):
        dataset.add_new((overlay, 0x3000), "OW", NAME.encode())
    path.write_bytes(saved(dataset))
    assert len(dataset) > 3000
    deidentified(path)
    check(path, NAME, DATE, UID)


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("keyword", sorted(KEPT - {"PixelData"}))
def test_names_in_kept_elements_are_refused_or_left_out(tmp_path, syntax, keyword):
    dataset, path = pydicom.dcmread(io.BytesIO(SYNTAXES[syntax]())), tmp_path / "one.dcm"
    vr = pydicom.datadict.dictionary_VR(keyword).split(" or ")[0]
    if keyword in REGION:
        region = Dataset()
        region.add_new(pydicom.datadict.tag_for_keyword(keyword), vr, value(vr))
        dataset.SequenceOfUltrasoundRegions = [region]
    elif vr == "AT":
        dataset.add_new(pydicom.datadict.tag_for_keyword(keyword), vr, int(DATE))
    else:
        dataset.add_new(pydicom.datadict.tag_for_keyword(keyword), vr, value(vr))
    path.write_bytes(saved(dataset))
    number = struct.pack("<I", int(DATE)).decode("latin-1")
    check(path, NAME, DATE, UID)
    if path.read_bytes().count(number.encode("latin-1")):
        try:
            assert number.encode("latin-1") not in deidentified(path)
        except BadMedia:
            pass


def test_every_parsed_element_refuses_a_name():
    for table in (IMAGE, LEVELS, REGION):
        for parse in table.values():
            for planted in (NAME, DATE, [NAME], [1, DATE], float("nan"), float("inf"), -int(DATE), b"DOE"):
                with pytest.raises((TypeError, ValueError, OverflowError)):
                    parse(planted)


def test_ultrasound_regions_keep_their_corners(tmp_path):
    region, path = Dataset(), tmp_path / "one.dcm"
    region.RegionSpatialFormat, region.RegionDataType, region.RegionFlags = 1, 1, 3
    region.RegionLocationMinX0, region.RegionLocationMinY0 = 2, 3
    region.RegionLocationMaxX1, region.RegionLocationMaxY1 = 50, 40
    region.PatientName = NAME
    path.write_bytes(dicom_bytes(FRAMES, "RGB", SequenceOfUltrasoundRegions=[region], UltrasoundColorDataPresent=0))
    check(path, NAME)
    assert read_clip(deidentified(path)).regions == ((2, 3, 51, 41),)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("FrameTime", "1955.1231"), ("CineRate", 1955), ("WindowCenter", "551231"), ("RescaleSlope", "19551231"),
        ("PixelAspectRatio", [1955, 1231]), ("FrameTimeVector", [0, 19551231]), ("NumberOfFrames", 19551231),
        ("RegionLocationMaxX1", 1955), ("RegionFlags", 19551231), ("BurnedInAnnotation", "DOE"), ("Modality", "JANE"),
    ],
)  # fmt: skip
def test_dates_in_numbers_are_refused(tmp_path, keyword, value):
    path, dataset = tmp_path / "one.dcm", pydicom.dcmread(io.BytesIO(SYNTAXES["grey"]()))
    if keyword in REGION:
        region = Dataset()
        setattr(region, keyword, value)
        dataset.SequenceOfUltrasoundRegions = [region]
    else:
        setattr(dataset, keyword, value)
    path.write_bytes(saved(dataset))
    with pytest.raises(BadMedia):
        deidentified(path)


# ---- Containers inside the pixels ---------------------------------------------------------------------------------------

Change = Callable[[bytes], bytes]


def segment(marker: int, content: bytes) -> Change:
    """Return a change that puts a segment behind SOI."""
    whole = bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content
    return lambda stream: stream[:2] + whole + stream[2:]


def before_end(stream: bytes) -> bytes:
    """Put the name between the last coded unit and EOI, where decoders skip it."""
    return stream[:-2] + NAME.encode() + stream[-2:]


def renamed_components(stream: bytes) -> bytes:
    """Call the components 1, 2 and 3, or R, G and B, by letters of the name."""
    made = []
    for one in jpeg.segments(stream):
        content = bytearray(one.content)
        if one.marker in jpeg.FRAMES:
            content[6:15:3] = b"DOE"
        if one.marker == jpeg.SOS:
            for at in range(1, 1 + 2 * content[0], 2):
                content[at] = {1: 68, 2: 79, 3: 69, 82: 68, 71: 79, 66: 69}[content[at]]
        made.append(one._replace(content=bytes(content)))
    return jpeg.written(made)


def shared_segments(stream: bytes) -> bytes:
    """Join the quantisation tables to one segment, with a name in an unused table."""
    parts = list(jpeg.segments(stream))
    tables = b"".join(one.content for one in parts if one.marker == jpeg.DQT)
    unused = b"\3" + NAME.encode() * 8
    others = [one for one in parts if one.marker != jpeg.DQT]
    return jpeg.written([others[0], jpeg.Segment(jpeg.DQT, tables + unused), *others[1:]])


EXIF = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x0e\0\x02\0\0\0\x08\0\0\0\x1a\0\0\0\0" + NAME.encode()
JPEG_CHANGES: dict[str, Change] = {
    "comment": segment(0xFE, NAME.encode()),
    "EXIF": segment(0xE1, EXIF),
    "JFIF thumbnail": segment(0xE0, b"JFXX\0\x13\2\2" + NAME.encode()),
    "Photoshop": segment(0xED, b"Photoshop 3.0\0" + NAME.encode()),
    "ICC profile": segment(0xE2, b"ICC_PROFILE\0\1\1" + NAME.encode()),
    "Adobe marker": segment(0xEE, jpeg.ADOBE + b"\1" + NAME.encode()),
    "extension": segment(0xF7, NAME.encode()),
    "unused table": segment(jpeg.DQT, b"\3" + NAME.encode() * 8),
    "unused table in a shared segment": shared_segments,
    "unused code": segment(jpeg.DHT, b"\x13" + bytes(15) + b"\7" + b"ABCDEGH"),
    "behind the end": lambda stream: stream + NAME.encode(),
    "another image behind the end": lambda stream: stream + stream[:-2] + NAME.encode() + stream[-2:],
    "before the end": before_end,
    "component ids": renamed_components,
}


@pytest.mark.parametrize("place", JPEG_CHANGES)
@pytest.mark.parametrize("options", [{}, {"restart_marker_rows": 1}, {"progressive": True}, {"keep_rgb": True}])
def test_names_in_jpeg_streams(tmp_path, place, options):
    path, change = tmp_path / "one.dcm", JPEG_CHANGES[place]
    streams = [change(stream) for stream in jpeg_frames(**options)]
    declared = "RGB" if options.get("keep_rgb") else "YBR_FULL_422"
    path.write_bytes(compressed(streams, declared, JPEGBaseline8Bit, FrameTime=20))
    deidentified(path)
    check(path, NAME, "ABCDEGH", "DOE")


def test_name_behind_a_restart_interval(tmp_path):
    path, streams = tmp_path / "one.dcm", jpeg_frames(restart_marker_rows=1)
    for number, stream in enumerate(streams):
        first = stream.index(b"\xff\xd0")
        streams[number] = stream[:first] + NAME.encode() + stream[first:]
    path.write_bytes(compressed(streams, "YBR_FULL_422", JPEGBaseline8Bit))
    deidentified(path)
    check(path, NAME)


@pytest.mark.parametrize("options", [{}, {"subsampling": "4:4:4"}, {"restart_marker_blocks": 3}, {"keep_rgb": True}])
@pytest.mark.parametrize("level", [0, 1, 127, 200, 255])
def test_coded_pixels_of_ordinary_jpeg_are_kept(tmp_path, options, level):
    """Check that even blank frames, whose units have few bits, are not decoded and stored in another form."""
    path, stream = tmp_path / "one.dcm", io.BytesIO()
    Image.fromarray(np.full((48, 64, 3), level, np.uint8)).save(stream, "JPEG", quality=90, **options)
    streams = [stream.getvalue(), *jpeg_frames(**options)]
    whole = dicom_bytes(
        np.zeros((3, 48, 64, 3), np.uint8), "RGB", syntax=JPEGBaseline8Bit, PixelData=encapsulate(streams)
    )
    path.write_bytes(whole)
    kept = pydicom.dcmread(io.BytesIO(deidentified(path)))
    assert kept.file_meta.TransferSyntaxUID == JPEGBaseline8Bit
    for before, after in zip(streams, generate_frames(kept.PixelData, number_of_frames=3), strict=True):
        scans = [[one.scan for one in jpeg.segments(part) if one.scan] for part in (before, after)]
        assert scans[0] == scans[1]
    check(path)


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content) + 8) + kind + content


JPEG_2000_CHANGES: dict[str, Change] = {
    "comment": lambda stream: (
        stream[: stream.index(b"\xff\x64")]
        + b"\xff\x64\0\x0c\0\1"
        + NAME.encode()
        + stream[stream.index(b"\xff\x64") :]
    ),
    "behind the end": lambda stream: stream + NAME.encode(),
}


@pytest.mark.parametrize("place", JPEG_2000_CHANGES)
def test_names_in_jpeg_2000_streams(tmp_path, place):
    path = tmp_path / "one.dcm"
    streams = [JPEG_2000_CHANGES[place](stream) for stream in jpeg_2000_frames()]
    path.write_bytes(compressed(streams, "YBR_RCT", JPEG2000Lossless, FrameTime=20))
    deidentified(path)
    check(path, NAME)


def test_name_in_a_box_of_jpeg_2000(tmp_path):
    path = tmp_path / "one.dcm"
    streams = [stream + box(b"xml ", NAME.encode()) for stream in jpeg_2000_frames(box=True)]
    path.write_bytes(compressed(streams, "YBR_RCT", JPEG2000Lossless, FrameTime=20))
    deidentified(path)
    check(path, NAME)


def test_names_in_run_lengths(tmp_path):
    path, dataset = tmp_path / "one.dcm", pydicom.dcmread(io.BytesIO(run_lengths()))
    frames = [
        frame[:56] + NAME.encode() + frame[64:] + NAME.encode()
        for frame in generate_frames(dataset.PixelData, number_of_frames=2)
    ]
    dataset.PixelData = encapsulate(frames)
    path.write_bytes(saved(dataset))
    check(path, NAME)


def more_items(syntax: str) -> bytes:
    """Return a file with an item of pixels beyond the declared frames."""
    dataset = pydicom.dcmread(io.BytesIO(SYNTAXES[syntax]()))
    frames = list(generate_frames(dataset.PixelData, number_of_frames=2))
    dataset.PixelData = encapsulate([*frames, NAME.encode()], has_bot=True)
    return saved(dataset)


@pytest.mark.parametrize("syntax", ["JPEG", "JPEG 2000", "run lengths"])
def test_names_in_items_beyond_the_frames_and_in_offset_tables(tmp_path, syntax):
    path = tmp_path / "one.dcm"
    path.write_bytes(more_items(syntax))
    deidentified(path)
    check(path, NAME)
    dataset = pydicom.dcmread(io.BytesIO(SYNTAXES[syntax]()))
    items = dataset.PixelData
    assert items[4:8] == struct.pack("<I", 8), "a table of two offsets"
    dataset.PixelData = items[:8] + NAME.encode() + items[16:]
    path.write_bytes(saved(dataset))
    check(path, NAME)
    dataset.PixelData = items
    dataset.ExtendedOffsetTable, dataset.ExtendedOffsetTableLengths = NAME.encode() * 2, NAME.encode() * 2
    path.write_bytes(saved(dataset))
    check(path, NAME)


@pytest.mark.parametrize("syntax", ["explicit", "implicit", "grey"])
def test_names_behind_uncompressed_pixels(tmp_path, syntax):
    path, dataset = tmp_path / "one.dcm", pydicom.dcmread(io.BytesIO(SYNTAXES[syntax]()))
    dataset.PixelData += NAME.encode()
    path.write_bytes(saved(dataset))
    check(path, NAME)
    padding = Dataset()
    padding.DataSetTrailingPadding = NAME.encode()
    dataset.update(padding)
    path.write_bytes(saved(dataset))
    check(path, NAME)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_bytes_behind_the_file(tmp_path, syntax):
    path, content = tmp_path / "one.dcm", SYNTAXES[syntax]()
    path.write_bytes(content + NAME.encode() * 4)
    check(path, NAME)


def test_unused_bits_of_pixels_are_cleared(tmp_path):
    path = tmp_path / "one.dcm"
    values = FRAMES[..., 0].astype(np.uint16) & 0x7F
    planted = values | np.resize(np.frombuffer(NAME.encode(), np.uint8).astype(np.uint16) << 8, values.shape)
    path.write_bytes(dicom_bytes(planted, BitsStored=8, HighBit=7))
    check(path, NAME)
    kept = pydicom.dcmread(io.BytesIO(deidentified(path)))
    assert not any(kept.PixelData[1::2])


def palette(bits: int) -> bytes:
    """Return a file with names in the entries of a palette, used and not used."""
    tags = {}
    for name in ("Red", "Green", "Blue"):
        text = (NAME.encode() * 32)[:256]
        entries = text if bits == 8 else b"".join(bytes((one, 0)) for one in text)
        tags[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, bits]
        tags[f"{name}PaletteColorLookupTableData"] = entries
    return dicom_bytes(FRAMES[..., 0] // 64 * 3, "PALETTE COLOR", **tags)


@pytest.mark.parametrize("bits", [8, 16])
def test_names_in_palettes(tmp_path, bits):
    path = tmp_path / "one.dcm"
    path.write_bytes(palette(bits))
    deidentified(path)
    check(path, NAME)


@pytest.mark.parametrize("sequence", ["VOILUTSequence", "ModalityLUTSequence"])
def test_names_in_lookup_tables(tmp_path, sequence):
    path, table = tmp_path / "one.dcm", Dataset()
    table.LUTDescriptor, table.LUTData = [256, 0, 8], b"".join(bytes((one, 0)) for one in NAME.encode() * 32)
    table.LUTExplanation, table.ModalityLUTType = NAME, NAME
    path.write_bytes(dicom_bytes(FRAMES[..., 0], **{sequence: [table]}, WindowCenter=int(DATE), WindowWidth=9))
    deidentified(path)
    check(path, NAME, "D\0O\0E\0", DATE)


def test_damaged_files_are_refused_or_give_the_same_frames(tmp_path):
    """Change bytes of each syntax at seeded places; `deidentified` raises only `BadMedia`."""
    rng, path, refused = np.random.default_rng(3), tmp_path / "one.dcm", 0
    for syntax, make in SYNTAXES.items():
        content = make()
        for number in range(12):
            damaged = bytearray(content)
            if number % 3 == 0:
                damaged = damaged[: rng.integers(200, len(damaged))]
            for place in rng.integers(132, len(damaged), size=6 if number % 3 else 0):
                damaged[place] = rng.integers(256)
            path.write_bytes(bytes(damaged))
            try:
                after = deidentified(path)
            except BadMedia:
                refused += 1
                continue
            np.testing.assert_array_equal(read_clip(bytes(damaged)).frames, read_clip(after).frames, err_msg=syntax)
    assert refused > 20


def test_keywords_of_the_kept_elements_are_of_the_standard():
    assert all(keyword_for_tag(pydicom.datadict.tag_for_keyword(keyword)) == keyword for keyword in KEPT)

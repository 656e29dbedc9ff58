"""Read a picture of known colours through every colour path of the readers."""

import io

import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.encaps import encapsulate
from pydicom.pixels import convert_color_space
from pydicom.uid import JPEG2000, JPEG2000Lossless, JPEGBaseline8Bit, JPEGExtended12Bit, RLELossless

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import jpeg, read_clip
from cardiobench.data.media.write import avi
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.videos import avi_of, write_video

COLOURS = np.array(
    [[120, 120, 120], [200, 30, 30], [20, 170, 40], [30, 40, 210], [240, 220, 20], [0, 0, 0], [255, 255, 255]], np.uint8
)
PICTURE = np.repeat(np.repeat(COLOURS[None], 64, axis=0), 32, axis=1)
"""Uint8 (64, 224, 3): stripes of 32 pixels, so that chroma of half the size ends at their edges."""
YCC = convert_color_space(PICTURE, "RGB", "YBR_FULL")
STRIPES = np.arange(16, 224, 32)


def distance(content: bytes, pixels: np.ndarray = PICTURE) -> int:
    """Return the largest difference of a level in the middle of each stripe."""
    frames = read_clip(content, name="clip").frames
    assert frames.shape == (len(frames), *pixels.shape)
    return int(np.abs(frames.astype(int) - pixels)[:, 8:56, STRIPES].max())


# ---- JPEG in DICOM ------------------------------------------------------------------------------------------------------


def jpeg_of(pixels: np.ndarray = PICTURE, **options) -> list[jpeg.Segment]:
    """Return the segments of a JPEG by Pillow."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=98, **options)
    return list(jpeg.segments(stream.getvalue()))


def bare(parts: list[jpeg.Segment], ids: bytes | None = None) -> bytes:
    """Return a stream without the markers of colours, with other component ids."""
    kept = [one for one in parts if one.marker < jpeg.APP0]
    if ids is None:
        return jpeg.written(kept)
    made = []
    for one in kept:
        content = bytearray(one.content)
        if one.marker in jpeg.FRAMES:
            content[6:15:3] = ids
        if one.marker == jpeg.SOS:
            content[1:7:2] = ids
        made.append(one._replace(content=bytes(content)))
    return jpeg.written(made)


def in_dicom(stream: bytes, declared: str, syntax=JPEGBaseline8Bit, **tags) -> bytes:
    return dicom_bytes(
        np.zeros((1, 64, 224, 3), np.uint8), declared, syntax=syntax, PixelData=encapsulate([stream]), **tags
    )


SPOKEN = {
    "JFIF": lambda: jpeg.written(jpeg_of(subsampling="4:4:4")),
    "JFIF, subsampled": lambda: jpeg.written(jpeg_of(subsampling="4:2:0")),
    "Adobe 1": lambda: jpeg.with_transform(jpeg_of(subsampling="4:4:4"), 1),
    "Adobe 1, subsampled": lambda: jpeg.with_transform(jpeg_of(subsampling="4:2:2"), 1),
    "Adobe 0": lambda: jpeg.with_transform(jpeg_of(keep_rgb=True), 0),
    "no marker, subsampled": lambda: bare(jpeg_of(subsampling="4:2:2")),
    "no marker, subsampled both ways": lambda: bare(jpeg_of(subsampling="4:2:0")),
    "no marker, other ids, subsampled": lambda: bare(jpeg_of(subsampling="4:2:0"), bytes((0, 1, 2))),
    "ids R G B": lambda: bare(jpeg_of(keep_rgb=True), b"RGB"),
    "progressive": lambda: jpeg.written(jpeg_of(subsampling="4:2:0", progressive=True)),
    "restarts": lambda: bare(jpeg_of(subsampling="4:2:0", restart_marker_blocks=2)),
}
"""Streams that state their colours: a header that contradicts them is wrong."""


@pytest.mark.parametrize("declared", ["RGB", "YBR_FULL", "YBR_FULL_422"])
@pytest.mark.parametrize("stream", SPOKEN)
def test_jpeg_that_states_its_colours_decides(stream, declared):
    assert distance(in_dicom(SPOKEN[stream](), declared)) <= 3


@pytest.mark.parametrize("ids", [bytes((1, 2, 3)), bytes((0, 1, 2))])
def test_header_decides_where_the_jpeg_does_not_say(ids):
    ycc, rgb = bare(jpeg_of(subsampling="4:4:4"), ids), bare(jpeg_of(keep_rgb=True), ids)
    assert distance(in_dicom(rgb, "RGB")) <= 3
    assert distance(in_dicom(ycc, "YBR_FULL")) <= 3
    assert distance(in_dicom(ycc, "YBR_FULL_422")) <= 3
    assert distance(in_dicom(ycc, "YBR_FULL", JPEGExtended12Bit)) <= 3


def test_grey_120_stays_grey_where_the_header_says_rgb():
    """Subsampled YCbCr without a marker, declared RGB, was shown as (120, 128, 128)."""
    frame = read_clip(in_dicom(SPOKEN["no marker, subsampled"](), "RGB")).frames[0]
    np.testing.assert_allclose(frame[32, [16, 48]], [[120, 120, 120], [200, 30, 30]], atol=2)


def test_frames_of_one_file_may_state_different_colours():
    streams = [SPOKEN[name]() for name in ("Adobe 0", "JFIF", "no marker, subsampled", "ids R G B")]
    content = dicom_bytes(
        np.zeros((4, 64, 224, 3), np.uint8), "RGB", syntax=JPEGBaseline8Bit, PixelData=encapsulate(streams)
    )
    assert distance(content) <= 3


def test_grey_jpeg_declared_as_colour_is_grey():
    grey = np.ascontiguousarray(PICTURE[..., 0])
    stream = jpeg.written(jpeg_of(grey))
    assert distance(in_dicom(stream, "YBR_FULL_422"), np.repeat(grey[..., None], 3, axis=-1)) <= 2


@pytest.mark.parametrize(
    ("declared", "tags", "message"),
    [
        ("MONOCHROME2", {}, "declares MONOCHROME2 with 3 samples per pixel; expected 1"),
        ("PALETTE COLOR", {}, "declares PALETTE COLOR with 3 samples per pixel; expected 1"),
        ("RGB", {"SamplesPerPixel": 1}, "declares RGB with 1 samples per pixel; expected 3"),
        ("MONOCHROME2", {"SamplesPerPixel": 1}, "declares 1 samples per pixel as MONOCHROME2, but its JPEG has 3"),
        ("RGB", {"Rows": 60}, "declares 60 x 224 pixels, but its JPEG has 64 x 224"),
    ],
)
def test_contradicting_samples_are_refused(declared, tags, message):
    with pytest.raises(BadMedia, match=message):
        read_clip(in_dicom(SPOKEN["JFIF"](), declared, **tags), name="clip")


def test_uncompressed_grey_with_three_samples_is_refused():
    with pytest.raises(BadMedia, match="MONOCHROME2 with 3 samples"):
        read_clip(dicom_bytes(PICTURE[None], "MONOCHROME2"), name="clip")


def test_jpeg_of_four_components_is_refused():
    stream = io.BytesIO()
    Image.fromarray(PICTURE).convert("CMYK").save(stream, "JPEG")
    with pytest.raises(BadMedia, match="declares 3 samples per pixel as RGB, but its JPEG has 4"):
        read_clip(in_dicom(stream.getvalue(), "RGB"), name="clip")


# ---- Other compressions in DICOM ----------------------------------------------------------------------------------------


def jpeg_2000(pixels: np.ndarray, mct: int, *, box: bool = False, lossy: bool = False) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG2000", no_jp2=not box, mct=mct, irreversible=lossy)
    return stream.getvalue()


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("declared", ["RGB", "YBR_RCT", "YBR_ICT", "YBR_FULL", "YBR_FULL_422"])
def test_jpeg_2000_with_a_transform_is_rgb(declared, box):
    content = in_dicom(jpeg_2000(PICTURE, 1, box=box), declared, JPEG2000Lossless)
    assert distance(content) == 0


def test_jpeg_2000_without_a_transform_is_what_the_header_says():
    assert distance(in_dicom(jpeg_2000(PICTURE, 0), "RGB", JPEG2000Lossless)) == 0
    assert distance(in_dicom(jpeg_2000(YCC, 0), "YBR_FULL", JPEG2000Lossless)) <= 2
    assert distance(in_dicom(jpeg_2000(PICTURE, 1, lossy=True), "YBR_ICT", JPEG2000)) <= 4


@pytest.mark.parametrize(("pixels", "declared"), [(PICTURE, "RGB"), (YCC, "YBR_FULL")])
def test_run_length_encoding(pixels, declared):
    dataset = pydicom.dcmread(io.BytesIO(dicom_bytes(pixels[None], declared)))
    dataset.compress(RLELossless, generate_instance_uid=False)
    stream = io.BytesIO()
    dataset.save_as(stream)
    assert distance(stream.getvalue()) <= 2


def subsampled(ycc: np.ndarray) -> bytes:
    """Return the values of YBR_FULL_422 (PS3.3 C.7.6.3.1.2): Y1 Y2 Cb Cr of each pair of pixels."""
    pairs = np.stack([ycc[:, ::2, 0], ycc[:, 1::2, 0], ycc[:, ::2, 1], ycc[:, ::2, 2]], axis=-1)
    return pairs.tobytes()


def test_uncompressed_colours():
    assert distance(dicom_bytes(PICTURE[None], "RGB")) == 0
    assert distance(dicom_bytes(YCC[None], "YBR_FULL")) <= 2
    assert distance(dicom_bytes(PICTURE[None], "YBR_FULL_422", PixelData=subsampled(YCC))) <= 2
    planes = np.ascontiguousarray(PICTURE.transpose(2, 0, 1)).tobytes()
    assert distance(dicom_bytes(PICTURE[None], "RGB", PlanarConfiguration=1, PixelData=planes)) == 0
    planes = np.ascontiguousarray(YCC.transpose(2, 0, 1)).tobytes()
    assert distance(dicom_bytes(PICTURE[None], "YBR_FULL", PlanarConfiguration=1, PixelData=planes)) <= 2


@pytest.mark.parametrize("bits", [8, 16])
def test_palettes(bits):
    numbers = np.repeat(np.repeat(np.arange(7, dtype=np.uint8)[None], 64, axis=0), 32, axis=1)
    tags = {}
    for position, name in enumerate(("Red", "Green", "Blue")):
        table = np.append(COLOURS[:, position], 9).astype(np.uint16) * (257 if bits == 16 else 1)
        tags[f"{name}PaletteColorLookupTableDescriptor"] = [8, 0, bits]
        tags[f"{name}PaletteColorLookupTableData"] = table.astype("<u2" if bits == 16 else "u1").tobytes()
    assert distance(dicom_bytes(numbers[None], "PALETTE COLOR", **tags)) == 0


def test_palette_of_16_bits_with_levels_of_8_is_not_black():
    numbers = np.repeat(np.repeat(np.arange(7, dtype=np.uint8)[None], 64, axis=0), 32, axis=1)
    tags = {}
    for position, name in enumerate(("Red", "Green", "Blue")):
        tags[f"{name}PaletteColorLookupTableDescriptor"] = [7, 0, 16]
        tags[f"{name}PaletteColorLookupTableData"] = COLOURS[:, position].astype("<u2").tobytes()
    assert distance(dicom_bytes(numbers[None], "PALETTE COLOR", **tags)) == 0


@pytest.mark.parametrize(
    "content",
    [
        lambda: dicom_bytes(YCC[None], "YBR_FULL_422"),
        lambda: dicom_bytes(YCC[None], "YBR_FULL_422", PlanarConfiguration=1, PixelData=subsampled(YCC)),
    ],
)
def test_shared_chroma_that_is_not_there_is_refused(content):
    with pytest.raises(BadMedia, match="declares YBR_FULL_422, of which two pixels share their chroma, but"):
        read_clip(content(), name="clip")


def test_high_bit_that_contradicts_the_stored_bits_is_refused():
    grey = np.arange(4096, dtype=np.uint16).reshape(1, 64, 64)
    levels = read_clip(dicom_bytes(grey, BitsStored=12, HighBit=11)).frames
    above = read_clip(dicom_bytes(grey | 0xA000, BitsStored=12, HighBit=11)).frames
    np.testing.assert_array_equal(above, levels, "bits above the stored ones hold overlays, not the image")
    with pytest.raises(BadMedia, match="declares 12 bits up to bit 15; expected 11"):
        read_clip(dicom_bytes(grey << 4, BitsStored=12, HighBit=15), name="clip")


# ---- Number of frames ---------------------------------------------------------------------------------------------------


def stored_frames(form: str, stored: int, declared: int) -> bytes:
    """Return a file of equal frames with another number of them in its header."""
    frames = np.repeat(PICTURE[None], stored, axis=0)
    if form == "uncompressed":
        return dicom_bytes(frames, "RGB", NumberOfFrames=declared)
    if form == "run lengths":
        dataset = pydicom.dcmread(io.BytesIO(dicom_bytes(frames, "RGB")))
        dataset.compress(RLELossless, generate_instance_uid=False)
        dataset.NumberOfFrames = declared
        stream = io.BytesIO()
        dataset.save_as(stream)
        return stream.getvalue()
    one, syntax = (SPOKEN["JFIF"](), JPEGBaseline8Bit) if form == "JPEG" else (jpeg_2000(PICTURE, 1), JPEG2000Lossless)
    return dicom_bytes(frames, "RGB", syntax=syntax, PixelData=encapsulate([one] * stored), NumberOfFrames=declared)


@pytest.mark.parametrize("form", ["uncompressed", "run lengths", "JPEG", "JPEG 2000"])
def test_number_of_frames_must_be_that_of_the_header(form):
    assert distance(stored_frames(form, 3, 3)) <= 3
    with pytest.raises(BadMedia, match="clip declares 1 frame, but has 3"):
        read_clip(stored_frames(form, 3, 1), name="clip")
    with pytest.raises(BadMedia, match="clip cannot be decoded as DICOM"):
        read_clip(stored_frames(form, 3, 4), name="clip")


def test_frames_of_several_fragments_are_counted_once():
    stream = SPOKEN["JFIF"]()
    for table in (True, False):
        pixels = encapsulate([stream, stream], fragments_per_frame=3, has_bot=table)
        frames = np.zeros((2, 64, 224, 3), np.uint8)
        assert distance(dicom_bytes(frames, "RGB", syntax=JPEGBaseline8Bit, PixelData=pixels)) <= 3


# ---- Stills and videos --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", SPOKEN)
def test_jpeg_stills(stream):
    assert distance(SPOKEN[stream]()) <= 3


def test_stills_of_other_pixel_types():
    picture = Image.fromarray(PICTURE)
    solid = np.dstack([PICTURE, np.full(PICTURE.shape[:2], 255, np.uint8)])
    for kept in (picture, picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=7), Image.fromarray(solid)):
        stream = io.BytesIO()
        kept.save(stream, "PNG")
        assert distance(stream.getvalue()) == 0
    stream = io.BytesIO()
    picture.convert("CMYK").save(stream, "JPEG", quality=98)
    assert distance(stream.getvalue()) <= 4


@pytest.mark.parametrize(("name", "codec"), [("a.avi", "mpeg4"), ("a.mp4", "libx264")])
def test_videos(tmp_path, name, codec):
    path = write_video(tmp_path / name, np.repeat(PICTURE[None], 4, axis=0), codec)
    assert distance(path.read_bytes()) <= 8


@pytest.mark.parametrize("stream", ["JFIF", "JFIF, subsampled", "no marker, subsampled"])
def test_motion_jpeg(stream):
    assert distance(avi_of([SPOKEN[stream]()] * 3, (64, 224))) <= 4
    assert distance(avi(np.repeat(PICTURE[None], 3, axis=0), 25.0)) <= 4


def test_gif():
    stream = io.BytesIO()
    pictures = [Image.fromarray(PICTURE).convert("P", palette=Image.Palette.ADAPTIVE, colors=7) for _ in range(3)]
    pictures[0].save(stream, "GIF", save_all=True, append_images=pictures[1:])
    assert distance(stream.getvalue()) == 0

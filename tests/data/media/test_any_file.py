"""Check that all formats are detected by content and only raise `BadMedia`."""

import gzip
import io
import subprocess
import sys

import nibabel
import numpy as np
import pytest
from PIL import Image

from cardiobench.core.errors import BadMedia, MissingExtra
from cardiobench.data.media import FrameSampling, read_clip
from tests.data.media.test_dicom_pictures import dicom_bytes
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames, write_video


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("each")
    frames = moving_frames(8, 32, 48)
    pictures = [Image.fromarray(frame) for frame in frames]
    gif, png, jpeg = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pictures[0].save(gif, "GIF", save_all=True, append_images=pictures[1:])
    pictures[0].save(png, "PNG")
    pictures[0].save(jpeg, "JPEG")
    nifti = nibabel.Nifti1Image(frames[..., 0].transpose(2, 1, 0), np.eye(4)).to_bytes()
    return {
        "mjpg": avi_of(mjpg_packets(frames), (32, 48)),
        "mpeg4": write_video(folder / "a.avi", frames, "mpeg4").read_bytes(),
        "h264": write_video(folder / "a.mp4", frames, "libx264").read_bytes(),
        "gif": gif.getvalue(),
        "dicom": dicom_bytes(frames, "RGB"),
        "dicom_grey": dicom_bytes(frames[..., 0].astype(np.uint16)),
        "nifti": nifti,
        "nifti_gz": gzip.compress(nifti, mtime=0),
        "png": png.getvalue(),
        "jpeg": jpeg.getvalue(),
    }


KINDS = ("mjpg", "mpeg4", "h264", "gif", "dicom", "dicom_grey", "nifti", "nifti_gz", "png", "jpeg")


@pytest.mark.parametrize("kind", KINDS)
def test_formats_are_detected_by_content_not_by_name(one_of_each, kind, tmp_path):
    path = tmp_path / "wrong.dat"
    path.write_bytes(one_of_each[kind])
    clip = read_clip(path)
    assert clip.frames.dtype == np.uint8
    assert clip.frames.flags.c_contiguous
    assert clip.frames.ndim == 4
    assert clip.frames.shape[-1] == 3
    assert len(clip.frames) == len(clip.indices) == clip.n_frames


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_give_frames_or_raise_bad_media(one_of_each, kind):
    """Yield 60 seeded kinds of damage: truncation, changed bytes at the start or anywhere, and a block of zeros."""
    rng = np.random.default_rng(7)
    refused = 0
    for number in range(60):
        content = bytearray(one_of_each[kind])
        match number % 4:
            case 0:
                content = content[: rng.integers(1, len(content))]
            case 1:
                content[rng.integers(min(400, len(content)))] = rng.integers(256)
            case 2:
                for place in rng.integers(len(content), size=8):
                    content[place] = rng.integers(256)
            case 3:
                start = int(rng.integers(len(content)))
                content[start : start + 300] = bytes(len(content[start : start + 300]))
        try:
            read_clip(bytes(content), FrameSampling(4, start="uniform"), name="damaged")
        except BadMedia as error:
            refused += 1
            assert str(error).startswith("damaged ")
    assert refused >= 15  # At least every truncation must raise.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"clip\.avi is empty \(0 bytes\)\. Copy the file again"),
        (b"FileName,EF,Split\n0X1,55.1,TEST\n", r"clip\.avi is not an AVI, .*: it starts with b'FileName,EF,'"),
        (b"\x00" * 4000, r"clip\.avi is not an AVI"),
        (b"RIFF", r"clip\.avi is not an AVI"),
    ],
)
def test_other_files_are_refused_as_recordings(content, message, tmp_path):
    path = tmp_path / "clip.avi"
    path.write_bytes(content)
    with pytest.raises(BadMedia, match=message):
        read_clip(path)


def test_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(BadMedia, match=r"gone\.avi cannot be opened \(No such file"):
        read_clip(tmp_path / "gone.avi")
    (tmp_path / "001_image.nii").mkdir()
    with pytest.raises(BadMedia, match=r"001_image\.nii cannot be opened \(Is a directory\)"):
        read_clip(tmp_path / "001_image.nii")


@pytest.mark.parametrize(
    ("kind", "module"),
    [("mjpg", "av"), ("dicom", "pydicom"), ("nifti", "nibabel"), ("png", "PIL.Image")],
)
def test_missing_package_is_named(one_of_each, kind, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"'{module.partition('.')[0]}'.*pip install 'cardiobench\[models\]'"):
        read_clip(one_of_each[kind])


def test_invalid_frame_sampling_is_refused():
    with pytest.raises(ValueError, match="start='unifrom'"):
        FrameSampling(start="unifrom")
    with pytest.raises(ValueError, match="count=0"):
        FrameSampling(count=0)
    with pytest.raises(ValueError, match="stride=0"):
        FrameSampling(stride=0)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, cardiobench.data.media; "
        "print([m for m in ('av', 'pydicom', 'nibabel', 'h5py', 'PIL', 'wfdb', 'torch', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

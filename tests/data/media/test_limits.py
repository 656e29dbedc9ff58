"""Check that headers with wrong sizes use no memory, and that HDF5 links to other files are rejected."""

import gzip
import io
import pickle
import struct
import tracemalloc

import h5py
import nibabel
import numpy as np
import pydicom
import pytest
from PIL import Image
from pydicom.data import get_testdata_file

from cardiobench.core.errors import BadData, BadMedia
from cardiobench.data.media import read_clip, read_ecg
from cardiobench.data.media.ecg_hdf5 import read_single_hdf5
from cardiobench.data.media.ecg_npy import read_row
from cardiobench.data.media.limits import LIMIT_VARIABLE, max_bytes
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames


@pytest.fixture
def cheap():
    """Check that reading the file raises an error and allocates at most 150 MB."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6, f"{peak / 1e6:.0f} MB"


def nifti_header(shape, dtype=np.uint8):
    header = nibabel.Nifti1Header()
    header.set_data_shape(shape)
    header.set_data_dtype(dtype)
    header["magic"], header["vox_offset"] = b"n+1", 352
    return header.binaryblock + b"\0" * 4


def test_nifti_header_of_terabytes_is_refused(tmp_path, cheap):
    path = tmp_path / "a.nii"
    path.write_bytes(nifti_header((30_000, 30_000, 3_000)))
    with pytest.raises(BadMedia, match=r"a\.nii would take 2,700,000 MB when decoded, but the limit is 2,048 MB"):
        read_clip(path)


@pytest.mark.slow
def test_gzip_bomb_is_refused(tmp_path, monkeypatch, cheap):
    monkeypatch.setenv(LIMIT_VARIABLE, "20")
    path = tmp_path / "a.nii.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(nifti_header((64, 64, 10)))
        for _ in range(300):
            stream.write(b"\0" * 1_000_000)
    with pytest.raises(BadMedia, match=r"a\.nii\.gz would take"):
        read_clip(path)


@pytest.mark.parametrize("change", [{"Rows": 60_000, "Columns": 60_000}, {"NumberOfFrames": 2_000_000_000}])
def test_dicom_header_of_gigabytes_is_refused(tmp_path, change, cheap):
    file = pydicom.dcmread(get_testdata_file("CT_small.dcm"))
    for name, value in change.items():
        setattr(file, name, value)
    file.save_as(tmp_path / "a.dcm")
    with pytest.raises(BadMedia, match=r"a\.dcm (would take|declares 2000000000 frames)"):
        read_clip(tmp_path / "a.dcm")


@pytest.mark.slow
def test_long_element_of_a_dicom_header_is_not_read(tmp_path):
    file = pydicom.dcmread(get_testdata_file("CT_small.dcm"))
    expected = read_clip(get_testdata_file("CT_small.dcm")).frames
    file.private_block(0x0011, "x", create=True).add_new(1, "OB", b"\0" * 200_000_000)
    file.save_as(tmp_path / "a.dcm")
    tracemalloc.start()
    np.testing.assert_array_equal(read_clip(tmp_path / "a.dcm").frames, expected)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 450e6  # The tensor is read once when pydicom looks for the pixels, and is not stored.


LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


@pytest.mark.parametrize(
    "rate, samples, message",
    [
        ("0.001", "100", "the sampling rate is 0.001 Hz; expected 10 to 100000"),
        ("1e30", "100", r"the sampling rate is 1e\+30 Hz"),
        ("500", "-100", "is not valid in a WFDB header"),
        ("500", "99999999999", "would take 9,600,000 MB"),
    ],
)
def test_impossible_wfdb_sizes_are_refused(tmp_path, rate, samples, message, cheap):
    lines = [f"r 12 {rate} {samples}", *(f"r.dat 16 1000/mV 16 0 0 0 0 {lead}" for lead in LEADS)]
    (tmp_path / "r.hea").write_text("\n".join(lines))
    (tmp_path / "r.dat").write_bytes(np.arange(1, 1201, dtype="<i2").tobytes())
    with pytest.raises(BadMedia, match=message):
        read_ecg(tmp_path / "r.hea")


def hdf5(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, value in datasets.items():
            file[name] = value
    return path


def test_hdf5_record_of_gigabytes_is_refused(tmp_path, cheap):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.create_dataset("tracings", (2, 10**9, 12), "f4", chunks=(1, 1000, 12))
        file["exam_id"] = [1, 2]
    with pytest.raises(BadMedia, match=r"a record of .*a\.hdf5 would take 48,000 MB"):
        read_ecg(tmp_path / "a.hdf5", 0)


def test_hdf5_links_to_other_files_are_refused(tmp_path):
    signal = np.ones((1, 100, 12), np.float32)
    other = hdf5(tmp_path / "other.hdf5", tracings=signal, exam_id=[1])
    secret = tmp_path / "secret"
    secret.write_bytes(signal.tobytes())

    def link(file):
        file["tracings"] = h5py.ExternalLink(str(other), "tracings")

    def soft(file):
        file["real"] = signal
        file["tracings"] = h5py.SoftLink("/real")

    def stored_outside(file):
        file.create_dataset("tracings", signal.shape, "f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])

    def virtual(file):
        layout = h5py.VirtualLayout(signal.shape, "f4")
        layout[:] = h5py.VirtualSource(str(other), "tracings", signal.shape)
        file.create_virtual_dataset("tracings", layout)

    def group(file):
        file.create_group("tracings")

    for number, write in enumerate((link, soft, stored_outside, virtual, group)):
        path = tmp_path / f"{number}.hdf5"
        with h5py.File(path, "w") as file:
            file["exam_id"] = [1]
            write(file)
        with pytest.raises(BadMedia, match=r"`tracings` is (a link|a group|stored in another file)"):
            read_ecg(path, 0)


@pytest.mark.parametrize("dtype", [h5py.string_dtype(), h5py.vlen_dtype(np.float32), "S4", [("a", "f4")]])
def test_non_numeric_hdf5_values_are_refused(tmp_path, dtype):
    """Test files whose header does not state their size."""
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.create_dataset("tracings", (1, 100, 12), dtype)
        file.create_dataset("ecg", (12, 100), dtype)
    for read in (lambda path: read_ecg(path, 0), lambda path: read_single_hdf5(path, 500.0)):
        with pytest.raises(BadMedia, match="expected numbers"):
            read(tmp_path / "a.hdf5")


def test_oversized_hdf5_chunk_is_refused(tmp_path, monkeypatch, cheap):
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("ecg", (12, 100), "f8", maxshape=(None, None), chunks=(12, 100_000), compression="gzip")
    with pytest.raises(BadMedia, match="would take 10 MB"):
        read_single_hdf5(tmp_path / "a.h5", 500.0)


def npy(shape="(3, 12)", descr="'<f4'"):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(1000)


def saved(write, *values, **options):
    stream = io.BytesIO()
    write(stream, *values, **options)
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    "content",
    [
        saved(np.savez, np.ones((3, 12))),
        saved(np.save, np.array([[{}] * 12], object), allow_pickle=True),
        pickle.dumps([1]),
        npy(descr="'O'"),
        npy(descr="[('a', '<f4')]"),
        npy(descr="(" * 3000),
        npy("(9223372036854775807, 12)"),
        npy(f"({'9' * 30}, 12)"),
        npy("(-5, 12)"),
        npy("(True, 12)"),
        npy("(" * 3000),
    ],
)
def test_numpy_files_without_a_numeric_array_are_refused(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(BadMedia, match=r"a\.npy(:| cannot be read)"):
        read_row(tmp_path / "a.npy", 0, (None, 12))


def test_pictures_larger_than_stated_are_refused(monkeypatch, cheap):
    """Test AVI, where each frame has a header, and GIF, which states the screen size once."""
    monkeypatch.setenv(LIMIT_VARIABLE, "10")
    frames = moving_frames(2, 32, 48)
    video = bytearray(avi_of(mjpg_packets(frames), (32, 48)))
    position = -1
    while (position := video.find(b"\xff\xc0", position + 1)) >= 0:
        video[position + 5 : position + 9] = struct.pack(">HH", 3000, 3000)
    gif = bytearray(saved(Image.fromarray(frames[0]).save, "GIF"))
    gif[6:10] = struct.pack("<HH", 3000, 3000)
    for content in (video, gif, saved(Image.new("RGB", (3000, 3000)).save, "PNG")):
        with pytest.raises(BadMedia, match=r"cannot be decoded|would take"):
            read_clip(bytes(content))


def test_limit_is_a_setting(tmp_path, monkeypatch):
    assert max_bytes() == 2_048_000_000
    monkeypatch.setenv(LIMIT_VARIABLE, "0.001")
    volume = np.random.default_rng(0).integers(0, 255, (32, 32, 4), dtype=np.uint8)
    nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), tmp_path / "a.nii")
    with pytest.raises(BadMedia, match=r"raise --max-recording-mb \(CARDIOBENCH_MAX_RECORDING_MB\)"):
        read_clip(tmp_path / "a.nii")
    for wrong in ("0", "-1", "many", "nan", "inf"):
        monkeypatch.setenv(LIMIT_VARIABLE, wrong)
        with pytest.raises(BadData, match="expected a number of MB above 0"):
            max_bytes()


def test_missing_decoder_is_named(tmp_path):
    file = pydicom.dcmread(get_testdata_file("SC_rgb_jpeg_dcmtk.dcm"))
    for syntax, package in (("70", "pylibjpeg-libjpeg"), ("80", "pyjpegls")):
        file.file_meta.TransferSyntaxUID = f"1.2.840.10008.1.2.4.{syntax}"
        file.save_as(tmp_path / "a.dcm")
        with pytest.raises(BadMedia, match=rf"no decoder is installed\. Install one: .*{package}"):
            read_clip(tmp_path / "a.dcm")


def test_empty_lookup_table_item_is_refused(tmp_path):
    file = pydicom.dcmread(get_testdata_file("CT_small.dcm"))
    expected = read_clip(get_testdata_file("CT_small.dcm")).frames
    file.ModalityLUTSequence = []
    file.save_as(tmp_path / "a.dcm")
    np.testing.assert_array_equal(read_clip(tmp_path / "a.dcm").frames, expected)
    file.ModalityLUTSequence = [pydicom.Dataset()]
    file.save_as(tmp_path / "a.dcm")
    with pytest.raises(BadMedia, match="an item in ModalityLUTSequence without a lookup table"):
        read_clip(tmp_path / "a.dcm")

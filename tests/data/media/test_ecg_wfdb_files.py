"""Test WFDB records against the wfdb package, in every signal format, and with invalid files."""

import struct
from pathlib import Path

import numpy as np
import pytest
import wfdb

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import LEADS, read_ecg
from cardiobench.data.media.checks import remarks_on

SAMPLES = 50


@pytest.fixture
def ptb_xl(samples) -> Path:
    return samples / "ptb-xl" / "records100" / "00000"


@pytest.fixture
def digital() -> np.ndarray:
    """Return stored values (samples, 12) that fit into 8 bits, without the smallest one, which marks a gap."""
    return np.random.default_rng(3).integers(-127, 128, (SAMPLES, 12)).astype(np.int16)


def write_record(
    folder: Path, digital, *, names=LEADS, units="mV", form="16", gain="1000(0)", name="rec", data=None, header=None
) -> Path:
    """Write a record line by line; return its path without suffix."""
    digital = np.asarray(digital, "<i2")
    lines = header or [
        f"{name} {digital.shape[1]} 100 {len(digital)}",
        *(f"{name}.dat {form} {gain}/{units} 16 0 {digital[0, i]} 0 0 {lead}" for i, lead in enumerate(names)),
    ]
    (folder / f"{name}.hea").write_bytes("\n".join([*lines, "# Age: 56", ""]).encode("latin-1"))
    (folder / f"{name}.dat").write_bytes(digital.tobytes() if data is None else data)
    return folder / name


# ---- Real records -------------------------------------------------------------------------------------------------------


def test_ptb_xl_record_1_by_hand(ptb_xl):
    """Check the header: 1000 steps per mV, baseline 0, first stored values -119 -55 64 86 -91 4 -69 -31 0 -26 -39 -79."""
    ecg = read_ecg(ptb_xl / "00001_lr")
    assert ecg.fs == 100.0
    assert ecg.signal.dtype == np.float32
    assert ecg.signal.shape == (1000, 12)
    first = np.array([-119, -55, 64, 86, -91, 4, -69, -31, 0, -26, -39, -79]) / 1000
    np.testing.assert_array_equal(ecg.signal[0], first.astype(np.float32))
    stored = np.frombuffer((ptb_xl / "00001_lr.dat").read_bytes(), "<i2").reshape(1000, 12)
    np.testing.assert_array_equal(ecg.signal, (stored / 1000).astype(np.float32))


@pytest.mark.parametrize("suffix", [".hea", ".dat", ""])
def test_record_is_found_by_any_of_its_names(ptb_xl, suffix):
    ecg = read_ecg(ptb_xl / f"00001_lr{suffix}")
    assert ecg.signal[0, 0] == np.float32(-0.119)


def test_real_records_equal_the_wfdb_package(samples):
    headers = sorted(samples.rglob("*.hea"))
    assert len(headers) == 23
    for header in headers:
        theirs = wfdb.rdrecord(str(header.with_suffix("")))
        names = [lead.upper() for lead in theirs.sig_name]
        order = [names.index(lead.upper()) for lead in LEADS]
        ecg = read_ecg(header)
        assert ecg.fs == theirs.fs
        np.testing.assert_array_equal(ecg.signal, theirs.p_signal[:, order].astype(np.float32))


def test_challenge_record_from_its_mat(samples):
    """Check the layout of MATLAB v4 files: a header of 24 bytes, then int16 values with all leads of each sample together."""
    path = samples / "georgia" / "E07500.mat"
    ecg = read_ecg(path)
    assert ecg.fs == 500.0
    assert ecg.signal.shape == (5000, 12)
    np.testing.assert_allclose(ecg.signal[0, :3], [-0.068, -0.058, 0.009], rtol=1e-6)
    stored = np.frombuffer(path.read_bytes()[24:], "<i2").reshape(5000, 12)
    np.testing.assert_array_equal(ecg.signal, (stored / 1000).astype(np.float32))


# ---- Generated records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["16", "24", "32", "80", "212"])
@pytest.mark.parametrize("length", [SAMPLES, SAMPLES - 1])
def test_signal_formats_as_the_wfdb_package_writes_them(tmp_path, digital, form, length):
    stored = digital[:length, :12]
    wfdb.wrsamp(
        "made",
        fs=250,
        units=["mV"] * 12,
        sig_name=list(LEADS),
        d_signal=stored.astype(np.int64),
        fmt=[form] * 12,
        adc_gain=[200.0] * 12,
        baseline=[5] * 12,
        write_dir=str(tmp_path),
    )
    ecg = read_ecg(tmp_path / "made")
    assert ecg.fs == 250.0 and ecg.contradictions == ()
    np.testing.assert_array_equal(ecg.signal, ((stored.astype(float) - 5) / 200).astype(np.float32))


def test_format_212_by_hand(tmp_path):
    """Check the 12-bit pairs of signal(5), whose middle byte has the high nibbles: 0xABC is -1348, 0x123 is 291."""
    pairs = bytes([0xBC, 0x1A, 0x23]) * 6
    record = write_record(tmp_path, np.ones((1, 12)), form="212", data=pairs)
    np.testing.assert_allclose(read_ecg(record).signal[0], [-1.348, 0.291] * 6, rtol=1e-6)


WRITERS = {
    "8": lambda stored: np.diff(stored, axis=0, prepend=stored[:1]).astype(np.int8).tobytes(),
    "16": lambda stored: stored.astype("<i2").tobytes(),
    "24": lambda stored: np.ascontiguousarray(stored, "<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes(),
    "32": lambda stored: stored.astype("<i4").tobytes(),
    "61": lambda stored: stored.astype(">i2").tobytes(),
    "80": lambda stored: (stored + 128).astype(np.uint8).tobytes(),
    "160": lambda stored: (stored + 32768).astype("<u2").tobytes(),
    "212": lambda stored: b"".join(
        struct.pack("<BBB", a & 255, (a >> 8 & 15) | (b >> 8 & 15) << 4, b & 255)
        for a, b in stored.reshape(-1, 2).tolist()
    ),
}
"""Signal format -> the bytes of stored values (samples, channels), as described in signal(5)."""


def stated_record(folder, digital, form="16", *, samples=SAMPLES, initial=None, checksum=None, files=1):
    """Write a record with the right first values and checksums, or with those given; return its path without suffix."""
    stored = np.asarray(digital).astype(np.int64)
    initial = stored[0] if initial is None else initial
    checksum = stored.sum(axis=0) % 65536 if checksum is None else checksum
    names = [f"rec{number}.dat" for number in range(files)]
    parts = np.array_split(np.arange(12), files)
    lines = [f"rec 12 100 {samples or ''}"]
    for name, part in zip(names, parts, strict=True):
        lines += [f"{name} {form} 1000(0)/mV 16 0 {initial[n]} {checksum[n]} 0 {LEADS[n]}" for n in part]
        (folder / name).write_bytes(WRITERS[form](stored[:, part]))
    (folder / "rec.hea").write_text("\n".join(lines) + "\n")
    return folder / "rec"


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("files", [1, 2])
def test_every_signal_format_is_read_like_the_wfdb_package(tmp_path, digital, form, files):
    calm = digital // 2  # Differences of format 8 fit into 8 bits.
    record = stated_record(tmp_path, calm, form, files=files)
    ecg = read_ecg(record)
    assert ecg.contradictions == ()
    np.testing.assert_array_equal(ecg.signal, (calm / 1000).astype(np.float32))
    np.testing.assert_allclose(ecg.signal, wfdb.rdrecord(str(record)).p_signal, rtol=1e-6)


@pytest.mark.parametrize("form", ["24", "32"])
def test_values_of_more_than_16_bits(tmp_path, digital, form):
    wide = digital.astype(np.int64) * 6000
    ecg = read_ecg(stated_record(tmp_path, wide, form))
    assert ecg.contradictions == ()
    np.testing.assert_allclose(ecg.signal, wide / 1000, rtol=1e-6)


# ---- Headers that contradict the samples --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("files", [1, 2])
def test_longer_than_stated_is_remarked_and_shorter_is_refused(tmp_path, digital, form, files):
    calm = digital // 2
    stated = calm[: SAMPLES - 4]
    longer = stated_record(
        tmp_path, calm, form, samples=SAMPLES - 4, checksum=stated.astype(int).sum(axis=0), files=files
    )
    ecg = read_ecg(longer)
    names = [f"rec{number}.dat has 50 samples, the header states 46" for number in range(files)]
    assert list(ecg.contradictions) == names
    np.testing.assert_array_equal(ecg.signal, (stated / 1000).astype(np.float32))
    *_, remark = remarks_on(ecg, "ecg", thorough=False)  # Random signals contradict Einthoven as well.
    assert (remark.check, remark.value, remark.detail) == ("contradicts its header", files, "; ".join(names))
    with pytest.raises(BadMedia, match=r"rec0\.dat is cut short: .* \(50 of 51 samples\)"):
        read_ecg(stated_record(tmp_path, calm, form, samples=SAMPLES + 1, files=files))


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("field", ["initial", "checksum"])
def test_wrong_first_value_or_checksum_is_remarked(tmp_path, digital, form, field):
    calm = digital // 2
    right = {"initial": calm[0], "checksum": calm.astype(int).sum(axis=0) % 65536}
    wrong = {field: right[field] + 3 * (np.arange(12) == 7)}
    ecg = read_ecg(stated_record(tmp_path, calm, form, **wrong))
    what, found = ("first sample", calm[0, 7]) if field == "initial" else ("checksum", right["checksum"][7])
    if form == "8" and field == "initial":  # The samples of format 8 follow from the first one.
        what, found = "checksum", (right["checksum"][7] + 3 * SAMPLES) % 65536
        assert ecg.contradictions == (f"{what} of V2 is {found}, the header states {right['checksum'][7]}",)
    else:
        assert ecg.contradictions == (f"{what} of V2 is {found}, the header states {wrong[field][7]}",)
    assert remarks_on(ecg, "ecg", thorough=False)[-1].check == "contradicts its header"


def test_changed_sample_contradicts_the_checksum_and_a_changed_order_the_first_values(samples, tmp_path):
    source = samples / "ptb-xl" / "records100" / "00000" / "00001_lr"
    header, data = source.with_suffix(".hea").read_bytes(), bytearray(source.with_suffix(".dat").read_bytes())
    (tmp_path / "00001_lr.hea").write_bytes(header)
    data[5000] ^= 1
    (tmp_path / "00001_lr.dat").write_bytes(data)
    assert [one.split(" is ")[0] for one in read_ecg(tmp_path / "00001_lr").contradictions] == ["checksum of AVL"]
    shifted = np.roll(np.frombuffer(source.with_suffix(".dat").read_bytes(), "<i2"), -12)
    (tmp_path / "00001_lr.dat").write_bytes(shifted.tobytes())
    assert {one.split(" of ")[0] for one in read_ecg(tmp_path / "00001_lr").contradictions} == {"first sample"}


def test_checksum_may_be_signed_and_zeros_in_all_channels_are_not_stated(tmp_path, digital):
    total = digital.astype(int).sum(axis=0)
    signed = (total + 32768) % 65536 - 32768
    zeros = np.zeros(12, int)
    assert read_ecg(stated_record(tmp_path, digital, checksum=signed)).contradictions == ()
    assert read_ecg(stated_record(tmp_path, digital, checksum=zeros, initial=zeros)).contradictions == ()
    one = read_ecg(stated_record(tmp_path, digital, checksum=signed * (np.arange(12) != 3)))
    assert one.contradictions == (f"checksum of aVR is {total[3] % 65536}, the header states 0",)


def test_wrong_checksum_of_a_channel_that_is_no_lead_is_ignored(tmp_path, digital):
    wider = np.column_stack([digital, digital[:, :1]])
    lines = [f"rec 13 100 {SAMPLES}"]
    totals = [*(digital.astype(int).sum(axis=0) % 65536), 7]
    lines += [
        f"rec.dat 16 1000(0)/mV 16 0 {wider[0, n]} {totals[n]} 0 {name}" for n, name in enumerate([*LEADS, "resp"])
    ]
    assert read_ecg(write_record(tmp_path, wider, names=[*LEADS, "resp"], header=lines)).contradictions == ()


def test_bytes_that_fill_up_the_last_sample_are_not_remarked(tmp_path, digital):
    record = stated_record(tmp_path, digital)
    with (tmp_path / "rec0.dat").open("ab") as file:
        file.write(bytes(23))
    assert read_ecg(record).contradictions == ()


def test_files_of_different_lengths_without_a_stated_one_are_refused(tmp_path, digital):
    record = stated_record(tmp_path, digital, samples=0, files=2)
    assert read_ecg(record).signal.shape == (SAMPLES, 12)
    content = (tmp_path / "rec1.dat").read_bytes()
    (tmp_path / "rec1.dat").write_bytes(content[:-24])
    with pytest.raises(BadMedia, match=r"have different ones: rec0\.dat 50, rec1\.dat 48"):
        read_ecg(record)


def test_real_records_do_not_contradict_their_headers(samples, root):
    headers = [*samples.rglob("*.hea"), *sorted((root / "hf_datasets" / "ptb_xl_sample").rglob("*.hea"))[::4]]
    assert len(headers) == 122 and {read_ecg(header).contradictions for header in headers} == {()}


def test_leads_are_found_by_name(tmp_path, digital):
    order = np.random.default_rng(0).permutation(12)
    names = [LEADS[i].upper() for i in order]
    record = write_record(tmp_path, digital[:, order], names=names)
    np.testing.assert_array_equal(read_ecg(record).signal, (digital / 1000).astype(np.float32))


def test_other_channels_are_ignored(tmp_path, digital):
    wider = np.column_stack([digital[:, :1], digital])
    record = write_record(tmp_path, wider, names=["vx", *LEADS])
    np.testing.assert_array_equal(read_ecg(record).signal, (digital / 1000).astype(np.float32))


def test_names_can_be_given(tmp_path, digital):
    record = write_record(tmp_path, digital, names=[f"chan {i}" for i in range(12)])
    with pytest.raises(
        BadMedia, match=r"no lead I, II, III, .* channels are chan 0, chan 1.*`recordings.leads` in dataset"
    ):
        read_ecg(record)
    ecg = read_ecg(record, leads=LEADS[::-1])
    np.testing.assert_array_equal(ecg.signal, (digital[:, ::-1] / 1000).astype(np.float32))
    with pytest.raises(BadMedia, match="has 12 channels, but 2 leads were named"):
        read_ecg(record, leads=("I", "II"))


@pytest.mark.parametrize(
    ("units", "factor"), [("mV", 1), ("mv", 1), ("uV", 1e-3), ("uv", 1e-3), ("\N{MICRO SIGN}V", 1e-3), ("V", 1e3)]
)
def test_units(tmp_path, digital, units, factor):
    """Test old headers with a one-byte micro sign; ignoring it would read microvolts as volts."""
    record = write_record(tmp_path, digital, units=units, gain="400(-3)")
    np.testing.assert_allclose(read_ecg(record).signal, (digital + 3) / 400 * factor, rtol=1e-6)


@pytest.mark.parametrize(("units", "gain"), [("V", "1"), ("mV", "0.001"), ("V", "0.5(7)")])
def test_amplitudes_above_a_volt_are_refused(tmp_path, digital, units, gain):
    record = write_record(tmp_path, digital, units=units, gain=gain)
    with pytest.raises(BadMedia, match=r"reaches .* mV, but no ECG exceeds 1000 mV"):
        read_ecg(record)


def test_micro_sign_in_utf8(tmp_path, digital):
    record = write_record(tmp_path, digital)
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace("/mV", "/\N{MICRO SIGN}V"), encoding="utf-8")
    np.testing.assert_allclose(read_ecg(record).signal, digital / 1e6, rtol=1e-6)


def test_optional_header_fields_have_defaults(tmp_path, digital):
    """Check the defaults of header(5): the unit is mV, the baseline is the ADC zero, and the count is all samples."""
    lines = ["rec 12 500/500(0)", *(f"rec.dat 16 200 12 7 0 0 0 {lead}" for lead in LEADS)]
    record = write_record(tmp_path, digital, header=["# a comment first", "", *lines])
    ecg = read_ecg(record)
    assert ecg.fs == 500.0
    np.testing.assert_allclose(ecg.signal, (digital - 7.0) / 200, rtol=1e-6)


def test_signal_line_without_a_lead_name_is_refused(tmp_path, digital):
    """Check that the description, which header(5) puts last, may be missing; lead names must then be given."""
    lines = ["rec 12 500", *(f"rec.dat 16 1000(0)/mV 16 0 {digital[0, lead]} 0 0" for lead in range(12))]
    record = write_record(tmp_path, digital, header=lines)
    with pytest.raises(BadMedia, match=r"rec\.hea has no lead I, II, III.* channels are , , "):
        read_ecg(record)
    np.testing.assert_array_equal(read_ecg(record, leads=LEADS).signal, (digital / 1000).astype(np.float32))


def test_signals_in_two_files(tmp_path, digital):
    names = ["a.dat"] * 8 + ["b.dat"] * 4
    lines = [f"rec 12 100 {SAMPLES}"]
    lines += [f"{file} 16 1000(0)/mV 16 0 0 0 0 {lead}" for file, lead in zip(names, LEADS, strict=True)]
    record = write_record(tmp_path, digital, header=lines)
    (tmp_path / "a.dat").write_bytes(digital[:, :8].astype("<i2").tobytes())
    (tmp_path / "b.dat").write_bytes(digital[:, 8:].astype("<i2").tobytes())
    np.testing.assert_array_equal(read_ecg(record).signal, (digital / 1000).astype(np.float32))


def test_name_with_dots(tmp_path, digital):
    record = write_record(tmp_path, digital, name="JS.00001.v2")
    assert read_ecg(record).signal.shape == (SAMPLES, 12)


# ---- Invalid records ----------------------------------------------------------------------------------------------------


def test_cut_short_names_both_sizes(tmp_path, digital):
    record = write_record(tmp_path, digital, data=digital.astype("<i2").tobytes()[:-10])
    with pytest.raises(BadMedia, match=r"rec\.dat is cut short: the header declares 1200 bytes, but it has 1190"):
        read_ecg(record)
    for form, needed in (("16x1+24", 1224), ("80", 600), ("212", 900)):
        record = write_record(tmp_path, digital, form=form, data=b"\1" * (needed - 1))
        with pytest.raises(BadMedia, match=f"declares {needed} bytes, but it has {needed - 1}"):
            read_ecg(record)


@pytest.mark.parametrize(
    ("form", "mark"),
    [
        ("16", -(2**15)),
        ("80", -128),
        ("212", -(2**11)),
        ("24", -(2**23)),
        ("32", -(2**31)),
        ("61", -(2**15)),
        ("160", -(2**15)),
    ],
)
def test_gaps_are_counted_by_lead(tmp_path, digital, form, mark):
    """Check that the smallest value of each format marks missing samples."""
    stored = digital.astype(np.int64)
    stored[3, 1] = stored[4, 1] = stored[9, 11] = mark
    with pytest.raises(BadMedia, match=r"not finite in lead II \(2\), V6 \(1\) of 50 samples"):
        read_ecg(stated_record(tmp_path, stored, form))


@pytest.mark.parametrize("gain", ["0(0)", "0", "0.0(5)"])
def test_missing_gain_is_refused(tmp_path, digital, gain):
    with pytest.raises(BadMedia, match="lead I has no gain"):
        read_ecg(write_record(tmp_path, digital, gain=gain))


def test_missing_and_repeated_leads_are_refused(tmp_path, digital):
    with pytest.raises(BadMedia, match=r"rec\.hea has no lead V4, V6: its 10 channels are I, II, III"):
        read_ecg(write_record(tmp_path, digital[:, :10], names=[n for n in LEADS if n not in ("V4", "V6")]))
    with pytest.raises(BadMedia, match="has lead V1 2 times"):
        read_ecg(write_record(tmp_path, np.column_stack([digital, digital[:, :1]]), names=[*LEADS, "v1"]))


def test_flat(tmp_path):
    with pytest.raises(BadMedia, match=r"rec\.hea is flat: every sample is 0"):
        read_ecg(write_record(tmp_path, np.zeros((SAMPLES, 12))))


def test_missing_signal_file_is_refused(tmp_path, digital):
    record = write_record(tmp_path, digital)
    record.with_suffix(".dat").unlink()
    with pytest.raises(BadMedia, match=r"rec\.hea names rec\.dat, which is not in the same folder"):
        read_ecg(record)


def test_missing_header_is_refused(tmp_path, digital):
    record = write_record(tmp_path, digital)
    record.with_suffix(".hea").unlink()
    with pytest.raises(BadMedia, match=r"rec\.dat is not an HDF5 file and has no WFDB header beside it \(rec\.hea\)"):
        read_ecg(record.with_suffix(".dat"))
    with pytest.raises(BadMedia, match=r"rec cannot be opened .*, and there is no header .*rec\.hea"):
        read_ecg(record)


@pytest.mark.parametrize("file", ["../rec.dat", "/etc/passwd", "sub/rec.dat", "..", "~"])
def test_header_pointing_outside_its_folder_is_refused(tmp_path, digital, file):
    lines = [f"rec 12 100 {SAMPLES}", *(f"{file} 16 1000(0)/mV 16 0 0 0 0 {lead}" for lead in LEADS)]
    with pytest.raises(BadMedia, match="which must be in the same folder"):
        read_ecg(write_record(tmp_path, digital, header=lines))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rec 12 100 50", "rec/3 12 100 50"), "multi-segment"),
        (("rec 12 100 50", "rec 12"), "the line 'rec 12' is not valid in a WFDB header"),
        (("rec 12 100 50", "rec twelve 100 50"), "is not valid in a WFDB header"),
        (("rec 12 100 50", "rec 12 0 50"), "the sampling rate is 0 Hz"),
        (("rec 12 100 50", "rec 13 100 50"), "declares 13 channels but describes 12"),
        (("rec.dat 16 ", "rec.dat 311 "), "format 311; formats 8, 16, 24, 32, 61, 80, 160 and 212 are read"),
        (("rec.dat 16 ", "rec.dat 16x2 "), "format 16x2"),
        (("rec.dat 16 ", "rec.dat abc "), "is not valid in a WFDB header"),
        (("1000(0)", "1000(9999999999999999999999)"), "is not valid in a WFDB header"),
        ((" 0 0 I\n", f" {10**400} 0 I\n"), "is not valid in a WFDB header"),
        ((" 0 0 I\n", " none 0 I\n"), "is not valid in a WFDB header"),
        (("/mV", "/mmHg"), "lead I is in 'mmHg', which is not a unit of voltage"),
    ],
)
def test_impossible_headers_are_refused(tmp_path, digital, change, message):
    record = write_record(tmp_path, digital)
    header = record.with_suffix(".hea")
    assert change[0] in header.read_text()
    header.write_text(header.read_text().replace(*change))
    with pytest.raises(BadMedia, match=message):
        read_ecg(record)


@pytest.mark.parametrize("name", ["records100/rec", "median_beats/00001", "3/4"])
def test_folder_in_the_record_name_is_no_segment(tmp_path, digital, name):
    stem = name.partition("/")[2]
    record = write_record(tmp_path, digital, name=stem)
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace(f"{stem} 12", f"{name} 12", 1))
    np.testing.assert_array_equal(read_ecg(record).signal, (digital / 1000).astype(np.float32))


@pytest.mark.parametrize("lines", [["rec/2 12 100 50", "rec_1 20", "rec_2 30"], ["3/1 12 100 50", "3 50"]])
def test_segments_are_refused(tmp_path, digital, lines):
    with pytest.raises(BadMedia, match="is a multi-segment record"):
        read_ecg(write_record(tmp_path, digital, header=lines))


def test_names_with_comments_are_leads(tmp_path, digital):
    comments = ("{} (Einthoven)", "Lead {}", "{}, limb lead", "ECG {}", "{} # left", "{}-Ref", "{} - chest lead")
    names = [*(comment.format(lead) for comment, lead in zip(comments, LEADS, strict=False)), *LEADS[len(comments) :]]
    read = read_ecg(write_record(tmp_path, digital, names=names))
    np.testing.assert_array_equal(read.signal, (digital / 1000).astype(np.float32))


@pytest.mark.parametrize("other", ["II rhythm strip", "Lead II"])
def test_bare_name_is_the_lead_beside_one_with_a_comment(tmp_path, digital, other):
    names = [other, *LEADS]
    stored = np.concatenate([digital[:, 3:4], digital], axis=1)
    read = read_ecg(write_record(tmp_path, stored, names=names))
    np.testing.assert_array_equal(read.signal, (digital / 1000).astype(np.float32))


@pytest.mark.parametrize(
    "name",
    [
        "II inverted",
        "II-III",
        "II (-I)",
        "II, median beat",
        "-II",
        "MLII",
        "IIb",
        "II R",
        "IV",
        "",
        "V7",
        "II - inverted",
        "II - III",
    ],
)
def test_other_channels_are_no_leads(tmp_path, digital, name):
    names = ["I", name, *LEADS[2:]]
    with pytest.raises(BadMedia, match=r"has no lead II: its 12 channels are I, "):
        read_ecg(write_record(tmp_path, digital, names=names))


def test_empty_files(tmp_path, digital):
    record = write_record(tmp_path, digital, data=b"")
    with pytest.raises(BadMedia, match=r"rec\.dat is cut short: the header declares 1200 bytes, but it has 0"):
        read_ecg(record)
    record.with_suffix(".hea").write_text("# nothing\n")
    with pytest.raises(BadMedia, match=r"rec\.hea is empty"):
        read_ecg(record)


def test_one_record_per_header(tmp_path, digital):
    with pytest.raises(BadMedia, match="contains a single record, but record 3 was requested"):
        read_ecg(write_record(tmp_path, digital), 3)

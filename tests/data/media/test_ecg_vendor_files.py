"""Test formats of devices and archives on files written by hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

from cardiobench.core.errors import BadMedia, MissingExtra
from cardiobench.data.media.channels import as_ecg
from cardiobench.data.media.ecg_vendor import PARSERS, read_vendor_ecg, without_calibration
from cardiobench.data.media.types import LEADS, Ecg
from tests.data.vendor_files import EIGHT, aecg, ishne, mfer, muse, muse_waveform, scp, sierra

FS = 500


@pytest.fixture
def stored() -> np.ndarray:
    """Return whole steps (5000, 12), limb leads by Einthoven and Goldberger, the last half second quiet."""
    made = np.random.default_rng(6).integers(-200, 200, (5000, 12)) * 2
    made[-250:] = 0
    first, second = made[:, 0], made[:, 1]
    made[:, 2:6] = np.stack([second - first, -(first + second) // 2, first - second // 2, second - first // 2], axis=1)
    return made


def read(path: Path, content: bytes, form: str = "xml") -> Ecg:
    path.write_bytes(content)
    return as_ecg(read_vendor_ecg(path, form), path.name)


def eight(stored: np.ndarray) -> np.ndarray:
    return stored[:, [LEADS.index(lead) for lead in EIGHT]]


def rhythm(stored: np.ndarray, **changes: str) -> str:
    return muse_waveform("Rhythm", eight(stored), **changes)


def test_muse_gives_the_rhythm_in_twelve_leads(tmp_path, stored):
    content = muse(muse_waveform("Median", eight(stored)[:600]), rhythm(stored))
    ecg = read(tmp_path / "one.xml", content)
    assert ecg.fs == FS and ecg.leads == LEADS and ecg.signal.shape == (5000, 12)
    np.testing.assert_allclose(ecg.signal, stored * 0.00488, atol=1e-5)


def test_muse_names_its_document_type(tmp_path, stored):
    content = muse(rhythm(stored), prolog='<!DOCTYPE RestingECG SYSTEM "restecg.dtd">')
    assert len(read(tmp_path / "one.xml", content).signal) == 5000


ENTITY = '<!DOCTYPE RestingECG [<!ENTITY {} SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["x", "% x"])
def test_external_entities_are_refused(tmp_path, stored, encoding, name):
    content = muse(rhythm(stored), prolog=ENTITY.format(name)).decode("latin-1").encode(encoding)
    with pytest.raises(BadMedia, match="declares XML entities"):
        read(tmp_path / "one.xml", content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"LeadSampleCountTotal": "6000"}, "LeadSampleCountTotal 6000 but 5000 samples"),
        ({"LeadByteCountTotal": "12000"}, "LeadByteCountTotal 12000"),
        ({"WaveFormData": "AAD"}, "Invalid Base64"),
        ({"LeadDataCRC32": "12345"}, "CRC32 mismatch"),
        ({"LeadAmplitudeUnits": "MMHG"}, "LeadAmplitudeUnits missing or not a voltage unit"),
        ({"FirstSampleBaseline": "40"}, "FirstSampleBaseline is non-zero"),
        ({"LeadTimeOffset": "2500"}, "leads of different rates or times"),
        ({"LeadID": "II"}, "has lead II more than once"),
    ],
)
def test_muse_that_contradicts_itself_is_refused(tmp_path, stored, changes, message):
    with pytest.raises(BadMedia, match=message):
        read(tmp_path / "one.xml", muse(rhythm(stored, **changes)))


def test_two_rhythms_and_an_average_beat_alone_are_refused(tmp_path, stored):
    with pytest.raises(BadMedia, match="Additional rhythm waveform ignored"):
        read(tmp_path / "one.xml", muse(rhythm(stored), rhythm(stored)))
    with pytest.raises(BadMedia, match="No rhythm waveform"):
        read(tmp_path / "one.xml", muse(muse_waveform("Median", eight(stored)[:600])))


@pytest.mark.parametrize(("unit", "factor"), [("uV", 0.0025), ("mV", 2.5)])
def test_aecg(tmp_path, stored, unit, factor):
    ecg = read(tmp_path / "one.xml", aecg(stored // 20 if unit == "mV" else stored, unit=unit))
    expected = (stored // 20 if unit == "mV" else stored) * factor
    assert ecg.fs == FS
    np.testing.assert_allclose(ecg.signal, expected, atol=1e-5)


def test_aecg_whose_rate_would_be_rounded_is_refused(tmp_path, stored):
    with pytest.raises(BadMedia, match=r"Sampling rate 303\.0303 Hz is not an integer"):
        read(tmp_path / "one.xml", aecg(stored[:900], increment="0.0033"))


def test_sierra(tmp_path, stored):
    np.testing.assert_allclose(read(tmp_path / "one.xml", sierra(stored)).signal, stored * 0.005, atol=1e-5)


def pulse(leads: int = 12, height: int = 200) -> np.ndarray:
    """Return a second with a pulse of `height` steps of 5 uV for 0.2 s, alike in all leads."""
    made = np.zeros((FS, leads), int)
    made[200:300] = height
    return made


@pytest.mark.parametrize("noise", [0, 1])
@pytest.mark.parametrize("quiet", [0, 130])
def test_closing_calibration_pulse_of_sierra_is_left_out(tmp_path, stored, noise, quiet):
    stored[-250 : -quiet or None] = np.random.default_rng(1).integers(-100, 100, (250 - quiet, 12))
    end = pulse() + noise * np.random.default_rng(2).integers(-1, 2, (FS, 12))
    ecg = read(tmp_path / "one.xml", sierra(np.concatenate([stored, end])))
    np.testing.assert_allclose(ecg.signal, stored * 0.005, atol=1e-5)


def test_ends_that_are_no_pulse_are_kept(stored):
    signal = np.concatenate([stored, pulse()]) * 0.005
    assert len(without_calibration(signal, FS)) == 5000
    assert len(without_calibration(signal[:, :1], FS)) == 5500, "a single lead proves nothing"
    for other in (pulse(height=20), pulse() * (np.arange(12) != 2), pulse() * np.resize([1, -1], 12), pulse() * 0):
        assert len(without_calibration(np.concatenate([stored, other]) * 0.005, FS)) == 5500
    assert len(without_calibration(pulse() * 0.005, FS)) == 500, "nothing else would be left"


def test_ishne(tmp_path, stored):
    ecg = read(tmp_path / "one.ecg", ishne(stored), "ishne")
    assert ecg.fs == 200
    np.testing.assert_allclose(ecg.signal, stored * 0.0025, atol=1e-5)


def test_ishne_that_is_cut_short_or_has_faults_is_refused(tmp_path, stored):
    with pytest.raises(BadMedia, match="cut short: it declares 5000 samples of each lead, but has 2000"):
        read(tmp_path / "one.ecg", ishne(stored[:2000], declared=5000), "ishne")
    with pytest.raises(BadMedia, match="incomplete final frame"):
        read(tmp_path / "one.ecg", ishne(stored)[:-6], "ishne")
    stored[10:30, 3] = -32768
    with pytest.raises(BadMedia, match=r"not finite in lead aVR \(20\)"):
        read(tmp_path / "one.ecg", ishne(stored), "ishne")


@pytest.mark.parametrize("differences", [0, 1, 2])
def test_scp(tmp_path, stored, differences):
    ecg = read(tmp_path / "one.scp", scp(stored, differences=differences), "scp")
    assert ecg.fs == FS
    np.testing.assert_allclose(ecg.signal, stored * 0.0025, atol=1e-5)


def test_mfer(tmp_path, stored):
    ecg = read(tmp_path / "one.mwf", mfer(stored), "mfer")
    assert ecg.fs == FS
    np.testing.assert_allclose(ecg.signal, stored * 0.0025, atol=1e-5)


@pytest.mark.parametrize(("form", "make"), [("scp", scp), ("mfer", mfer)])
@pytest.mark.parametrize("lost", [1, 2, 7, 1000, 100_000])
def test_scp_and_mfer_that_are_cut_short_are_refused(tmp_path, stored, form, make, lost):
    with pytest.raises(BadMedia, match=r"one\.x (cannot be read as|contradicts)"):
        read(tmp_path / "one.x", make(stored)[: -lost - 2 * (form == "mfer")], form)


def test_scp_with_a_changed_byte_is_refused(tmp_path, stored):
    content = bytearray(scp(stored))
    content[-1000] ^= 1
    with pytest.raises(BadMedia, match="CRC mismatch"):
        read(tmp_path / "one.scp", bytes(content), "scp")


@pytest.mark.parametrize("form", PARSERS)
@pytest.mark.parametrize(
    "content", [b"", b"no", b"\0" * 5000, b"<RestingECG>", b"<html></html>", b"0       " + b" " * 300]
)
def test_other_content_is_refused(tmp_path, form, content):
    with pytest.raises(BadMedia, match=r"one\.x"):
        read(tmp_path / "one.x", content, form)


def test_form_must_be_that_of_the_content(tmp_path, stored):
    with pytest.raises(BadMedia, match="is not SCP-ECG; it looks like GE MUSE XML"):
        read(tmp_path / "one.scp", muse(rhythm(stored)), "scp")


def test_cardiosoft_is_named(tmp_path):
    with pytest.raises(BadMedia, match="is XML of GE CardioSoft, which is not read"):
        read(
            tmp_path / "one.xml",
            b'<?xml version="1.0"?><CardiologyXML><ObservationType>RestECG</ObservationType></CardiologyXML>',
        )


def test_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ecgdatakit", None)
    with pytest.raises(MissingExtra, match=r"reading SCP-ECG \(one\.scp\) .*pip install 'cardiobench\[readers\]'"):
        read(tmp_path / "one.scp", b"x", "scp")


def test_damaged_files_give_an_ecg_or_raise_bad_media(tmp_path, stored):
    rng, refused = np.random.default_rng(8), 0
    whole = {
        "xml": [muse(rhythm(stored[:300])), aecg(stored[:300]), sierra(stored[:300])],
        "ishne": [ishne(stored[:300])],
        "scp": [scp(stored[:300])],
        "mfer": [mfer(stored[:300])],
    }
    for form, contents in whole.items():
        for content in contents:
            for number in range(25):
                damaged = bytearray(content)
                if number % 3 == 0:
                    damaged = damaged[: rng.integers(len(damaged))]
                for place in rng.integers(min(len(damaged), 1200), size=5 * (number % 3)):
                    damaged[place] = rng.integers(256)
                try:
                    read(tmp_path / "one.x", bytes(damaged), form)
                except BadMedia:
                    refused += 1
    assert refused > 40

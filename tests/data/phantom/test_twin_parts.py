"""Compare details of twins with hand-worked values from the release documentation."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.phantom.echo import EchoTruth
from cardiobench.data.phantom.pictures import letterbox
from cardiobench.data.twin import load_twin, write_twin

HEART = dict(ejection_fraction=60.0, edv=110.0, esv=44.0, ivsd=1.0, lvidd=4.7, lvpwd=0.9)
A4C = EchoTruth(**HEART, view="A4C", heart_rate=60.0)


ECHO, PEDIATRIC, SEGRWMA = (load_twin(name) for name in ("mimic_iv_echo", "echonet_pediatric", "segrwma"))


def lit(picture):
    """Return the first and last column and row that are not black."""
    rows, columns = (np.flatnonzero(picture.any(axis=axis)) for axis in (1, 0))
    return columns[0], rows[0], columns[-1], rows[-1]


def test_letterboxed_picture_is_centred():
    assert lit(letterbox(np.ones((1, 80, 60)), 112, 104)[0]) == (22, 16, 81, 95)


def test_region_of_a_cine_covers_its_picture(monkeypatch):
    def white(truth, frames, size, fps):
        return np.full((frames, size, size, 3), 255, np.uint8)

    monkeypatch.setattr(ECHO, "echo_clip", white)
    cine = next(ECHO._recordings(HEART, [], np.random.default_rng(0)))
    picture = cine.frames[0, :-16, 8:, 0]  # Without the ECG trace, which begins at the lower left.
    assert cine.region == (24, 8, 135, 119)
    assert lit(picture)[:3] == (24 - 8, 8, 135 - 8)


def test_velocities_of_a_spectrum_rise_with_every_beat():
    spectrum = ECHO._spectrum(90.0, [], np.random.default_rng(0))[0, 26:, :, 0]
    heights = (spectrum > 50).sum(axis=0)  # Three beats of 53.3 columns: 160 columns show 2 s.
    assert heights[[13, 67, 120]] == pytest.approx(0.7 * 102, abs=2)
    assert heights[[40, 93, 147]] == pytest.approx(0.05 * 0.7 * 102, abs=2)


def test_key_frame_of_loop_is_end_diastole(monkeypatch):
    def numbered(truth, frames, size, fps):
        return np.arange(frames)[:, None, None, None]

    monkeypatch.setattr(SEGRWMA, "echo_clip", numbered)
    shown = SEGRWMA._looped(A4C, 64, 17)[:, 0, 0]  # A beat has 30 frames, and the first one is at end-diastole.
    assert shown[[16, 17, 18, 47]].tolist() == [29, 0, 1, 0]


@pytest.mark.parametrize("systole", [True, False])
def test_untraced_phase_has_one_row_without_points(systole):
    rows = PEDIATRIC._tracing("a.avi", A4C, systole=systole)
    assert len([row for row in rows if row[3] == 0]) == 40  # 20 chords have two ends each.
    other = rows[40:]
    assert len(other) == 40 if systole else other == [("a.avi", None, None, "No Systolic")]


@pytest.mark.slow
def test_ecg_twin_tables_match_the_releases(tmp_path):
    folders = {name: tmp_path / name for name in ("sph", "code15", "ptb_xl")}
    for name, folder in folders.items():
        write_twin(name, folder, patients=20)
    columns = ["ECG_ID", "AHA_Code", "Patient_ID", "Age", "Sex", "N", "Date"]
    assert pd.read_csv(folders["sph"] / "metadata.csv").columns.tolist() == columns
    exams = pd.read_csv(folders["code15"] / "exams.csv")
    first = ~exams["patient_id"].duplicated()  # Only the first exam of a person states the death.
    assert (exams["timey"].notna() == first).all() and (exams["death"].notna() == first).all()
    assert set(exams["timey"].dropna()) <= {0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5}
    noted = pd.read_csv(next(folders["ptb_xl"].rglob("ptbxl_database.csv")))["baseline_drift"].notna()
    assert 0 < noted.mean() < 0.35  # One record in ten has a note.

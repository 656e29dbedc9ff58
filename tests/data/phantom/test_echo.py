"""Compare the known truth of echo phantoms with measurements on the images."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from cardiobench.data.phantom.echo import (
    EchoTruth,
    cm_per_pixel,
    echo_clip,
    echo_mask,
    echo_patients,
    end_systole,
)
from cardiobench.data.phantom.heart import beating

HEART = dict(ejection_fraction=60.0, edv=110.0, esv=44.0, ivsd=1.0, lvidd=4.7, lvpwd=0.9)
COHORT = [record.truth for record in echo_patients(60, seed=3)]
APICAL = [truth for truth in COHORT if truth.view in ("A2C", "A3C", "A4C")]


def of_view(view: str) -> list[EchoTruth]:
    return [truth for truth in COHORT if truth.view == view]


def systole_and_diastole(truth: EchoTruth, part: str = "cavity", size: int = 112) -> tuple[np.ndarray, np.ndarray]:
    masks = echo_mask(truth, frames=end_systole(truth) + 1, size=size, part=part)
    return masks[-1], masks[0]


def area_and_length(mask: np.ndarray) -> tuple[float, float]:
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    assert len(outlines) == 1
    return float(mask.sum()), max(cv2.minAreaRect(outlines[0])[1]) + 1.0


def inscribed_radius(mask: np.ndarray) -> float:
    return float(cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE).max())


def test_ventricle_holds_edv_at_frame_0_and_esv_at_end_systole():
    for truth in COHORT:
        volume = beating(truth, 90).volume
        assert volume[0] == pytest.approx(truth.edv, rel=1e-12)
        assert volume.max() <= truth.edv + 1e-9
        assert volume[end_systole(truth)] == pytest.approx(truth.esv, rel=1e-12)
        assert volume.min() >= truth.esv - 1e-9


@pytest.mark.parametrize("fps", [12.5, 25.0, 30.0, 50.0, 80.0])
def test_end_systole_is_a_frame_at_all_rates(fps):
    truth = EchoTruth(**HEART, view="A4C", heart_rate=113.0)
    assert beating(truth, 40, fps).volume[end_systole(truth, fps)] == pytest.approx(truth.esv)


def test_volume_curve_is_smooth_and_periodic():
    truth = EchoTruth(**HEART, view="A4C", heart_rate=60.0)  # A beat has 30 frames.
    volume = beating(truth, 90).volume
    np.testing.assert_allclose(volume[:30], volume[30:60], rtol=1e-12)
    assert np.abs(np.diff(volume)).max() < 0.25 * (truth.edv - truth.esv)


def test_area_length_gives_the_ejection_fraction_in_apical_views():
    assert len(APICAL) > 40
    for truth in APICAL:
        (area_s, length_s), (area_d, length_d) = map(area_and_length, systole_and_diastole(truth))
        measured = 100 * (1 - (area_s**2 / length_s) / (area_d**2 / length_d))
        assert measured == pytest.approx(truth.ejection_fraction, abs=2.0)


def test_discs_give_the_volumes_in_apical_views():
    for truth in APICAL[::4]:
        pixel = cm_per_pixel(truth, size=224)
        for mask, volume in zip(systole_and_diastole(truth, size=224), (truth.esv, truth.edv), strict=True):
            points = np.argwhere(mask) * pixel
            _, _, axes = np.linalg.svd(points - points.mean(0), full_matrices=False)
            along = (points - points.mean(0)) @ axes[0]
            slices = np.bincount(np.floor((along - along.min()) / (2 * pixel)).astype(int))
            diameters = slices * pixel / 2  # Each slice has a thickness of two pixels.
            assert (np.pi / 4 * diameters**2 * 2 * pixel).sum() == pytest.approx(volume, rel=0.05)


def test_short_axis_ring_gives_the_ejection_fraction():
    for truth in of_view("PSAX"):
        systole, diastole = systole_and_diastole(truth)
        measured = 100 * (1 - (systole.sum() / diastole.sum()) ** (1 / 0.78))
        assert measured == pytest.approx(truth.ejection_fraction, abs=2.0)


@pytest.mark.parametrize("view", ["PLAX", "PSAX"])
def test_diameter_and_walls_match_stated_values(view):
    for truth in of_view(view):
        pixel = cm_per_pixel(truth)
        cavity, muscle = echo_mask(truth, frames=1)[0], echo_mask(truth, frames=1, part="muscle")[0]
        assert abs(2 * inscribed_radius(cavity) * pixel - truth.lvidd) < 1.5 * pixel
        distance = cv2.distanceTransform((~cavity).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        inside = cv2.distanceTransform(cavity.astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        row, column = np.unravel_index(inside.argmax(), inside.shape)
        if view == "PLAX":
            near, far = np.s_[:row, column], np.s_[row:, column]
            septum, posterior = (distance[part][muscle[part]].max() * pixel for part in (near, far))
            assert abs(septum - truth.ivsd) < pixel
            assert abs(posterior - truth.lvpwd) < pixel
        else:  # The ring between two shifted circles has its thickest and thinnest wall on opposite sides.
            both = truth.ivsd + truth.lvpwd
            outer = np.sqrt((cavity | muscle).sum() * 4 / np.pi) * pixel
            assert abs(outer - truth.lvidd - both) < pixel


def test_muscle_keeps_its_volume():
    truth = EchoTruth(**HEART, view="PSAX")
    heart = beating(truth, 40)
    for wall in (heart.septum, heart.wall):
        shell = ((heart.b + wall) ** 2 - heart.b**2) * heart.a
        np.testing.assert_allclose(shell, shell[0], rtol=1e-12)
    assert heart.septum[end_systole(truth)] > 1.2 * truth.ivsd


def test_cavity_is_inside_the_sector():
    """Check the area against that of the ellipse, cut half a semi-axis beyond the centre, or of the circle."""
    for truth in APICAL + of_view("PSAX"):
        b = truth.lvidd / 2
        a = truth.edv / (1.125 * np.pi * b**2)
        area = np.pi * b**2 if truth.view == "PSAX" else a * b * (np.pi / 2 + np.arcsin(0.5) + 0.5 * np.sqrt(0.75))
        assert echo_mask(truth, frames=1)[0].sum() * cm_per_pixel(truth) ** 2 == pytest.approx(area, rel=0.02)


@pytest.mark.parametrize("quality", ["Good", "Medium", "Poor"])
@pytest.mark.parametrize("view", ["A2C", "A3C", "A4C", "PSAX", "PLAX"])
def test_blood_is_dark_and_muscle_bright(view, quality):
    clips = []
    for seed in range(4):
        truth = EchoTruth(**HEART, view=view, image_quality=quality, seed=seed)
        clip = echo_clip(truth)
        assert clip.shape == (48, 112, 112, 3)
        assert clip.dtype == np.uint8
        assert (clip == clip[..., :1]).all()
        assert not clip[:, :8, :8].any()
        assert not clip[:, :8, -8:].any()
        grey, cavity, muscle = clip[..., 0].astype(float), echo_mask(truth), echo_mask(truth, part="muscle")
        clips.append(grey[muscle].mean() - grey[cavity].mean())
    assert np.mean(clips) > (40 if quality == "Good" else 15)


def test_poor_quality_has_less_contrast_than_good():
    def contrast(quality: str) -> float:
        values = []
        for seed in range(6):
            truth = EchoTruth(**HEART, view="A4C", image_quality=quality, seed=seed)
            grey = echo_clip(truth, frames=8)[..., 0].astype(float)
            values.append(
                grey[echo_mask(truth, frames=8, part="muscle")].mean() - grey[echo_mask(truth, frames=8)].mean()
            )
        return float(np.mean(values))

    assert contrast("Good") > contrast("Medium") + 10 > contrast("Poor") + 20


def test_ejection_fraction_is_visible_in_the_image():
    """Check that a threshold on the smoothed image finds the ejection fraction of the short axis, without a mask of systole."""
    stated, seen = [], []
    for seed, fraction in enumerate(np.linspace(22, 74, 14)):
        heart = HEART | dict(ejection_fraction=fraction, esv=110.0 * (1 - fraction / 100))
        truth = EchoTruth(**heart, view="PSAX", seed=seed)
        frames = echo_clip(truth, frames=end_systole(truth) + 1)[..., 0]
        where = echo_mask(truth, frames=1)[0]
        dark = [int((cv2.GaussianBlur(frame, (5, 5), 0)[where] < 45).sum()) for frame in (frames[0], frames[-1])]
        stated.append(fraction)
        seen.append(100 * (1 - (dark[1] / dark[0]) ** (1 / 0.78)))
    assert np.corrcoef(stated, seen)[0, 1] > 0.9


def test_no_single_pixel_predicts_ejection_fraction():
    truths = [truth for truth in (r.truth for r in echo_patients(120, seed=8)) if truth.view == "A4C"]
    first = np.stack([echo_clip(truth, frames=1)[0, :, :, 0].ravel() for truth in truths]).astype(float)
    first = first[:, first.std(0) > 1]
    fractions = np.array([truth.ejection_fraction for truth in truths])
    correlation = (
        ((first - first.mean(0)) / first.std(0)).T @ (fractions - fractions.mean()) / fractions.std() / len(first)
    )
    assert np.abs(correlation).max() < 0.8


def test_speckle_follows_the_exponential_law_of_two_looks_and_decorrelates():
    from cardiobench.data.phantom.speckle import speckle_db

    radius, angle = (grid.ravel() for grid in np.meshgrid(np.linspace(2, 14, 120), np.linspace(-35, 35, 120)))
    speckle = speckle_db(radius, angle, np.arange(40), np.random.default_rng(5))
    power = 10 ** (speckle / 10)
    assert power.mean() == pytest.approx(1.0, abs=0.1)
    assert power.std() / power.mean() == pytest.approx(1 / np.sqrt(2), abs=0.1)  # Mean of two exponentials.

    def correlation(lag: int) -> float:
        return float(np.corrcoef(power[:, 0], power[:, lag])[0, 1])

    assert correlation(1) > 0.9
    assert abs(correlation(18)) < 0.15
    assert correlation(4) == pytest.approx(np.cos(4 / 9 * np.pi / 2) ** 2, abs=0.1)


def test_clip_depends_on_truth_and_seed():
    truth = EchoTruth(**HEART, view="A4C", seed=11)
    clip = echo_clip(truth, frames=6)
    np.testing.assert_array_equal(clip, echo_clip(truth, frames=6))
    other = echo_clip(replace(truth, seed=12), frames=6)
    assert (clip != other).mean() > 0.3
    assert cm_per_pixel(truth) != cm_per_pixel(replace(truth, seed=12))


def test_later_start_shows_later_frames():
    truth = EchoTruth(**HEART, view="PLAX", seed=4)
    whole, part = echo_clip(truth, frames=30).astype(int), echo_clip(truth, frames=4, first=21).astype(int)
    assert np.abs(whole[21:25] - part).max() <= 1


@pytest.mark.parametrize("size", [64, 112, 224])
def test_image_size_does_not_change_content(size):
    truth = EchoTruth(**HEART, view="A4C", seed=2)
    area = echo_mask(truth, frames=1, size=size).sum() * cm_per_pixel(truth, size) ** 2
    assert area == pytest.approx(echo_mask(truth, frames=1, size=448).sum() * cm_per_pixel(truth, 448) ** 2, rel=0.03)
    assert echo_clip(truth, frames=2, size=size).shape == (2, size, size, 3)


@pytest.mark.parametrize(("view", "level"), [("PLAX", False), ("PSAX", True), ("A3C", False)])
def test_calcium_brightens_the_aortic_valve(view, level):
    healthy = EchoTruth(**HEART, view=view, seed=6, aortic_level=level)
    sick = replace(healthy, valve_calcium=0.9)
    difference = echo_clip(sick, frames=10).astype(int) - echo_clip(healthy, frames=10).astype(int)
    brighter = difference[..., 0] > 60
    assert 12 < brighter.sum(axis=(1, 2)).mean() < 700


def test_patients_share_heart_across_recordings():
    records = echo_patients(200, seed=1)
    assert len({record.id for record in records}) == len(records)
    by_patient = {}
    for record in records:
        by_patient.setdefault(record.patient_id, []).append(record.truth)
    assert len(by_patient) == 200
    assert {len(truths) for truths in by_patient.values()} == {1, 2, 3}
    for truths in by_patient.values():
        shared = {(t.ejection_fraction, t.edv, t.lvidd, t.ivsd, t.lvpwd, t.sex, t.age, t.bmi) for t in truths}
        assert len(shared) == 1
        assert len({t.view for t in truths}) == len({t.seed for t in truths}) == len(truths)


def test_cohort_is_plausible():
    patients = {record.patient_id: record.truth for record in echo_patients(600, seed=2)}.values()
    fractions = np.array([p.ejection_fraction for p in patients])
    assert 20 <= fractions.min() < 30
    assert 70 < fractions.max() <= 75
    assert 0.25 < (fractions < 50).mean() < 0.45
    assert 0.45 < np.mean([p.sex == "F" for p in patients]) < 0.55
    assert all(18 <= p.age <= 95 for p in patients)
    assert 0.05 < np.mean([p.bmi is None for p in patients]) < 0.15
    assert {p.image_quality for p in patients} == {"Good", "Medium", "Poor"}
    edv = np.array([p.edv for p in patients])
    assert np.corrcoef(fractions, edv)[0, 1] < -0.3


def test_patient_is_the_same_in_a_cohort_of_any_size():
    assert echo_patients(5, seed=9) == [r for r in echo_patients(8, seed=9) if r.patient_id <= "p00005"]
    assert echo_patients(5, seed=9) != echo_patients(5, seed=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(ejection_fraction=55.0), "is not 100"),
        (dict(lvidd=9.0), "1 to 3 times as long as wide"),
        (dict(view="A4C", aortic_level=True), "aortic_level is only possible in view PSAX"),
    ],
)
def test_contradictory_parameters_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        EchoTruth(**(HEART | dict(view="PLAX") | changes))


def test_impossible_clip_is_refused():
    truth = EchoTruth(**HEART, view="PLAX")
    with pytest.raises(ValueError, match="at least 1 frame"):
        echo_clip(truth, frames=0)
    with pytest.raises(ValueError, match="'cavity' or 'muscle'"):
        echo_mask(truth, part="atrium")

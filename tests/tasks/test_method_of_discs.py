"""Test ejection fraction by discs: exact for bodies of known volume, and the four reasons for a missing volume."""

import numpy as np
import pytest

from cardiobench.data.phantom.echo import EchoTruth, cm_per_pixel, echo_mask, end_systole
from cardiobench.data.phantom.echo_cohort import draw_fraction, draw_heart
from cardiobench.tasks.discs import NoDiscs, biplane_volumes, contour, discs, ejection_fraction


def half_ellipse(length, width, size=(160, 120), apex=20.0, middle=60.0):
    """Return a half ellipse with its apex on top and a straight base below, in pixels."""
    y, x = np.mgrid[: size[0], : size[1]]
    return (((y - apex - length) / length) ** 2 + ((x - middle) / (width / 2)) ** 2 <= 1) & (y <= apex + length)


def test_half_an_ellipsoid():
    """Check the volume 2/3 pi a (d/2)^2 for length a and diameter d; discs follow the half ellipse from apex to base."""
    measured = discs(half_ellipse(100, 50), (1.0, 1.0))
    assert measured.step * 20 == pytest.approx(100, abs=1.5)
    volume, _ = biplane_volumes((measured, measured), (measured, measured), one_step=False)
    assert volume == pytest.approx(2 / 3 * np.pi * 100 * 25**2, rel=0.03)
    narrow = discs(half_ellipse(100, 30), (1.0, 1.0))
    two_views, _ = biplane_volumes((measured, narrow), (narrow, narrow), one_step=False)
    assert two_views == pytest.approx(2 / 3 * np.pi * 100 * 25 * 15, rel=0.03)


def test_lengths_are_millimetres_for_any_pixel_shape():
    mask = half_ellipse(50, 50, (100, 120))  # Pixels 0.6 mm high and 0.3 wide: 30 mm long, 15 wide.
    measured = discs(np.repeat(mask, 2, axis=0), (0.3, 0.3))
    squeezed = discs(mask, (0.6, 0.3))
    assert squeezed.step == pytest.approx(measured.step, rel=0.03)
    assert squeezed.diameters[3:] == pytest.approx(measured.diameters[3:], rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_phantoms_give_their_ejection_fraction_and_volume(seed):
    """A phantom shortens as its volume to the power of 0.22, so one step for both phases gives 1 - ratio ** 0.78 instead."""
    rng = np.random.default_rng(seed)
    fraction = draw_fraction(rng)
    heart = draw_heart(rng, fraction, "F")
    views = []
    for view in ("A2C", "A4C"):
        truth = EchoTruth(**heart, view=view, seed=seed)
        side = 10 * cm_per_pixel(truth, 168)
        frames = (0, end_systole(truth))
        masks = [echo_mask(truth, frames=1, first=frame, size=168)[0] for frame in frames]
        views.append([discs(mask, (side, side)) for mask in masks])
    diastole, systole = zip(*views, strict=True)
    volumes = biplane_volumes(diastole, systole, one_step=False)
    assert ejection_fraction(*volumes) == pytest.approx(fraction, abs=1.0)
    assert volumes[0] / 1000 == pytest.approx(heart["edv"], rel=0.03), "mL"
    one_step = ejection_fraction(*biplane_volumes(diastole, systole, one_step=True))
    assert one_step == pytest.approx(100 * (1 - (1 - fraction / 100) ** 0.78), abs=1.2)


@pytest.mark.parametrize("seed", range(6))
def test_image_scale_does_not_affect_the_fraction(seed):
    """Check masks of 112 pixels, as in EchoNet, for which tolerances in CAMUS pixels would be 1/14 of the image."""
    rng = np.random.default_rng(seed)
    fraction = draw_fraction(rng)
    truth = EchoTruth(**draw_heart(rng, fraction, "M"), view="A4C", seed=seed)
    masks = [echo_mask(truth, frames=1, first=frame, size=112)[0] for frame in (0, end_systole(truth))]
    side = 10 * cm_per_pixel(truth, 112)
    known, unknown = (
        ejection_fraction(*biplane_volumes((first, first), (last, last), one_step=False))
        for first, last in ([discs(mask, spacing) for mask in masks] for spacing in ((side, side), None))
    )
    assert unknown == pytest.approx(known, abs=0.5)
    assert unknown == pytest.approx(fraction, abs=2.5)


def test_longest_outline_separates_inside_and_outside():
    mask = np.zeros((6, 6), bool)
    mask[1:5, 1:4] = True
    mask[3, 2] = False  # Make a hole.
    outline = contour(mask)
    assert (
        len(outline) == 14 and outline.min(axis=0).tolist() == [0.5, 0.5] and outline.max(axis=0).tolist() == [4.5, 3.5]
    )
    assert np.hypot(*np.diff(outline, axis=0).T).max() <= 1, "in order"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda mask: mask & False, "empty mask"),
        (lambda mask: mask | (np.arange(120) == 5) & (np.arange(160) == 5)[:, None], "more than one piece"),
        (lambda mask: half_ellipse(100, 50, apex=-9), "mask at the border"),
        (lambda mask: mask & (np.arange(120) == 60) & (np.arange(160) == 60)[:, None], "no base found"),
    ],
)
def test_masks_without_discs_give_a_reason(spoil, reason):
    with pytest.raises(NoDiscs, match=reason):
        discs(spoil(half_ellipse(100, 50)), (1.0, 1.0))

"""Echo phantoms: speckled, sector-shaped cines of a beating left ventricle of exactly known size."""

from dataclasses import dataclass

import numpy as np

from cardiobench.data.phantom.anatomy import SOFT, EllipseLayer, depth, scene
from cardiobench.data.phantom.echo_cohort import EchoRecord, echo_patients
from cardiobench.data.phantom.heart import EchoTruth, beating, end_systole
from cardiobench.data.phantom.speckle import speckle_db

__all__ = [
    "EchoRecord",
    "EchoTruth",
    "calipers",
    "cm_per_pixel",
    "echo_clip",
    "echo_mask",
    "echo_patients",
    "end_systole",
]

# Independent random streams derived from the seed of the recording.
_MACHINE, _ANATOMY, _SURROUNDINGS, _SPECKLE = range(4)

_EDGE_CM = 0.16
_TREMOR_CM = 0.16
_HAZE = {"Good": -45.0, "Medium": -37.0, "Poor": -30.0}
_SHADOWS = {"Good": (0, 1, 5.0), "Medium": (1, 3, 9.0), "Poor": (2, 4, 15.0)}


@dataclass(frozen=True)
class _Machine:
    """Acquisition settings of a phantom recording."""

    depth: float
    cm_per_pixel: float
    half_angle: float
    tip: tuple[float, float]
    gain: float
    dynamic_range: float


def cm_per_pixel(truth: EchoTruth, size: int = 112) -> float:
    """Return the pixel size in cm of an image of `size` x `size` pixels."""
    return _machine(truth, size).cm_per_pixel


def echo_clip(truth: EchoTruth, *, frames: int = 48, size: int = 112, fps: float = 30.0, first: int = 0) -> np.ndarray:
    """Return a grey-scale cine of the heart described by `truth`.

    Frame 0 is end-diastole, and frame `end_systole(truth, fps)` is end-systole.

    Returns:
        Frames `first` to `first + frames` of the endless recording, uint8 RGB (frames, size, size, 3).
    """
    if frames < 1 or size < 16:
        raise ValueError(f"a clip needs at least 1 frame of at least 16 x 16 pixels, got {frames} of {size} x {size}")
    machine = _machine(truth, size)
    x, y, inside = _grid(machine, size)
    view = scene(truth, beating(truth, frames, fps, first), _rng(truth, _ANATOMY))
    background, haze, shade = _surroundings(truth, machine, x, y)
    echo = _paint(view.layers, x, y, frames, background, _TREMOR_CM * view.size)
    np.maximum(echo, haze[:, None], out=echo)
    radius, angle = np.hypot(x, y), np.rad2deg(np.arctan2(x, y))
    echo += speckle_db(radius, angle, np.arange(first, first + frames), _rng(truth, _SPECKLE))
    # Log compression maps the dynamic range in dB to grey levels.
    echo += (shade + np.float32(machine.gain + machine.dynamic_range))[:, None]
    echo *= np.float32(255.0 / machine.dynamic_range)
    np.clip(echo, 0.0, 255.0, out=echo)
    pixels = np.zeros((size * size, frames), np.uint8)
    pixels[inside] = echo
    grey = np.ascontiguousarray(pixels.T).reshape(frames, size, size)
    return np.stack([grey, grey, grey], axis=-1)


def echo_mask(
    truth: EchoTruth, *, frames: int = 48, size: int = 112, fps: float = 30.0, first: int = 0, part: str = "cavity"
) -> np.ndarray:
    """Return the mask of a part in the frames of `echo_clip`: "cavity" or "muscle" of the left ventricle, or "atrium".

    The cavity ends at the mitral plane and includes the papillary muscles, as in clinical tracings. Parts outside the
    sector, usually including the apex in PLAX, are not in the mask.

    Returns:
        bool, (frames, size, size).
    """
    machine = _machine(truth, size)
    x, y, inside = _grid(machine, size)
    view = scene(truth, beating(truth, frames, fps, first), _rng(truth, _ANATOMY))
    basis = _basis(x, y)
    covered = _within(view.cavity, basis, frames)
    if part == "muscle":
        covered = _within(view.muscle, basis, frames) & ~covered
    elif part == "atrium" and view.atrium is not None:
        ventricle = covered | _within(view.muscle, basis, frames)
        covered = _within(view.atrium, _wavering(x, y, _TREMOR_CM * view.size), frames) & ~ventricle
    elif part != "cavity":
        raise ValueError(
            f"part must be 'cavity' or 'muscle', or 'atrium' in an apical view; got {part!r} in {truth.view}"
        )
    mask = np.zeros((frames, size * size), bool)
    mask[:, inside] = covered.T
    return mask.reshape(frames, size, size)


def calipers(truth: EchoTruth, *, frame: int = 0, size: int = 112, fps: float = 30.0) -> dict[str, np.ndarray]:
    """Return the caliper positions of septum, diameter and posterior wall.

    Returns:
        "septum", "diameter" and "wall" -> both end points, float64 (2, 2), x and y in pixels (0 is the centre of the
        first pixel).
    """
    machine, heart = _machine(truth, size), beating(truth, 1, fps, frame)
    view = scene(truth, heart, _rng(truth, _ANATOMY))
    septum, b, wall = float(heart.septum[0]), float(heart.b[0]), float(heart.wall[0])
    steps = {"septum": (-b - septum, -b), "diameter": (-b, b), "wall": (b, b + wall)}
    corner = np.array(machine.tip) - 0.5
    return {
        name: corner + (view.cavity.centre[0] + np.outer(ends, view.across)) / machine.cm_per_pixel
        for name, ends in steps.items()
    }


def _rng(truth: EchoTruth, stream: int) -> np.random.Generator:
    return np.random.default_rng([truth.seed, stream])


def _machine(truth: EchoTruth, size: int) -> _Machine:
    rng = _rng(truth, _MACHINE)
    far = depth(truth) * rng.uniform(1.0, 1.15)
    scale = far * rng.uniform(1.04, 1.12) / size
    tip = (size * rng.uniform(0.46, 0.54), size * rng.uniform(0.01, 0.04))
    return _Machine(far, scale, rng.uniform(38, 45), tip, rng.uniform(-4.0, 4.0), rng.uniform(46.0, 58.0))


def _grid(machine: _Machine, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x and y of the pixels inside the sector, cm, float32 (P,), and their indices in the flattened image."""
    positions = np.arange(size) + 0.5
    across, down = ((positions - tip) * machine.cm_per_pixel for tip in machine.tip)
    x = np.tile(across.astype(np.float32), size)
    y = np.repeat(down.astype(np.float32), size)
    radius = np.hypot(x, y)
    sector = (np.abs(x) <= np.tan(np.deg2rad(machine.half_angle)) * y) & (radius <= machine.depth) & (radius > 0.3)
    inside = np.flatnonzero(sector)
    return x[inside], y[inside], inside


def _basis(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([x * x, y * y, x * y, x, y, np.ones_like(x)], axis=1)


def _wavering(x: np.ndarray, y: np.ndarray, tremor: float) -> np.ndarray:
    """Return the basis for ellipses whose outline is deformed by up to `tremor` cm."""
    return _basis(x + tremor * np.sin(1.3 * y + 0.5 * x), y + tremor * np.sin(1.6 * x - 0.4 * y))


def _quadric(layer: EllipseLayer, frames: int) -> np.ndarray:
    """Return the coefficients of `_basis`, (6, T), for the implicit function of an ellipse (1 on the outline)."""
    each = np.ones(frames)
    cx, cy, ux, uy = (each * part for vector in (layer.centre, layer.axis) for part in np.asarray(vector).T)
    along, across = each / np.square(layer.along), each / np.square(layer.across)
    xx, yy, xy = along * ux**2 + across * uy**2, along * uy**2 + across * ux**2, (along - across) * ux * uy
    linear_x, linear_y = -2 * (xx * cx + xy * cy), -2 * (xy * cx + yy * cy)
    constant = xx * cx**2 + 2 * xy * cx * cy + yy * cy**2
    return np.stack([xx, yy, 2 * xy, linear_x, linear_y, constant]).astype(np.float32)


def _beyond(layer: EllipseLayer, cut: np.ndarray, frames: int) -> np.ndarray:
    """Return the coefficients of `_basis`, (6, T), for the distance beyond the cut of a layer in cm."""
    linear = np.zeros((6, frames), np.float32)
    linear[3:5] = layer.axis[:, None]
    linear[5] = -cut
    return linear


def _within(layer: EllipseLayer, basis: np.ndarray, frames: int) -> np.ndarray:
    within = basis @ _quadric(layer, frames) <= 1.0
    return within if layer.cut is None else within & (basis @ _beyond(layer, layer.cut, frames) <= 0.0)


def _near(layer: EllipseLayer, x: np.ndarray, y: np.ndarray, margin: float) -> np.ndarray:
    """Return the indices of the pixels that a layer, displaced by up to `margin` cm, reaches in any frame."""
    centre, axis = np.atleast_2d(layer.centre), np.abs(np.atleast_2d(layer.axis))
    along, across = np.atleast_1d(layer.along)[:, None], np.atleast_1d(layer.across)[:, None]
    # Half width and height of the bounding box of an ellipse, including its soft edge.
    half = np.hypot(along * axis, across * axis[:, ::-1]) * np.sqrt(1 + _EDGE_CM / across) + margin
    (left, top), (right, bottom) = (centre - half).min(0), (centre + half).max(0)
    return np.flatnonzero((x > left) & (x < right) & (y > top) & (y < bottom))


def _paint(
    layers: tuple[EllipseLayer, ...], x: np.ndarray, y: np.ndarray, frames: int, background: np.ndarray, tremor: float
) -> np.ndarray:
    """Return the echogenicity of each pixel in each frame, dB, (P, T): layers with soft edges over the background.

    All structures except the left ventricle get an outline deformed by up to `tremor` cm, because real atria are not
    ellipses.
    """
    drawn = _basis(x, y)
    wavering = _wavering(x, y, tremor)
    echo = np.repeat(background[:, None], frames, axis=1)
    for layer in layers:
        here = _near(layer, x, y, tremor)
        basis = (drawn if layer.exact else wavering)[here]
        # Near the outline the implicit function grows by 2/semi-axis per cm; the edge spreads over _EDGE_CM.
        steep = (np.ones(frames) * layer.across / (2 * _EDGE_CM)).astype(np.float32)
        cover = basis @ (_quadric(layer, frames) * -steep)
        cover += steep + np.float32(0.5)
        if layer.cut is not None:
            np.minimum(
                cover, basis @ (_beyond(layer, layer.cut, frames) / np.float32(-_EDGE_CM)) + np.float32(0.5), out=cover
            )
        np.clip(cover, 0.0, 1.0, out=cover)
        below = echo[here]
        cover *= np.float32(layer.level) - below
        below += cover
        echo[here] = below
    return echo


def _surroundings(truth: EchoTruth, machine: _Machine, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the surroundings of the heart: background, haze and shade, dB. Each has the shape (P,).

    Returns:
        Echogenicity of the soft tissue around the heart; haze, the minimum level of all pixels; and shade, which is
        subtracted from all pixels: attenuation, streaks across the beam, and the shadows of ribs and lung.
    """
    rng = _rng(truth, _SURROUNDINGS)
    radius, angle = np.hypot(x, y), np.rad2deg(np.arctan2(x, y))
    background = SOFT - 5.0 * (angle / machine.half_angle) ** 2
    haze = _HAZE[truth.image_quality] + rng.uniform(-2, 2) + 16.0 * np.exp(-radius / 1.3) - 0.2 * radius
    shade = -0.3 * radius
    for cycles in (1.0, 2.2, 4.5):
        direction, phase, strength = rng.uniform(-3, 3), rng.uniform(0, 2 * np.pi), rng.uniform(1.0, 2.5)
        turns = 2 * np.pi * cycles * radius / machine.depth + direction * angle / machine.half_angle
        shade += strength * np.sin(turns + phase)
    fewest, most, strength = _SHADOWS[truth.image_quality]
    for _ in range(rng.integers(fewest, most + 1)):
        middle, width = rng.uniform(-0.9, 0.9) * machine.half_angle, rng.uniform(3.0, 9.0)
        start = rng.uniform(0.0, 0.35) * machine.depth
        wedge = np.exp(-(((angle - middle) / width) ** 2)) / (1 + np.exp(-(radius - start) / 0.5))
        shade -= strength * rng.uniform(0.6, 1.2) * wedge
    return background, haze, shade

"""Anatomy of each view: elliptical layers of tissue and blood in painting order.

Lengths are in cm, with x to the right and y downwards from the tip of the sector; levels are in dB below the brightest
echo. Display conventions follow the American Society of Echocardiography: apical views show the apex on top and the
patient's left on the right; the parasternal long axis shows the aorta on the right.
"""

from dataclasses import dataclass, replace

import numpy as np

from cardiobench.data.phantom.heart import MITRAL_PLANE, EchoTruth, Ventricle

BLOOD, MUSCLE, SOFT, VALVE, FIBROUS = -52.0, -18.0, -29.0, -12.0, -9.0


@dataclass(frozen=True)
class EllipseLayer:
    """An ellipse of uniform echogenicity, which may move and deform from frame to frame.

    Attributes:
        level: Echogenicity, dB.
        centre: Centre, (T, 2) or (2,), cm.
        axis: Unit vector of the first semi-axis, (T, 2) or (2,).
        along: First semi-axis, (T,) or a number, cm.
        across: Second semi-axis, (T,) or a number, cm.
        cut: Largest painted projection on `axis`, cm; None paints the whole ellipse.
        exact: Whether the outline is exactly the ellipse, without random deformation.
    """

    level: float
    centre: np.ndarray
    axis: np.ndarray
    along: np.ndarray | float
    across: np.ndarray | float
    cut: np.ndarray | None = None
    exact: bool = False


@dataclass(frozen=True)
class Scene:
    """A view of a heart.

    Attributes:
        layers: Layers, painted first to last.
        cavity: Blood of the left ventricle, whose outline defines the masks.
        muscle: Left ventricle including its wall.
        across: Unit vector from the septum to the posterior wall, along which diameter and walls are measured.
        size: Scale of all structures without a size in the ground truth; 1 for a ventricle of 8.5 cm.
        atrium: Blood of the left atrium, in apical views.
    """

    layers: tuple[EllipseLayer, ...]
    cavity: EllipseLayer
    muscle: EllipseLayer
    across: np.ndarray
    size: float
    atrium: EllipseLayer | None = None


def scene(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    """Return the layers of `truth.view`; `rng` varies position and proportions between recordings."""
    build = _aortic_level if truth.aortic_level else _BUILDERS[truth.view]
    view = build(truth, heart, rng)
    return _with_still_wall(view, truth) if truth.akinetic else view


def _with_still_wall(view: Scene, truth: EchoTruth) -> Scene:
    """Return the blood inside the end-diastolic wall, on the side of the free wall and above the middle."""
    b = truth.lvidd / 2
    a = truth.length / (1 + MITRAL_PLANE)
    apex = view.cavity.centre - np.multiply.outer(view.cavity.along, view.cavity.axis)
    middle = apex[0] + 0.62 * a * view.cavity.axis if view.cavity.cut is not None else view.cavity.centre[0]
    still = EllipseLayer(BLOOD, middle + 0.38 * b * view.across, view.cavity.axis, 0.75 * b, 0.55 * b)
    return replace(view, layers=(*view.layers, still))


def depth(truth: EchoTruth) -> float:
    """Return the smallest depth of the sector that shows the whole scene, cm."""
    if truth.view in ("PSAX", "PLAX"):
        return truth.lvidd + truth.ivsd + truth.lvpwd + 5.6 * _size(truth)
    return truth.length + 6.6 * _size(truth)


def _size(truth: EchoTruth) -> float:
    return truth.length / 8.5


def _turn(degrees: float) -> np.ndarray:
    """Return the unit vector (x, y) at an angle in degrees from straight down towards the right."""
    angle = np.deg2rad(degrees)
    return np.array([np.sin(angle), np.cos(angle)])


def _turned(axis: np.ndarray, degrees: float) -> np.ndarray:
    return _turn(np.rad2deg(np.arctan2(axis[0], axis[1])) + degrees)


def _normal(axis: np.ndarray) -> np.ndarray:
    return np.stack([axis[..., 1], -axis[..., 0]], axis=-1)


def _at(origin: np.ndarray, *steps: tuple[np.ndarray | float, np.ndarray]) -> np.ndarray:
    """Return the points at given distances and directions from `origin`. The shape is (T, 2) or (2,)."""
    return origin + sum(np.asarray(distance)[..., None] * direction for distance, direction in steps)


def _ventricle(
    heart: Ventricle, apex: np.ndarray, axis: np.ndarray, across: np.ndarray, near: np.ndarray, far: np.ndarray
):
    """Return the cavity, the muscle and the middle of the mitral plane.

    `near` and `far` are the walls against and along `across`.
    """
    centre = _at(apex, (heart.a, axis))
    base = apex @ axis + heart.a * (1 + MITRAL_PLANE)
    cavity = EllipseLayer(BLOOD, centre, axis, heart.a, heart.b, cut=base, exact=True)
    thick = (near + far) / 2
    shifted = _at(centre, ((far - near) / 2, across))
    muscle = EllipseLayer(MUSCLE, shifted, axis, heart.a + 0.6 * thick, heart.b + thick, cut=base + 0.15, exact=True)
    return cavity, muscle, _at(apex, (heart.a * (1 + MITRAL_PLANE), axis))


def _atrium(hinge: np.ndarray, axis: np.ndarray, length: np.ndarray, across: np.ndarray) -> list[EllipseLayer]:
    """Return an atrium that opens upwards at `hinge` and is widest a third of its length below."""
    centre, back = _at(hinge, (0.36 * length, axis)), -axis
    cut = (np.asarray(hinge) * back).sum(-1)
    return _chamber(centre, back, 0.66 * length, across, cut=cut)


def _chamber(
    centre: np.ndarray,
    axis: np.ndarray,
    along: np.ndarray | float,
    across: np.ndarray | float,
    rim: float = 0.3,
    level: float = MUSCLE,
    cut: np.ndarray | None = None,
) -> list[EllipseLayer]:
    """Return a thin-walled chamber or vessel."""
    return [
        EllipseLayer(level, centre, axis, along + rim, across + rim, cut),
        EllipseLayer(BLOOD, centre, axis, along, across, cut),
    ]


def _pericardium(muscle: EllipseLayer, shift: np.ndarray) -> EllipseLayer:
    return replace(
        muscle, level=FIBROUS, centre=muscle.centre + shift, along=muscle.along + 0.1, across=muscle.across + 0.1
    )


def _leaflets(
    hinges: tuple[np.ndarray, np.ndarray],
    inward: np.ndarray,
    forward: np.ndarray,
    opening: np.ndarray,
    length: np.ndarray | float,
    thickness: float,
    level: float,
) -> list[EllipseLayer]:
    """Return two leaflets from their hinges; they meet in the middle at opening 0 and point `forward` at 1."""
    layers = []
    for hinge, towards in zip(hinges, (inward, -inward), strict=True):
        angle = np.deg2rad(14 + 62 * opening)[..., None]
        direction = np.cos(angle) * towards + np.sin(angle) * forward
        layers.append(EllipseLayer(level, _at(hinge, (length / 2, direction)), direction, length / 2, thickness / 2))
    return layers


def _inflow(
    heart: Ventricle,
    middle: np.ndarray,
    axis: np.ndarray,
    across: np.ndarray,
    half: np.ndarray | float,
    level: float = VALVE,
) -> list[EllipseLayer]:
    """Return a mitral or tricuspid valve of half width `half`; closed leaflets bulge slightly towards the atrium."""
    hinges = _at(middle, (-half, across)), _at(middle, (half, across))
    opening = np.where(heart.mitral > 0, heart.mitral, -0.3)
    return _leaflets(hinges, across, -axis, opening, 0.97 * half, 0.24, level)


def _outflow(truth: EchoTruth, heart: Ventricle, ring: np.ndarray, axis: np.ndarray, half: float) -> list[EllipseLayer]:
    """Return the aortic valve; calcium makes its leaflets thicker, brighter and less mobile."""
    across = _normal(axis)
    hinges = _at(ring, (-half, across)), _at(ring, (half, across))
    opening = heart.aortic * (1 - 0.75 * truth.valve_calcium)
    thickness = 0.2 + 0.65 * truth.valve_calcium
    return _leaflets(hinges, across, axis, opening, 0.97 * half, thickness, _leaflet_level(truth))


def _leaflet_level(truth: EchoTruth) -> float:
    return VALVE - 2 + 12 * truth.valve_calcium


def _apical(
    truth: EchoTruth,
    heart: Ventricle,
    rng: np.random.Generator,
    offset: float,
    tilt: float,
    near: np.ndarray,
    far: np.ndarray,
):
    size = _size(truth)
    axis = _turn(tilt + rng.uniform(-4, 4))
    across = _normal(axis)
    apex = np.array([offset + rng.uniform(-0.25, 0.25), 1.6 + rng.uniform(0, 0.4)]) * size
    cavity, muscle, base = _ventricle(heart, apex, axis, across, near, far)
    atrium = size * (1.0 + 0.14 * (1 - heart.filled)) * rng.uniform(0.9, 1.2)
    return size, axis, across, cavity, muscle, base, atrium


def _a2c(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    size, axis, across, cavity, muscle, base, atrium = _apical(truth, heart, rng, -0.1, -2.0, heart.wall, heart.wall)
    left_atrium = _atrium(_at(base, (0.1, across)), axis, 4.2 * atrium, 2.2 * atrium)
    layers = [_pericardium(muscle, -0.25 * size * across), *left_atrium, muscle, cavity]
    layers += _inflow(heart, base, axis, across, 0.85 * heart.b)
    return Scene(tuple(layers), cavity, muscle, across, size, left_atrium[-1])


def _a4c(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    size, axis, across, cavity, muscle, base, atrium = _apical(truth, heart, rng, 0.9, 3.0, heart.septum, heart.wall)
    length = heart.a * (1 + MITRAL_PLANE)
    right = truth.right_heart * size * rng.uniform(1.35, 1.65) * (0.82 + 0.18 * heart.filled)
    septal = 0.95 * heart.b + heart.septum
    free = _at(base, (-0.36 * length, axis), (-(septal + 0.78 * right), across))
    right_ventricle = _chamber(free, _turned(axis, -12.0), 0.58 * length, right, rim=0.35)
    left_atrium = _atrium(_at(base, (0.15 * size, across)), axis, 4.0 * atrium, 1.95 * atrium)
    tricuspid = _at(base, (-0.35 * size, axis), (-(septal + 0.9 * right), across))
    right_atrium = _atrium(
        _at(tricuspid, (-0.15 * size, across)), axis, 4.2 * size, 1.7 * size * truth.right_heart**0.5
    )
    layers = [_pericardium(muscle, 0.25 * size * across), *right_ventricle, *right_atrium, *left_atrium, muscle, cavity]
    layers += _inflow(heart, base, axis, across, 0.85 * heart.b)
    layers += _inflow(heart, tricuspid, axis, across, 0.9 * right, level=VALVE - 3)
    if truth.septal_defect:
        between = (left_atrium[0].centre + right_atrium[0].centre) / 2
        layers.append(EllipseLayer(BLOOD, between, across, 1.5 * size, 0.75 * size))
    return Scene(tuple(layers), cavity, muscle, across, size, left_atrium[-1])


def _a3c(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    size, axis, across, cavity, muscle, base, atrium = _apical(truth, heart, rng, 0.2, 2.0, heart.wall, heart.septum)
    mitral = _at(base, (-0.3 * heart.b, across))
    left_atrium = _atrium(_at(mitral, (-0.1 * size, across)), axis, 3.8 * atrium, 1.75 * atrium)
    root, width = _turned(axis, 14.0), 1.1 * size
    outflow = _at(base, (0.62 * heart.b, across))
    aorta = _chamber(_at(outflow, (2.2 * size, root)), root, 3.2 * size, width, rim=0.24, level=VALVE)
    ring = _at(outflow, (0.9 * size, root))
    right = _chamber(
        _at(base, (-1.2 * size, axis), (heart.b + heart.septum + 0.9 * size, across)), axis, 2.6 * size, 0.9 * size
    )
    layers = [_pericardium(muscle, -0.25 * size * across), *right, *left_atrium, *aorta, muscle, cavity]
    layers += [EllipseLayer(BLOOD, outflow, root, 1.2 * size, 0.9 * width)]
    layers += _inflow(heart, mitral, axis, across, 0.56 * heart.b)
    layers += _outflow(truth, heart, ring, root, 0.95 * width)
    return Scene(tuple(layers), cavity, muscle, -across, size, left_atrium[-1])


def _plax(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    size = _size(truth)
    axis = _turn(96.0 + rng.uniform(-4, 5))  # From the apex on the left to the base on the right, slightly upwards.
    across = -_normal(axis)  # Downwards, from the septum to the posterior wall.
    middle = 2.7 * size + truth.ivsd + truth.lvidd / 2 + rng.uniform(0, 0.4) * size
    apex = np.array([rng.uniform(-1.6, -1.0) * size, middle]) - truth.length / (1 + MITRAL_PLANE) * axis
    cavity, muscle, base = _ventricle(heart, apex, axis, across, heart.septum, heart.wall)

    front = _at(cavity.centre, (-(heart.b + heart.septum + 0.85 * size), across), (0.6 * size, axis))
    right = EllipseLayer(BLOOD, front, axis, 4.8 * size, 0.8 * size)
    free_wall = EllipseLayer(MUSCLE, _at(front, (-0.3 * size, across)), axis, 6.0 * size, 1.05 * size)
    root, width = _turned(axis, 6.0), 1.25 * size
    outflow = _at(base, (-0.4 * size, axis), (-0.55 * heart.b, across))
    aorta = _chamber(_at(outflow, (3.0 * size, root)), root, 4.2 * size, width, rim=0.26, level=VALVE)
    ring = _at(outflow, (1.2 * size, root))
    atrium = size * (1.0 + 0.12 * (1 - heart.filled)) * rng.uniform(0.9, 1.2)
    mitral = _at(base, (0.36 * heart.b, across))
    left_atrium = _atrium(_at(mitral, (0.35 * size, across)), axis, 3.9 * atrium, 1.55 * atrium)
    descending = _chamber(_at(mitral, (0.4 * size, axis), (3.3 * size, across)), axis, 0.95 * size, 0.95 * size)
    layers = [
        free_wall,
        right,
        *descending,
        _pericardium(muscle, 0.32 * size * across),
        *left_atrium,
        *aorta,
        muscle,
        cavity,
    ]
    layers += [EllipseLayer(BLOOD, outflow, root, 1.9 * size, 0.88 * width)]
    layers += _inflow(heart, mitral, axis, across, 0.5 * heart.b)
    layers += _outflow(truth, heart, ring, root, 0.95 * width)
    return Scene(tuple(layers), cavity, muscle, across, size)


def _psax(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    size = _size(truth)
    across = _turn(28.0 + rng.uniform(-10, 10))  # From the septum, upper left, to the posterior wall.
    axis = _normal(across)
    middle = 2.6 * size + truth.ivsd + truth.lvidd / 2 + rng.uniform(0, 0.4) * size
    centre = np.broadcast_to([rng.uniform(0.1, 0.7) * size, middle], (len(heart.b), 2))
    cavity = EllipseLayer(BLOOD, centre, axis, heart.b, heart.b, exact=True)
    thick = (heart.septum + heart.wall) / 2
    shifted = _at(centre, ((heart.wall - heart.septum) / 2, across))
    muscle = EllipseLayer(MUSCLE, shifted, axis, heart.b + thick, heart.b + thick, exact=True)
    right = size * (0.8 + 0.2 * heart.filled)
    crescent = _at(centre, (-(heart.b + heart.septum) * 0.62, across), (-0.7 * size, axis))
    right_ventricle = _chamber(crescent, axis, 2.9 * right + 0.35 * heart.b, 1.6 * right + 0.35 * heart.b, rim=0.35)
    papillary = []
    for direction in (_turn(-52.0), _turn(62.0)):
        position = _at(centre, (0.8 * heart.b, direction))
        papillary.append(EllipseLayer(MUSCLE - 3, position, direction, 0.26 * heart.b + 0.1, 0.17 * heart.b + 0.1))
    layers = (*right_ventricle, _pericardium(muscle, 0.3 * size * _turn(20.0)), muscle, cavity, *papillary)
    return Scene(layers, cavity, muscle, across, size)


def _aortic_level(truth: EchoTruth, heart: Ventricle, rng: np.random.Generator) -> Scene:
    """Return the aorta with three leaflets, the outflow tract of the right ventricle in front and the atria behind."""
    ring = _psax(truth, heart, rng)  # The masks remain those of the ventricle.
    size = ring.size
    centre = np.array([rng.uniform(-0.3, 0.3), rng.uniform(5.0, 5.5)]) * size
    radius = 1.45 * size * np.ones(len(heart.b))
    right = _chamber(_at(centre, (-0.2 * size, _turn(90)), (-1.5 * size, _turn(0))), _turn(84), 3.5 * size, 1.7 * size)
    pulmonary = _chamber(_at(centre, (2.6 * size, _turn(90))), _turn(14), 2.6 * size, 0.95 * size)
    right_atrium = _chamber(_at(centre, (2.9 * size, _turn(-62))), _turn(10), 1.9 * size, 1.5 * size)
    left_atrium = _chamber(_at(centre, (3.0 * size, _turn(6))), _turn(88), 2.7 * size, 1.6 * size)
    aorta = _chamber(centre, _turn(0), radius, radius, rim=0.28, level=VALVE)
    opening = heart.aortic * (1 - 0.75 * truth.valve_calcium)
    # The free edge of a leaflet is a spoke, which retracts towards the wall as the valve opens.
    reach, thickness = (0.5 - 0.36 * opening) * radius, 0.12 + 0.3 * truth.valve_calcium
    leaflets = []
    for direction in (_turn(30.0), _turn(150.0), _turn(270.0)):
        position = _at(centre, (radius - reach, direction))
        leaflets.append(EllipseLayer(_leaflet_level(truth), position, direction, reach, thickness))
    layers = (*right, *pulmonary, *right_atrium, *left_atrium, *aorta, *leaflets)
    return Scene(layers, ring.cavity, ring.muscle, ring.across, size)


_BUILDERS = {"A2C": _a2c, "A3C": _a3c, "A4C": _a4c, "PLAX": _plax, "PSAX": _psax}

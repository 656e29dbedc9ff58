"""Compare the array that enters each echo network with an independent computation.

The recordings have known colour order, number and size of frames; expected arrays use functions of other libraries, or come
from the golden files of the published code. A wrong colour order, crop, frame or default changes the array.
"""

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.data.media.types import Clip
from cardiobench.models.grey_levels import Normalised
from tests.models.golden import Golden
from tests.models.wiring.conftest import entering

KEY_FRAME = 7


def video(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return smooth, distinct uint8 RGB frames (T, H, W, 3), with red brighter than green and green than blue."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 6, 8, 3)).astype(np.float32)
    frames = np.stack([cv2.resize(frame, (width, height), interpolation=cv2.INTER_LINEAR) for frame in coarse])
    return (frames * (1.0, 0.7, 0.4)).astype(np.uint8)


def seen_by(encoder, frames: np.ndarray) -> Clip:
    """Return the recording as the readers pass it to an encoder: its sampled frames, starting at a key frame."""
    indices = encoder.sampling.indices(len(frames), KEY_FRAME)
    return Clip(frames[indices], indices, len(frames))


def cropped(frame: np.ndarray, whole, size: int = 224) -> np.ndarray:
    """Return the central square of a wide frame, less one tenth on every side, with OpenCV's cubic interpolation."""
    height, width = frame.shape[:2]
    left = round((width - height) / 2)
    border = whole(0.1 * height)
    square = frame[:, left : width - left][border : height - border, border : -border or None]
    return cv2.resize(np.ascontiguousarray(square), (size, size), interpolation=cv2.INTER_CUBIC)


BIOMED = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"
FROM_KEY, FROM_START = slice(KEY_FRAME, KEY_FRAME + 16), slice(0, 40, 2)
# Mapping from (model, variant) to frames, whether colours are reversed, and rounding of the border (None: no crop).
FRAME_WISE = {
    ("mkaichristensen/echo-clip", "echo_clip"): (FROM_START, True, int),
    ("mkaichristensen/echo-clip", "paper"): (FROM_KEY, True, round),
    ("mkaichristensen/echo-clip-r", "echo_clip"): (FROM_START, True, int),
    ("mkaichristensen/echo-clip-r", "paper"): (FROM_KEY, True, round),
    (BIOMED, "full_frame"): (FROM_KEY, False, None),
    (BIOMED, "paper"): (FROM_KEY, True, round),
    ("google/siglip2-base-patch16-224", "full_frame"): (FROM_KEY, False, None),
    ("google/siglip2-base-patch16-224", "paper"): (FROM_KEY, True, round),
    ("google/medsiglip-448", "full_frame"): (FROM_KEY, False, None),
    ("google/medsiglip-448", "paper"): (FROM_KEY, True, round),
    ("facebook/dinov3-vits16-pretrain-lvd1689m", "full_frame"): (FROM_KEY, False, None),
    ("facebook/dinov3-vits16-pretrain-lvd1689m", "paper"): (FROM_KEY, True, round),
}


def pictures_of_open_clip(frames):
    """Compute the transform of the tiny open_clip models: shorter side to 32, centre crop, mean and deviation."""
    found = []
    for frame in frames:
        picture = Image.fromarray(frame)
        scale = 32 / min(picture.size)
        size = [max(32, int(side * scale)) for side in picture.size]
        picture = picture.resize(size, Image.Resampling.BICUBIC)
        left, top = (round((side - 32) / 2.0) for side in picture.size)
        levels = np.asarray(picture.crop((left, top, left + 32, top + 32)), dtype=np.float64) / 255
        found.append(((levels - (0.4, 0.5, 0.6)) / (0.2, 0.3, 0.4)).transpose(2, 0, 1))
    return np.stack(found)


def pictures_of_siglip(frames):
    """Compute the transform of the tiny SigLIP: 32 x 32 regardless of aspect ratio, mean and deviation 0.5."""
    small = [
        np.asarray(Image.fromarray(f).resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float64) for f in frames
    ]
    return np.stack([((frame / 255 - 0.5) / 0.5).transpose(2, 0, 1) for frame in small])


def pictures_of_dinov3(frames):
    """Compute the transform of the tiny DINOv3: grey levels to 0..1, 32 x 32 with antialiasing, ImageNet mean and deviation."""
    small = torch.nn.functional.interpolate(
        torch.from_numpy(frames).permute(0, 3, 1, 2).double() / 255, (32, 32), mode="bilinear", antialias=True
    )
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return ((small - mean[:, None, None]) / deviation[:, None, None]).numpy()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "variant"), FRAME_WISE)
def test_models_of_single_frames(loaded, name, variant):
    which, turned, whole = FRAME_WISE[name, variant]
    encoder, frames = loaded(name, variant), video(45, 48, 66)
    chosen = np.ascontiguousarray(frames[which][..., ::-1] if turned else frames[which])
    if whole is not None:
        chosen = np.stack([cropped(frame, whole) for frame in chosen])
    kinds = {"siglip": pictures_of_siglip, "dinov3": pictures_of_dinov3}
    wanted = next((make for kind, make in kinds.items() if kind in name), pictures_of_open_clip)(chosen)
    inner = encoder.network.network if isinstance(encoder.network, Normalised) else encoder.network
    got = entering(inner, encoder, seen_by(encoder, frames)).numpy()
    assert got.shape == wanted.shape
    # Interpolations of two libraries sometimes round differently: at most three grey levels, in units of a deviation of 0.2.
    assert np.abs(got - wanted).max() < 3 / 255 / 0.2 and np.abs(got - wanted).mean() < 0.002


def test_dinotxt(loaded):
    encoder, frames = loaded("facebookresearch/dinotxt-vitl16"), video(45, 48, 66)
    got = entering(encoder.network.network, encoder, seen_by(encoder, frames)).numpy()
    wanted = []
    for frame in frames[FROM_KEY]:
        picture = Image.fromarray(frame).resize((352, 256), Image.Resampling.BICUBIC)
        levels = np.asarray(picture.crop((64, 16, 288, 240)), dtype=np.float64) / 255
        wanted.append(((levels - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).transpose(2, 0, 1))
    assert np.abs(got - np.stack(wanted)).mean() < 0.02


def test_random_vit(loaded):
    encoder, frames = loaded("cardiobench/random-vit"), video(45, 48, 66)
    got = entering(encoder.network, encoder, seen_by(encoder, frames)).numpy()
    small = [np.asarray(Image.fromarray(f).resize((112, 112), Image.Resampling.BILINEAR)) for f in frames[FROM_KEY]]
    wanted = (np.stack(small) / 127.5 - 1).transpose(0, 3, 1, 2)
    assert np.abs(got - wanted).max() < 2 / 127.5


def test_pixel_motion_measures_all_colours_of_a_bright_square(loaded):
    """Test a square in the top left quarter with red 200 and green 100: the mean image is one third of their sum."""
    frames = np.zeros((3, 64, 64, 3), dtype=np.uint8)
    frames[:, :32, :32] = (200, 100, 0)
    encoder = loaded("cardiobench/pixel-motion")
    vector = encoder.transform(seen_by(encoder, frames))[0].numpy()
    start = 5 + 8 + 8 + 16  # Aspect, frames, otsu, colour, sector; rows, columns, histogram.
    picture = vector[start : start + 64].reshape(8, 8)
    np.testing.assert_allclose(picture[:3, :3], 100 / 255, atol=1e-5)
    np.testing.assert_allclose(picture[5:, 5:], 0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("count", [45, 9])
def test_echoprime(loaded, count):
    """Check that EchoPrime gets every second frame in RGB order with truncated borders, and its view classifier the first."""
    encoder, frames = loaded("echonet/EchoPrime"), video(count, 48, 66)
    mean, deviation = (29.110628, 28.076836, 29.096405), (47.989223, 46.456997, 47.20083)
    chosen = frames[:32:2]
    wanted = np.zeros((16, 224, 224, 3))
    wanted[: len(chosen)] = (np.stack([cropped(frame, int) for frame in chosen]) - mean) / deviation
    wanted = wanted.transpose(3, 0, 1, 2)
    got = entering(encoder.network.video, encoder, seen_by(encoder, frames))[0].numpy()
    np.testing.assert_allclose(got, wanted, atol=2e-5)
    got = entering(encoder.network.view, encoder, seen_by(encoder, frames))[0].numpy()
    np.testing.assert_allclose(got, wanted[:, 0], atol=2e-5)


@pytest.mark.slow
def test_echoprime_prompts(loaded):
    frames = video(45, 48, 66)
    encoder, usual = loaded("echonet/EchoPrime", "prompts"), loaded("echonet/EchoPrime")
    got = entering(encoder.network.video, encoder, seen_by(encoder, frames))
    assert torch.equal(got, entering(usual.network.video, usual, seen_by(usual, frames)))


@pytest.mark.slow
def test_panecho(loaded):
    """Test four consecutive clips of 16 frames, evenly spaced; the golden clips are in BGR order."""
    golden = Golden("prep_panecho_clip")
    encoder = loaded("CarDS-Yale/PanEcho", "one_clip")
    for case in golden.spec["cases"]:
        used = case["frames_used"]
        frames = golden.described(case["input"])[used[0] : used[-1] + 1, ..., ::-1]
        got = entering(encoder.network.network, encoder, seen_by(encoder, np.ascontiguousarray(frames)))[0].numpy()
        difference = np.abs(got[:, :, 4::12, 4::12] - golden.arrays[f"out/{case['case']}[:, :, 4::12, 4::12]"])
        assert difference.max() <= 0.02 and (difference > 1e-4).mean() <= 1e-3
    frames = video(46, 48, 66)
    several = loaded("CarDS-Yale/PanEcho")
    got = several.transform(seen_by(several, frames))
    for clip, first in zip(got, (0, 10, 20, 30), strict=True):
        one = Clip(frames[first : first + 16], np.arange(first, first + 16), 46)
        assert torch.equal(clip, encoder.transform(one)[0])


@pytest.mark.slow
@pytest.mark.parametrize("count", [45, 9])
def test_echofm(loaded, count):
    """Check the first 32 frames in RGB order in 0..1, repeated from the start if there are fewer."""
    encoder, frames = loaded("sekeun/EchoFM"), video(count, 48, 66)
    got = entering(encoder.network.network.patch_embed, encoder, seen_by(encoder, frames))[0].numpy()
    chosen = [frames[number % min(count, 32)] for number in range(32)]
    small = [np.asarray(Image.fromarray(frame).resize((224, 224), Image.Resampling.BILINEAR)) for frame in chosen]
    np.testing.assert_allclose(got, (np.stack(small) / 255).transpose(3, 0, 1, 2), atol=1e-6)

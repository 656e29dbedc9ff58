"""Compare the array that enters each network of single frames with an independent computation.

The recordings have known colour order, number and size of frames; expected arrays use functions of other libraries. A wrong
colour order, crop, frame or default changes the array.
"""

import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.models.grey_levels import Normalised
from tests.models.entering import (
    FROM_KEY,
    FROM_START,
    cropped,
    entering,
    seen_by,
    video,
)

BIOMED = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"


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

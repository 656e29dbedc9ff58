"""From a recording to the array that enters each network, against an independent computation.

Recordings have known rate, lead order, units and colour order; what is expected is written out here with other libraries'
functions, in closed form, or comes from the golden files of the published code. A wrong lead order, unit, rate, colour, crop,
frame or default is a wrong array.
"""

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from cardiobench.data.media.types import LEADS, Clip, Ecg
from cardiobench.models.baselines.ecg_morphology import ecg_features
from cardiobench.models.cards import card, list_models
from cardiobench.models.image import Normalised
from cardiobench.models.load import load_model
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.golden import Golden

# Default pooling and variant of every model that offers a choice, as its authors use it.
DEFAULTS = {
    "CarDS-Yale/PanEcho": ("mean", "four_clips"),
    "Edoardo-BS/hubert-ecg-base": ("mean", "first"),
    "Edoardo-BS/hubert-ecg-large": ("mean", "first"),
    "Edoardo-BS/hubert-ecg-small": ("mean", "first"),
    "PKUDigitalHealth/ECGFounder": ("mean", "filtered"),
    "echonet/EchoPrime": ("cls", "by_name"),
    "facebook/dinov3-vitb16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vitl16-pretrain-lvd1689m": ("cls", "full_frame"),
    "facebook/dinov3-vits16-pretrain-lvd1689m": ("cls", "full_frame"),
    "google/medsiglip-448": ("", "full_frame"),
    "google/siglip2-base-patch16-224": ("", "full_frame"),
    "google/siglip2-base-patch16-512": ("", "full_frame"),
    "kweimann/ECG-JEPA": ("mean", "per_record"),
    "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224": ("", "full_frame"),
    "mkaichristensen/echo-clip": ("", "echo_clip"),
    "mkaichristensen/echo-clip-r": ("", "echo_clip"),
    "sehunfromdaegu/ECG_JEPA": ("mean", ""),
    "sekeun/EchoFM": ("mean", ""),
    "wanglab/ecg-fm": ("mean", "mean"),
}


def test_default_pooling_and_variant_of_every_card():
    first = {name: (next(iter(card(name).poolings), ""), next(iter(card(name).variants), "")) for name in list_models()}
    assert {name: chosen for name, chosen in first.items() if any(chosen)} == DEFAULTS


@pytest.fixture(scope="module", autouse=True)
def small():
    with smaller_networks():
        yield


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Gives the encoder of a registered model from a made-up checkpoint, each loaded once."""
    folders, encoders = {}, {}

    def load(name, variant=None):
        if name.startswith("cardiobench/"):
            return encoders.setdefault(name, load_model(name).encoder)
        if (name, variant) not in encoders:
            if name not in folders:
                folder = tmp_path_factory.mktemp("checkpoint") / "files"
                folder.mkdir()
                folders[name] = CHECKPOINTS[name](folder)
            with pytest.MonkeyPatch.context() as patch:
                change_card(patch, name)
                model = load_model(name, weights=folders[name], variant=variant)
            assert (model.token_pooling, variant or "") == (DEFAULTS.get(name, ("", ""))[0], variant or "")
            encoders[name, variant] = model.encoder
        return encoders[name, variant]

    return load


def entering(module: torch.nn.Module, encoder, recording) -> torch.Tensor:
    """The array that a module of an encoder gets when the encoder encodes a recording."""
    inputs = []
    hook = module.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    try:
        encoder.encode(encoder.transform(recording))
    finally:
        hook.remove()
    return inputs[0]


# ---- ECG: leads of known frequency and height

HEIGHTS = 0.2 + 0.1 * np.arange(12)  # mV
FREQUENCIES = 3.0 + 3.0 * np.arange(12)  # Hz, whole cycles in ten seconds
ABOVE = 180.0  # Hz, in every lead: has to vanish where the network's rate is below 360 Hz


def waves(fs: float, leads=range(12), seconds: float = 10.0) -> np.ndarray:
    """A sine in each lead, sampled at a rate: (samples, leads), millivolts."""
    time = np.arange(round(seconds * fs))[:, None] / fs
    leads = list(leads)
    return HEIGHTS[leads] * np.sin(2 * np.pi * FREQUENCIES[leads] * time)


def record(fs: float, above: float = ABOVE) -> Ecg:
    """The same, with a fast wave on top in every lead."""
    time = np.arange(round(10 * fs))[:, None] / fs
    return Ecg((waves(fs) + 0.3 * np.sin(2 * np.pi * above * time)).astype(np.float32), fs)


def entering_ecg(encoder, recording) -> np.ndarray:
    return entering(encoder.network, encoder, recording).numpy()


@pytest.mark.parametrize("fs", [400, 500, 1000])
def test_ecg_jepa_of_kim(loaded, fs):
    """Leads I, II, V1 to V6 in millivolts at 250 Hz, nothing folded down from above 125 Hz."""
    got = entering_ecg(loaded("sehunfromdaegu/ECG_JEPA"), record(fs))
    wanted = waves(250, [0, 1, 6, 7, 8, 9, 10, 11])
    np.testing.assert_allclose(got[0].T, wanted, atol=2e-4)


@pytest.mark.parametrize("fs", [400, 1000])
def test_ecg_jepa_of_weimann(loaded, fs):
    """12 leads at 500 Hz in the fixed deviations of PTB-XL (in microvolts here), nothing folded down from above 250 Hz."""
    ecg = record(fs, above=430.0) if fs == 1000 else Ecg(waves(fs).astype(np.float32), fs)
    mean = np.array([-2, -2, 0, 2, -1, -1, 0, -1, -2, -1, -1, -1])
    deviation = np.array([191, 166, 173, 142, 149, 147, 235, 338, 335, 299, 294, 242])
    wanted = np.clip((1000 * waves(500) - mean) / deviation, -5, 5)
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "ptb_xl"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], wanted[50:-50], atol=0.03)
    # Each lead in its own deviations: a sine has a deviation of its height over the root of two.
    got = entering_ecg(loaded("kweimann/ECG-JEPA", "per_record"), ecg)[0].T
    np.testing.assert_allclose(got[50:-50], (np.sqrt(2) / HEIGHTS * waves(500))[50:-50], atol=0.03)


@pytest.mark.parametrize("fs", [257, 500])
def test_minirocket(loaded, fs):
    """12 leads at 100 Hz, each in its own deviations; the fast wave does not fold down."""
    slow = np.sin(2 * np.pi * (2 + np.arange(12)) * np.arange(round(10 * fs))[:, None] / fs)
    fast = np.sin(2 * np.pi * 90 * np.arange(round(10 * fs))[:, None] / fs)
    got = loaded("cardiobench/minirocket").transform(Ecg((HEIGHTS * (slow + fast)).astype(np.float32), fs))[0].numpy().T
    time = np.arange(1000)[:, None] / 100
    wanted = np.sqrt(2) * np.sin(2 * np.pi * (2 + np.arange(12)) * time)
    np.testing.assert_allclose(got[30:-30], wanted[30:-30], atol=0.05)


def beats(fs: float, seconds: float = 12.0) -> np.ndarray:
    """A P wave, an R wave of known height and a T wave at 75 beats a minute: (samples, 12), millivolts."""
    place = (np.arange(round(seconds * fs))[:, None] / fs) % 0.8
    shape = [(0.2, 0.03, 0.1), (0.4, 0.012, 1.0), (0.65, 0.05, 0.25)]
    return HEIGHTS * sum(height * np.exp(-(((place - at) / width) ** 2)) for at, width, height in shape)


@pytest.mark.parametrize("fs", [360, 500, 1000])
def test_ecg_morphology(loaded, fs):
    """Rate and heights as they were put in, and nearly the features of the same beats drawn at 250 Hz."""
    encoder = loaded("cardiobench/ecg-morphology")
    got = encoder.encode(encoder.transform(Ecg(beats(fs).astype(np.float32), fs)))[0].numpy()
    wanted = ecg_features(beats(250))
    assert wanted["rate"] == pytest.approx(75 / 60, abs=0.01)
    np.testing.assert_allclose(wanted["r"] / HEIGHTS, wanted["r"][0] / HEIGHTS[0], rtol=0.02)
    assert wanted["r"][11] == pytest.approx(HEIGHTS[11], rel=0.1)
    start = 0
    for name, value in wanted.items():
        size = np.size(value)
        if name in ("rate", "r", "t", "rr_mean", "qrs"):
            np.testing.assert_allclose(got[start : start + size], np.ravel(value), rtol=0.05, atol=0.02, err_msg=name)
        start += size
    assert start == len(got)


def golden_records(golden):
    """Case, record and constant lead of every case of a golden file of preprocessing."""
    for case in golden.spec["cases"]:
        recipe, _, rest = case["input"].partition("; then lead ")
        shape, tag = recipe[len("make_input((") :].partition("),")[0], recipe.rpartition("tag='")[2].rstrip("')")
        signal = golden.input(tuple(map(int, shape.split(","))), "ecg", tag).T
        if rest:
            lead, _, value = rest.partition(" set to ")
            signal[:, int(lead)] = float(value)
        yield case, Ecg(signal.astype(np.float32), case["fs"])


def test_ecg_fm(loaded):
    golden = Golden("prep_ecgfm")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("wanglab/ecg-fm"), ecg)
        assert len(got) == case["n_segments"]
        wanted = golden.arrays[f"last_segment/{case['case']}[:, ::10]"]
        np.testing.assert_allclose(got[-1][:, ::10], wanted, atol=2e-5)


def test_hubert_ecg(loaded):
    golden = Golden("prep_hubert_ecg")
    for case, ecg in golden_records(golden):
        got = entering_ecg(loaded("Edoardo-BS/hubert-ecg-small"), ecg)
        np.testing.assert_allclose(got[0], golden.arrays[f"model_input/{case['case']}"], atol=1e-4)


def test_ecgfounder(loaded):
    golden = Golden("prep_ecgfounder")
    ecg = Ecg(golden.input((12, 5000), "ecg", "ecgf").T.astype(np.float32), 500)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder"), ecg)[0]
    np.testing.assert_allclose(got[:, ::4], golden.arrays["filtered_zscored[:, ::4]"], atol=2e-3)
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), ecg)[0]
    np.testing.assert_allclose(got[:, ::8], golden.arrays["zscore_only[:, ::8]"], atol=2e-5)
    # At 400 Hz: straight lines from end to end, then one mean and one deviation for all leads.
    shorter = golden.input((12, 4000), "ecg", "ecgf400")
    at_500 = np.stack([np.interp(np.arange(5000), np.linspace(0, 4999, 4000), lead) for lead in shorter])
    got = entering_ecg(loaded("PKUDigitalHealth/ECGFounder", "zscore"), Ecg(shorter.T.astype(np.float32), 400))[0]
    np.testing.assert_allclose(got, (at_500 - at_500.mean()) / at_500.std(), atol=2e-5)


def test_leads_are_in_the_order_of_the_benchmark():
    assert LEADS == ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


# ---- echo: frames of known colour, number and size

KEY_FRAME = 7


def video(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Frames uint8 RGB (T, H, W, 3), each smooth and unlike the others, red brighter than green, green than blue."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 6, 8, 3)).astype(np.float32)
    frames = np.stack([cv2.resize(frame, (width, height), interpolation=cv2.INTER_LINEAR) for frame in coarse])
    return (frames * (1.0, 0.7, 0.4)).astype(np.uint8)


def seen_by(encoder, frames: np.ndarray) -> Clip:
    """The recording as the benchmark's readers hand it to an encoder: the frames that it samples, from a key frame on."""
    indices = encoder.sampling.indices(len(frames), KEY_FRAME)
    return Clip(frames[indices], indices, len(frames))


def cropped(frame: np.ndarray, whole, size: int = 224) -> np.ndarray:
    """The middle square of a wide frame without a tenth on every side, by OpenCV's cubic filter."""
    height, width = frame.shape[:2]
    left = round((width - height) / 2)
    border = whole(0.1 * height)
    square = frame[:, left : width - left][border : height - border, border : -border or None]
    return cv2.resize(np.ascontiguousarray(square), (size, size), interpolation=cv2.INTER_CUBIC)


BIOMED = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"
FROM_KEY, FROM_START = slice(KEY_FRAME, KEY_FRAME + 16), slice(0, 40, 2)
# Model, variant -> frames, whether the colours are turned round, how a border becomes whole pixels (None: no crop).
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
    """The transform of the tiny open_clip models, by hand: short side to 32, the middle, its mean and deviation."""
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
    """The tiny SigLIP's: 32 x 32 without regard to the aspect ratio, mean and deviation one half."""
    small = [
        np.asarray(Image.fromarray(f).resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float64) for f in frames
    ]
    return np.stack([((frame / 255 - 0.5) / 0.5).transpose(2, 0, 1) for frame in small])


def pictures_of_dinov3(frames):
    """The tiny DINOv3's: grey levels to 0..1, 32 x 32 with antialias, ImageNet's mean and deviation."""
    small = torch.nn.functional.interpolate(
        torch.from_numpy(frames).permute(0, 3, 1, 2).double() / 255, (32, 32), mode="bilinear", antialias=True
    )
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return ((small - mean[:, None, None]) / deviation[:, None, None]).numpy()


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
    # Filters of two libraries round differently now and then: at most three grey levels, in units of a deviation of 0.2.
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
    """A square that covers the top left quarter, red 200, green 100: the mean picture is a third of their sum."""
    frames = np.zeros((3, 64, 64, 3), dtype=np.uint8)
    frames[:, :32, :32] = (200, 100, 0)
    encoder = loaded("cardiobench/pixel-motion")
    vector = encoder.transform(seen_by(encoder, frames))[0].numpy()
    start = 5 + 8 + 8 + 16  # aspect, frames, otsu, colour, sector; rows, columns, histogram
    picture = vector[start : start + 64].reshape(8, 8)
    np.testing.assert_allclose(picture[:3, :3], 100 / 255, atol=1e-5)
    np.testing.assert_allclose(picture[5:, 5:], 0, atol=1e-5)


@pytest.mark.parametrize("count", [45, 9])
def test_echoprime(loaded, count):
    """Every second frame in red, green, blue, cropped with the border cut off to whole pixels; the view by the first."""
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


def test_echoprime_prompts(loaded):
    frames = video(45, 48, 66)
    encoder, usual = loaded("echonet/EchoPrime", "prompts"), loaded("echonet/EchoPrime")
    got = entering(encoder.network.video, encoder, seen_by(encoder, frames))
    assert torch.equal(got, entering(usual.network.video, usual, seen_by(usual, frames)))


def test_panecho(loaded):
    """Four clips of 16 frames in a row, evenly over the recording; the golden clips, whose colours are blue, green, red."""
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


@pytest.mark.parametrize("count", [45, 9])
def test_echofm(loaded, count):
    """The first 32 frames in red, green, blue, from the beginning again where there are fewer, in 0..1."""
    encoder, frames = loaded("sekeun/EchoFM"), video(count, 48, 66)
    got = entering(encoder.network.network.patch_embed, encoder, seen_by(encoder, frames))[0].numpy()
    chosen = [frames[number % min(count, 32)] for number in range(32)]
    small = [np.asarray(Image.fromarray(frame).resize((224, 224), Image.Resampling.BILINEAR)) for frame in chosen]
    np.testing.assert_allclose(got, (np.stack(small) / 255).transpose(3, 0, 1, 2), atol=1e-6)


def test_every_adapter_is_here():
    ecg = {"sehunfromdaegu/ECG_JEPA", "kweimann/ECG-JEPA", "wanglab/ecg-fm", "PKUDigitalHealth/ECGFounder"}
    echo = {"echonet/EchoPrime", "CarDS-Yale/PanEcho", "sekeun/EchoFM", "facebookresearch/dinotxt-vitl16"}
    alike = {  # the same adapter with other weights or another size
        "Edoardo-BS/hubert-ecg-base": "Edoardo-BS/hubert-ecg-small",
        "Edoardo-BS/hubert-ecg-large": "Edoardo-BS/hubert-ecg-small",
        "facebook/dinov3-vitb16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "facebook/dinov3-vitl16-pretrain-lvd1689m": "facebook/dinov3-vits16-pretrain-lvd1689m",
        "google/siglip2-base-patch16-512": "google/siglip2-base-patch16-224",
    }
    for name, other in alike.items():
        assert dict(card(name).preprocessing) | {"then": ""} == dict(card(other).preprocessing) | {"then": ""}
        assert card(name).adapter == card(other).adapter
    covered = {name for name, _ in FRAME_WISE} | ecg | echo | set(alike) | {"Edoardo-BS/hubert-ecg-small"}
    assert covered == set(CHECKPOINTS)

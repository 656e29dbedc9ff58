"""Check that resize, crop and grey-level tables are bitwise equal to each library's own preparation."""

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadMedia, BadModel
from cardiobench.data.media import Clip
from cardiobench.models.grey_levels import Normalised
from cardiobench.models.image import FrameByFrame, ImageEncoder, ResizeAndCrop, picture_by_picture, preparation
from cardiobench.models.processors import RAW, Frames, WholeClip

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SIZES = [(61, 83), (83, 61), (32, 32), (31, 33), (7, 300), (16, 16)]


def clip(size, grey):
    frames = np.random.default_rng(1).integers(0, 256, (3, *size, 3), dtype=np.uint8)
    return np.repeat(frames[..., 1:2], 3, axis=3) if grey else frames


def torchvision_transform(mean=MEAN):
    from torchvision import transforms as tv

    bicubic = tv.InterpolationMode.BICUBIC
    return tv.Compose([tv.Resize(32, bicubic), tv.CenterCrop(32), tv.ToTensor(), tv.Normalize(mean, STD)])


def open_clip_transform():
    open_clip = pytest.importorskip("open_clip.transform")
    config = open_clip.PreprocessCfg(size=32, mean=MEAN, std=STD, interpolation="bicubic", resize_mode="shortest")
    return open_clip.image_transform_v2(config, is_train=False)


def timm_transform(mode="center"):
    timm = pytest.importorskip("timm.data")
    return timm.create_transform((3, 32, 32), is_training=False, mean=MEAN, std=STD, crop_pct=0.9, crop_mode=mode)


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("make", [torchvision_transform, open_clip_transform, timm_transform])
def test_transform_of_single_images(make, grey):
    network, prepare = picture_by_picture(torch.nn.Identity(), make())
    assert isinstance(network, Normalised) and isinstance(prepare, ResizeAndCrop)
    for size in SIZES:
        frames = clip(size, grey)
        assert prepare(frames).dtype == torch.uint8
        assert torch.equal(network(prepare(frames)), FrameByFrame(make())(frames)), size


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize(
    "name", ["CLIPImageProcessor", "SiglipImageProcessor", "ViTImageProcessor", "BitImageProcessor"]
)
def test_processor_of_transformers(name, grey):
    transformers = pytest.importorskip("transformers")
    from cardiobench.models.grey_levels import by_table

    square = {"height": 32, "width": 32}
    crops = name in ("CLIPImageProcessor", "BitImageProcessor")
    sizes = {"size": {"shortest_edge": 32}, "crop_size": square} if crops else {"size": square}
    processor = getattr(transformers, name)(**sizes)
    full = Frames(processor)
    mean, std = processor.image_mean, processor.image_std
    network, prepare = by_table(torch.nn.Identity(), full, full.without_normalisation(), mean, std)
    assert isinstance(network, Normalised) and prepare.options == RAW
    for size in SIZES:
        frames = clip(size, grey)
        assert torch.equal(network(prepare(frames)), full(frames)), size


@pytest.mark.parametrize("name", ["VideoMAEImageProcessor", "VideoMAEVideoProcessor", "VJEPA2VideoProcessor"])
def test_full_clips_of_transformers(name):
    transformers = pytest.importorskip("transformers")
    from cardiobench.models.grey_levels import by_table

    processor = getattr(transformers, name)(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    full = WholeClip(processor, 4, video="VideoProcessor" in name)
    mean, std = processor.image_mean, processor.image_std
    network, prepare = by_table(torch.nn.Identity(), full, full.without_normalisation(), mean, std)
    assert isinstance(network, Normalised)
    for size in SIZES[:3]:
        assert full(clip(size, False)).shape == (1, 4, 3, 32, 32)
        assert torch.equal(network(prepare(clip(size, False))), full(clip(size, False)))


@pytest.mark.parametrize("mean, std", [([0.4], [0.3]), (0.4, 0.3), ([0.4], STD)])
def test_one_number_for_all_channels(mean, std):
    transformers = pytest.importorskip("transformers")
    from torchvision import transforms as tv

    from cardiobench.models.grey_levels import by_table

    transform = tv.Compose([tv.Resize((32, 32)), tv.ToTensor(), tv.Normalize(mean, std)])
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=mean, image_std=std)
    whole, full = torch.nn.Identity(), Frames(processor)
    for expected, (network, prepare) in (
        (FrameByFrame(transform), picture_by_picture(whole, transform)),
        (full, by_table(whole, full, full.without_normalisation(), mean, std)),
    ):
        assert isinstance(network, Normalised)
        for grey in (False, True):
            frames = clip((61, 83), grey)
            assert torch.equal(network(prepare(frames)), expected(frames))


def test_grey_input_is_kept():
    from torchvision import transforms as tv

    own = tv.Compose([tv.Resize((32, 32)), tv.Grayscale(), tv.ToTensor(), tv.Normalize([0.4], [0.3])])
    network, prepare = picture_by_picture(torch.nn.Identity(), own)
    frames = clip((61, 83), False)  # Three frames of one channel are not one frame of three.
    assert torch.equal(network(prepare(frames)), FrameByFrame(own)(frames))


def test_processor_that_needs_normalised_frames_is_kept():
    transformers = pytest.importorskip("transformers")
    from cardiobench.models.grey_levels import by_table

    processor = transformers.EfficientNetImageProcessor(size={"height": 32, "width": 32})  # Normalises twice.
    full = Frames(processor)
    mean, std = processor.image_mean, processor.image_std
    network, prepare = by_table(torch.nn.Identity(), full, full.without_normalisation(), mean, std)
    assert isinstance(network, torch.nn.Identity) and prepare is full


def test_unusual_processor_is_kept():
    from torchvision import transforms as tv

    usual = torchvision_transform().transforms
    after = tv.Compose([*usual, tv.Lambda(lambda parts: parts.clamp(-1, 1))])
    scaled_first = tv.Compose([tv.ToTensor(), tv.Resize((32, 32)), tv.Normalize(MEAN, STD)])
    for odd in (after, scaled_first):
        network, prepare = picture_by_picture(torch.nn.Identity(), odd)
        assert isinstance(network, torch.nn.Identity) and torch.equal(
            prepare(clip((61, 83), False)), FrameByFrame(odd)(clip((61, 83), False))
        )
    inverted = tv.Compose([*usual[:2], tv.Lambda(lambda picture: picture.point(lambda level: 255 - level)), *usual[2:]])
    network, prepare = picture_by_picture(torch.nn.Identity(), inverted)
    assert isinstance(prepare, FrameByFrame), "an unknown step runs frame by frame on colour images"
    assert torch.equal(network(prepare(clip((32, 32), True))), FrameByFrame(inverted)(clip((32, 32), True)))


def test_steps_of_the_user_keep_their_way():
    transformers = pytest.importorskip("transformers")
    from torchvision import transforms as tv

    class Resize:
        def __call__(self, picture):
            return picture.resize((32, 32)) if picture.mode == "RGB" else picture.rotate(90).resize((32, 32))

    class DarkToTensor:
        def __call__(self, picture):
            levels = tv.functional.to_tensor(picture)
            return levels.where(levels < 0.99, 0.0)

    class Framed(transformers.ViTImageProcessor):
        def __call__(self, images, **options):
            inputs = super().__call__(images, **options)
            if images[0].shape[-1] < 20:
                inputs["pixel_values"][..., :4] = 0
            return inputs

    own = tv.Compose([Resize(), tv.ToTensor(), tv.Normalize(MEAN, STD)])
    network, prepare = picture_by_picture(torch.nn.Identity(), own)
    for grey in (False, True):
        frames = clip((61, 83), grey)
        assert torch.equal(network(prepare(frames)), FrameByFrame(own)(frames))
    own = tv.Compose([tv.Resize((32, 32)), DarkToTensor(), tv.Normalize(MEAN, STD)])
    assert isinstance(picture_by_picture(torch.nn.Identity(), own)[0], torch.nn.Identity)
    assert Frames(Framed()).without_normalisation() is None
    assert Frames(transformers.ViTImageProcessor()).without_normalisation() is not None


def test_direction_is_stated():
    def encoder(transform):
        network, prepare = picture_by_picture(torch.nn.Flatten(), transform)
        return ImageEncoder(name="toy", revision="1", network=network, prepare=prepare, preprocessing={})

    from torchvision import transforms as tv

    assert "bit for bit the same" in preparation(encoder(torchvision_transform()))
    own = tv.Compose([tv.ToTensor(), tv.Resize((32, 32)), tv.Normalize(MEAN, STD)])
    assert "by its library alone" in preparation(encoder(own))
    assert preparation(object()) == ""


@pytest.mark.parametrize("share", [1, 0], ids=["infinity", "NaN"])
def test_deviation_of_zero_is_named(share):
    from torchvision import transforms as tv

    def divide_by_zero(picture):
        return share * (tv.functional.to_tensor(picture.resize((32, 32))) - 0.41) / 0

    prepare = FrameByFrame(divide_by_zero)
    with pytest.raises(BadModel, match="A standard deviation of 0"):
        ImageEncoder(name="toy", revision="1", network=torch.nn.Flatten(), prepare=prepare, preprocessing={})


def test_frame_that_the_library_refuses_is_one_bad_recording():
    from torchvision import transforms as tv

    narrow = tv.Compose([tv.Resize(32, max_size=48), tv.CenterCrop(32), tv.ToTensor(), tv.Normalize(MEAN, STD)])
    network, prepare = picture_by_picture(torch.nn.Flatten(), narrow)
    encoder = ImageEncoder(name="toy", revision="1", network=network, prepare=prepare, preprocessing={})
    recording = Clip(clip((1, 1000), False), np.arange(3), 3)
    with pytest.raises(BadMedia, match=r"toy fails for frames of 1 x 1000 pixels \(height and width must be > 0\)"):
        encoder.transform(recording)

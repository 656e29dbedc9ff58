"""Compare the time from a clip file to a tensor of 16 frames: our reader, and a reader of every frame as in the first CardioBench.

    OMP_NUM_THREADS=1 python benchmarks/decode.py

The output has ratios of the peer's CPU time to ours (median of interleaved runs in this process, one thread each). The peer
reads the whole clip with OpenCV, crops and resizes every frame, then takes 16 and applies torchvision to each. Two columns:

    decode       frames only: whole clip by OpenCV, converted to RGB, 16 taken / `read_clip`
    tensor       the peer's method / a run's method: `read_clip`, the crop of the frame settings, the preparation of an image
                 model (`picture_by_picture`) and its table of grey levels

Before timing, the script checks that each of our frames is bitwise equal to the full decode of OpenCV and PyAV. The clips are
generated from smooth speckle. If every frame is coded independently, 16 of n frames need 16 / n of the decoding, so the ratios
grow with `--frames`; "peer ms" and "ours ms" belong to the last column. In H.264, nearly every frame has to be decoded for a
uniform selection, because it depends on the previous one: "decode" is then the upper limit of the gain.
"""

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import av
import cv2
import numpy as np
import torch
from torchvision import __version__ as torchvision_version
from torchvision import transforms

from cardiobench.data.media import FrameSampling, read_clip
from cardiobench.models.frames import FrameSettings
from cardiobench.models.image import picture_by_picture

SIZE, ZOOM = 224, 0.1
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # Normalisation of CLIP.
FIRST, UNIFORM = FrameSampling(16), FrameSampling(16, start="uniform")

# Name, container, codec, pixel format, height, width, sampling, target of the last column.
CASES = (
    ("112x112 MJPG, first 16", "avi", "mjpeg", "yuvj420p", 112, 112, FIRST, 5.0),
    ("112x112 MJPG, uniform 16", "avi", "mjpeg", "yuvj420p", 112, 112, UNIFORM, 5.0),
    ("600x800 MJPG, first 16", "avi", "mjpeg", "yuvj420p", 600, 800, FIRST, 5.0),
    ("600x800 MJPG, uniform 16", "avi", "mjpeg", "yuvj420p", 600, 800, UNIFORM, 5.0),
    ("600x800 H264, first 16", "mp4", "libx264", "yuv420p", 600, 800, FIRST, 5.5),
    ("600x800 H264, uniform 16", "mp4", "libx264", "yuv420p", 600, 800, UNIFORM, 1.5),
)


# ---- Clips --------------------------------------------------------------------------------------------------------------


def speckle(count: int, height: int, width: int) -> np.ndarray:
    """Generate a cine of smooth noise with slowly varying brightness, uint8 RGB (count, height, width, 3)."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:height, 0:width] / max(height, width)
    frames = np.empty((count, height, width, 3), np.uint8)
    for number in range(count):
        noise = cv2.GaussianBlur(rng.rayleigh(90, (height, width)).astype(np.float32), (0, 0), 1.2)
        brightness = 0.5 + 0.5 * np.sin(6 * rows + 4 * columns + number / 5)
        frames[number] = np.clip(noise * brightness, 0, 255)[..., None]
    return frames


def write(path: Path, frames: np.ndarray, codec: str, pixels: str) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=50)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixels
        if codec == "mjpeg":
            stream.codec_context.flags |= av.codec.context.Flags.qscale
            stream.codec_context.options = {"qmin": "2", "qmax": "4"}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


# ---- The peer's method --------------------------------------------------------------------------------------------------


def crop_box(height: int, width: int) -> tuple[slice, slice]:
    """Return the slices of the central square, reduced by `ZOOM` of its side at each edge."""
    top, left = (round(max(0, height - width) / 2), round(max(0, width - height) / 2))
    cut = round(min(height, width) * ZOOM)
    return slice(top + cut, height - top - cut), slice(left + cut, width - left - cut)


def opencv_all(path: Path, prepare: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return every frame as read by OpenCV (BGR), prepared immediately."""
    capture = cv2.VideoCapture(str(path))
    frames = []
    while True:
        more, frame = capture.read()
        if not more:
            return np.array(frames)
        frames.append(prepare(frame))


def shrink(frame: np.ndarray) -> np.ndarray:
    return cv2.resize(frame[crop_box(*frame.shape[:2])], (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)


def to_rgb(frames: np.ndarray) -> np.ndarray:
    return np.stack([cv2.cvtColor(frame, cv2.COLOR_BGR2RGB) for frame in frames])


to_tensor = transforms.Compose([transforms.ToPILImage(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


def peer_frames(path: Path, sampling: FrameSampling) -> np.ndarray:
    frames = opencv_all(path, lambda frame: frame)
    return to_rgb(frames[sampling.indices(len(frames))])


def peer_tensor(path: Path, sampling: FrameSampling) -> torch.Tensor:
    frames = opencv_all(path, shrink)
    return torch.stack([to_tensor(frame) for frame in to_rgb(frames[sampling.indices(len(frames))])])


# ---- Ours ---------------------------------------------------------------------------------------------------------------

steps = (transforms.Resize(SIZE, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(SIZE))
network, prepare = picture_by_picture(
    torch.nn.Identity(), transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
)
crop = FrameSettings(zoom=ZOOM, border="round", size=SIZE)


def our_frames(path: Path, sampling: FrameSampling) -> np.ndarray:
    return read_clip(path, sampling).frames


def our_tensor(path: Path, sampling: FrameSampling) -> torch.Tensor:
    return network(prepare(crop(read_clip(path, sampling).frames)))


# ---- Timing -------------------------------------------------------------------------------------------------------------


def cpu_medians(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median CPU seconds of each function; the functions alternate."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats + 1):
        for function, taken in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            taken.append(time.process_time() - start)
    return [statistics.median(taken[1:]) for taken in times]


def check_equal(path: Path, sampling: FrameSampling) -> None:
    ours = our_frames(path, sampling)
    np.testing.assert_array_equal(ours, peer_frames(path, sampling), "frames differ from OpenCV's full decode")
    with av.open(str(path)) as container:
        whole = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
    np.testing.assert_array_equal(ours, whole[sampling.indices(len(whole))], "frames differ from PyAV's full decode")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="timed runs of each function (default 15)")
    parser.add_argument("--frames", type=int, default=100, help="length of the clips (default 100, 2 s at 50 frames/s)")
    arguments = parser.parse_args()
    repeats, count = arguments.repeats, arguments.frames
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    print(f"Python {platform.python_version()}, PyAV {av.__version__}, OpenCV {cv2.__version__}, ", end="")
    print(
        f"torch {torch.__version__}, torchvision {torchvision_version}; {count} frames, {repeats} runs, CPU time, one thread"
    )
    print(f"{'clip':26}{'KB/frame':>9}{'peer ms':>9}{'ours ms':>9}{'decode':>8}{'tensor':>8}  limit")
    with tempfile.TemporaryDirectory() as folder:
        for name, suffix, codec, pixels, height, width, sampling, limit in CASES:
            path = Path(folder) / f"{codec}_{height}.{suffix}"
            if not path.exists():
                write(path, speckle(count, height, width), codec, pixels)
            check_equal(path, sampling)
            assert torch.equal(our_tensor(path, sampling), peer_tensor(path, sampling)), f"{name}: tensors differ"
            ways = (peer_frames, our_frames, peer_tensor, our_tensor)
            taken = cpu_medians([partial(way, path, sampling) for way in ways], repeats)
            decode, tensor = taken[0] / taken[1], taken[2] / taken[3]
            verdict = f">= {limit:g} {'reached' if tensor >= limit else 'not reached'}"
            print(
                f"{name:26}{path.stat().st_size / count / 1000:9.1f}{1e3 * taken[2]:9.1f}{1e3 * taken[3]:9.1f}"
                f"{decode:8.1f}{tensor:8.1f}  {verdict}",
                flush=True,
            )
    print("All frames bit-equal to a full decode by OpenCV and by PyAV; all tensors equal to the peer's.")


if __name__ == "__main__":
    main()

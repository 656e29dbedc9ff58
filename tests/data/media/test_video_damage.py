"""Check that damaged videos raise one clear error that names the file."""

import av
import numpy as np
import pytest
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, read_clip
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames, write_video

FIRST = FrameSampling(2)


@pytest.fixture(scope="module")
def frames():
    return moving_frames(12, 64, 80)


@pytest.mark.parametrize("sampling", [FIRST, FrameSampling(5, start="uniform"), FrameSampling(count=None)])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 0.99])
@pytest.mark.parametrize(("suffix", "codec", "pixels"), [("avi", "mjpeg", "yuvj420p"), ("avi", "mpeg4", "yuv420p")])
def test_truncated_avi_is_refused_despite_needed_frames(tmp_path, frames, sampling, share, suffix, codec, pixels):
    path = write_video(tmp_path / f"clip.{suffix}", frames, codec, pixels)
    content = path.read_bytes()
    kept = int(len(content) * share)
    path.write_bytes(content[:kept])
    with pytest.raises(
        BadMedia, match=rf"clip\.avi is cut short.*{len(content)} bytes, but it has {kept}.*Copy the file"
    ):
        read_clip(path, sampling)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("layout", ["", "faststart"])
def test_cut_mp4_is_refused(tmp_path, frames, share, layout):
    path = write_video(tmp_path / "clip.mp4", frames, "libx264", movflags=layout)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadMedia, match=r"clip\.mp4 (is cut short|cannot be decoded as MP4)"):
        read_clip(path, FIRST)


def test_cut_gif_is_refused(tmp_path, frames):
    path = tmp_path / "clip.gif"
    pictures = [Image.fromarray(frame) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] + b"\x01")
    with pytest.raises(BadMedia, match=r"clip\.gif is cut short: it has no end mark"):
        read_clip(path, FIRST)


def test_video_without_a_frame(tmp_path):
    path = tmp_path / "none.avi"
    path.write_bytes(avi_of([], (64, 80)))
    with pytest.raises(BadMedia, match=r"none\.avi is a video without a single frame"):
        read_clip(path)


def test_broken_image_is_named_by_codec(frames):
    packets = mjpg_packets(frames)
    packets[3] = b"\xff\xd8 not a picture"
    with pytest.raises(BadMedia, match="study 7 cannot be decoded as AVI"):
        read_clip(avi_of(packets, (64, 80)), name="study 7")


def test_concealed_frame_also_invalidates_later_frames(tmp_path, frames):
    """Test damaged MPEG-4 frames: FFmpeg conceals the damage, and later frames depend on the concealed one, so they are rejected too."""
    path = write_video(tmp_path / "clip.avi", frames, "mpeg4")
    with av.open(str(path)) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    packets[4] = packets[4][:40] + b"\0" * (len(packets[4]) - 40)
    damaged = avi_of(packets, (64, 80), codec=b"FMP4")
    assert read_clip(damaged, FrameSampling(4)).frames.shape[0] == 4
    with pytest.raises(BadMedia, match="frame 4 cannot be decoded completely"):
        read_clip(damaged, FrameSampling(2), key_frame=8)


def test_frames_of_two_sizes(frames):
    packets = mjpg_packets(frames[:3]) + mjpg_packets(moving_frames(1, 48, 80))
    with pytest.raises(BadMedia, match=r"changes its frame size from \(64, 80\) to \(48, 80\)"):
        read_clip(avi_of(packets, (64, 80)))


def test_unknown_codec_is_refused(frames):
    with pytest.raises(BadMedia, match=r"cannot be decoded|no installed codec can decode"):
        read_clip(avi_of(mjpg_packets(frames), (64, 80), codec=b"QZQZ"))


def test_audio_only_file_is_refused(tmp_path):
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        tone = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        tone.sample_rate = 8000
        container.mux(stream.encode(tone))
        container.mux(stream.encode())
    with pytest.raises(BadMedia, match=r"sound\.mp4 has no video stream"):
        read_clip(path)


def test_non_latin_metadata_is_accepted(frames):
    """Test a Latin-1 title, which is invalid UTF-8: invalid metadata must not prevent reading the frames."""
    title = b"IART" + (4).to_bytes(4, "little") + b"\xc9cho"
    info = b"LIST" + (4 + len(title)).to_bytes(4, "little") + b"INFO" + title
    content = avi_of(mjpg_packets(frames), (64, 80))
    content = content[:12] + info + content[12:]
    content = content[:4] + (len(content) - 8).to_bytes(4, "little") + content[8:]
    assert read_clip(content, FrameSampling(2), name="titled").frames.shape == (2, 64, 80, 3)

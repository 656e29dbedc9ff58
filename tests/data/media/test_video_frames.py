"""Compare frames of AVI, MP4 and GIF files with OpenCV, PyAV and Pillow."""

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data.media import FrameSampling, read_clip
from tests.data.media.videos import avi_of, mjpg_packets, moving_frames, opencv_frames, write_video

KINDS = {
    "mjpg.avi": ("mjpeg", "yuvj420p", {}),
    "mjpg444.avi": ("mjpeg", "yuvj444p", {}),
    "fmp4.avi": ("mpeg4", "yuv420p", {}),
    "fmp4_b_frames.avi": ("mpeg4", "yuv420p", {"bf": 2}),
    "raw.avi": ("rawvideo", "bgr24", {}),
    "h264.mp4": ("libx264", "yuv420p", {"bf": 0}),
    "h264_b_frames.mp4": ("libx264", "yuv420p", {"bf": 3, "g": 9}),
    "h264_fragmented.mp4": ("libx264", "yuv420p", {"bf": 3, "g": 9, "movflags": "frag_keyframe+empty_moov"}),
}
COUNT = 23


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    frames = moving_frames(COUNT, 112, 96)
    return {
        name: write_video(folder / name, frames, codec, pixels, **options)
        for name, (codec, pixels, options) in KINDS.items()
    }


@pytest.fixture(scope="module")
def decoded(videos):
    return {name: opencv_frames(path) for name, path in videos.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_equals_opencv_and_pyav(videos, kind):
    clip = read_clip(videos[kind])
    assert clip.frames.dtype == np.uint8
    assert clip.frames.shape == (COUNT, 112, 96, 3)
    assert clip.n_frames == COUNT
    assert clip.fps == 25.0
    np.testing.assert_array_equal(clip.indices, np.arange(COUNT))
    np.testing.assert_array_equal(clip.frames, opencv_frames(videos[kind]))
    with av.open(str(videos[kind])) as container:
        pyav = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
    np.testing.assert_array_equal(clip.frames, pyav)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.one_of(st.none(), st.integers(1, 40)),
    stride=st.integers(1, 9),
    start=st.sampled_from(["key_frame", "first", "uniform"]),
    key_frame=st.integers(0, 40),
)
def test_selected_frames_equal_those_of_a_full_decode(videos, decoded, kind, count, stride, start, key_frame):
    whole = decoded[kind]
    sampling = FrameSampling(count=count, stride=stride, start=start)
    clip = read_clip(videos[kind], sampling, key_frame=key_frame)
    np.testing.assert_array_equal(clip.indices, sampling.indices(len(whole), key_frame))
    np.testing.assert_array_equal(clip.frames, whole[clip.indices])
    assert clip.n_frames == len(whole)


def test_sampling_by_hand(videos):
    path = videos["mjpg.avi"]
    assert read_clip(path, FrameSampling(5), key_frame=20).indices.tolist() == [20, 21, 22]
    assert read_clip(path, FrameSampling(4, stride=7), key_frame=1).indices.tolist() == [1, 8, 15, 22]
    assert read_clip(path, FrameSampling(3, start="uniform")).indices.tolist() == [0, 11, 22]
    assert read_clip(path, FrameSampling(1), key_frame=99).indices.tolist() == [22]
    assert read_clip(path, FrameSampling(3, stride=2, start="first"), key_frame=9).indices.tolist() == [0, 2, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_reading_bytes_equals_reading_the_file(videos, kind, tmp_path):
    renamed = tmp_path / "ES0001 _4CH:1.txt"
    renamed.write_bytes(videos[kind].read_bytes())
    expected = read_clip(videos[kind]).frames
    np.testing.assert_array_equal(read_clip(renamed).frames, expected)
    np.testing.assert_array_equal(read_clip(renamed.read_bytes()).frames, expected)


def test_colours_are_decoded_correctly():
    """Test halves in red, green and blue, which detect swapped channels and flipped images."""
    frame = np.zeros((64, 64, 3), np.uint8)
    frame[:32, :32, 0] = frame[:32, 32:, 1] = frame[32:, :32, 2] = 255
    clip = read_clip(avi_of(mjpg_packets(frame[None]), (64, 64)))
    for rows, columns, colour in (
        (slice(4, 28), slice(4, 28), (255, 0, 0)),
        (slice(4, 28), slice(36, 60), (0, 255, 0)),
        (slice(36, 60), slice(4, 28), (0, 0, 255)),
        (slice(36, 60), slice(36, 60), (0, 0, 0)),
    ):
        assert np.abs(clip.frames[0, rows, columns].astype(int) - colour).max() <= 3


def test_only_needed_motion_jpeg_frames_are_decoded(tmp_path):
    frames = moving_frames(8, 48, 64)
    packets = mjpg_packets(frames)
    path = tmp_path / "one_broken.avi"
    path.write_bytes(avi_of([*packets[:5], b"\xff\xd8 not a picture", *packets[6:]], (48, 64)))
    whole = tmp_path / "whole.avi"
    whole.write_bytes(avi_of(packets, (48, 64)))
    clip = read_clip(path, FrameSampling(4, stride=2))
    np.testing.assert_array_equal(clip.frames, opencv_frames(whole)[[0, 2, 4, 6]])


@pytest.mark.parametrize("header_count", [0, 3, 8, 11])
@pytest.mark.parametrize("index", [True, False])
def test_frames_are_counted_not_read_from_header(header_count, index):
    packets = mjpg_packets(moving_frames(8, 48, 64))
    clip = read_clip(
        avi_of(packets, (48, 64), header_count=header_count, index=index), FrameSampling(3, start="uniform")
    )
    assert clip.n_frames == 8
    assert clip.indices.tolist() == [0, 4, 7]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("lost", [{3}, {0, 1}, {7}, set(range(1, 8))])
def test_frames_without_bytes_are_counted(index, lost):
    """Test a file in which a full decode skips frames, which would shorten the clip and change its key frame."""
    packets = mjpg_packets(moving_frames(8, 48, 64))
    content = avi_of(
        [b"" if number in lost else packet for number, packet in enumerate(packets)], (48, 64), index=index
    )
    with pytest.raises(BadMedia, match=f"{len(lost)} of its 8 frames have no bytes"):
        read_clip(content)


def test_skipped_mpeg4_picture_is_not_counted_as_a_frame(tmp_path):
    """Return 13 packets, one of them a not-coded N-VOP (ISO 14496-2, 6.2.5: vop_coded = 0), which the decoder does not show."""
    plain = write_video(tmp_path / "plain.avi", moving_frames(12, 64, 80), "mpeg4")
    with av.open(str(plain)) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.size]
    bits = "01" + "0" + "1" + f"{4:05b}" + "1" + "0"  # P-frame, marker, time 4/25, marker, not coded.
    bits += "0" + "1" * (-(len(bits) + 1) % 8)
    not_coded = b"\0\0\1\xb6" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    path = tmp_path / "not_coded.avi"
    path.write_bytes(avi_of([*packets[:4], not_coded, *packets[4:]], (64, 80), codec=b"FMP4"))
    whole = opencv_frames(path)
    assert len(whole) == 12
    clip = read_clip(path, FrameSampling(4, start="uniform"))
    assert clip.n_frames == 12
    assert clip.indices.tolist() == [0, 4, 7, 11]
    np.testing.assert_array_equal(clip.frames, whole[[0, 4, 7, 11]])


def test_gif_equals_pillow(tmp_path):
    frames = moving_frames(9, 40, 56)
    pictures = [Image.fromarray(frame) for frame in frames]
    path = tmp_path / "clip.gif"
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=40, loop=0)
    expected = []
    with Image.open(path) as gif:
        for number in range(gif.n_frames):
            gif.seek(number)
            expected.append(np.asarray(gif.convert("RGB")))
    clip = read_clip(path)
    assert clip.fps == 25.0
    np.testing.assert_array_equal(clip.frames, expected)
    some = read_clip(path, FrameSampling(4, start="uniform"))
    assert some.indices.tolist() == [0, 3, 5, 8]
    np.testing.assert_array_equal(some.frames, np.stack(expected)[some.indices])


@pytest.mark.parametrize("degrees", [90, 180, -90])
def test_rotation_metadata_is_applied_as_in_opencv(tmp_path, degrees):
    path = write_video(tmp_path / "turned.mp4", moving_frames(3, 48, 64), "libx264", rotation=degrees)
    expected = opencv_frames(path)
    assert expected.shape[1:3] == ((64, 48) if degrees != 180 else (48, 64))
    np.testing.assert_array_equal(read_clip(path).frames, expected)


def test_audio_streams_are_ignored(tmp_path):
    path = tmp_path / "doppler.mp4"
    frames = moving_frames(6, 48, 64)
    with av.open(str(path), "w") as container:
        sound = container.add_stream("aac", rate=8000)
        picture = container.add_stream("libx264", rate=25)
        picture.height, picture.width, picture.pix_fmt = 48, 64, "yuv420p"
        tone = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        tone.sample_rate = 8000
        container.mux(sound.encode(tone))
        for frame in frames:
            container.mux(picture.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(picture.encode())
        container.mux(sound.encode())
    np.testing.assert_array_equal(read_clip(path).frames, opencv_frames(path))


@pytest.mark.parametrize(("codec", "pixels", "name"), [("libx264", "yuv420p", "a.mp4"), ("mjpeg", "yuvj420p", "a.mov")])
def test_frames_before_a_trimmed_start_are_not_counted(tmp_path, codec, pixels, name):
    """Return an edit list that hides the first 5 of 20 frames, as trimming without re-encoding does."""
    whole = write_video(tmp_path / f"whole_{name}", moving_frames(20, 64, 80), codec, pixels)
    path = tmp_path / name
    with (
        av.open(str(whole)) as source,
        av.open(str(path), "w", options={"avoid_negative_ts": "disabled"}) as target,
    ):
        stream = target.add_stream_from_template(source.streams.video[0])
        shift = int(5 / (25 * source.streams.video[0].time_base))
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, stream
                target.mux(packet)
    expected = opencv_frames(path)
    assert len(expected) == 15
    np.testing.assert_array_equal(expected, opencv_frames(whole)[5:])
    for sampling in (FrameSampling(count=None), FrameSampling(3), FrameSampling(4, start="uniform")):
        clip = read_clip(path, sampling)
        assert clip.n_frames == 15
        np.testing.assert_array_equal(clip.frames, expected[clip.indices])


@pytest.mark.slow
@pytest.mark.parametrize("view", ["A2C", "A4C", "PLAX"])
def test_real_echo_clips(shared, view):
    path = shared / "data" / "samples" / "echoslicer_views" / f"{view}.mp4"
    whole = opencv_frames(path)
    clip = read_clip(path)
    assert clip.n_frames == 64
    assert clip.fps == 20.0
    np.testing.assert_array_equal(clip.frames, whole)
    first = read_clip(path, FrameSampling(16), key_frame=30)
    np.testing.assert_array_equal(first.frames, whole[30:46])

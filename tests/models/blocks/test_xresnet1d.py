"""Compare xresnet1d101 and its input with the published code of ECGFM-KED."""

import numpy as np
import pytest

from cardiobench.models.blocks import ten_seconds, xresnet1d
from tests.models.golden import Golden
from tests.models.networks import Case, check_description, check_outputs
from tests.models.preparation import FS, close


def xresnet_outputs(network, x):
    tokens = network.tokens(x)
    return {"features": tokens.transpose(1, 2), "representation": tokens.mean(1)}


# The published file stores every tensor of a bottleneck under two names.
KED_TWICE = frozenset(Golden("ked_xresnet1d101").spec["kept_keys"])


def ked_keys(state):
    twice = {name: state[name.replace(xresnet1d.SECOND_NAME, xresnet1d.FIRST_NAME)] for name in KED_TWICE}
    return xresnet1d.published_keys(state | twice, "ked")


CASE = Case(xresnet1d.XResNet1d101, xresnet_outputs, ked_keys)


def test_names_shapes_and_constants():
    check_description(CASE, "ked_xresnet1d101")


@pytest.mark.slow
def test_outputs():
    check_outputs(CASE, "ked_xresnet1d101")


def test_ked_equals_the_published_code():
    golden = Golden("prep_ked")
    stored = golden.arrays
    for case, at in ((0, "ked0"), (1, "ked1")):
        signal = golden.input((12, 5000), "ecg", at).T
        if case:
            signal[:, 7] = 0.25
        close(ten_seconds.prepare(signal, FS, "standard_order")[0, :, ::4], stored[f"mimic/{case}[:, ::4]"], 1e-6)
    for case, samples in enumerate((5000, 3600, 7500)):  # 10 s; 7.2 s between zeros; the first 10 of 15 s.
        signal = golden.input((12, samples), "ecg", f"ked{case + 3}").T
        close(ten_seconds.prepare(signal, FS, "standard_order")[0].T[::4], stored[f"chapman/{case}[::4]"], 1e-6)
    # The published PTB-XL test set is also scaled by one mean and deviation of a training set.
    mean, deviation = stored["ptbxl_scaler"]
    for tag, shift, name in (("kedp0", 0, "train"), ("kedp1", 0.1, "test")):
        signal = golden.input((12, 1000), "ecg", tag).T + shift
        got = (ten_seconds.prepare(signal, 100, "standard_order")[0] - mean) / deviation
        close(got[:, ::5], stored[f"ptbxl_{name}/0[:, ::5]"], 1e-6)


def test_ked_sees_avf_before_avl_as_in_pretraining():
    signal = np.tile(np.arange(12.0), (1000, 1))
    assert ten_seconds.prepare(signal, 100)[0, :, 0].tolist() == [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    assert ten_seconds.prepare(signal, 100, "standard_order")[0, :, 0].tolist() == list(range(12))

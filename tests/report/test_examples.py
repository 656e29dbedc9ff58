"""Test pages of examples: their description of the data, and their location."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.report.page import examples
from cardiobench.report.page.examples import Example, _write
from tests.report import example_results


@pytest.mark.parametrize(
    ("name", "generated", "said"),
    [
        ("camus/lv_seg", False, "(CC BY-NC-SA 4.0). Their licence does not let them be passed on"),
        ("ptb_xl_sample/cd", False, "(CC BY 4.0). It stays on this machine"),
        ("camus/lv_seg", True, "This page shows generated recordings"),
    ],
)
def test_gallery_states_the_data_licence(name, generated, said, tmp_path):
    task = catalog.task(name)
    dataset = SimpleNamespace(spec=catalog.spec(task.dataset), generated=generated)
    entry = SimpleNamespace(result=SimpleNamespace(model={"name": "org/one"}, label="dense"), setting="", path="one")
    shown = [Example("p1", "p1_4CH, frame 3", "dice 0.300", "worst", "none", "")]
    _, address = _write(entry, catalog.task("camus/lv_seg"), dataset, shown, tmp_path)
    page = (tmp_path / address).read_text()
    assert said in page
    assert "<b>worst</b>: p1_4CH, frame 3, dice 0.300." in page
    assert (tmp_path / "examples" / ".gitignore").read_text() == "*\n", "git ignores it"


def test_leads_are_drawn_on_paper_of_millivolts_and_milliseconds():
    signal = np.zeros((1000, 12), dtype=np.float32)
    signal[100, LEADS.index("V2")] = 1.2
    svg = str(examples.ecg_trace(Ecg(signal, 500.0), ("I", "V2")))
    millimetre = 72 / 25.4  # In points.
    small, large = re.findall(r'<path d="(.*?)" .*? stroke-width="(.*?)"', svg)
    assert (small[1], large[1]) == ("0.3", "0.8")
    for paper, side in ((small[0], 1), (large[0], 5)):
        for places in (re.findall(r"M([\d.]+),0V", paper), re.findall(r"M0,([\d.]+)H", paper)):
            assert np.diff([float(place) for place in places]) == pytest.approx(side * millimetre, abs=0.11)
    first, second = (
        np.array([point.split(",") for point in line.split()], dtype=float)
        for line in re.findall(r'<polyline points="(.*?)"', svg)
    )
    assert first[:, 0].tolist() == second[:, 0].tolist() and len(first) == 1000
    assert first[-1, 0] == pytest.approx(1.998 * 25 * millimetre, abs=0.06), "25 mm per second"
    assert first[:, 1] == pytest.approx(5 * millimetre, abs=0.06)
    assert second[0, 1] == pytest.approx(20 * millimetre, abs=0.06), "1.5 mV below, up to the next large square"
    assert second[0, 1] - second[100, 1] == pytest.approx(12 * millimetre, abs=0.11), "10 mm per millivolt"
    assert re.findall(r">([^<>]+)</text>", svg) == ["I", "V2", "0 s", "1 s", "2 s"]


def test_leads_by_name_in_the_order_of_an_ecg():
    from cardiobench.core.errors import BadConfig

    assert examples.check_leads(["V1", "II"]) == ("II", "V1") and examples.check_leads(["all"]) == LEADS
    with pytest.raises(BadConfig, match=r"--leads 'V7' is not a lead. Give some of I, II"):
        examples.check_leads(["II", "V7"])


@pytest.mark.parametrize(
    ("flags", "said"),
    [(["--leads", "II"], "Add --examples"), (["--examples", "--leads", "V7"], "'V7' is not a lead")],
)
def test_wrong_leads_are_refused_before_anything_is_drawn(tmp_path, capsys, flags, said):
    example_results.write_result(tmp_path / "results")
    assert main(["report", str(tmp_path / "results"), "--out", str(tmp_path / "page"), *flags]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("name", "generated", "said"),
    [("ptb_xl_sample", False, "female, 61 years"), ("camus", False, ""), ("camus", True, "female, 61 years")],
)
def test_age_and_sex_follow_the_licence(name, generated, said):
    import numpy as np
    import pandas as pd

    from cardiobench.data.media.types import Ecg
    from cardiobench.report.page.examples import _image

    ecg = Ecg(np.zeros((100, 12), dtype=np.float32), 100.0, facts={"age": 61.0, "sex": "F"})
    dataset = SimpleNamespace(
        spec=SimpleNamespace(modality="ecg", redistributable=catalog.spec(name).redistributable),
        generated=generated,
        frame=pd.DataFrame({"id": ["a"]}),
        recording=lambda number, sampling: ecg,
    )
    assert _image(dataset, dataset.frame.index, ("II",))[2] == said

"""Test pages of examples: their description of the data, and their location."""

from types import SimpleNamespace

import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog
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


def test_leads_are_drawn_on_paper_of_millivolts_and_milliseconds(monkeypatch):
    import numpy as np

    from cardiobench.data.media.types import LEADS, Ecg
    from cardiobench.report.page import examples

    drawn = []
    make = examples.subplots
    monkeypatch.setattr(examples, "subplots", lambda **given: drawn.append(made := make(**given)) or made)
    signal = np.zeros((1000, 12), dtype=np.float32)
    signal[100, LEADS.index("V2")] = 1.2
    examples.ecg_trace(Ecg(signal, 500.0), ("I", "V2"))
    (_, axes), *_ = drawn
    assert [text.get_text() for text in axes.get_yticklabels()] == ["I", "V2"]
    assert axes.get_yticks().tolist() == [0.0, -1.5], "1.2 mV, up to the next large square"
    assert axes.get_aspect() == 0.4, "10 mm per millivolt and 25 mm per second"
    sides = [line.get_linewidth() for line in axes.lines]
    assert sides == [0.3, 0.3, 0.8, 0.8, 0.8, 0.8]
    small, large = (np.unique(np.round(axes.lines[place].get_xdata(), 6)) for place in (0, 2))
    assert np.diff(small[:4]) == pytest.approx([0.04] * 3) and np.diff(large[:4]) == pytest.approx([0.2] * 3)
    heights = np.unique(np.round(axes.lines[1].get_ydata(), 6))
    assert np.diff(heights[:4]) == pytest.approx([0.1] * 3)


def test_leads_by_name_in_the_order_of_an_ecg():
    from cardiobench.core.errors import BadConfig
    from cardiobench.data.media.types import LEADS
    from cardiobench.report.page.examples import check_leads

    assert check_leads(["V1", "II"]) == ("II", "V1") and check_leads(["all"]) == LEADS
    with pytest.raises(BadConfig, match=r"--leads 'V7' is not a lead. Give some of I, II"):
        check_leads(["II", "V7"])


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

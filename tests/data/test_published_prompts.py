"""Test prompts in the format of the echo benchmark's repository."""

import json

import pytest

from cardiobench.core.errors import BadData, NotApplicable
from cardiobench.data import catalog
from cardiobench.data.prompts import prompt_digest, prompt_files, prompts

KEYS = ["as", "asd", "pah"]
BINARY = [f"{key}_{state}" for key in KEYS for state in ("present", "absent")]
BINARY += ["wall_motion_abnormality", "normal_wall_motion", "stemi", "no_stemi"]
VIEWS = ["A2C", "A3C", "A4C", "PSAX", "PLAX"]


@pytest.fixture
def clone(tmp_path):
    """Write a clone whose sentences name their source; executing its files would fail."""
    source = tmp_path / "CardioBench" / "src"
    source.mkdir(parents=True)
    sentences = {key: [f"{key} {n}. " for n in range(3)] for key in BINARY}
    sentences["ejection_fraction"] = ["EF <#>% ", "IT IS <#>%. "]
    views = {name: [f"{name} first", f"{name} second"] for name in VIEWS}
    text = f"zero_shot_prompts = {json.dumps(sentences, indent=4)}\n\n\nview_prompt = {json.dumps(views)}\n"
    (source / "prompts.py").write_text(text + "raise RuntimeError('run')\n")
    fields = "".join(f'    {k}_prompts: Tuple[str, ...] = ("{k} IS <#> CM. ",)\n' for k in ("lvidd", "ivsd", "lvpwd"))
    code = f'@dataclass\nclass LvhRegressionConfig(TextModelConfig):\n    csv_name: str = "lvh.csv"\n{fields}'
    (source / "regression.py").write_text(f"import torch\n\n\n{code}\n\nTOP = max(1, int(2))\n")
    return source.parent


def test_clone_has_prompts_of_all_paper_tasks(clone):
    expected = {
        "camus/ef": {"templates": ["EF <#>% ", "IT IS <#>%. "]},
        "echonet_lvh/ivsd": {"templates": ["ivsd IS <#> CM. "]},
        "tmed2/as": {"no_AS": [f"as_absent {n}." for n in range(3)], "AS": [f"as_present {n}." for n in range(3)]},
        "segrwma/rwma_a3c": {
            "normal": [f"normal_wall_motion {n}." for n in range(3)],
            "abnormal": [f"wall_motion_abnormality {n}." for n in range(3)],
        },
    }
    for name, texts in expected.items():
        assert prompts(catalog.task(name), clone) == (texts, "arXiv:2510.00520, released code")
    for name in ("cardiacnet/asd", "cardiacnet/pah", "hmc_qu/stemi", "echonet_lvh/lvidd", "echonet_lvh/lvpwd"):
        assert prompts(catalog.task(name), clone)[0]


def test_clone_has_prompts_of_named_views(clone):
    name = "hmc_qu/view_named"
    if name not in [task.name for task in catalog.defined_tasks(catalog.spec("hmc_qu"))]:
        pytest.skip(f"no installed extension defines {name}")
    texts = {view: [f"{view} first", f"{view} second"] for view in VIEWS}
    assert prompts(catalog.task(name), clone) == (texts, "arXiv:2510.00520, released code")


def test_sixth_view_has_no_published_prompt(clone):
    with pytest.raises(NotApplicable, match=r"no prompts for the view Other\. Run tmed2/view_named"):
        prompts(catalog.task("tmed2/view"), clone)


def test_edited_prompts_change_the_digest(clone):
    task = catalog.task("echonet_lvh/ivsd")
    assert [file.name for file in prompt_files(task, clone)] == ["prompts.py", "regression.py"]
    assert prompt_digest(task, clone) != prompt_digest(task)


def test_invalid_clone_is_refused_with_the_missing_files(clone, tmp_path):
    with pytest.raises(BadData, match=r"lacks src/prompts.py, src/regression.py.*git clone"):
        prompts(catalog.task("camus/ef"), tmp_path)
    (clone / "src" / "prompts.py").write_text("zero_shot_prompts = {}\nview_prompt = {}\n")
    with pytest.raises(BadData, match="ejection_fraction"):
        prompts(catalog.task("camus/ef"), clone)

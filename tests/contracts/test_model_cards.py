"""Contract of all model cards and their encoders."""

import inspect
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from cardiobench import BaseEncoder
from cardiobench.core.errors import BadModel, UnknownName
from cardiobench.core.extensions import hooks
from cardiobench.core.resources import folder
from cardiobench.data.catalog import list_datasets, list_tasks, task
from cardiobench.data.media import Ecg
from cardiobench.models.cards import REQUIRED, card, find_card, list_models, read_card
from cardiobench.models.load import load_model
from cardiobench.models.pooling import POOLINGS
from cardiobench.models.registry import ADAPTERS, BY_FILES, NO_ADAPTER, adapter
from cardiobench.testing import check_model

BROUGHT = sorted(path for one in hooks("cards") for path in Path(one.__file__).parent.glob("*.md"))
PATHS = [*sorted(folder("model_cards").glob("*.md")), *BROUGHT]
WITHOUT_WEIGHTS = [name for name in list_models() if not card(name).weights and card(name).adapter != NO_ADAPTER]
WITH_WEIGHTS = [name for name in list_models() if card(name).weights]


@pytest.mark.parametrize("name", [name for name in WITH_WEIGHTS if "echo" in card(name).modalities])
def test_card_may_lack_a_published_setting(name):
    """Check that `--profile paper` selects the variant `paper` of an echo model, and that no other variant has a similar name."""
    text = (folder("model_cards") / f"{name.replace('/', '__')}.md").read_text(encoding="utf-8")
    assert ("paper" in card(name).variants) != ("**Published setting.** Not defined" in text)


@pytest.mark.parametrize(
    "front",
    [
        pytest.param("id: " + "[" * 100_000, marks=pytest.mark.slow),
        "seen: 7",
        "id: [a]",
        "weights: text",
        "? {a: 1}\n: 2",
        "a: \ud800",
    ],
)
def test_invalid_user_card_is_refused_and_others_still_load(front, tmp_path):
    """Test deeply nested YAML, on which libyaml aborts the interpreter, and unusual types."""
    facts = yaml.safe_load(PATHS[0].read_text(encoding="utf-8").split("---\n")[1])
    name = front.partition(":")[0]
    own = yaml.safe_dump({key: value for key, value in facts.items() if key != name})
    path = tmp_path / "org__model.md"
    path.write_bytes(f"---\n{own}{front}\n---\n# A model\n".encode(errors="surrogatepass"))
    with pytest.raises(BadModel, match="org__model"):
        read_card(path)


def test_every_file_is_a_registered_model():
    assert [f"{name.replace('/', '__')}.md" for name in list_models()] == [path.name for path in PATHS]
    assert {
        "cardiobench/constant",
        "cardiobench/random-vit",
        "cardiobench/random-xresnet1d101",
        "cardiobench/pixel-motion",
        "cardiobench/ecg-morphology",
        "cardiobench/minirocket",
    } <= set(list_models())


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_card(path):
    facts = yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])
    assert set(REQUIRED) <= set(facts)
    model = read_card(path)
    assert model.id.replace("/", "__") == path.stem
    assert model.modalities and set(model.modalities) <= {"echo", "ecg"}
    assert all(isinstance(text, str) and text for text in (model.licence, model.access, model.pretraining_data))
    assert isinstance(model.seen, tuple)
    json.dumps(dict(model.preprocessing))
    assert model.body.startswith(f"# {model.id}\n")
    assert len(model.body) > 300
    if model.adapter in ADAPTERS:
        assert not model.weights
        assert "no pretraining" in model.body.lower()
    unknown = {*model.seen, *model.seen_unknown} - set(list_datasets())
    assert not set(model.seen) & set(model.seen_unknown)
    assert not unknown, f"only datasets of the benchmark: {unknown}"
    assert set(model.native) <= {task(name).target for name in list_tasks()}
    assert set(model.poolings) <= {*POOLINGS, "pooler"}
    assert model.public_weights or "weights" in model.body.lower()
    for score in model.published:
        assert score["source"] and isinstance(score["value"], (int, float))


def test_every_ptb_xl_dataset_is_listed_as_seen():
    for name in list_models():
        seen = {"ptb_xl", "ptb_xl_500", "ptb_xl_sample"} & set(card(name).seen)
        assert len(seen) in (0, 3), name


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_adapter_of_a_card_with_weights(name):
    kind = card(name).adapter
    if kind in (BY_FILES, NO_ADAPTER):
        return
    arguments = inspect.signature(adapter(kind)).parameters
    assert list(arguments) == ["card", "source", "pooling", "variant"]
    assert all(arguments[key].kind is inspect.Parameter.KEYWORD_ONLY for key in ("pooling", "variant"))


@pytest.mark.parametrize("name", [name for name in list_models() if card(name).adapter == NO_ADAPTER])
def test_unloadable_model_is_refused_with_reason(name):
    with pytest.raises(BadModel, match="Its card says what would be needed") as caught:
        load_model(name)
    assert card(name).access.strip() in str(caught.value)


@pytest.mark.parametrize("name", [name for name in WITH_WEIGHTS if not (card(name).hub or card(name).package)])
def test_model_outside_hub_needs_files(name, monkeypatch):
    if card(name).adapter == NO_ADAPTER:
        return
    with pytest.raises(BadModel, match="--weights PATH") as caught:
        load_model(name)
    assert all(file in str(caught.value) for file in card(name).weights)


@pytest.mark.parametrize("modality", ["echo", "ecg"])
def test_models_of_a_modality(modality):
    chosen = list_models(modality)
    assert chosen
    assert chosen == [name for name in list_models() if modality in card(name).modalities]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_encoder_of_a_card_without_weights(name):
    loaded = check_model(name.upper())
    encoder = loaded.encoder
    assert encoder.name == name
    assert encoder.modalities == card(name).modalities
    chosen = {"pooling": card(name).poolings[0]} if card(name).poolings else {}
    chosen |= {"variant": card(name).variants[0]} if card(name).variants else {}
    assert loaded.preprocessing == {**card(name).preprocessing, **chosen}
    assert loaded.loaded_by == f"'{name}' is registered -> {card(name).adapter}"
    assert encoder.revision == load_model(name).revision
    assert encoder.dim == 1 or f"{encoder.dim:,} " in card(name).body
    assert encoder.to(torch.device("cpu")) is encoder
    assert (encoder.sampling is None) == (encoder.modalities == ("ecg",))


@pytest.mark.parametrize("revision", ["a89f5c50", "main", "'" + "g" * 40 + "'"])
def test_revision_is_a_full_commit_hash_or_none(tmp_path, revision):
    text = PATHS[0].read_text(encoding="utf-8")
    (tmp_path / "a__b.md").write_text(re.sub(r"(?m)^revision: .*", f"revision: {revision}", text), encoding="utf-8")
    with pytest.raises(BadModel, match="is not a full commit hash"):
        read_card(tmp_path / "a__b.md")


def test_aliases_lead_to_the_registered_model():
    """Check that the alias has the same training data, but no list of commits."""
    pairs = [(alias, name) for name in list_models() for alias in card(name).aliases]
    for alias, name in pairs:
        found = find_card(alias.upper())
        assert found.id == alias and found.revision is None and not any(found.weights.values())
        assert (found.seen, found.adapter) == (card(name).seen, card(name).adapter)
        assert alias not in list_models()


def test_unknown_pretraining_data_is_not_reported_as_unseen():
    clip = card("mkaichristensen/echo-clip")
    assert clip.saw("echonet_lvh") is None and clip.saw("camus") is False
    assert replace(clip, seen=("camus",)).saw("camus") is True


def test_names():
    assert find_card("CardioBench/Constant").id == "cardiobench/constant"
    assert find_card("org/unknown") is None
    with pytest.raises(UnknownName, match="Did you mean 'cardiobench/constant'"):
        card("cardiobench/konstant")
    with pytest.raises(BadModel, match="no adapter 'x'"):
        adapter("x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# only a body\n", "no YAML front matter"),
        ("---\nid: a/b\n", "no YAML front matter"),
        ("---\nid: a/b\n---\nbody\n", "missing keys ['revision', 'adapter'"),
    ],
)
def test_broken_card(tmp_path, text, message):
    path = tmp_path / "a__b.md"
    path.write_text(text)
    with pytest.raises(BadModel) as caught:
        read_card(path)
    assert message in str(caught.value)


def test_misspelt_key(tmp_path):
    text = PATHS[0].read_text(encoding="utf-8").replace("---\n", "---\nlicense: mit\n", 1)
    path = tmp_path / "a__b.md"
    path.write_text(text)
    with pytest.raises(BadModel, match=r"unknown keys \['license'\]"):
        read_card(path)


class TenSeconds(BaseEncoder):
    """Return ten seconds of twelve leads, at the sampling rate that a run uses for every ECG."""

    name = "lab/ten-seconds"

    def transform(self, recording: Ecg) -> torch.Tensor:
        assert recording.fs == self.sampling_rate
        signal = torch.from_numpy(recording.signal[:5000].copy())
        return torch.nn.functional.pad(signal, (0, 0, 0, 5000 - len(signal)))[None]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        return parts.std(dim=1)


def test_ecg_models_are_checked_at_the_sampling_rate_of_a_run():
    check_model(TenSeconds())


def test_inputs_of_several_shapes_are_refused():
    class Whole(TenSeconds):
        def transform(self, recording: Ecg) -> torch.Tensor:
            return torch.from_numpy(recording.signal)[None]

    with pytest.raises(AssertionError, match=r"shapes \[\(5000, 12\), \(5000, 12\), \(4000, 12\)\]; expected one: cut"):
        check_model(Whole())

"""Check that a third party's tokenizer is refused if it needs any amount of memory or time, before this process uses it."""

import json

import pytest

from cardiobench.models import tokenizer_trial
from cardiobench.models.tokenizer_trial import trial_error

tokenizers = pytest.importorskip("tokenizers", reason="the environment of the leaderboard has no models")


def plain() -> dict:
    """Return the JSON of a tokenizer of two words."""
    model = tokenizers.models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")
    return json.loads(tokenizers.Tokenizer(model).to_str())


def replaced(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def nested(depth):
    step = replaced("a", "a" * 100)
    for _ in range(depth):
        step = normalizers(step, replaced("a", "a" * 100))
    return step


HOSTILE = {
    "eight normalizers": {"normalizer": normalizers(*[replaced("a", "a" * 100)] * 8)},
    "eight nested normalizers": {"normalizer": nested(8)},
    "deep nesting": {"normalizer": nested(200)},
    "no tokenizer": {"model": {"type": "Evil"}},
    "a word for every letter": {
        "normalizer": normalizers(*[replaced("a", "a " * 100)] * 3),
        "pre_tokenizer": {"type": "Whitespace"},
    },
}


@pytest.mark.parametrize(
    "case",
    [case if case == "eight nested normalizers" else pytest.param(case, marks=pytest.mark.slow) for case in HOSTILE],
)
def test_hostile_tokenizer_is_refused(case):
    reason = trial_error(json.dumps({**plain(), **HOSTILE[case]}))
    assert reason and len(reason) <= 300


def test_usual_tokenizer_is_accepted():
    assert not trial_error(json.dumps(plain()))


@pytest.mark.slow
def test_tokenizer_that_waits_for_a_prompt_is_refused_for_it():
    hostile = {**plain(), "normalizer": normalizers(replaced("stenosis", "a" * 100), *[replaced("a", "a" * 100)] * 7)}
    hostile["normalizer"]["normalizers"].insert(0, replaced("a", ""))
    content = json.dumps(hostile)
    assert not trial_error(content) and trial_error(content, ["aortic stenosis"])


def test_slow_tokenizer_is_refused(monkeypatch):
    monkeypatch.setattr(tokenizer_trial, "SECONDS", 0.001)
    assert "more than 0.001 seconds" in trial_error(json.dumps(plain()), ["another text"])


def test_tokenizer_sees_no_token(monkeypatch):
    """Check the environment of the process, in which a tokenizer is read."""
    monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 30)
    seen = {}
    real = tokenizer_trial.subprocess.run
    monkeypatch.setattr(
        tokenizer_trial.subprocess, "run", lambda *words, **more: seen.update(more["env"]) or real(*words, **more)
    )
    assert not trial_error(json.dumps(plain()), ["one more text"]) and "HF_TOKEN" not in seen


def saved(folder, **changes):
    """Save a tokenizer as transformers does, and change its file."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(json.dumps(plain())), pad_token="[UNK]"
    )
    made.save_pretrained(folder)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


@pytest.mark.slow
def test_hostile_tokenizer_of_a_model_is_the_reason_for_no_texts(tmp_path):
    from types import SimpleNamespace

    from cardiobench.core.errors import BadModel
    from cardiobench.models import processors
    from cardiobench.models.files import given_files

    config = SimpleNamespace(model_type="clip", text_config=SimpleNamespace(max_position_embeddings=5))
    good = saved(tmp_path / "good")
    tokens, _ = processors.tokenizer(given_files("org/good", good), good, config, own_code=False)
    assert tokens(["a"]).shape == (1, 5)
    bad = saved(tmp_path / "bad", **HOSTILE["eight normalizers"])
    tokens, reason = processors.tokenizer(given_files("org/bad", bad), bad, config, own_code=False)
    assert tokens is None and "makes texts longer than memory allows" in reason
    steps = replaced("a", "b"), replaced("Q!", "a" * 100), *[replaced("a", "a" * 100)] * 7
    waits = saved(tmp_path / "waits", normalizer=normalizers(*steps))
    tokens, reason = processors.tokenizer(given_files("org/waits", waits), waits, config, own_code=False)
    with pytest.raises(BadModel, match="cannot be used"):
        tokens(["Q!"])

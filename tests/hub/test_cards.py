"""Check that other content of cards stays byte for byte, and that the Hub's parser reads our entries."""

import re

import pytest
import yaml
from huggingface_hub import EvalResult, ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index

from cardiobench.core.errors import BadData
from cardiobench.hub import cards, eval_results, model_index
from tests.hub.results import regression, result

BODY = "\n# My model\n\nWritten by hand — with an é, trailing spaces   \n\n---\n\n| a | b |\n\tand a tab\n"
OTHERS = """\
model-index:
- name: my-model   # the name
  results:
  # somebody's own number
  - task: {type: image-classification}
    dataset:
      type: beans
      name:   'Beans'
    metrics:
      - type: accuracy
        value: 9.10e-1   # spelled so
        verified: true
        verifyToken: abc
    source: {name: Leader Board, url: "https://example.org"}
"""
CARDS = {
    "no card": "",
    "no front matter": BODY,
    "other keys": f"---\nlicense: mit # really\ntags:\n- a\n-   b\nx: 'q'\n---\n{BODY}",
    "other results": f"---\nlicense: mit\n{OTHERS}thumbnail: x.png\n---\n{BODY}",
    "other results last": f"---\nlicense: mit\n{OTHERS}---\n{BODY}",
    "spaces after the second dashes": f"---\nlicense: mit\n---  \n{BODY}",
    "a mark of byte order": f"\ufeff---\nlicense: mit\n---\n{BODY}",
    "an empty front matter": f"---\n---\n{BODY}",
    "only a comment": f"---\n# nothing\n---\n{BODY}",
    "an empty index": f"---\nmodel-index:\nlicense: mit\n---\n{BODY}",
    "an empty list": f"---\nmodel-index: []\nlicense: mit\n---\n{BODY}",
    "a name without results": f"---\nmodel-index:\n- name: x\n  results:\nlicense: mit\n---\n{BODY}",
    "flow style": f"---\nmodel-index: [{{name: x, results: [{{task: {{type: other}}, dataset: {{type: d, name: D}}, metrics: [{{type: m, value: 1}}]}}]}}]\nlicense: mit\n---\n{BODY}",
    "indented lists": f"---\nmodel-index:\n    -   name: x\n        results:\n            -   task:\n                    type: other\n                dataset:\n                    type: d\n                    name: D\n                metrics:\n                    -   type: m\n                        value: 1\n\n# the end\nlicense: mit\n---\n{BODY}",
    "a block of text in the last entry": "---\nmodel-index:\n- name: x\n  results:\n  - task: {type: other}\n    dataset: {type: d, name: D}\n    metrics: [{type: m, value: 1, name: |\n      }]\n---\n".replace(
        "name: |\n      }]", "name: n}]\n    source:\n      url: u\n      name: |\n        two\n        lines\n"
    )
    + BODY,
}
NEWLINES = {"LF": "\n", "CRLF": "\r\n"}


def entries(*results, user="alice"):
    return [model_index.entry(one, user, f"https://hub/{one.protocol}.json", None) for one in results]


def merge(card, *results, user="alice"):
    return cards.merge_results(card, "my-model", entries(*results, user=user), model_index.key, "README.md")


def parsed(card):
    return ModelCard(card.removeprefix("\ufeff"), ignore_metadata_errors=False).data


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(sign in rest for sign in part)


@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES)
@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_other_bytes_of_a_card_are_unchanged(card, newline):
    card = card.replace("\n", newline)
    merged = merge(card, result(), regression())
    assert is_subsequence(card, merged), "nothing is removed or moved"
    if card:
        body = card[cards.FRONT.match(card).end() :] if cards.FRONT.match(card) else card
        assert merged.endswith(body)
    if card and newline == "\r\n":
        assert not re.search(r"(?<!\r)\n", merged), "new lines have the same line endings"
    found = {(r.dataset_type, r.metric_type): r for r in parsed(merged).eval_results}
    assert found["cardiobench/tmed2", "f1_macro"].metric_value == 0.7123456789012345
    assert found["cardiobench/camus", "mae"].metric_value == 7.25
    assert all(r.verified is not True for r in found.values() if "cardiobench" in r.dataset_type)
    if "beans" in card:
        assert found["beans", "accuracy"].metric_value == 0.91 and found["beans", "accuracy"].verify_token == "abc"
    if "license" in card:
        assert parsed(merged).license == "mit"


@pytest.mark.parametrize("name", ["no card", "other results", "flow style", "indented lists"])
def test_repeated_writes_change_nothing_and_new_values_replace_old_ones(name):
    card = CARDS[name].replace("\n", "\r\n" if name == "indented lists" else "\n")
    once = merge(card, result(), regression())
    assert merge(once, result(), regression()) == once
    other = merge(once, result(value=0.25))
    assert other == once.replace("0.7123456789012345", "0.25")
    assert merge(other, result()) == once
    assert len(parsed(merge(once, result(protocol="knn"))).eval_results) == len(parsed(once).eval_results) + 2


def test_same_entries_as_the_hubs_own_merge():
    """Return the card after `metadata_update(overwrite=True)`, for comparing values without comparing its text."""
    card = CARDS["other results"]
    new = entries(result(), regression())
    by_hub = parsed(card)
    by_hub.eval_results += parsed(merge("", result(), regression())).eval_results
    assert parsed(merge(card, result(), regression())).eval_results == by_hub.eval_results
    assert parsed(card).model_name == parsed(merge(card, *[result()])).model_name == "my-model"
    assert (
        eval_results_to_model_index("my-model", by_hub.eval_results)[0]["results"][1]["metrics"][0]
        == (new[0]["metrics"][0])
    )


def test_entries_of_two_users_are_both_kept():
    both = merge(merge("", result()), result(value=0.5), user="bob")
    values = [
        (r.metric_args["run_by"], r.metric_value) for r in parsed(both).eval_results if r.metric_type == "f1_macro"
    ]
    assert values == [("alice", 0.7123456789012345), ("bob", 0.5)]
    changed = merge(both, result(value=0.6))
    assert changed == both.replace("0.7123456789012345", "0.6")


def test_entries_merged_by_other_tools_are_separated():
    both = merge(merge(CARDS["other results"], result()), result(value=0.5), user="bob")
    rewritten = ModelCard(both)
    text = str(ModelCard(f"---\n{rewritten.data.to_yaml()}\n---\ntext"))  # Format written by metadata_update.
    index = yaml.safe_load(cards.FRONT.match(text)["yaml"])["model-index"][0]["results"]
    assert [len(entry["metrics"]) for entry in index] == [1, 4], "one entry holds the metrics of both users"
    again = merge(text, result(value=0.9))
    values = {
        (r.metric_args or {}).get("run_by"): r.metric_value
        for r in parsed(again).eval_results
        if r.metric_type != "auroc"
    }
    assert values == {None: 0.91, "alice": 0.9, "bob": 0.5}
    assert merge(again, result(value=0.9)) == again


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ("---\nlicense: [mit\n---\ntext", "not valid YAML"),
        ("---\n- a\n- b\n---\ntext", "is not a list of keys and values"),
        ("---\n{license: mit}\n---\ntext", "is not a list of keys and values"),
        ("---\nx: &a [1]\nmodel-index:\n- name: x\n  results:\n  - *a\n---\n", "cannot be changed"),
        ("---  \nlicense: mit\n---\n", "Remove the spaces"),
        ("---\nmodel-index: text\n---\n", "cannot be changed"),
        ("---\nmodel-index:\n- text\n---\n", "cannot be changed"),
    ],
)
def test_uneditable_card_is_unchanged(card, reason):
    with pytest.raises(BadData, match=reason):
        merge(card, result())


def test_non_utf8_card_is_unchanged():
    with pytest.raises(BadData, match="not UTF-8"):
        cards.text_of(b"# caf\xe9", "README.md")


def test_metrics_carry_facts_of_numbers():
    entry = entries(regression())[0]
    (metric,) = entry["metrics"]
    assert metric["args"]["ci95"] == [6.1, 8.2] and metric["args"]["floor"] == 9.5
    assert metric["args"]["collapsed"] is True and metric["args"]["coverage"] == "50/50"
    assert metric["args"]["seen_in_pretraining"] == "unknown"
    assert entry["task"]["type"] == "other" and entries(result())[0]["task"]["type"] == "image-classification"
    assert isinstance(EvalResult("t", "d", "n", "m", 1), EvalResult)


LISTED = """\
# kept by hand
- dataset: {id: cardiobench/tmed2, task_id: tmed2_as_f1_macro}
  value: 0.123   # somebody else's
  source: {url: 'https://example.org', user: bob}
"""


@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES)
@pytest.mark.parametrize("old", ["", LISTED, LISTED.rstrip("\n"), "# only a comment\n", "[]\n"])
def test_evaluation_results_of_others_stay(old, newline):
    from huggingface_hub import parse_eval_result_entries

    old = old.replace("\n", newline)
    new = eval_results.entries(result(), "alice", "https://hub/r.json", "1" * 40)
    merged = eval_results.merge(old.encode(), new, "file").decode()
    assert is_subsequence(old, merged)
    assert eval_results.merge(merged.encode(), new, "file").decode() == merged
    read = parse_eval_result_entries(yaml.safe_load(merged))
    mine = read[-1]
    assert (mine.dataset_id, mine.task_id, mine.value) == ("cardiobench/tmed2", "tmed2_as_f1_macro", 0.7123456789012345)
    assert mine.source_user == "alice" and mine.dataset_revision == "1" * 40 and mine.verify_token is None
    assert mine.date == "2026-03-04T05:06:07+00:00"
    assert "floor 0.5: above the floor" in mine.notes and "protocol probe" in mine.notes
    assert len(read) == 1 + old.count("value")
    better = eval_results.entries(result(value=0.9), "alice", "https://hub/r.json", "1" * 40)
    assert eval_results.merge(merged.encode(), better, "file").decode() == merged.replace("0.7123456789012345", "0.9")


def test_flags_are_written_in_notes():
    seen = result(seen_in_pretraining=True, collapsed=True)
    (entry,) = eval_results.entries(seen, "alice", "https://hub/r.json", None)
    assert "collapsed" in entry["notes"] and "seen in pretraining: yes" in entry["notes"]
    assert "revision" not in entry["dataset"]


def test_file_without_a_list_is_left_unchanged():
    with pytest.raises(BadData, match="not a list"):
        eval_results.merge(b"a: 1\n", [], "file")


def test_each_task_has_one_headline_protocol():
    assert eval_results.primary_protocol(["knn", "zero_shot.rank_mean_median", "probe"]) == "probe"
    assert eval_results.primary_protocol(["zero_shot.b", "zero_shot.a", "knn"]) == "zero_shot.a"
    assert eval_results.primary_protocol(["something"]) == "something"
    assert eval_results.primary_protocol(["something", "zero_shot", "few_shot"]) == "zero_shot"


def test_results_of_others_are_compared_by_metric():
    """Check single measurements, so that the protection of other users' entries has no gap."""
    ours, theirs, more = ({"type": name, "value": 1.0} for name in ("ours", "theirs", "more"))
    results = [{"task": "a", "metrics": [ours, theirs]}, {"task": "b", "metrics": [ours]}, {"task": "c"}]
    content = {"license": "mit", "model-index": [{"name": "m", "results": results}]}
    rest, others = cards._others(content, {repr("ours")}, lambda metric: metric["type"])
    assert rest == {"license": "mit"}
    assert others == [{"task": "a", "metrics": [theirs]}, {"task": "c", "metrics": []}]
    changed = {"model-index": [{"name": "m", "results": [{"task": "a", "metrics": [ours, more]}, *results[1:]]}]}
    assert cards._others(changed, {repr("ours")}, lambda metric: metric["type"])[1] != others

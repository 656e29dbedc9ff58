"""A card, README.md: its front matter, and the list of evaluation results in it; everything else stays byte for byte."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from cardiobench.core.errors import BadData
from cardiobench.hub import yaml_text

INDEX = "model-index"
# As huggingface_hub reads it; a mark of byte order before it and an empty one are taken too.
FRONT = re.compile(
    r"\A(?P<open>\ufeff?\s*---(?:\r\n|\r|\n))(?P<yaml>(?:[\S\s]*?(?:\r\n|\r|\n))??)---[ \t]*(?:\r|\n|\Z)"
)
SPACED = re.compile(r"\A\ufeff?\s*---[ \t]+[\r\n]")

Entry = Mapping[str, Any]
Key = Callable[[Mapping[str, Any]], Any]
"""Of a metric of an entry: whose it is and what it measured; None for a metric that is not ours."""


def text_of(content: bytes | None, what: str) -> str:
    """A card as text, empty where there is none; line ends and marks of byte order stay."""
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadData(f"{what} is not UTF-8 ({error.reason} at byte {error.start}); it was left as it is.") from None


def merge_results(card: str, name: str, entries: Sequence[Entry], key: Key, what: str) -> str:
    """The card with these entries in its `model-index`.

    An entry takes the place of the one that holds the same measurements (`key`); what others wrote stays byte for byte.

    Args:
        card: the whole text.
        name: of the model, for a card without any results.
        entries: results as they stand in a model-index; all metrics of one share one key.
        key: what tells measurements apart.
        what: the card's name, for errors.

    Raises:
        BadData: the front matter is not valid YAML, or written in a way that cannot be changed in place.
    """
    found = FRONT.match(card)
    if SPACED.match(card):
        raise BadData(
            f"{what} begins with '---' and spaces, which the Hub's library does not read. Take the spaces away."
        )
    if not found:
        newline = yaml_text.newline_of(card)
        text = _new_block(name, entries, newline)
        mark = "\ufeff" if card.startswith("\ufeff") else ""
        return f"{mark}---{newline}{text}---{newline}{card.removeprefix(mark)}"
    text = found["yaml"]
    changed = yaml_text.apply(text, _edits(text, name, entries, key, what, yaml_text.newline_of(card)))
    _check(text, changed, entries, key, what)
    return card[: found.start("yaml")] + changed + card[found.end("yaml") :]


def results_block(card: str, what: str) -> str:
    """The text of the `model-index` in a card's front matter; empty where there is none."""
    found = FRONT.match(card)
    tree = yaml_text.parse(found["yaml"], what)[1] if found else None
    pairs = tree.value if isinstance(tree, yaml.MappingNode) else []
    starts = [name.start_mark.index for name, _ in pairs] + [len(found["yaml"]) if found else 0]
    for number, (name, _) in enumerate(pairs):
        if name.value == INDEX:
            return found["yaml"][starts[number] : starts[number + 1]]
    return ""


def with_block(card: str, block: str) -> str:
    """The card with a block of text at the end of its front matter."""
    end = FRONT.match(card).end("yaml")
    return card[:end] + block + card[end:]


def _new_block(name: str, entries: Sequence[Entry], newline: str) -> str:
    return f"{INDEX}:{newline}" + yaml_text.block([{"name": name, "results": list(entries)}], 0, newline)


def _edits(
    text: str, name: str, entries: Sequence[Entry], key: Key, what: str, newline: str
) -> list[yaml_text.TextEdit]:
    content, tree = yaml_text.parse(text, f"the front matter of {what}")
    if content is None:
        return [(len(text), len(text), _new_block(name, entries, newline))]
    if not isinstance(content, dict) or tree.flow_style:
        raise BadData(f"the front matter of {what} is no list of keys and values; it was left as it is.")
    node = yaml_text.child(tree, INDEX)
    if node is None:
        return [(len(text), len(text), _new_block(name, entries, newline))]
    models = content[INDEX] or []
    if not _well_formed(models):
        raise _unchangeable(what)
    if isinstance(node, yaml.ScalarNode):
        return yaml_text.fill(text, node, [{"name": name, "results": list(entries)}], 0)
    lists = [(model, yaml_text.child(part, "results")) for model, part in zip(models, node.value, strict=True)]
    there = [(model["results"], part) for model, part in lists if isinstance(part, yaml.SequenceNode)]
    if not there:
        empty = next((part for _, part in lists if isinstance(part, yaml.ScalarNode)), None)
        if empty is not None:
            return yaml_text.fill(text, empty, entries, node.start_mark.column + 2)
        return yaml_text.change_items(text, node, {}, (), [{"name": name, "results": list(entries)}])
    edits: list[yaml_text.TextEdit] = []
    waiting = {key(entry["metrics"][0]): entry for entry in entries}
    for number, (results, part) in enumerate(there):
        replaced, removed = {}, []
        for position, old in enumerate(results):
            keys = [key(metric) for metric in old.get("metrics") or ()]
            mine = [one for one in keys if any(one == key(entry["metrics"][0]) for entry in entries)]
            if not mine:
                continue
            if len(set(keys)) == 1 and keys[0] in waiting:
                new = waiting.pop(keys[0])
                if new != old:
                    replaced[position] = new
            elif len(mine) == len(keys):
                removed.append(position)
            else:  # rewritten by another tool, which put measurements of several people into one entry
                metrics = yaml_text.child(part.value[position], "metrics")
                gone = [place for place, one in enumerate(keys) if one in mine]
                edits += yaml_text.change_items(text, metrics, {}, gone)
        added = list(waiting.values()) if number == len(there) - 1 else []
        edits += yaml_text.change_items(text, part, replaced, removed, added)
    return edits


def _check(before: str, after: str, entries: Sequence[Entry], key: Key, what: str) -> None:
    """Refuse an edit that would have changed anything else, as odd ways of writing YAML might."""
    try:
        old, new = yaml.safe_load(before) or {}, yaml.safe_load(after)
        mine = {repr(key(entry["metrics"][0])) for entry in entries}
        same = repr(_others(old, mine, key)) == repr(_others(new, mine, key))
        held = [entry for model in new[INDEX] for entry in model.get("results") or ()]
        complete = all(entry in held for entry in entries)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        same = complete = False
    if not (same and complete):
        raise _unchangeable(what)


def _well_formed(models: Any) -> bool:
    """Whether a model-index is what it should be: models with results with metrics, any of them empty."""

    def mappings(value: Any) -> bool:
        return value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value))

    return mappings(models) and all(
        mappings(model.get("results")) and all(mappings(entry.get("metrics")) for entry in model.get("results") or ())
        for model in models
    )


def _unchangeable(what: str) -> BadData:
    return BadData(
        f"{what} writes its {INDEX} in a way that cannot be changed without touching the rest of it. Write it as the Hub's "
        "documentation does, in block style (one '- ' a line), and push again."
    )


def _others(content: Mapping[str, Any], mine: set[str], key: Key) -> Any:
    """Everything in a front matter but our own measurements."""
    rest = {name: value for name, value in content.items() if name != INDEX}
    kept = []
    for model in content.get(INDEX) or ():
        for entry in model.get("results") or ():
            metrics = [metric for metric in entry.get("metrics") or () if repr(key(metric)) not in mine]
            if metrics or not entry.get("metrics"):
                kept.append({**entry, "metrics": metrics})
    return rest, kept

"""Edit the front matter and evaluation results of a README.md, leaving all other bytes unchanged."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import yaml

from cardiobench.core.errors import BadData
from cardiobench.hub import yaml_text

INDEX = "model-index"
# Same pattern as in huggingface_hub, but also for a preceding byte-order mark and for empty front matter.
FRONT = re.compile(
    r"\A(?P<open>\ufeff?\s*---(?:\r\n|\r|\n))(?P<yaml>(?:[\S\s]*?(?:\r\n|\r|\n))??)---[ \t]*(?:\r|\n|\Z)"
)
SPACED = re.compile(r"\A\ufeff?\s*---[ \t]+[\r\n]")

ResultFields = Mapping[str, Any]
Key = Callable[[Mapping[str, Any]], Any]
"""Maps a metric of an entry to its owner and measurement; None for metrics of others."""


def text_of(content: bytes | None, source: str) -> str:
    """Return a card as text, empty if there is none; line ends and byte-order marks are kept."""
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadData(f"{source} is not UTF-8 ({error.reason} at byte {error.start}); it was left unchanged.") from None


def merge_results(card: str, name: str, entries: Sequence[ResultFields], key: Key, source: str) -> str:
    """Return the card with these entries in its `model-index`.

    An entry replaces the one with the same measurements (`key`); entries of others stay byte for byte.

    Args:
        card: Text of the card.
        name: Model name, for a card without results.
        entries: Results in the format of a model-index; all metrics of an entry have the same key.
        key: Function that returns the identity of a measurement.
        source: Name of the card, for errors.

    Raises:
        BadData: The front matter is not valid YAML, or cannot be changed in place.
    """
    front = FRONT.match(card)
    if SPACED.match(card):
        raise BadData(
            f"{source} begins with '---' and spaces, which the Hub's library does not read. Remove the spaces."
        )
    if not front:
        newline = yaml_text.newline_of(card)
        text = _new_block(name, entries, newline)
        mark = "\ufeff" if card.startswith("\ufeff") else ""
        return f"{mark}---{newline}{text}---{newline}{card.removeprefix(mark)}"
    text = front["yaml"]
    changed = yaml_text.apply(text, _edits(text, name, entries, key, source, yaml_text.newline_of(card)))
    _check(text, changed, entries, key, source)
    return card[: front.start("yaml")] + changed + card[front.end("yaml") :]


def results_block(card: str, source: str) -> str:
    """Return the text of the `model-index` in a card's front matter; empty if there is none."""
    return block_of(card, INDEX, source)


def metrics_of(card: str, source: str) -> list[Mapping[str, Any]]:
    """Return all metrics in the `model-index` of a card; none if it is not well formed."""
    content, _ = yaml_text.parse(results_block(card, source), source)
    models = (content or {}).get(INDEX) or []
    if not _well_formed(models):
        return []
    entries = [entry for model in models for entry in model.get("results") or ()]
    return [metric for entry in entries for metric in entry.get("metrics") or ()]


def block_of(card: str, key: str, source: str = "the card") -> str:
    """Return the text of a key in a card's front matter; empty if there is none."""
    match = FRONT.match(card)
    text = match["yaml"] if match else ""
    start, stop = _span(text, key, source)
    return text[start:stop]


def _span(text: str, key: str, source: str) -> tuple[int, int]:
    """Return the start of a key of a front matter and that of the next key; the end twice if there is no such key."""
    tree = yaml_text.parse(text, source)[1]
    pairs = tree.value if isinstance(tree, yaml.MappingNode) else []
    starts = [name.start_mark.index for name, _ in pairs] + [len(text)]
    for number, (name, _) in enumerate(pairs):
        if name.value == key:
            return starts[number], starts[number + 1]
    return len(text), len(text)


def front_matter_block(card: str) -> re.Match[str]:
    """Return the match of a card's front matter; `BadData` for a card without one."""
    match = FRONT.match(card)
    if match is None:
        raise BadData("the card has no front matter")
    return match


def replace_block(card: str, key: str, block: str) -> str:
    """Return the card with the block of a key of its front matter replaced, or added at its end."""
    match = front_matter_block(card)
    start, stop = _span(match["yaml"], key, "the card")
    offset = match.start("yaml")
    return card[: offset + start] + block + card[offset + stop :]


def with_block(card: str, block: str) -> str:
    """Return the card with a block of text at the end of its front matter."""
    return insert(card, front_matter_block(card).end("yaml"), block)


def insert(text: str, position: int, addition: str) -> str:
    """Return the text with an addition at a position."""
    return text[:position] + addition + text[position:]


def _new_block(name: str, entries: Sequence[ResultFields], newline: str) -> str:
    return f"{INDEX}:{newline}" + yaml_text.block([{"name": name, "results": list(entries)}], 0, newline)


def _edits(
    text: str, name: str, entries: Sequence[ResultFields], key: Key, source: str, newline: str
) -> list[yaml_text.TextEdit]:
    content, tree = yaml_text.parse(text, f"the front matter of {source}")
    if content is None:
        return [(len(text), len(text), _new_block(name, entries, newline))]
    if not isinstance(tree, yaml.MappingNode) or tree.flow_style:
        raise BadData(f"the front matter of {source} is not a list of keys and values; it was left unchanged.")
    node = yaml_text.value_of(tree, INDEX)
    if node is None:
        return [(len(text), len(text), _new_block(name, entries, newline))]
    models = content[INDEX] or []
    if not _well_formed(models):
        raise _unchangeable(source)
    if isinstance(node, yaml.ScalarNode):
        return yaml_text.fill(text, node, [{"name": name, "results": list(entries)}], 0)
    assert isinstance(node, yaml.SequenceNode), "the front matter is neither empty nor a list"
    lists = [(model, yaml_text.value_of(part, "results")) for model, part in zip(models, node.value, strict=True)]
    filled = [(model["results"], part) for model, part in lists if isinstance(part, yaml.SequenceNode)]
    if not filled:
        empty = next((part for _, part in lists if isinstance(part, yaml.ScalarNode)), None)
        if empty is not None:
            return yaml_text.fill(text, empty, entries, node.start_mark.column + 2)
        return yaml_text.change_items(text, node, {}, (), [{"name": name, "results": list(entries)}])
    edits: list[yaml_text.TextEdit] = []
    ours = {key(entry["metrics"][0]) for entry in entries}
    new = {key(entry["metrics"][0]): entry for entry in entries}
    for number, (results, part) in enumerate(filled, 1):
        edits += _list_edits(text, results, part, key, ours, new, last=number == len(filled))
    return edits


def _list_edits(
    text: str,
    results: Sequence[ResultFields],
    node: yaml.SequenceNode,
    key: Key,
    ours: Collection[Any],
    new: dict[Any, ResultFields],
    last: bool,
) -> list[yaml_text.TextEdit]:
    """Return the edits of one list of results; placed entries are removed from `new`, and the last list takes the rest."""
    edits: list[yaml_text.TextEdit] = []
    replaced: dict[int, ResultFields] = {}
    removed: list[int] = []
    for position, old in enumerate(results):
        keys = [key(metric) for metric in old.get("metrics") or ()]
        indices = [number for number, one in enumerate(keys) if one in ours]
        if indices and len(set(keys)) == 1 and keys[0] in new:
            entry = new.pop(keys[0])
            if entry != old:
                replaced[position] = entry
        elif indices and len(indices) == len(keys):
            removed.append(position)
        elif indices:  # Another tool has merged measurements of several users in one entry.
            metrics = yaml_text.value_of(node.value[position], "metrics")
            assert isinstance(metrics, yaml.SequenceNode), "an entry with measurements has a list of them"
            edits += yaml_text.change_items(text, metrics, {}, indices)
    added = list(new.values()) if last else []
    return edits + yaml_text.change_items(text, node, replaced, removed, added)


def _check(before: str, after: str, entries: Sequence[ResultFields], key: Key, source: str) -> None:
    """Refuse an edit that would change anything else, which unusual YAML could cause."""
    try:
        old, new = (yaml.load(text, Loader=yaml_text.Loader) for text in (before, after))
        mine = {repr(key(entry["metrics"][0])) for entry in entries}
        same = repr(_others(old or {}, mine, key)) == repr(_others(new, mine, key))
        held = [entry for model in new[INDEX] for entry in model.get("results") or ()]
        complete = all(entry in held for entry in entries)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError):
        same = complete = False
    if not (same and complete):
        raise _unchangeable(source)


def _well_formed(models: Any) -> bool:
    """Return whether a model-index is well formed: models with results with metrics, any of them empty."""

    def mappings(value: Any) -> bool:
        return value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value))

    return mappings(models) and all(
        mappings(model.get("results")) and all(mappings(entry.get("metrics")) for entry in model.get("results") or ())
        for model in models
    )


def _unchangeable(source: str) -> BadData:
    return BadData(
        f"{source} writes its {INDEX} in a way that cannot be changed without touching the rest of it. Write it as the Hub's "
        "documentation does, in block style (one '- ' per line), and push again."
    )


def _others(content: Mapping[str, Any], mine: set[str], key: Key) -> Any:
    """Return everything in a front matter but our own measurements."""
    rest = {name: value for name, value in content.items() if name != INDEX}
    others = []
    for model in content.get(INDEX) or ():
        for entry in model.get("results") or ():
            metrics = [metric for metric in entry.get("metrics") or () if repr(key(metric)) not in mine]
            if metrics or not entry.get("metrics"):
                others.append({**entry, "metrics": metrics})
    return rest, others

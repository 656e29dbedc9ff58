"""Edit single items of a YAML list in place, leaving all other bytes unchanged."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from cardiobench.core.errors import BadData, one_line

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Safe loader by libyaml where PyYAML has been built with it, which is ten times as fast; its nodes are not used."""

TextEdit = tuple[int, int, str]
"""Replacement of the characters from start to stop."""


def parse(text: str, source: str) -> tuple[Any, yaml.Node | None]:
    """Return the content and the node tree with text positions; raise `BadData` for invalid YAML."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        return yaml.load(text, Loader=Loader), tree
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadData(
            f"{source} is not valid YAML ({one_line(error)}). Correct it first; it was not changed."
        ) from None


def apply(text: str, edits: Iterable[TextEdit]) -> str:
    """Return the text after edits that do not overlap."""
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def value_of(mapping: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a key; None where there is none."""
    pairs = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def change_items(
    text: str,
    node: yaml.SequenceNode,
    replaced: Mapping[int, Any],
    removed: Iterable[int] = (),
    added: Sequence[Any] = (),
) -> list[TextEdit]:
    """Return the edits that replace, remove and add items of a list.

    Args:
        text: Text that contains the node.
        node: The list.
        replaced: Mapping from position to new item.
        removed: Positions.
        added: New items.
    """
    edits: list[TextEdit] = []
    if node.flow_style:
        for position, item in replaced.items():
            old = node.value[position]
            edits.append((old.start_mark.index, old.end_mark.index, flow(item)))
        for position in removed:
            start = node.value[position].start_mark.index
            last = position == len(node.value) - 1
            stop = node.end_mark.index - 1 if last else node.value[position + 1].start_mark.index
            edits.append((start, stop, ""))
        joined = ", ".join(flow(item) for item in added)
        if joined:
            end = node.end_mark.index - 1
            edits.append((end, end, f", {joined}" if node.value else joined))
        return edits
    column, newline = node.start_mark.column, newline_of(text)
    spans = [_lines_of(text, item, column) for item in node.value]
    edits += [(*spans[position], block([item], column, newline)) for position, item in replaced.items()]
    edits += [(*spans[position], "") for position in removed]
    if added:
        end = spans[-1][1]
        lead = "" if text[:end].endswith(("\n", "\r")) else newline
        edits.append((end, end, lead + block(added, column, newline)))
    return edits


def fill(text: str, node: yaml.Node, items: Sequence[Any], column: int) -> list[TextEdit]:
    """Return the edits that replace an empty value by a list."""
    newline = newline_of(text)
    content = newline + block(items, column, newline)[: -len(newline)]
    start = node.start_mark.index
    while start and text[start - 1] in " \t":
        start -= 1
    return [(start, node.end_mark.index, content)]


def block(items: Sequence[Any], column: int, newline: str) -> str:
    """Return items of a list in block style, with their dashes in that column; every line ends with a line break."""
    dumped = yaml.safe_dump(list(items), sort_keys=False, allow_unicode=True, width=10_000)
    return "".join(f"{' ' * column}{line}{newline}" for line in dumped.splitlines())


def flow(item: Any) -> str:
    """Return one item on one line."""
    return yaml.safe_dump(
        item, sort_keys=False, allow_unicode=True, width=float("inf"), default_flow_style=True
    ).strip()


def newline_of(text: str) -> str:
    """Return the first line end of the text; a line feed if there is none."""
    end = text.find("\n")
    if end < 0:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if text[:end].endswith("\r") else "\n"


def _lines_of(text: str, item: yaml.Node, column: int) -> tuple[int, int]:
    """Return start and stop of an item's lines, from its dash to the end of its last line, without following comments."""
    start = item.start_mark.index
    while start and not (text[start] == "-" and _column(text, start) == column):
        start -= 1
    start -= column
    stop = _end(item)
    while stop < len(text) and text[stop - 1] not in "\r\n":
        stop += 1
    if text[stop - 1 : stop + 1] == "\r\n":
        stop += 1
    return start, stop


def _column(text: str, index: int) -> int:
    return index - 1 - max(text.rfind("\n", 0, index), text.rfind("\r", 0, index))


def _end(node: yaml.Node) -> int:
    """Return the end of a node's text, because PyYAML's end mark of a block is the start of the next token."""
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        return node.end_mark.index
    last = node.value[-1]
    return max(_end(part) for part in last) if isinstance(last, tuple) else _end(last)

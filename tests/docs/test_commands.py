"""Check the commands in the manual and in the help: the parser accepts them, and their tasks exist."""

import re
import shlex

import pytest

from cardiobench.cli.commands import commands
from cardiobench.core.extensions import contributions
from cardiobench.core.registry import look_up
from cardiobench.data import catalog
from tests.printed import accept

FENCED = re.compile(r"^```(?:bash)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
END = ("|", "||", "&&", ";", ">", "&")


def pages(root):
    places = (
        "README.md",
        "docs/*.md",
        "cardiobench/extensions/*/docs.md",
        "hf_datasets/*/README.md",
        "model_cards/*.md",
    )
    return [path for place in places for path in sorted(root.glob(place))]


def words_of(text: str) -> list[tuple[str, ...]]:
    """Return the commands in lines of a text that the installed package has; `cardiobench eval ...` is not complete."""
    lines = [line.strip().removeprefix("$ ") for line in text.replace("\\\n", " ").splitlines()]
    found = []
    for line in lines:
        words = shlex.split(line.split("    ")[0], comments=True) if line.startswith("cardiobench ") else []
        words = words[: next((place for place, word in enumerate(words) if word in END), len(words))]
        if len(words) > 1 and words[1] in commands() and "..." not in words:
            found.append(tuple(words))
    return found


def check(words: tuple[str, ...]) -> None:
    accept(words)
    for word in words:
        dataset, _, target = word.partition("/")
        if dataset in catalog.list_datasets() and re.fullmatch(r"\w+", target):
            look_up([word], catalog.task)


@pytest.mark.skipif("paper" not in contributions("profiles"), reason="its extension is not here")
def test_commands_in_blocks_of_the_manual_are_accepted_and_their_tasks_exist(root):
    found = [
        words for page in pages(root) for block in FENCED.findall(page.read_text("utf-8")) for words in words_of(block)
    ]
    assert len(found) > 40
    for words in dict.fromkeys(found):
        check(words)


@pytest.mark.parametrize("name", commands())
def test_examples_in_the_help_are_accepted_and_their_tasks_exist(name):
    for words in words_of(getattr(commands()[name], "EXAMPLES", "")):
        check(words)


def test_unknown_task_and_flag_are_found():
    with pytest.raises(AssertionError, match="does not exist"):
        check(("cardiobench", "list", "--modles"))
    with pytest.raises(Exception, match="no task 'ptb_xl_sample/nothing'"):
        check(("cardiobench", "audit", "ptb_xl_sample/nothing"))
    assert words_of("cardiobench eval ...\n$ cardiobench list --models   # all | some\ncardiobench nothing\n") == [
        ("cardiobench", "list", "--models")
    ]

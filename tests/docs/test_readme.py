"""Check the README: the form of its Python example, its commands, links and numbers."""

import re
import shlex
import tomllib

import pytest

from cardiobench.core.extensions import contributions
from cardiobench.report.plots.style import WIDTH
from tests.printed import accept

NEEDS_EXTENSIONS = pytest.mark.skipif("paper" not in contributions("profiles"), reason="its extension is not here")
BLOCK = re.compile(r"```(bash|python|text)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def readme(root):
    """Return the text of the README."""
    return (root / "README.md").read_text(encoding="utf-8")


def test_python_example_has_five_lines_and_its_output(readme):
    """Check its form; `tests/wheel_smoke.py` runs it with the installed wheel and compares what it prints."""
    blocks = BLOCK.findall(readme)
    place = next(number for number, (language, _) in enumerate(blocks) if language == "python")
    (_, code), (language, shown) = blocks[place : place + 2]
    assert language == "text" and len(code.splitlines()) == 5 and len(shown.splitlines()) == 3
    compile(code, "README.md", "exec")


def test_home_of_the_manual_begins_with_the_commands_of_the_readme(readme, root):
    home = (root / "docs" / "index.md").read_text(encoding="utf-8")
    assert BLOCK.findall(home)[:3] == BLOCK.findall(readme)[:3]


@NEEDS_EXTENSIONS
def test_commands_of_the_readme_exist(readme, root):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([\w-]+)`", readme))
    assert targets >= {"demo", "test", "docs"}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    commands = re.findall(r"`(cardiobench [^`]+)`", readme)
    assert len(commands) >= 2
    for command in commands:
        accept(tuple(shlex.split(command)))
    (launch,) = re.findall(r"^accelerate launch -m cardiobench\.eval (.*?)\s+#", readme, re.MULTILINE)
    accept(("cardiobench", "eval", *shlex.split(launch)))
    (extras,) = re.findall(r'pip install -c constraints\.txt -e "\.\[(.*)\]"', readme)
    known = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)


def test_readme_fits_a_screen_with_one_picture(readme, root):
    assert len(readme.splitlines()) <= 90 and readme.count("![") == 1
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert link.startswith("https://") or (root / link).exists(), link


def test_picture_shows_the_scores_of_the_example_at_a_width_of_phones(readme, root):
    ((alt, file),) = re.findall(r"!\[(.*)\]\((.*)\)", readme)
    picture = (root / file).read_text(encoding="utf-8")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", picture)
    rows = [re.split(r" {2,}", line) for line in BLOCK.findall(readme)[2][1].splitlines()[1:]]
    for _, model, protocol, _, score, _, floor, *_ in rows:
        assert {f"{model} · {protocol}", score, f"floor {floor}"} <= {*texts} and floor in alt
    assert {*re.findall(r"\d+\.\d+", alt)} <= set(" ".join(texts).split())
    assert f'width="{72 * WIDTH:g}pt"' in picture


@NEEDS_EXTENSIONS
def test_scores_of_trained_networks_are_those_of_the_manual(readme, root):
    (table,) = re.findall(r"## Trained networks\n.*?\n\|---.*?\n(.*?)\n\n", readme, re.DOTALL)
    pages = (root / "docs/real_networks.md", root / "cardiobench/extensions/random_twin/docs.md")
    known = " ".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    numbers = re.findall(r"\d+\.\d\d", table)
    assert len(numbers) >= 9 and all(number in known for number in numbers)

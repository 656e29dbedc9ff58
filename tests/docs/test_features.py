"""Check that every feature has a page with valid commands."""

import re
import shlex

import pytest

from cardiobench.cli.main import build_parser
from cardiobench.core.extensions import PACKAGE, extensions
from cardiobench.protocols import list_protocols
from tests.without_extensions import own_extensions

BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", own_extensions())
def test_every_feature_has_a_page_with_valid_commands(root, name):
    page = (root / PACKAGE.replace(".", "/") / name / "docs.md").read_text(encoding="utf-8")
    assert re.match(r"# \w[^\n]+\n\n[\w`]", page) and len(re.findall(r"^# ", page, re.MULTILINE)) == 1
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines() if line.startswith("cardiobench ")]
    assert lines
    for line in lines:
        given = vars(build_parser().parse_args(shlex.split(line)[1:]))
        assert {*given.get("protocols", [])} <= {*list_protocols()}, line
    manifest = extensions()[name]
    named = {*manifest.protocols, *manifest.commands, *manifest.conditions}
    assert all(re.search(rf"\b{one}\b", page) for one in named), named

"""Check that every guarantee in SECURITY.md names an existing test."""

import ast
import re


def test_every_guarantee_names_an_existing_test(root):
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    guarantees = text.partition("## What is guaranteed")[2].partition("## What is not guaranteed")[0]
    items = re.split(r"^\* ", guarantees, flags=re.MULTILINE)[1:]
    assert len(items) > 10
    for item in items:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", item)
        assert named, item
        for file, function in named:
            extension = re.match(r"tests/extensions/(\w+)/", file)
            if extension and not (root / "cardiobench" / "extensions" / extension[1]).exists():
                continue  # The guarantee is made by an extension that is not installed.
            tree = ast.parse((root / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (file, function)


def test_security_page_is_linked(root):
    assert "](SECURITY.md)" in (root / "README.md").read_text(encoding="utf-8")
    assert "SECURITY.md" in (root / "docs" / "share.md").read_text(encoding="utf-8")

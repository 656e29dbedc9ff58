"""Follow the release checklist dry: its facts agree, and its commands write what they show to a loopback Hub."""

import re
import shlex
from datetime import date

import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.metrics.load import list_metrics
from tests.hub.conftest import client, hub  # noqa: F401  # Fixtures.


@pytest.fixture(scope="module")
def checklist(root):
    """Return the steps of the checklist."""
    return re.split(r"^\d+\. ", (root / "docs" / "releasing.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def test_changelog_has_a_section_for_the_cited_release(root):
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    version, _, day = headings[1].partition(" - ")
    assert version == str(cited["version"]) and date.fromisoformat(day) == cited["date-released"]


def test_release_is_built_as_the_checklist_says(root, checklist):
    """Compare the variables that make builds equal in the checklist and in the workflow."""
    workflow = (root / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    (build,) = [step for step in checklist if step.startswith("**Distributions.**")]
    for text in (workflow, build):
        assert "SOURCE_DATE_EPOCH" in text and "git log -1 --format=%ct" in text and "PIP_CONSTRAINT" in text


@pytest.mark.slow
def test_commands_of_the_checklist_write_what_they_show(checklist, hub, client, capsys):  # noqa: F811
    """Run the previews, which write nothing, then the same commands with `--yes` twice; the second time changes nothing."""
    (preview,) = [step for step in checklist if step.startswith("**Preview of the Hub.**")]
    lines = re.findall(r"^ +cardiobench (.*)$", preview, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        assert main(shlex.split(line)) == 0 and "Nothing was written" in capsys.readouterr().out
    assert not hub.store.repositories
    for line in lines:
        assert main([*shlex.split(line), "--yes"]) == 0
    names = {name for kind, name in hub.store.repositories if kind == "space"}
    assert names >= {"org/leaderboard", *(f"cardiobench/{name}" for name in list_metrics())}
    names = {name for kind, name in hub.store.repositories if kind == "dataset"}
    assert names >= {f"cardiobench/{name}" for name in catalog.list_datasets()}
    commits = {key: len(repository.commits) for key, repository in hub.store.repositories.items()}
    for line in lines:
        assert main([*shlex.split(line), "--yes"]) == 0
    assert commits == {key: len(repository.commits) for key, repository in hub.store.repositories.items()}

"""Test the layout `manuscript`: every name compiles, numbers are those of the results, checklists are complete."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.core.errors import MissingData
from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.extensions.manuscript.bibliography import bibliography, key_of
from cardiobench.extensions.manuscript.checklists import AUTHORS, CHECKLISTS, read_checklist, rows, to_latex
from cardiobench.extensions.manuscript.facts import STATEMENTS, facts
from cardiobench.extensions.manuscript.tex import cite, cite_markdown, label, tex
from cardiobench.extensions.manuscript.write import write_manuscript
from cardiobench.results import formatting
from cardiobench.results.collect import Collection, collect
from cardiobench.results.paths import result_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.scoring.predictions import Predictions
from tests.leaderboard.submissions import NAME, submit, write_dataset

HOSTILE = "lab/%_#&$~^\\{}<>| [x] *y -- ü µ 模型 😀 \\input{/etc/passwd} `z`"
ITEMS = {"tripod_ai_2024": 27, "claim_2024": 44, "stard_ai_2025": 40}
"""Number of items that each publication has."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDIOBENCH_DATASETS_DIR", "")
        plugins.add_folder("hf_datasets", write_dataset(folder))
        for number, (model, target, skill) in enumerate(
            [("lab/a", "sick", 0.6), (HOSTILE, "sick", 0.2), ("lab/a", "ef", 0.5), ("[b] c", "dx", 0.4)]
        ):
            one = submit(folder, target=target, model=model, skill=skill)
            task = catalog.task(f"{NAME}/{target}")
            references = open_dataset(NAME, one.data_dir, need_media=False).references(task)
            path = result_path(folder / "results" / f"m{number}" / "1", "probe", task.name)
            save_scored(one.result, Predictions.join(references, one.answers, task).frame, path)
        write_manuscript(collect([folder / "results"]), folder / "paper")
    return folder


@pytest.fixture
def results(made, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_DATASETS_DIR", "")
    plugins.add_folder("hf_datasets", made / "builders")
    return made / "results"


@pytest.fixture
def paper(made):
    """Return the texts of the manuscript by name, and the paths of its figures."""
    files = sorted((made / "paper").iterdir())
    return {one.name: one.read_text("utf-8") for one in files if one.suffix != ".pdf"}, [
        one for one in files if one.suffix == ".pdf"
    ]


def faults(text):
    """Return what would stop pdfLaTeX: unbalanced braces and environments, bare special signs, unknown letters."""
    found, text = [], re.sub(r"(?m)^(%|\\DeclareRobustCommand).*$", "", text)
    foreign = re.sub(r"\\foreignletter\{[0-9A-F]+\}\{.\}", "", text)
    found += [f"letter {sign!r}" for sign in foreign if ord(sign) > 0x17F]
    plain = re.sub(r"\\(?:label|input|includegraphics|url|cite|bibliography|ref)(?:\[[^\]]*\])?\{[^{}]*\}", "", foreign)
    plain = re.sub(r"\\[\\&%$#_{}]", "", plain)
    if plain.count("{") != plain.count("}"):
        found.append(f"{plain.count('{')} braces open, {plain.count('}')} close")
    found += [f"bare {sign}" for sign in re.findall(r"[#^~]", plain)]
    found += ["bare _"] if "_" in re.sub(r"\$[^$]*\$", "", plain) else []
    if plain.count("$") % 2:
        found.append("odd number of $")
    open_ = re.findall(r"\\begin\{(\w+)\}", text)
    found += [] if sorted(open_) == sorted(re.findall(r"\\end\{(\w+)\}", text)) else ["environments"]
    rows_ = [line for line in re.split(r"\\\\", text) if "&" in line]
    return found + [f"{one}" for one in rows_ if "\\input{/etc" in one]


def test_no_name_stops_latex(paper):
    texts, _ = paper
    assert {name: faults(text) for name, text in texts.items() if name.endswith(".tex") and faults(text)} == {}
    assert "foreignletter{6A21}" in texts["tables.tex"] and "\\textbackslash{}input" in texts["tables.tex"]


def test_checker_finds_faults():
    assert faults("a_b") and faults("{") and faults("模") and faults("\\begin{table}") and faults("x^2")
    assert not faults(tex(HOSTILE)) and not faults("$x_2$")


def test_compiles(made, tmp_path):
    for program in ("pdflatex", "bibtex"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    shutil.copytree(made / "paper", tmp_path, dirs_exist_ok=True)
    latex = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "manuscript.tex")
    bibtex = ("bibtex", "manuscript")
    for line in (latex, bibtex, latex, latex):
        done = subprocess.run(line, cwd=tmp_path, capture_output=True)
        said = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, said[-2000:]
    assert "undefined" not in said, said[-2000:]
    assert not re.findall(r"Overfull \\hbox \(.*too wide\) in paragraph.*\n \[\]\[\]", said), (
        "a table is wider than the page"
    )


def test_tables_have_label_n_patients_coverage_verdict_and_note(paper, results):
    texts, _ = paper
    table = texts["tables.tex"]
    entry = next(
        one
        for one in collect([results]).entries
        if one.result.model["name"] == "lab/a" and one.result.task.endswith("sick")
    )
    result = entry.result
    line = next(
        line
        for line in table.splitlines()
        if line.startswith("lab/a") and tex(formatting.interval(result.score, result)) in line
    )
    for cell in (
        formatting.number(result.score.value, result),
        "100 & 100",
        formatting.coverage(result),
        result.verdict.word,
    ):
        assert cell in line
    assert "\\toprule" in table and "\\bottomrule" in table and "Floor" in table
    labels = re.findall(r"\\label\{([^}]+)\}", table + texts["figures.tex"])
    assert f"tab:{NAME}/sick-probe" in labels and len(labels) == len(set(labels)) == 6
    assert "\n{}[b] c" in table, "a row that starts with a bracket"


def test_captions_of_vector_figures_state_their_numbers(paper):
    texts, pictures = paper
    assert len(pictures) == 3 and all(file.read_bytes().startswith(b"%PDF") for file in pictures)
    captions = re.findall(r"\\caption\{(.*)\}\n", texts["figures.tex"])
    assert len(captions) == 3 and all("n = 100" in one and "95" in one and "patients" in one for one in captions)
    assert texts["figures.tex"].count("width=\\columnwidth") == 3


def test_every_citation_has_an_entry_and_every_entry_is_closed(paper):
    texts, _ = paper
    cited = set(re.findall(r"\\cite\{([^}]+)\}", texts["methods.tex"]))
    keys = re.findall(r"(?m)^@\w+\{([^,]+),$", texts["references.bib"])
    assert cited <= set(keys) and len(keys) == len(set(keys)) and {f"data_{NAME}", "model_lab_a", "sklearn"} <= cited
    assert texts["references.bib"].count("{") == texts["references.bib"].count("}")
    assert {f"[@{key}]" for key in cited} == set(re.findall(r"\[@[^\]]+\]", texts["methods.md"]))


def test_methods_state_the_settings_of_the_results(paper):
    methods = paper[0]["methods.md"]
    for part in (
        "version 1.0.0 of the benchmark",
        "100 patients",
        "penalty 0.1",
        "fs 500",
        "Seeds: 0",
        "floor of",
        "scipy",
    ):
        assert part in methods, part


@pytest.mark.slow
def test_same_results_give_the_same_bytes(results, tmp_path):
    one, other = (write_manuscript(collect([results]), tmp_path / name)[0] for name in "ab")
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]


@pytest.mark.parametrize("name", CHECKLISTS)
def test_checklist_has_every_item_once(name):
    items = read_checklist(name)
    numbers = [re.fullmatch(r"(\d+)([a-z]?)", one.item).groups() for one in items]
    assert list(dict.fromkeys(int(number) for number, _ in numbers)) == list(range(1, ITEMS[name] + 1))
    assert len({one.item for one in items}) == len(items) and all(one.topic and one.section for one in items)
    assert {one.answer for one in items} - {""} <= set(STATEMENTS)
    for number in {number for number, letter in numbers if letter}:
        letters = [letter for one, letter in numbers if one == number]
        assert letters == [chr(ord("a") + place) for place in range(len(letters))]


def test_lists_of_numbers_may_be_broken():
    assert tex("penalties 0.1/1/10/1e+06") == "penalties 0.1/\\allowbreak{}1/\\allowbreak{}10/\\allowbreak{}1e+06"
    assert tex("122/122 units of lab/a") == "122/122 units of lab/a"


def test_characteristics_of_participants_are_counts_of_groups(results):
    entries = [entry.result for entry in collect([results]).entries]
    known, grouped = facts(entries), [one for one in entries if one.groups]
    answers = {item: answer for item, _, _, answer, _ in rows(read_checklist("tripod_ai_2024"), known)}
    (name, found), *_ = grouped[0].groups.items()
    group, one = next(iter(found.values.items()))
    assert f"by {name}: {group} {one.n_patients} patients (n = {one.n})" in answers["20b"]
    assert "gap" in answers["14"] and "gap" not in answers["20b"]


def test_tripod_has_its_52_parts():
    assert len(read_checklist("tripod_ai_2024")) == 52


def test_checklists_answer_from_results_and_leave_the_rest_to_authors(results):
    known = facts([entry.result for entry in collect([results]).entries])
    filled = {item: (answer, place) for item, _, _, answer, place in rows(read_checklist("tripod_ai_2024"), known)}
    assert filled["17"] == (AUTHORS, "") and filled["18a"] == (AUTHORS, "")
    assert f"{NAME}/sick: n = 100 of 100 patients" in filled["21"][0] and filled["21"][1] == "tables.tex"
    assert "Toy hearts, version 1.0.0" in filled["5a"][0]
    assert not faults(to_latex("claim_2024", known))


def test_nothing_known_leaves_everything_to_authors():
    assert {row[3] for row in rows(read_checklist("stard_ai_2025"), {})} == {AUTHORS}


def test_keys_and_labels_differ_for_different_names():
    assert key_of("model", "a/b") == "model_a_b"
    names = ("a/b-c", "a/b_c", "a/b.c", "模型一", "模型二")
    assert len({key_of("model", name) for name in names}) == len(names)
    assert label("tab", "x/y", "p") == "tab:x/y-p" and label("tab", "模", "p") != label("tab", "型", "p")
    assert re.fullmatch(r"[\w:/.+=-]+", label("tab", HOSTILE, "p"), re.ASCII)


def test_citations_survive_escaping():
    text = "We used A_B [@data_a_b], version 1 [x]."
    assert cite(text) == "We used A\\_B \\cite{data_a_b}, version 1 [x]."
    assert "[@data_a_b]" in cite_markdown(text) and "\\[x\\]" in cite_markdown(text)


def test_unknown_dataset_and_model_have_entries_to_complete(results):
    result = collect([results]).entries[0].result
    text = bibliography(
        [replace(result, task="elsewhere/x", model={**result.model, "name": "who/knows", "revision": ""})]
    )
    assert "@misc{data_elsewhere," in text and "add its citation" in text


def test_without_ranked_results_nothing_is_written(tmp_path):
    with pytest.raises(MissingData, match="nothing to write"):
        write_manuscript(Collection(()), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_layout_of_the_command(results, tmp_path, capsys):
    assert main(["report", str(results), "--layout", "manuscript", "--out", str(tmp_path / "paper")]) == 0
    assert "manuscript.tex" in capsys.readouterr().out.replace("\n", "")

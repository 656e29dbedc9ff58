"""BibTeX entries of datasets, models and software."""

import hashlib
import re
from collections.abc import Sequence

from cardiobench.data import catalog
from cardiobench.extensions.manuscript.tex import tex
from cardiobench.models.cards import find_card
from cardiobench.results.score_result import ScoreResult

SOFTWARE = {
    "scikit-learn": ("sklearn", "Scikit-learn: Machine Learning in Python", "Pedregosa, F. and others", "Journal of Machine Learning Research 12:2825", "2011"),
    "scipy": ("scipy", "SciPy 1.0: Fundamental Algorithms for Scientific Computing in Python", "Virtanen, P. and others", "Nature Methods 17:261", "2020"),
    "torch": ("torch", "PyTorch: An Imperative Style, High-Performance Deep Learning Library", "Paszke, A. and others", "NeurIPS", "2019"),
    "transformers": ("transformers", "Transformers: State-of-the-Art Natural Language Processing", "Wolf, T. and others", "EMNLP Demos", "2020"),
}  # fmt: skip
BENCHMARKS = {
    "echo": (
        "cardiobench_echo",
        "CardioBench: Do Echocardiography Foundation Models Generalize Beyond the Lab?",
        "Taratynova, Darya and Aly, Ahmed and Saeed, Numan and Yaqub, Mohammad",
        "arXiv:2510.00520",
        "2025",
    ),
    "ecg": (
        "cardiobench_ecg",
        "Looking Beyond Accuracy: A Holistic Benchmark of ECG Foundation Models",
        "Filice, Francesca and De Rose, Edoardo and Bartucci, Simone and Calimeri, Francesco and Perri, Simona",
        "arXiv:2601.21830",
        "2026",
    ),
}
"""Modality -> key, title, authors, address and year of the benchmark's paper."""


def key_of(kind: str, name: str) -> str:
    """Return the key of an entry, of letters, digits and underscores; it differs for different names."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{kind}_{plain}" + ("" if re.fullmatch(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?", name) else f"_{digest}")


def dataset_key(name: str) -> str:
    """Return the key of a dataset."""
    return key_of("data", name)


def model_key(name: str) -> str:
    """Return the key of a model."""
    return key_of("model", name)


def bibliography(results: Sequence[ScoreResult]) -> str:
    """Return the entries of all datasets, models and packages behind some results, in order of their keys."""
    entries = dict[str, str]()
    for result in results:
        name, model = result.task.partition("/")[0], str(result.model["name"])
        entries[dataset_key(name)] = _dataset(name)
        entries[model_key(model)] = _model(model, str(result.model.get("revision", "")))
        for package in SOFTWARE:
            if package in result.stamp:
                entries[software_key(package)] = _software(package)
        if modality := _modality(name):
            key, title, author, address, year = BENCHMARKS[modality]
            entries[key] = _entry(key, {"title": title, "author": author, "howpublished": address, "year": year})
    return "\n".join(entries[key] for key in sorted(entries))


def software_key(package: str) -> str:
    """Return the key of a package."""
    return SOFTWARE[package][0]


def _modality(name: str) -> str:
    return catalog.spec(name).modality if name in catalog.list_datasets() else ""


def _dataset(name: str) -> str:
    if name not in catalog.list_datasets():
        return _entry(dataset_key(name), {"title": name, "note": "dataset; add its citation"})
    spec = catalog.spec(name)
    years = re.findall(r"\b(?:19|20)\d\d\b", spec.citation)
    facts = {
        "title": spec.title,
        "note": spec.citation or "dataset; add its citation",
        "howpublished": spec.access,
        "year": years[-1] if years else "",
        "edition": f"version {spec.version} of the benchmark's table of rows",
    }
    return _entry(dataset_key(name), facts)


def _model(name: str, revision: str) -> str:
    card = find_card(name)
    note = "; ".join(
        filter(None, [f"revision {revision}" if revision else "", "" if card is None else f"licence {card.licence}"])
    )
    where = f"https://huggingface.co/{name}" if card is not None and card.hub and card.revision else ""
    return _entry(model_key(name), {"title": name, "howpublished": where, "note": note or "model; add its citation"})


def _software(package: str) -> str:
    key, title, author, journal, year = SOFTWARE[package]
    return _entry(key, {"title": title, "author": author, "journal": journal, "year": year}, "article")


def _entry(key: str, facts: dict[str, str], kind: str = "misc") -> str:
    fields = [f"  {name} = {{{_field(name, value)}}}," for name, value in facts.items() if value]
    return "\n".join([f"@{kind}{{{key},", *fields, "}", ""])


def _field(name: str, value: str) -> str:
    if name == "author":
        return value
    if name == "howpublished" and value.startswith("http"):
        return f"\\url{{{re.sub(r'[^A-Za-z0-9:/._~?=&-]', '', value)}}}"
    # BibTeX counts escaped braces, too.
    text = tex(value).replace("\\{", "\\textbraceleft{}").replace("\\}", "\\textbraceright{}")
    return f"{{{text}}}" if name == "title" else text

"""Synthetic checkpoints in the published containers."""

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torchvision.models.video.mvit import MSBlockConfig, MViT

from cardiobench.models.families.echoprime import adapter as echoprime_adapter
from cardiobench.models.families.echoprime import network as echoprime
from cardiobench.models.families.echoprime import text_network as echoprime_text
from cardiobench.models.families.echoprime.retrieval import SECTION_OF, VIEWS
from tests.models.drawn import (
    drawn_state,
    small_bert,
    small_convnext,
    write_vocabulary,
)
from tests.models.family import Family

CANDIDATES = 80


# The 15 sections of a report, in the row order of the published table.
SECTIONS = (
    "Left Ventricle",
    "Resting Segmental Wall Motion Analysis",
    "Right Ventricle",
    "Left Atrium",
    "Right Atrium",
    "Atrial Septum",
    "Mitral Valve",
    "Aortic Valve",
    "Tricuspid Valve",
    "Pulmonic Valve",
    "Pericardium",
    "Aorta",
    "IVC",
    "Pulmonary Artery",
    "Pulmonary Veins",
)


def section_table() -> np.ndarray:
    """Return random weights (15, 11) of sections and views with one zero per row: A5C, or A2C for the aortic valve."""
    table = np.random.default_rng(0).uniform(0.05, 1, (len(SECTIONS), len(VIEWS))).round(4)
    table[:, VIEWS.index("A5C")] = 0
    valve = SECTIONS.index("Aortic Valve")
    table[valve, VIEWS.index("A5C")], table[valve, VIEWS.index("A2C")] = 0.7, 0
    return table


def candidate_bank(folder: Path, labels: object = None) -> None:
    """Return a bank of 80 studies: two halves of unit vectors, their names, and labels by phenotype and study."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(CANDIDATES, 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    torch.save(torch.from_numpy(vectors[:50]), folder / "candidate_embeddings_p1.pt")
    torch.save(torch.from_numpy(vectors[50:].copy()), folder / "candidate_embeddings_p2.pt")
    studies = [f"study-{number:03d}" for number in range(CANDIDATES)]
    (folder / "candidate_studies.csv").write_text("\n".join(["Study", *studies]) + "\n")
    if labels is None:
        labels = {}
        for phenotype in SECTION_OF:
            values = (
                rng.uniform(20, 70, CANDIDATES) if phenotype == "ejection_fraction" else rng.integers(0, 2, CANDIDATES)
            )
            # As in the release, a study may be missing, and a label may be NaN.
            labels[phenotype] = {s: v.item() for s, v in zip(studies[:-3], values, strict=False)}
            labels[phenotype][studies[0]] = float("nan")
    (folder / "candidate_labels.pkl").write_bytes(pickle.dumps(labels))


def section_weights(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(("Section", *VIEWS))]
    lines += [",".join([name, *map(str, row)]) for name, row in zip(SECTIONS, section_table(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


def echoprime_folder(folder: Path, *, bank: bool = True, reports: bool = False) -> Path:
    """Write a clone of EchoPrime's repository with the unpacked release; `reports` adds its report encoder."""
    weights = folder / "model_data" / "weights"
    weights.mkdir(parents=True)
    torch.save(drawn_state(echoprime.video_encoder), weights / "echo_prime_encoder.pt")
    torch.save(drawn_state(lambda: echoprime.view_classifier(11), seed=1), weights / "view_classifier.pt")
    if bank:
        section_weights(folder / "assets" / "MIL_weights.csv")
        candidate_bank(folder / "model_data" / "candidates_data")
    if reports:
        report_encoder(weights)
    return folder


def report_encoder(folder: Path, change=lambda state: None) -> Path:
    """Write EchoPrime's report encoder as saved by an older transformers, and a vocabulary of its tokenizer's size."""
    state = drawn_state(echoprime_text.EchoPrimeText, seed=6)
    for kind, shared in (("weight", "bert.embeddings.word_embeddings.weight"), ("bias", "cls.predictions.bias")):
        state[f"backbone.cls.predictions.decoder.{kind}"] = state[f"backbone.{shared}"]
    state["backbone.bert.embeddings.position_ids"] = torch.arange(512)[None]
    change(state)
    torch.save(state, folder / "echo_prime_text_encoder.pt")
    write_vocabulary(folder, echoprime_text.bert_config().vocab_size)
    return folder


def small_mvit() -> MViT:
    """Return an MViTv2-S with only three blocks."""
    blocks = [
        MSBlockConfig(heads, before, after, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, stride, stride])
        for heads, before, after, stride in ((1, 32, 32, 8), (4, 32, 128, 2), (8, 128, 256, 1))
    ]
    return MViT(
        (224, 224), 16, blocks, True, False, True, True, num_classes=echoprime.WIDTH,
        norm_layer=partial(torch.nn.LayerNorm, eps=1e-6),
    )  # fmt: skip


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Use a video encoder of three blocks, a small view classifier and a small BERT."""
    for module in (echoprime, echoprime_adapter):
        patch.setattr(module, "video_encoder", small_mvit)
        patch.setattr(module, "view_classifier", partial(small_convnext, 128))
    patch.setattr(echoprime_text, "bert_config", small_bert)


NAME = "echonet/EchoPrime"
FAMILY = Family(
    checkpoints={NAME: lambda folder: echoprime_folder(folder / "EchoPrime", reports=True)},
    defaults={NAME: ("cls", "by_name")},
    shrink=shrink,
    tensors={NAME: ("echoprime_video_encoder", "")},
)

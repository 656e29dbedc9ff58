"""Synthetic full-size checkpoints in the published containers, with all values drawn from a seed."""

import pickle
from pathlib import Path

import numpy as np
import torch

from cardiobench.models.families.dinotxt import adapter as dinotxt
from cardiobench.models.families.dinotxt.network import DinoTxt
from cardiobench.models.families.echofm.network import EchoFM
from cardiobench.models.families.echoprime import network as echoprime
from cardiobench.models.families.echoprime import text_network as echoprime_text
from cardiobench.models.families.echoprime.retrieval import SECTION_OF, VIEWS
from cardiobench.models.families.panecho.network import PanEcho
from tests.models.ecg.fake import write_vocabulary

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


def drawn_state(make, seed: int = 0) -> dict[str, torch.Tensor]:
    """Return a state dict of the network from `make`: matrices that preserve scale, gains near 1, small offsets."""
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in make().state_dict().items()}
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        values = torch.empty(shape).normal_(generator=generator)
        if len(shape) > 1 and shape[1:].numel() > 1:
            state[name] = values.mul_(1 / shape[1:].numel() ** 0.5)
        else:
            state[name] = values.mul_(0.1).add_(1.0 if name.endswith("weight") else 0.0)
    return state


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


def panecho_file(folder: Path, change=lambda state: None) -> Path:
    """Write `panecho.pt`: tensors under the key `weights`, with heads that give plausible numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(PanEcho, seed=2)
    for name, number in {"EF": 55.0, "LVIDd": 4.6, "IVSd": 1.1, "LVPWd": 1.0}.items():
        state[f"{name}_head.1.bias"] = torch.tensor([number])
    change(state)
    torch.save({"weights": state}, folder / "panecho.pt")
    return folder / "panecho.pt"


MODEL_ARGS = {
    "num_frames": 32,
    "t_patch_size": 4,
    "pred_t_dim": 8,
    "sep_pos_embed": True,
    "cls_embed": True,
    "norm_pix_loss": True,
}


def echofm_file(folder: Path, change=lambda state: None) -> Path:
    """Write `echofm_vitl.pth`: {"model": tensors, "model_args": settings}."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(EchoFM, seed=3)
    change(state)
    torch.save({"model": state, "model_args": MODEL_ARGS}, folder / "echofm_vitl.pth")
    return folder / "echofm_vitl.pth"


SMALL_DINOTXT = {"dim": 32, "depth": 2, "heads": 2, "text_dim": 32, "text_depth": 2, "text_heads": 2}


def dinotxt_folder(folder: Path, change=lambda backbone, rest: None) -> Path:
    """Write both files of dino.txt for a small network: DINOv3's with its own key names, and the remaining tensors in the other."""
    folder.mkdir(parents=True, exist_ok=True)
    state = drawn_state(lambda: DinoTxt(**SMALL_DINOTXT), seed=4)
    for name, tensor in state.items():
        if name.endswith((".qkv.bias", ".bias_mask")):
            tensor.zero_()  # The published file has zeros here.
    state["visual_model.backbone.rope_embed.periods"] = 100.0 ** (torch.arange(4) / 4)
    state["logit_scale"] = torch.tensor([4.0])
    own = "visual_model.backbone."
    backbone = {name.removeprefix(own): tensor for name, tensor in state.items() if name.startswith(own)}
    rest = {name: tensor for name, tensor in state.items() if not name.startswith(own)}
    change(backbone, rest)
    torch.save(backbone, folder / dinotxt.BACKBONE[0])
    torch.save(rest, folder / dinotxt.HEADS[0])
    return folder

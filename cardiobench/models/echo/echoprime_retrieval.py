"""EchoPrime's answers: the studies of its candidate bank that lie nearest to a study, section by section of the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cardiobench.models.nets.echoprime import WIDTH

NEAREST = 50
VIEWS = (
    "A2C",
    "A3C",
    "A4C",
    "A5C",
    "Apical_Doppler",
    "Doppler_Parasternal_Long",
    "Doppler_Parasternal_Short",
    "Parasternal_Long",
    "Parasternal_Short",
    "SSN",
    "Subcostal",
)
# Section of the report -> what is read from it, in the order of EchoPrime's own table of both.
PHENOTYPES = {
    "Left Ventricle": ("impella", "ejection_fraction"),
    "Right Ventricle": ("pacemaker", "rv_systolic_function_depressed", "right_ventricle_dilation"),
    "Left Atrium": ("left_atrium_dilation",),
    "Right Atrium": ("right_atrium_dilation",),
    "Mitral Valve": ("mitraclip", "mitral_annular_calcification", "mitral_stenosis", "mitral_regurgitation"),
    "Aortic Valve": ("tavr", "bicuspid_aov_morphology", "aortic_stenosis", "aortic_regurgitation"),
    "Tricuspid Valve": ("tricuspid_stenosis", "tricuspid_valve_regurgitation"),
    "Pericardium": ("pericardial_effusion",),
    "Aorta": ("aortic_root_dilation",),
    "IVC": ("dilated_ivc",),
    "Pulmonary Artery": ("pulmonary_artery_pressure_continuous",),
}
SECTION_OF = {phenotype: section for section, names in PHENOTYPES.items() for phenotype in names}


@dataclass(frozen=True)
class SectionWeights:
    """The weight of each view for each section of the report.

    Attributes:
        sections: Names of the rows.
        table: (sections, 11), columns in the order of `VIEWS`.
    """

    sections: tuple[str, ...]
    table: np.ndarray


@dataclass(frozen=True)
class CandidateBank:
    """Candidate studies whose reports are known.

    Attributes:
        embeddings: Float32 (candidates, 512), unit length.
        labels: Phenotype -> (candidates,), NaN where the report of a candidate does not say.
    """

    embeddings: torch.Tensor
    labels: dict[str, np.ndarray]


def section_vectors(
    study: np.ndarray, weights: SectionWeights, *, uniform: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Average a study's recordings into one vector per report section, weighted by the section's weight for each view.

    Args:
        study: (recordings, 523): 512 numbers of the video, 11 of the view (one-hot); one recording is enough.
        weights: Weights of sections and views.
        uniform: Weight all recordings alike where every one of them has weight zero for a section. Otherwise the vector
            is zero there, all candidates are equally near, and which ones are taken has nothing to do with the study.

    Returns:
        Vectors (sections, 512) of length one, and for each section whether its weights were all zero.
    """
    study = np.asarray(study, dtype=np.float32)
    shares = weights.table[:, study[:, WIDTH:].argmax(axis=1)].astype(np.float32)
    blind = np.logical_not(shares.any(axis=1))
    if uniform:
        shares[blind] = 1
    vectors = shares @ study[:, :WIDTH]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), blind


def nearest(vectors: np.ndarray, bank: CandidateBank, k: int = NEAREST, chunk: int = 64) -> np.ndarray:
    """Return indices (n, k) of the k candidates nearest to each vector (n, 512) by cosine, nearest first."""
    k = min(k, len(bank.embeddings))
    rows = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)).split(chunk)
    return torch.cat([(some @ bank.embeddings.T).topk(k, dim=1).indices for some in rows]).numpy()


def row_of(section: str, weights: SectionWeights, *, upstream_compat: bool = False) -> int:
    """Return the row of a section in the table of weights, by its name.

    EchoPrime's released code (45609cd) counts through the 11 sections that have phenotypes and takes the count for a
    row of all 15 sections, so that all but the left ventricle are answered from another section's vector;
    `upstream_compat` does the same.
    """
    return list(PHENOTYPES).index(section) if upstream_compat else weights.sections.index(section)


def section_of(phenotype: str, weights: SectionWeights, *, upstream_compat: bool = False) -> SectionWeights:
    """Return the one section of the report that a phenotype is read from, with its weights."""
    row = row_of(SECTION_OF[phenotype], weights, upstream_compat=upstream_compat)
    return SectionWeights((weights.sections[row],), weights.table[row : row + 1])


def answers(
    phenotype: str,
    studies: Sequence[np.ndarray],
    weights: SectionWeights,
    bank: CandidateBank,
    *,
    k: int = NEAREST,
    upstream_compat: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Predict a phenotype of each study from its nearest candidate reports.

    Args:
        phenotype: One of those of `PHENOTYPES`.
        studies: Each (recordings, 523).
        weights: Weights of sections and views.
        bank: The candidates.
        k: Number of neighbours.
        upstream_compat: Rows and zero weights as in the released code.

    Returns:
        Mean label of the candidates that have one, float64 (n,): a number or the share of candidates with the finding;
        and whether a study's recordings had only views without weight for the section, bool (n,).
    """
    one = section_of(phenotype, weights, upstream_compat=upstream_compat)
    vectors, blind = zip(*(section_vectors(study, one, uniform=not upstream_compat) for study in studies), strict=True)
    labels = bank.labels[phenotype].astype(np.float64)[nearest(np.concatenate(vectors), bank, k)]
    known = ~np.isnan(labels)
    total, count = np.where(known, labels, 0.0).sum(axis=1), known.sum(axis=1)
    return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0), np.concatenate(blind)


def report(
    study: np.ndarray, weights: SectionWeights, bank: CandidateBank, *, k: int = NEAREST, upstream_compat: bool = False
) -> dict[str, float]:
    """Predict all phenotypes of one study (recordings, 523), by name."""
    return {
        phenotype: float(answers(phenotype, [study], weights, bank, k=k, upstream_compat=upstream_compat)[0][0])
        for phenotype in SECTION_OF
    }

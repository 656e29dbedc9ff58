"""ECGFM-KED with its text encoder and decoder, which query the tokens of a record for lists of labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.models.blocks.bert_text import loaded_text, read_tokenizer
from cardiobench.models.blocks.signal_encoder import SignalEncoder, loaded
from cardiobench.models.blocks.xresnet1d import WIDTH
from cardiobench.models.cards import ModelCard
from cardiobench.models.families.ked.labels import ANSWERS, ASKED, digest
from cardiobench.models.families.ked.network import KedDecoder, KedText
from cardiobench.models.files import ModelFiles
from cardiobench.models.pooling import KEEP_TOKENS
from cardiobench.models.weights import read_part

COMPONENT = "heads ked"
VERSION = 1

QUERIES = "queries"
TOKENIZER = "emilyalsentzer/Bio_ClinicalBERT"
LENGTH = 256
TOKENS = 32  # Number of tokens of a record of 10 s.
AT_ONCE = 64  # Number of records per batch.


@dataclass(eq=False, kw_only=True)
class KedQueries(SignalEncoder):
    """The encoder with a decoder that predicts lists of labels from stored tokens.

    Attributes:
        decoder: Function from tokens (N, 32, 768) and queries (C, 768) to logits (N, C, 2).
        queries: Mapping from list of labels to vectors of its labels, (C, 768).
        native: Targets that the decoder predicts.
    """

    decoder: torch.nn.Module
    queries: dict[str, torch.Tensor]
    native: tuple[str, ...] = tuple(ANSWERS)

    def __post_init__(self):
        super().__post_init__()
        self.decoder.float().eval().requires_grad_(False)

    @torch.inference_mode()
    def probabilities(self, asked: str, vectors: np.ndarray) -> np.ndarray:
        """Compute the probability of each label of a list for records, given their tokens.

        Args:
            asked: Name of the list, whose labels are queried together.
            vectors: Stored tokens of R records, (R * 32, 768).

        Returns:
            Probabilities, float64 (R, C).
        """
        queries = self.queries[asked]
        records = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).reshape(-1, TOKENS, WIDTH)
        found = [self.decoder(part.to(queries.device), queries).softmax(-1)[..., 1] for part in records.split(AT_ONCE)]
        return torch.cat(found).double().cpu().numpy()

    def predict_native(self, target: str, units: Sequence[np.ndarray]) -> np.ndarray:
        """Predict the probability of the positive class, or of each class, for each unit: the mean over its recordings.

        Args:
            target: One of `native`.
            units: Stored tokens (R * 32, 768) of all recordings, one array per unit.

        Returns:
            Probabilities, float64 (n,), or (n, K) for a multilabel task.
        """
        asked, labels = ANSWERS[target]
        names = list(ASKED[asked])
        chosen = names.index(labels) if isinstance(labels, str) else [names.index(label) for label in labels]
        outputs = self.probabilities(asked, np.concatenate(units))[:, chosen]
        ends = np.cumsum([len(vectors) // TOKENS for vectors in units])[:-1]
        return np.array([part.mean(axis=0) for part in np.split(outputs, ends)])

    def to(self, device: torch.device) -> Self:
        """Move encoder, decoder and queries, and return the encoder."""
        self.decoder.to(device)
        self.queries = {name: vectors.to(device) for name, vectors in self.queries.items()}
        return super().to(device)


def load_queries(card: ModelCard, source: ModelFiles, path: Path, fields: Mapping[str, Any]) -> KedQueries:
    """Load decoder and text encoder; the text encoder is used once to encode the lists of labels.

    Args:
        card: Model card.
        source: Files of the model.
        path: Published file with all networks.
        fields: Fields of the encoder.

    Raises:
        BadModel: Weights cannot be read safely or do not match the network exactly, or there is no tokenizer.
        NotApplicable: The pooling does not keep tokens.
    """
    if fields["token_pooling"] != KEEP_TOKENS:
        raise NotApplicable(
            f"the decoder of {card.id} needs the tokens of a record. Add --pooling {KEEP_TOKENS}, or leave "
            f"--variant {QUERIES} out."
        )
    decoder = loaded(KedDecoder, read_part(path, "model"), f"the decoder of {card.id}")
    text = loaded_text(KedText, read_part(path, "text_encoder"), f"the text encoder of {card.id}").eval()
    words = text.bert_model.config.vocab_size
    tokenize, facts = read_tokenizer(source, card.id, TOKENIZER, size=words, length=LENGTH, do_lower_case=True)
    with torch.inference_mode():
        queries = {name: text(*tokenize(list(labels.values()))).clone() for name, labels in ASKED.items()}
    stamped = {**fields["preprocessing"], **facts, "queries": ", ".join((*ASKED, f"sha256 {digest()}"))}
    return KedQueries(**{**fields, "preprocessing": stamped}, decoder=decoder, queries=queries)

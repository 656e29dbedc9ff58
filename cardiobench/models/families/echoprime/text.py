"""EchoPrime with its report encoder: texts and videos in one embedding space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torchvision.models.video import MViT

from cardiobench.data.media.types import Clip
from cardiobench.models.blocks.bert_text import TextTokens, Tokens, loaded_text, read_tokenizer
from cardiobench.models.blocks.clip_encoder import ClipEncoder
from cardiobench.models.families.echoprime.clip import normalised, prepared
from cardiobench.models.families.echoprime.network import video_tokens
from cardiobench.models.families.echoprime.text_network import EchoPrimeText
from cardiobench.models.files import ModelFiles, digest
from cardiobench.models.weights import read_weights

COMPONENT = "adapter echoprime-text"
VERSION = 1

TEXT = ("echo_prime_text_encoder.pt", "echo_prime_text_encoder.safetensors")
TOKENIZER = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"
LENGTH = 512


class Videos(torch.nn.Module):
    """The video encoder for prepared clips."""

    def __init__(self, video: MViT):
        super().__init__()
        self.video = video

    def forward(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips uint8 (N, 17, 224, 224, 3) as embeddings (N, 512)."""
        return self.video(normalised(blocks))

    def tokens(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips as tokens (N, 8, 7, 7, 768): each time covers two frames."""
        return video_tokens(self.video, normalised(blocks))


@dataclass(eq=False, kw_only=True)
class EchoPrimePrompts(ClipEncoder):
    """EchoPrime's video encoder with its report encoder, without views: 512 numbers per recording.

    Attributes:
        text_network: Function from token ids and attention mask (N, L) to vectors (N, 512).
        tokenize: Function from texts to token ids and attention mask.
        logit_scale: Factor of cosines before the softmax.
    """

    text_network: torch.nn.Module
    tokenize: Callable[[Sequence[str]], Tokens]
    logit_scale: float

    def __post_init__(self):
        super().__post_init__()
        self.text_network.float().eval().requires_grad_(False)

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a clip for the network. Returns uint8 (1, 17, 224, 224, 3)."""
        return prepared(recording.frames)[None]

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str]) -> torch.Tensor:
        """Encode texts as vectors (len(texts), 512), float32, unit length."""
        device = next(self.text_network.parameters()).device
        ids, mask = self.tokenize(texts)
        vectors = self.text_network(ids.to(device), mask.to(device))
        return torch.nn.functional.normalize(vectors.float(), dim=-1)

    def to(self, device: torch.device) -> Self:
        """Move both networks and return the encoder."""
        self.text_network.to(device)
        super().to(device)
        return self


def read_text_encoder(source: ModelFiles, what: str) -> tuple[EchoPrimeText, TextTokens, Mapping[str, str]]:
    """Load the report encoder and its tokenizer, with facts about both for the embedding key.

    The tokenizer is not part of the release; its `vocab.txt` is in the folder, or cached from the Hub as `TOKENIZER`.

    Raises:
        BadModel: The file is missing or does not match the network exactly, or there is no tokenizer.
    """
    [path] = source.weights(TEXT)
    network = loaded_text(EchoPrimeText, read_weights([path]), f"{what} ({path.name})")
    size = network.backbone.config.vocab_size
    tokenize, facts = read_tokenizer(source, what, TOKENIZER, size=size, length=LENGTH)
    return network, tokenize, {**facts, "report_encoder": digest([path])}

"""EchoPrime with its report encoder: texts and videos in one embedding space."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torchvision.models.video import MViT

from cardiobench.core.errors import BadModel
from cardiobench.data.media.types import Clip
from cardiobench.models.echo.echoprime_clip import normalised, prepared
from cardiobench.models.echo.encoder import ClipEncoder
from cardiobench.models.files import ModelFiles, digest, given_files, resolve_model_files
from cardiobench.models.nets.echoprime import video_tokens
from cardiobench.models.nets.echoprime_text import EchoPrimeText
from cardiobench.models.safe_folder import TOKENIZER_RULES, safe_folder
from cardiobench.models.weights import load_exactly, read_weights

COMPONENT = "adapter echoprime-text"
VERSION = 1

TEXT = ("echo_prime_text_encoder.pt", "echo_prime_text_encoder.safetensors")
VOCABULARY = "vocab.txt"
TOKENIZER = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract"
LENGTH = 512
POSITIONS = "backbone.bert.embeddings.position_ids"  # 0, 1, 2, ..., kept by older versions of transformers

Tokens = tuple[torch.Tensor, torch.Tensor]


class Videos(torch.nn.Module):
    """The video encoder on prepared clips."""

    def __init__(self, video: MViT):
        super().__init__()
        self.video = video

    def forward(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips uint8 (N, 17, 224, 224, 3) as embeddings (N, 512)."""
        return self.video(normalised(blocks))

    def tokens(self, blocks: torch.Tensor) -> torch.Tensor:
        """Encode prepared clips as tokens (N, 8, 7, 7, 768): each time stands for two frames."""
        return video_tokens(self.video, normalised(blocks))


@dataclass(eq=False, kw_only=True)
class EchoPrimePrompts(ClipEncoder):
    """EchoPrime's video encoder and its report encoder, without views: 512 numbers per recording.

    Attributes:
        text_network: Token ids and attention mask (N, L) to vectors (N, 512).
        tokenize: Texts to both.
        logit_scale: Factor on cosines before the softmax.
    """

    text_network: torch.nn.Module
    tokenize: Callable[[Sequence[str]], Tokens]
    logit_scale: float

    def __post_init__(self):
        super().__post_init__()
        self.text_network.float().eval().requires_grad_(False)

    def transform(self, recording: Clip) -> torch.Tensor:
        """Prepare a clip for the network: uint8 (1, 17, 224, 224, 3)."""
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


@dataclass(frozen=True)
class ReportTokens:
    """BiomedBERT's tokenizer as a function of texts, cut to 512 tokens; padding is masked, so its length does not matter."""

    tokenizer: Any

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokenize texts to token ids and attention mask, each (N, L), L <= 512."""
        encoded = self.tokenizer(list(texts), padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
        return encoded["input_ids"], encoded["attention_mask"]


def read_text_encoder(source: ModelFiles, what: str) -> tuple[EchoPrimeText, ReportTokens, Mapping[str, str]]:
    """Load the report encoder and its tokenizer, with facts about both for the embedding key.

    The tokenizer is not in the release: its `vocab.txt` lies in the folder, or in the Hub's cache under `TOKENIZER`.

    Raises:
        BadModel: the file is not there or does not fit to the last key, or there is no tokenizer.
    """
    [path] = source.weights(TEXT)
    tokenizer, origin = _tokenizer(source, what)
    # Not on the meta device: transformers' BERT numbers its positions in a buffer that no checkpoint holds.
    with torch.random.fork_rng(devices=[]):
        network = EchoPrimeText()
    state = read_weights([path])
    state.pop(POSITIONS, None)
    load_exactly(network, state, f"{what} ({path.name})")
    known = network.backbone.config.vocab_size
    if len(tokenizer) != known:
        raise BadModel(
            f"{what}: the tokenizer from {origin} has {len(tokenizer)} words, the report encoder {known}. "
            f"Take {VOCABULARY} from {TOKENIZER}."
        )
    facts = {"tokenizer": f"{type(tokenizer).__name__} from {origin}", "report_encoder": digest([path])}
    return network, ReportTokens(tokenizer), facts


def _tokenizer(source: ModelFiles, what: str) -> tuple[Any, str]:
    from transformers import BertTokenizer

    encoded = source.find((VOCABULARY,))
    if encoded is not None:
        [vocabulary] = source.weights((VOCABULARY,))
        with safe_folder(given_files(what, vocabulary.parent), TOKENIZER_RULES) as folder:
            return BertTokenizer.from_pretrained(folder, local_files_only=True), VOCABULARY
    try:
        hub = resolve_model_files(TOKENIZER)
    except BadModel as error:
        raise BadModel(
            f"{what}: prompts need the tokenizer of {TOKENIZER}, which is not in the release. Put its {VOCABULARY} beside "
            f"the weights. ({error})"
        ) from error
    with safe_folder(hub, TOKENIZER_RULES) as folder:
        return BertTokenizer.from_pretrained(folder, local_files_only=True), f"{TOKENIZER} at {hub.commit}"

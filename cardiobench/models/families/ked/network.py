"""Text encoder of ECGFM-KED, and the decoder that predicts labels from the tokens of an ECG."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from cardiobench.models.blocks.xresnet1d import WIDTH

if TYPE_CHECKING:
    from transformers import BertConfig

LAYERS, HEADS, FEEDFORWARD = 7, 4, 1024
HIDDEN, ANSWERS = 2048, 2


def bert_config() -> "BertConfig":
    """Return the configuration of `emilyalsentzer/Bio_ClinicalBERT`: BERT base with a cased vocabulary."""
    from transformers import BertConfig

    return BertConfig(vocab_size=28996, layer_norm_eps=1e-12)


class KedText(nn.Module):
    """BERT and three layers; tensors `bert_model.*`, `mlp_embed.*` and an unused `logit_scale`."""

    def __init__(self) -> None:
        from transformers import BertModel

        super().__init__()
        self.logit_scale = nn.Parameter(torch.zeros(()))
        self.bert_model = BertModel(bert_config())
        width = self.bert_model.config.hidden_size
        self.mlp_embed = nn.Sequential(
            nn.Linear(width, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)
        )

    def pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Encode token ids and attention mask (N, L) as BERT's pooler output (N, 768)."""
        return self.bert_model(input_ids=ids, attention_mask=mask).pooler_output

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map token ids and attention mask (N, L) to queries (N, 768), not normalised."""
        return self.mlp_embed(self.pooled(ids, mask))


class KedDecoder(nn.Module):
    """Decoder in which queries attend to each other and to the tokens of an ECG, with a single shared norm.

    Queries are not independent: the output for a query depends on all queries of the call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logit_scale = nn.Parameter(torch.zeros(()))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        layer = nn.TransformerDecoderLayer(WIDTH, HEADS, FEEDFORWARD, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, LAYERS, self.decoder_norm)
        self.mlp_head = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, ANSWERS))

    def forward(self, tokens: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
        """Return the logits of no and yes, (B, C, 2), for queries (C, 768) and tokens of ECGs (B, T, 768)."""
        asked = self.decoder_norm(queries).expand(len(tokens), -1, -1)
        return self.mlp_head(self.decoder(asked, self.decoder_norm(tokens)))

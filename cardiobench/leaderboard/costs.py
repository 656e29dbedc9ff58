"""Take the costs of registered models from their cards instead of from submissions."""

import math
from collections.abc import Iterator

from cardiobench.models.cards import ModelCard
from cardiobench.results.cost import NO_NETWORK, Cost
from cardiobench.results.score_result import ScoreResult

NOT_ON_CARD = "not stated on the model's card"
TOLERANCE = 0.01
"""Relative tolerance of FLOPs; libraries differ slightly in the operations that they use."""


def cost_of_card(card: ModelCard) -> Cost:
    """Return the cost of a registered model: parameters, FLOPs of one part and width as its card states them.

    Stored bytes and times are those of a submitter's machine and are left out.
    """
    dim = card.embedding.get("dim")
    width = dim if isinstance(dim, int) else 0
    if card.parameters == 0:
        return Cost(width, math.nan, reason=NO_NETWORK)
    if card.parameters is None:
        return Cost(width, math.nan, reason=NOT_ON_CARD)
    return Cost(width, math.nan, parameters=card.parameters, flops=math.nan if card.flops is None else card.flops)


def other_cost(card: ModelCard | None, result: ScoreResult) -> Iterator[str]:
    """Yield contradictions between the cost of a result and the facts of its model's card."""
    cost, model = result.cost, result.model
    if cost is None or card is None:
        return
    if cost.reason == NO_NETWORK and (card.weights or card.parameters):
        yield f"cost: '{NO_NETWORK}' claimed, but {card.id} has a network"
    if card.weights and cost.parameters is not None and cost.parameters < cost.width:
        yield f"cost parameters: {cost.parameters:,} claimed, fewer than the {cost.width:,} numbers that the network gives"
    if cost.parameters is not None and cost.flops < cost.parameters:
        yield f"cost flops: {cost.flops:,.0f} claimed, fewer than the {cost.parameters:,} parameters"
    chosen = model.get("token_pooling") or "", (model.get("preprocessing") or {}).get("variant") or ""
    if chosen not in {(p, v) for p in ("", *card.poolings[:1]) for v in ("", *card.variants[:1])}:
        return
    stated = card.parameters or None
    known = {"width": (cost.width, card.embedding.get("dim")), "parameters": (cost.parameters, stated)}
    for name, (claimed, fact) in known.items():
        if isinstance(fact, int) and claimed is not None and claimed != fact:
            yield f"cost {name}: {claimed:,} claimed, but the card of {card.id} states {fact:,}"
    if card.parameters == 0 and cost.parameters:
        yield f"cost parameters: {cost.parameters:,} claimed, but {card.id} has no network"
    if card.flops is not None and cost.flops < card.flops * (1 - TOLERANCE):
        yield f"cost flops: {cost.flops:,.0f} claimed, but one part of a recording takes {card.flops:,.0f}"

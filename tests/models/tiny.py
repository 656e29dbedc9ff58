"""Tiny models with random weights, each saved by its own library."""

import json
from contextlib import contextmanager
from pathlib import Path

import torch

WORDS = (
    "a the an echo echocardiogram view of left right ventricle ventricular ejection fraction is are percent severe mild"
    " normal abnormal apical parasternal short long axis two three four chamber aortic stenosis present absent no with"
    " and in to , . ; : / - %"
).split() + [str(number) for number in range(101)]


@contextmanager
def seeded(seed: int = 0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def tiny_tokenizer(lower: bool = False):
    """Return a word-level tokenizer of transformers for the few words of echo prompts; every text ends with </s>."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2}
    for word in WORDS:
        vocabulary.setdefault(word, len(vocabulary))
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    if lower:
        inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def siglip_config():
    import transformers

    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {
        **tower,
        "vocab_size": len(tiny_tokenizer()),
        "max_position_embeddings": 24,
        "projection_size": 32,
        "bos_token_id": 1,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "attention_dropout": 0.5,
    }
    vision = {**tower, "image_size": 32, "patch_size": 8, "attention_dropout": 0.5}
    return transformers.SiglipConfig(text_config=text, vision_config=vision)


def tiny_siglip(folder: Path, *, processor: str = "together", tokenizer: bool = True) -> Path:
    """Save a SigLIP of transformers.

    Args:
        folder: Folder of the model.
        processor: "together" = in processor_config.json, "apart" = preprocessor_config.json, "none" = not saved.
        tokenizer: Whether to save a tokenizer.
    """
    import transformers

    with seeded():
        model = transformers.SiglipModel(siglip_config())
        model.logit_scale.data.fill_(2.0)
    model.save_pretrained(folder)
    images = transformers.SiglipImageProcessor(size={"height": 32, "width": 32})
    if processor == "together" and tokenizer:
        transformers.SiglipProcessor(images, tiny_tokenizer()).save_pretrained(folder)
        return folder
    if processor != "none":
        images.save_pretrained(folder)
    if tokenizer:
        tiny_tokenizer().save_pretrained(folder)
    return folder


def tiny_timm(folder: Path, *, classes: int = 5, safe: bool | str = True) -> Path:
    """Save a ViT of timm with a classifier of `classes` units, for frames of 32 x 32."""
    import timm
    from timm.models import save_for_hf

    with seeded():
        model = timm.create_model(
            "vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=classes
        )
    save_for_hf(model, folder, safe_serialization=safe)
    return folder


OPEN_CLIP = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 32, "layers": 2, "head_width": 8},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2},
}


def tiny_open_clip(folder: Path, *, text: str = "clip", safe: bool | str = True) -> Path:
    """Save a CLIP of open_clip.

    Args:
        folder: Folder of the model.
        text: "clip" = the CLIP vocabulary in open_clip, "tokenizer" = an HF tokenizer next to the weights,
            "bert" = an HF text tower (with its configuration in `<folder>-text`) and an HF tokenizer.
        safe: `safe_serialization` of open_clip: True, False or "both".
    """
    import open_clip
    from open_clip.push_to_hf_hub import save_for_hf

    config = json.loads(json.dumps(OPEN_CLIP))
    words = tiny_tokenizer()
    if text == "tokenizer":
        config["text_cfg"] |= {"vocab_size": len(words), "context_length": 20, "hf_tokenizer_name": "org/tokenizer"}
    if text == "bert":
        import transformers

        tower = folder.with_name(folder.name + "-text")
        transformers.BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
        ).save_pretrained(tower)
        config["text_cfg"] = {
            "hf_model_name": str(tower),
            "hf_tokenizer_name": "org/tokenizer",
            "hf_proj_type": "mlp",
            "hf_pooler_type": "cls_last_hidden_state_pooler",
            "context_length": 20,
        }
    with seeded():
        built = json.loads(json.dumps(config))
        if text == "bert":
            built["text_cfg"]["hf_model_pretrained"] = False
            model = open_clip.model.CustomTextCLIP(**built)
        else:
            model = open_clip.model.CLIP(**built)
    open_clip.model.set_model_preprocess_cfg(model, {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4], "size": 32})
    save_for_hf(model, tokenizer=words, model_config=config, save_directory=str(folder), safe_serialization=safe)
    if text == "clip":  # Without a tokenizer, open_clip falls back to its CLIP vocabulary.
        for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            (folder / file).unlink(missing_ok=True)
    return folder


def tiny_dinov3(folder: Path) -> Path:
    """Write a tiny DINOv3 of transformers into a folder and return it."""
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.DINOv3ViTConfig(
        **sizes, image_size=32, patch_size=8, num_register_tokens=4, attention_dropout=0.5, drop_path_rate=0.5
    )
    with seeded():
        transformers.DINOv3ViTModel(config).save_pretrained(folder)
    transformers.DINOv3ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder

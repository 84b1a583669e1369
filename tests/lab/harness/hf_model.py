"""Write a tiny Hugging Face model folder with random weights; run by vLLM's own interpreter: `hf_model.py OUT [SEED]`.

LlamaForCausalLM with heads of 64 (smaller ones start and die at the first request), 4 layers, width 256, about 14 MB.
Every token is one visible character: all other rows of the output score far below.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

WIDTH, LAYERS, HEADS, FEED_FORWARD, CONTEXT = 256, 4, 4, 768, 2048
SPECIAL = ("<s>", "</s>", "<unk>")
#: A number of every hidden vector that no layer writes to and that is always positive.
GATE = 0


def main(out: Path, seed: int) -> None:
    """Write tokenizer, configuration and weights."""
    # By name, because these packages exist only in vLLM's environment, and checkers look at this file from ours.
    torch, safetensors = import_module("torch"), import_module("safetensors.torch")
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = _tokenizer(out)
    torch.manual_seed(seed)
    safetensors.save_file(dict(_weights(torch, vocabulary)), str(out / "model.safetensors"), metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(vocabulary),
        "hidden_size": WIDTH,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "float32",
    }
    (out / "config.json").write_text(json.dumps(config, indent=2))
    (out / "generation_config.json").write_text(json.dumps({"bos_token_id": 0, "eos_token_id": 1}))


def _tokenizer(out: Path) -> dict[str, int]:
    tokenizers = import_module("tokenizers")
    decoders, pre_tokenizers = tokenizers.decoders, tokenizers.pre_tokenizers
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate([*SPECIAL, *symbols])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.save(str(out / "tokenizer.json"))
    template = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "model_max_length": CONTEXT,
        "chat_template": template,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
    return vocabulary


def _weights(torch: Any, vocabulary: dict[str, int]) -> Iterator[tuple[str, Any]]:
    def matrix(rows: int, columns: int) -> Any:
        return torch.randn(rows, columns) / math.sqrt(columns)

    def closed(rows: int, columns: int) -> Any:
        values = matrix(rows, columns)
        values[GATE, :] = 0.0
        return values

    embedding = matrix(len(vocabulary), WIDTH)
    embedding[:, GATE] = 1.0
    yield "model.embed_tokens.weight", embedding
    for number in range(LAYERS):
        layer = f"model.layers.{number}"
        yield f"{layer}.input_layernorm.weight", torch.ones(WIDTH)
        for part in ("q_proj", "k_proj", "v_proj"):
            yield f"{layer}.self_attn.{part}.weight", matrix(WIDTH, WIDTH)
        yield f"{layer}.self_attn.o_proj.weight", closed(WIDTH, WIDTH)
        yield f"{layer}.post_attention_layernorm.weight", torch.ones(WIDTH)
        yield f"{layer}.mlp.gate_proj.weight", matrix(FEED_FORWARD, WIDTH)
        yield f"{layer}.mlp.up_proj.weight", matrix(FEED_FORWARD, WIDTH)
        yield f"{layer}.mlp.down_proj.weight", closed(WIDTH, FEED_FORWARD)
    yield "model.norm.weight", torch.ones(WIDTH)
    output = torch.zeros(len(vocabulary), WIDTH)
    output[:, GATE] = -100.0
    for symbol, row in vocabulary.items():
        if len(symbol) == 1 and "!" <= symbol <= "~":
            output[row] = matrix(1, WIDTH)[0] * 4.0
            output[row, GATE] = 0.0
    yield "lm_head.weight", output


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20)

"""Write a tiny llama-architecture model with random weights as a GGUF file.

The model talks nonsense and costs what its size says: real matrices, a real key-value cache, a real tokenizer. The seed
is fixed, so the same size is the same file. Every generated token is exactly one visible ASCII character: a client
therefore sees one text chunk per token, and a text's length is its number of tokens.

    python -m changectl.demo.tinymodel OUT.gguf --size small

Needs the packages gguf and numpy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from gguf import GGUFWriter, TokenType

from changectl.core.errors import InputError

Matrix = npt.NDArray[np.float32]

#: The three tokens every llama vocabulary starts with, before the 256 single bytes.
SPECIAL = ("<unk>", "<s>", "</s>")
VOCABULARY = len(SPECIAL) + 256
VISIBLE = range(len(SPECIAL) + 0x21, len(SPECIAL) + 0x7F)

#: One number of every hidden vector that no layer writes to. It is always positive, so a negative weight on it in an
#: output row keeps that token from ever being chosen; zeroed rows alone would be sampled where visible ones score low.
_GATE = 0


@dataclass(frozen=True)
class Size:
    """The dimensions of a model."""

    layers: int
    width: int
    feed_forward: int
    heads: int


SIZES = {
    "small": Size(layers=2, width=32, feed_forward=64, heads=2),  # about 160 KB
    "medium": Size(layers=4, width=256, feed_forward=768, heads=4),  # about 14 MB
    "large": Size(layers=8, width=512, feed_forward=1536, heads=8),  # about 110 MB
}
CONTEXT_LENGTH = 8192


def write_gguf(path: Path, size: str = "small", *, seed: int = 20, name: str = "tiny") -> int:
    """Write the model and return its length in bytes.

    Args:
        path: the file to write; an existing one is replaced, its folder must exist.
        size: one of `SIZES`.
        seed: another seed gives another model of the same shape (a model change that costs the same).
        name: what the file calls itself in its metadata.

    Raises:
        InputError: there is no such size.
        OSError: the file could not be written.
    """
    if size not in SIZES:
        raise InputError(f"there is no model size {size!r}; sizes: {', '.join(SIZES)}")
    shape = SIZES[size]
    # The writer appends to nothing and truncates nothing half-way: write beside, then move into place.
    scratch = path.with_name(f".{path.name}.part")
    writer = GGUFWriter(scratch, "llama")
    _describe(writer, shape, name)
    for tensor, values in _tensors(shape, np.random.default_rng(seed)):
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    scratch.replace(path)
    return path.stat().st_size


def _describe(writer: GGUFWriter, shape: Size, name: str) -> None:
    writer.add_name(name)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


def _tensors(shape: Size, random: np.random.Generator) -> Iterator[tuple[str, Matrix]]:
    def matrix(rows: int, columns: int) -> Matrix:
        values: Matrix = random.standard_normal((rows, columns)).astype(np.float32)
        return values / np.float32(columns**0.5)

    def closed(rows: int, columns: int) -> Matrix:
        values = matrix(rows, columns)
        values[_GATE, :] = 0.0
        return values

    ones = np.ones(shape.width, dtype=np.float32)
    embedding = matrix(VOCABULARY, shape.width)
    embedding[:, _GATE] = 1.0
    yield "token_embd.weight", embedding
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones
        yield f"{block}.attn_q.weight", matrix(shape.width, shape.width)
        yield f"{block}.attn_k.weight", matrix(shape.width, shape.width)
        yield f"{block}.attn_v.weight", matrix(shape.width, shape.width)
        yield f"{block}.attn_output.weight", closed(shape.width, shape.width)
        yield f"{block}.ffn_norm.weight", ones
        yield f"{block}.ffn_gate.weight", matrix(shape.feed_forward, shape.width)
        yield f"{block}.ffn_up.weight", matrix(shape.feed_forward, shape.width)
        yield f"{block}.ffn_down.weight", closed(shape.width, shape.feed_forward)
    yield "output_norm.weight", ones
    yield "output.weight", _output(matrix(VOCABULARY, shape.width))


def _output(values: Matrix) -> Matrix:
    visible = values[VISIBLE.start : VISIBLE.stop].copy()
    visible[:, _GATE] = 0.0
    values[:] = 0.0
    values[:, _GATE] = -100.0
    values[VISIBLE.start : VISIBLE.stop] = visible * 4.0  # spread the scores: some characters are likelier than others
    return values


def main(arguments: list[str] | None = None) -> int:
    """Write the model the command line asks for and say how large it became."""
    parser = argparse.ArgumentParser(prog="python -m changectl.demo.tinymodel", description="Write a tiny GGUF model.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args(arguments)
    length = write_gguf(options.out, options.size, seed=options.seed)
    sys.stdout.write(f"{options.out}: {length} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

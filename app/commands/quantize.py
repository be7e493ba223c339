"""Makes a smaller model file (.gguf): the same model with its weights in fewer bits."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.commands.common import add_json, print_json
from app.errors import FolderError
from app.library.known_models import model_path
from app.terminal import ProgressLine, one_line, tell
from engine.memory import readable_bytes
from engine.quantisation.mixtures import MIXTURES
from engine.quantisation.quantise import QUANTISERS
from engine.quantisation.quantise_file import Quantisation, QuantisedTensor, quantise_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="IN",
        help="a model in F32, F16 or BF16: a file, any of its parts, or a name",
    )
    parser.add_argument("target", type=Path, metavar="OUT", help="the model file to write")
    parser.add_argument(
        "type",
        type=str.upper,
        choices=MIXTURES,
        metavar="TYPE",
        help=f"the mixture of types, the larger and more exact first: {', '.join(MIXTURES)}",
    )
    for name, what in (("output", "the output matrix"), ("embedding", "the embedding")):
        parser.add_argument(
            f"--{name}-type",
            type=str.upper,
            choices=QUANTISERS,
            metavar="T",
            help=f"another type for {what}: {', '.join(QUANTISERS)}",
        )
    parser.add_argument(
        "--requantize", action="store_true", help="take a model that is quantised already, at a loss"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be written")
    parser.add_argument("--replace", action="store_true", help="replace a file that is there")
    parser.add_argument("-t", "--threads", type=int, metavar="N", help="compute threads (default: the cores)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    source, target = model_path(options.file), Path(options.target)
    if target.is_dir():
        raise FolderError(f"{target} is a folder.", "Name the file to write, ending in .gguf.")
    with ProgressLine() as line:
        quantisation = quantise_file(
            source,
            target,
            options.type,
            output_type=options.output_type,
            embedding_type=options.embedding_type,
            requantise=options.requantize,
            replace=options.replace,
            dry_run=options.dry_run,
            threads=options.threads,
            on_progress=lambda share: line.show(f"writing {target.name}: {share:.0%}"),
        )
    if options.json:
        print_json(as_json(quantisation, written=not options.dry_run))
    else:
        print_quantisation(quantisation, written=not options.dry_run)
    return 0


def print_quantisation(quantisation: Quantisation, written: bool) -> None:
    """A line on stderr for each tensor that could not get its type, then the summary."""
    for tensor in quantisation.fallbacks:
        tell(f"note: {fallback_sentence(tensor)}")
    if quantisation.already:
        tell(f"note: the model is {quantisation.mixture} already; its tensors are copied as they are.")
    sizes = [readable_bytes(size) for size in (quantisation.file_bytes, quantisation.source_bytes)]
    share = quantisation.file_bytes / quantisation.source_bytes
    types = ", ".join(f"{name} {readable_bytes(size)}" for name, size in quantisation.types.items())
    rows = {
        "file" if written else "would write": f"{quantisation.path} ({sizes[0]}, {share:.0%} of {sizes[1]})",
        "parameters": f"{quantisation.n_weights:,} in {len(quantisation.tensors)} tensors",
        "types": f"{types}; {quantisation.bits_per_weight:.2f} bits per weight",
    }
    if quantisation.fallbacks:
        count = len(quantisation.fallbacks)
        tensors = f"{count} tensor{'' if count == 1 else 's'}"
        rows["fallbacks"] = f"{tensors} with {quantisation.fallback_share:.0%} of the weights"
    for label, value in rows.items():
        print(f"{label + ':':<17}{one_line(value)}")


def fallback_sentence(tensor: QuantisedTensor) -> str:
    return (
        f"{tensor.name}: rows of {tensor.shape[-1]} are no whole blocks of {tensor.wanted}; "
        f"it gets {tensor.after}."
    )


def as_json(quantisation: Quantisation, written: bool) -> dict[str, object]:
    """The keys of `--json`, as docs/commands.md documents them."""
    return {
        "file": str(quantisation.path),
        "written": written,
        "file_bytes": quantisation.file_bytes,
        "source_bytes": quantisation.source_bytes,
        "type": quantisation.mixture,
        "parameters": quantisation.n_weights,
        "bits_per_weight": quantisation.bits_per_weight,
        "types": quantisation.types,
        "tensors": [
            {"name": tensor.name, "from": tensor.before, "to": tensor.after, "bytes": tensor.nbytes}
            for tensor in quantisation.tensors
        ],
        "copied": quantisation.already,
        "fallbacks": [fallback_sentence(tensor) for tensor in quantisation.fallbacks],
        "fallback_share": quantisation.fallback_share,
    }

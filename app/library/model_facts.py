"""What a model file is, for people: read from its header, nothing loaded, unsupported models included."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from engine.backends.registry import backend_class
from engine.errors import BackendError, CauserieError, SettingsError
from engine.gguf.reader import GGUFFile
from engine.graph.plan import Plan
from engine.inspection import outline
from engine.requests import LoadSettings

VOCABULARY_KEY = "tokenizer.ggml.tokens"

FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
    32: "BF16",
}  # fmt: skip
"""What `general.file_type` says of the whole file (public GGUF specification)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes the model needs with a context of so many tokens, as of `MemoryEstimate` of the backends."""

    context_size: int
    weights: int
    kv_cache: int
    arena: int
    mapped: int
    program: int

    @property
    def total(self) -> int:
        return self.weights + self.kv_cache + self.arena

    @property
    def peak(self) -> int:
        return self.total + self.program


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of one file; text that the file lacks is "", a count 0.

    types: weights (numbers) of each tensor type, the most common first.
    main_type: what the file calls its mixture of types, such as Q4_K_M, else the commonest of the layers.
    memory: None where the model cannot be run.  problem and advice say why it cannot; both "" where it can.
    """

    path: Path
    file_bytes: int
    name: str = ""
    family: str = ""
    licence: str = ""
    n_parameters: int = 0
    types: dict[str, int] | None = None
    main_type: str = ""
    context_length: int = 0
    vocabulary_size: int = 0
    tokenizer_kind: str = ""
    tokenizer_rules: str = ""
    has_template: bool = False
    memory: Memory | None = None
    problem: str = ""
    advice: str = ""


def read_facts(path: Path, settings: LoadSettings | None = None) -> tuple[ModelFacts, Plan | None]:
    """The facts, and the largest plan where the model can be run.

    Raises `ModelFileError` and `UnsupportedModelError` where not even the header can be read.
    """
    with GGUFFile.open(path) as file:
        memory, plan, problem, advice = _what_it_takes(file, settings or LoadSettings())
        types: Counter[str] = Counter()
        layer_types: Counter[str] = Counter()
        for name, tensor in file.tensors.items():
            types[tensor.type.name] += tensor.n_elements
            if name.startswith("blk."):  # the embedding of a small model would outvote its layers
                layer_types[tensor.type.name] += tensor.n_elements
        family = _text(file, "general.architecture")
        facts = ModelFacts(
            path=path,
            file_bytes=file.size,
            name=_text(file, "general.name"),
            family=family,
            licence=_text(file, "general.license"),
            n_parameters=types.total(),
            types=dict(types.most_common()),
            main_type=_main_type(file, layer_types or types),
            context_length=_count(file, f"{family}.context_length"),
            vocabulary_size=file.metadata.length(VOCABULARY_KEY) if VOCABULARY_KEY in file.metadata else 0,
            tokenizer_kind=_text(file, "tokenizer.ggml.model"),
            tokenizer_rules=_text(file, "tokenizer.ggml.pre"),
            has_template="tokenizer.chat_template" in file.metadata,
            memory=memory,
            problem=problem,
            advice=advice,
        )
    return facts, plan


def _what_it_takes(file: GGUFFile, settings: LoadSettings) -> tuple[Memory | None, Plan | None, str, str]:
    """Memory and plan, or a problem and the next step."""
    try:
        model = outline(file, settings)
        backend = backend_class(settings.backend)(settings.threads, settings.repack)
        try:
            estimate = model.memory_on(backend)
        finally:
            backend.close()
    except (SettingsError, BackendError):
        raise  # says nothing about the file
    except CauserieError as error:
        return None, None, error.title, error.advice
    memory = Memory(model.context_size, **dataclasses.asdict(estimate))
    return memory, model.plan, "", ""


def _main_type(file: GGUFFile, types: Counter[str]) -> str:
    if not types:
        return ""
    return FILE_TYPES.get(_count(file, "general.file_type", -1)) or types.most_common(1)[0][0]


def _text(file: GGUFFile, key: str) -> str:
    """A string of the file; "" where it is missing or of another type, which is no reason to list nothing."""
    try:
        return file.metadata.get_string(key, "")
    except CauserieError:
        return ""


def _count(file: GGUFFile, key: str, missing: int = 0) -> int:
    try:
        return file.metadata.get_int(key, missing)
    except CauserieError:
        return missing

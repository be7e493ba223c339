"""What a model file is, for people: read from its header, nothing loaded, unsupported models included."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes the model needs with a context of so many tokens."""

    context_size: int
    weights: int
    kv_cache: int
    arena: int

    @property
    def total(self) -> int:
        return self.weights + self.kv_cache + self.arena


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of one file; text that the file lacks is "", a count 0.

    types: weights (numbers) of each tensor type, the most common first.  main_type: that of the layers.
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
            main_type=(layer_types or types).most_common(1)[0][0] if types else "",
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
        backend = backend_class(settings.backend)(settings.threads)
        try:
            estimate = backend.estimate_memory(model.weights, model.cache_spec, model.plan)
        finally:
            backend.close()
    except (SettingsError, BackendError):
        raise  # says nothing about the file
    except CauserieError as error:
        return None, None, error.title, error.advice
    memory = Memory(model.context_size, estimate.weights, estimate.kv_cache, estimate.arena)
    return memory, model.plan, "", ""


def _text(file: GGUFFile, key: str) -> str:
    """A string of the file; "" where it is missing or of another type, which is no reason to list nothing."""
    try:
        return file.metadata.get_string(key, "")
    except CauserieError:
        return ""


def _count(file: GGUFFile, key: str) -> int:
    try:
        return file.metadata.get_int(key, 0)
    except CauserieError:
        return 0

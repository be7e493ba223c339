"""What a model file is, for people: read from its header, nothing loaded, unsupported models included."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from engine.backends.registry import backend_class
from engine.chat_template import ChatTemplate
from engine.errors import BackendError, CauserieError, TemplateError, UnsupportedByBackendError
from engine.gguf.file_types import FILE_TYPE_KEY, FILE_TYPES
from engine.gguf.reader import GGUFFile
from engine.graph.plan import Plan
from engine.inspection import ModelOutline, outline
from engine.requests import LoadSettings
from engine.templates.choice import TemplateChoice, choose_template
from engine.templates.sample import sample_prompt
from engine.tokenizers import outline_tokenizer

T = TypeVar("T")

LONGEST_TEXT = 500
"""Characters of a name or a licence: nobody reads more, and a file may have millions."""
VOCABULARY_KEY = "tokenizer.ggml.tokens"


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
class TemplateFacts:
    """The chat template in use, as of `TemplateChoice`; names: of all templates of the file."""

    name: str
    origin: str
    reason: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of one model; text that the file lacks is "", a count 0.

    path: of the file that was opened; files: names of all its parts, beside it.
    types: weights (numbers) of each tensor type, the most common first; type_tensors: tensors of each.
    main_type: what the file calls its mixture of types, such as Q4_K_M, else the commonest of the layers.
    tokenizer_rule: by which text is split, tokenizer_rules what the file calls it, tokenizer_reason why that.
    template: None where nobody can say, as the file is damaged.
    memory: None where the model cannot be run.  problem and advice say why it cannot; both "" where it can.
    notices: sentences a person should see before using the model.
    """

    path: Path
    file_bytes: int
    name: str = ""
    family: str = ""
    licence: str = ""
    files: tuple[str, ...] = ()
    n_parameters: int = 0
    types: dict[str, int] | None = None
    type_tensors: dict[str, int] | None = None
    main_type: str = ""
    context_length: int = 0
    vocabulary_size: int = 0
    tokenizer_kind: str = ""
    tokenizer_rules: str = ""
    tokenizer_rule: str = ""
    tokenizer_reason: str = ""
    template: TemplateFacts | None = None
    memory: Memory | None = None
    problem: str = ""
    advice: str = ""
    notices: tuple[str, ...] = ()

    @property
    def has_template(self) -> bool:
        return self.template is not None and self.template.origin != "none"


def read_facts(path: Path, settings: LoadSettings | None = None) -> tuple[ModelFacts, Plan | None]:
    """The facts, and the largest plan where the model can be run.

    Raises `ModelFileError` and `UnsupportedModelError` where not even the header can be read, `TemplateError`
    where settings name no known template.
    """
    settings = settings or LoadSettings()
    with GGUFFile.open(path) as file:
        checks = _Checks()
        model, memory = checks.ask(lambda: _what_it_takes(file, settings)) or (None, None)
        tokenizer = checks.ask(lambda: outline_tokenizer(file.metadata))
        template = checks.ask(lambda: choose_template(file.metadata, settings.template))
        types: Counter[str] = Counter()
        layer_types: Counter[str] = Counter()
        for name, tensor in file.tensors.items():
            types[tensor.type.name] += tensor.n_elements
            if name.startswith("blk."):  # the embedding of a small model would outvote its layers
                layer_types[tensor.type.name] += tensor.n_elements
        family = _text(file, "general.architecture")
        counts = Counter(tensor.type.name for tensor in file.tensors.values())
        facts = ModelFacts(
            path=path,
            file_bytes=file.size,
            name=_text(file, "general.name"),
            family=family,
            licence=_text(file, "general.license"),
            files=tuple(part.name for part in file.paths),
            n_parameters=types.total(),
            types=dict(types.most_common()),
            type_tensors=dict(counts.most_common()),
            main_type=_main_type(file, layer_types or types),
            context_length=_count(file, f"{family}.context_length"),
            vocabulary_size=_length(file, VOCABULARY_KEY),
            tokenizer_kind=_text(file, "tokenizer.ggml.model"),
            tokenizer_rules=_text(file, "tokenizer.ggml.pre"),
            tokenizer_rule=tokenizer.rule if tokenizer else "",
            tokenizer_reason=tokenizer.reason if tokenizer else "",
            template=_template_facts(template) if template else None,
            memory=None if checks.problem else memory,
            problem=checks.problem,
            advice=checks.advice,
            notices=(
                *(tokenizer.warnings if tokenizer else ()),
                *(_template_notices(template.source) if template else ()),
                *(model.notices if model else ()),
            ),
        )
    return facts, model.plan if model else None


@dataclass(frozen=True, slots=True)
class TemplateText:
    """The chat template in use, what it makes of a sample, and what kept it from that; "" for what is not."""

    source: str
    sample: str
    problem: CauserieError | None


def read_template(path: Path, name: str = "") -> TemplateText:
    """name: as of `choose_template`.  Raises as `read_facts` does for a file that cannot be read."""
    with GGUFFile.open(path) as file:
        source = ""
        try:
            choice = choose_template(file.metadata, name)
            source = choice.source
            if not source:
                raise TemplateError(choice.reason, "`causerie complete` continues raw prompts.")
            return TemplateText(source, sample_prompt(source, file.metadata), None)
        except CauserieError as error:
            return TemplateText(source, "", error)


class _Checks:
    """Asks one thing after the other; the first that goes wrong is the problem, with its advice."""

    problem = ""
    advice = ""

    def ask(self, work: Callable[[], T]) -> T | None:
        """What work gives, or None.  What says nothing about the file is raised: a failure of a backend, a
        wrong name of a template."""
        try:
            return work()
        except CauserieError as error:
            about_file = isinstance(error, UnsupportedByBackendError)
            if isinstance(error, BackendError | TemplateError) and not about_file:
                raise
            if not self.problem:
                self.problem, self.advice = error.title, error.advice
            return None


def _what_it_takes(file: GGUFFile, settings: LoadSettings) -> tuple[ModelOutline, Memory]:
    """The model as it would be loaded, and its memory.  Raises as loading would."""
    model = outline(file, settings)
    backend = backend_class(settings.backend)(settings.threads, settings.repack)
    try:
        backend.require_types(model.weights)
        backend.require_operations(model.plan)
        return model, Memory(model.context_size, **dataclasses.asdict(model.memory_on(backend)))
    finally:
        backend.close()


def _template_facts(choice: TemplateChoice) -> TemplateFacts:
    return TemplateFacts(choice.name, choice.origin, choice.reason, choice.in_file)


def _template_notices(source: str) -> tuple[str, ...]:
    """What `load_model` will say of the template."""
    try:
        if source:
            ChatTemplate(source)
    except TemplateError as error:
        return (f"{error.title} This model can continue raw prompts, but not chat.",)
    return ()


def _main_type(file: GGUFFile, types: Counter[str]) -> str:
    if not types:
        return ""
    return FILE_TYPES.get(_count(file, FILE_TYPE_KEY, -1)) or types.most_common(1)[0][0]


def _text(file: GGUFFile, key: str) -> str:
    """A string of the file, long ones cut; "" where it is missing or of another type: no reason to stop."""
    try:
        return file.metadata.get_string(key, "")[:LONGEST_TEXT]
    except CauserieError:
        return ""


def _count(file: GGUFFile, key: str, missing: int = 0) -> int:
    try:
        return file.metadata.get_int(key, missing)
    except CauserieError:
        return missing


def _length(file: GGUFFile, key: str) -> int:
    try:
        return file.metadata.length(key)
    except CauserieError:
        return 0

"""A model on the fake backend: no file, no weights; real sessions, plans and (if asked for) tokenizer."""

from dataclasses import replace
from types import SimpleNamespace

from engine.backends.fake import FakeBackend, FakeBehaviour
from engine.backends.interface import CacheSpec, LayerCache
from engine.graph.operations import BatchShape, Node
from engine.graph.plan import Plan, Step


class FakeModel:
    """What `Session` and `generate` need of a `LoadedModel`.  windows: one layer each, 0 sees everything."""

    def __init__(
        self,
        n_vocabulary=300,
        context_size=64,
        prompt_chunk=8,
        windows=(0,),
        behaviour=None,
        tokenizer=None,
        template=None,
        path="fake.gguf",
    ):
        self.path = path
        self.tokenizer = tokenizer
        self.template = template
        self.context_size = context_size
        self.prompt_chunk = prompt_chunk
        self.description = SimpleNamespace(n_vocabulary=n_vocabulary, name="fake", architecture="fake")
        self.notices = ()
        self.memory = None
        self.behaviour = behaviour or FakeBehaviour()
        self.cache_spec = CacheSpec(
            tuple(LayerCache(index, 1, 4, window) for index, window in enumerate(windows)),
            context_size,
            max_batch=min(prompt_chunk, context_size),
        )
        self.backend = FakeBackend(behaviour=self.behaviour)
        self.weights = self.backend.load_weights({}, lambda share: None)
        self.closed = False

    def plan_for(self, n_tokens, n_outputs):
        shape = BatchShape(n_tokens, n_outputs)
        logits = Node("linear", "logits", (), (), (n_outputs, self.description.n_vocabulary))
        return Plan(shape, (Step(logits, 0),), arena_bytes=0)

    def new_context(self, n_sequences=1):
        max_batch = max(self.cache_spec.max_batch, n_sequences)
        return self.weights.new_context(
            replace(self.cache_spec, n_sequences=n_sequences, max_batch=max_batch)
        )

    def close(self):
        self.closed = True
        self.weights.close()

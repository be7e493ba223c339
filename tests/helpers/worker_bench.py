"""A worker under test: its loader serves models by path from memory, and its events are kept."""

import queue
import threading

from engine.backends.fake import FakeBehaviour
from engine.backends.interface import MemoryEstimate
from engine.events import GenerationEvent, is_terminal
from engine.requests import ChatRequest, LoadSettings, Message, TextPiece
from engine.worker import Worker
from tests.helpers.fake_chat import GREEDY, chat_model


class Bench:
    """A worker whose loader serves models by path, and the events it sends."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.behaviour = FakeBehaviour()
        self.events = queue.Queue()
        self.history = []
        self.models = []
        self.load_threads = set()
        self.failures = {}
        self.shares = [0, 0.25, 0.5, 0.75, 1]
        self.on_load_step = lambda share: None
        self.on_loaded = lambda model: None
        self.worker = Worker(self.events.put, self.load_model)

    def load_model(self, path, settings, on_progress):
        self.load_threads.add(threading.current_thread())
        if path in self.failures:
            raise self.failures[path]
        for share in self.shares:
            self.on_load_step(share)
            on_progress(share)
        size = settings.context_size or 400
        model = chat_model(self.tokenizer, path, context_size=size, behaviour=self.behaviour, path=path)
        model.memory = MemoryEstimate(1, 2, 3)
        self.models.append(model)
        self.on_loaded(model)
        return model

    def next(self):
        event = self.events.get(timeout=10)
        self.history.append(event)
        return event

    def until_end(self, request_id):
        """All events of a request; others are kept in history."""
        mine = []
        while not mine or not is_terminal(mine[-1]):
            event = self.next()
            if event.request_id == request_id:
                mine.append(event)
        return mine

    def load(self, path="hello", **settings):
        return self.until_end(self.worker.load(path, LoadSettings(**settings)))[-1]

    def ask(self, text="Hi", **request):
        return self.worker.chat(ChatRequest((Message("user", text),), **{"sampling": GREEDY, **request}))

    def reply(self, **request):
        return self.until_end(self.ask(**request))[-1].record.text

    def first_piece(self):
        while True:
            event = self.next()
            if isinstance(event, GenerationEvent) and isinstance(event.record, TextPiece):
                return event

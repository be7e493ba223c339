"""Causerie, the desktop chat app: command line, chat store, model library and (under app/ui) the window."""

__version__ = "0.1.0"

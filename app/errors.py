"""Errors that the app raises on purpose, beside the engine's; each has a title and a next step."""

from __future__ import annotations

from engine.errors import CauserieError


class DownloadError(CauserieError):
    """A file could not be fetched from any of its sources, or what came was another file."""

    default_advice = "Look at the network connection and the free disk space, then try again."


class FolderError(CauserieError):
    """A folder or file of the app cannot be read or written."""

    default_advice = "Look at its permissions and at the free space of the disk."


class CatalogueError(CauserieError):
    """The catalogue of known models is damaged, or has no model of that name."""

    default_advice = "`causerie models` lists the models known."


class ModelNotFoundError(CauserieError):
    """A command was given a model that is neither a file nor a known name."""

    default_advice = "Give the path of a .gguf file; `causerie models` lists those found."


class WindowError(CauserieError):
    """The window cannot open here: Qt or a display is missing."""

    default_advice = "Use `causerie chat` to chat in the terminal."


class ChatStoreError(CauserieError):
    """The chats cannot be read or written (disk full, read-only, damaged, of a newer version)."""

    default_advice = "Look at the free space of the disk and at the permissions of the data folder."


class OutputError(CauserieError):
    """What was asked for could not be written to where the output goes."""

    default_advice = "Free some space there, or send the output elsewhere."

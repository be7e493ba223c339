"""Commands in this process, with a tiny model on the fake backend."""

import json

import pytest

from app.__main__ import run_program
from tests.helpers.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def call(capsys):
    """call(arguments...) -> (exit status, stdout, stderr)."""

    def run(*arguments):
        try:
            status = run_program([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return run


@pytest.fixture
def call_json(call):
    """The same with --json; asserts success and gives the object."""

    def run(*arguments):
        status, out, err = call(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    return run

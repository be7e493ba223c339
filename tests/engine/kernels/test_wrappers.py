"""Wrong arrays are refused before compiled code, which checks nothing, could touch them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.kernels import (
    activation,
    attention,
    layer_kv,
    linear,
    linear_fixed,
    linear_plain,
    linear_scratch,
    normalise,
    rotary,
)
from engine.kernels.packing import pack_weight
from engine.requests import KVKind
from tests.helpers.weight_blocks import make_weight

Arrays = dict[str, Any]
Bind = Callable[..., Callable[[], None]]


def floats(*shape: int) -> NDArray[np.float32]:
    return np.ones(shape, np.float32)


def ints(*shape: int) -> NDArray[np.int32]:
    return np.zeros(shape, np.int32)


def linear_arguments(n: int) -> Arrays:
    return {
        "weight": pack_weight(make_weight("Q4_0", 65, 64, "random")),
        "x": floats(n, 64),
        "y": floats(n, 65),
        "scratch": linear_scratch.LinearScratch.allocate(20, 64, 2),
        "threads": 2,
    }


def attention_arguments() -> Arrays:
    return {
        "q": floats(3, 4, 32),
        "out": floats(3, 4, 32),
        "positions": ints(3),
        "sequences": ints(3),
        "cache": layer_kv.LayerKV.allocate(1, 2, 64, 32),
        "scratch": attention.AttentionScratch.allocate(3, 64, 4, 2, 32, 1),
        "window": 0,
        "scale": 1.0,
        "cap": 0.0,
    }


def store_arguments() -> Arrays:
    return {
        "k": floats(3, 2, 32),
        "v": floats(3, 2, 32),
        "positions": ints(3),
        "sequences": ints(3),
        "cache": layer_kv.LayerKV.allocate(1, 2, 64, 32),
    }


def rope_arguments() -> Arrays:
    return {
        "x": floats(3, 16),
        "out": floats(3, 16),
        "positions": ints(3),
        "cos": floats(9, 4),
        "sin": floats(9, 4),
        "head_size": 8,
        "interleaved": False,
        "threads": 1,
    }


OPERATIONS: dict[str, tuple[Bind, Callable[[], Arrays]]] = {
    "matvec": (linear.bind_linear, lambda: linear_arguments(1)),
    "matmul": (linear.bind_linear, lambda: linear_arguments(17)),
    "attention": (attention.bind_attention, attention_arguments),
    "store_kv": (layer_kv.bind_store_kv, store_arguments),
    "rope": (rotary.bind_rope, rope_arguments),
    "rms_norm": (
        normalise.bind_rms_norm,
        lambda: {"x": floats(3, 8), "weight": floats(8), "out": floats(3, 8), "eps": 1e-5, "threads": 1},
    ),
    "layer_norm": (
        normalise.bind_layer_norm,
        lambda: {
            "x": floats(6, 8),
            "weight": floats(3, 8),
            "bias": floats(3, 8),
            "out": floats(6, 8),
            "eps": 1e-5,
            "threads": 1,
        },
    ),
    "activation": (activation.bind_gelu, lambda: {"x": floats(3, 8), "out": floats(3, 8), "threads": 1}),
    "activation_erf": (
        activation.bind_gelu_erf,
        lambda: {"x": floats(3, 8), "out": floats(3, 8), "threads": 1},
    ),
    "silu": (
        activation.bind_silu_multiply,
        lambda: {"gate": floats(3, 8), "up": floats(3, 8), "out": floats(3, 8), "threads": 1},
    ),
    "gelu": (
        activation.bind_gelu_multiply,
        lambda: {"gate": floats(3, 8), "up": floats(3, 8), "out": floats(3, 8), "threads": 1},
    ),
    "add": (activation.bind_add, lambda: {"a": floats(3, 8), "b": floats(3, 8), "out": floats(3, 8)}),
    "scale": (activation.bind_scale, lambda: {"x": floats(3, 8), "out": floats(3, 8), "factor": 2.0}),
    "soft_cap": (
        activation.bind_soft_cap,
        lambda: {"x": floats(3, 8), "out": floats(3, 8), "cap": 5.0, "threads": 1},
    ),
}
OUTPUTS = ("y", "out")
FIRST_ARRAY_DECIDES = ("scale", "soft_cap", "rms_norm", "layer_norm", "rope", "activation", "activation_erf")
"""How many rows there are; what does not fit is `out`."""

ARRAYS = [
    (operation, name)
    for operation, (_, arguments) in OPERATIONS.items()
    for name, value in arguments().items()
    if isinstance(value, np.ndarray)
]
THREADED = [name for name, (_, arguments) in OPERATIONS.items() if "threads" in arguments()]


def refused(operation: str, error: type[Exception], **changes: Any) -> None:
    """The operation raises the error with the changed arguments, and reaches no kernel."""
    bind, arguments = OPERATIONS[operation]

    def reached(name: str) -> None:
        raise AssertionError(f"the kernel {name} was reached")

    changed = arguments() | changes
    with pytest.MonkeyPatch.context() as patch:
        for module in (activation, attention, linear_fixed, linear_plain, normalise, rotary):
            patch.setattr(module, "load_kernel", reached)
        with pytest.raises(error):
            bind(**changed)


def array_of(operation: str, name: str) -> NDArray[Any]:
    value = OPERATIONS[operation][1]()[name]
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize("operation", OPERATIONS)
def test_right_arguments_are_taken(operation: str) -> None:
    """Otherwise the tests below would show nothing."""
    bind, arguments = OPERATIONS[operation]
    bind(**arguments())()


@pytest.mark.parametrize(("operation", "name"), ARRAYS)
def test_other_dtypes(operation: str, name: str) -> None:
    array = array_of(operation, name)
    for dtype in (np.float64, np.float16, np.int64, array.dtype.newbyteorder()):
        refused(operation, TypeError, **{name: array.astype(dtype)})


@pytest.mark.parametrize(("operation", "name"), ARRAYS)
def test_other_shapes(operation: str, name: str) -> None:
    array = array_of(operation, name)
    for axis in range(array.ndim):
        longer = list(array.shape)
        longer[axis] += 1
        if name == "x" and operation in FIRST_ARRAY_DECIDES and axis == 0:
            refused(operation, ValueError, out=np.ones(longer, array.dtype))
        else:
            refused(operation, ValueError, **{name: np.ones(longer, array.dtype)})
    refused(operation, ValueError, **{name: array[None]})
    refused(operation, ValueError, **{name: array[..., None]})


@pytest.mark.parametrize(("operation", "name"), ARRAYS)
def test_strides(operation: str, name: str) -> None:
    """Of the right shape, but with gaps, or in Fortran's order."""
    array = array_of(operation, name)
    apart = np.ones((*array.shape[:-1], array.shape[-1] * 2), array.dtype)[..., ::2]
    refused(operation, ValueError, **{name: apart})
    if array.ndim > 1 and not np.asfortranarray(array).flags.c_contiguous:
        refused(operation, ValueError, **{name: np.asfortranarray(array)})


@pytest.mark.parametrize(("operation", "name"), [pair for pair in ARRAYS if pair[1] in OUTPUTS])
def test_outputs_that_are_read_only(operation: str, name: str) -> None:
    array = array_of(operation, name)
    array.flags.writeable = False
    refused(operation, ValueError, **{name: array})


@pytest.mark.parametrize("threads", [0, -1, 1025])
@pytest.mark.parametrize("operation", THREADED)
def test_numbers_of_threads(operation: str, threads: int) -> None:
    refused(operation, ValueError, threads=threads)


@pytest.mark.parametrize(("operation", "source"), [("matvec", "x"), ("matmul", "x"), ("attention", "q")])
def test_outputs_that_overlap_what_is_read_again(operation: str, source: str) -> None:
    arguments = OPERATIONS[operation][1]()
    output = next(name for name in OUTPUTS if name in arguments)
    memory = floats(arguments[source].size + arguments[output].size)
    first = memory[: arguments[source].size].reshape(arguments[source].shape)
    begins = arguments[source].size - 1
    second = memory[begins : begins + arguments[output].size].reshape(arguments[output].shape)
    refused(operation, ValueError, **{source: first, output: second})


@pytest.mark.parametrize(
    ("operation", "source"),
    [
        ("rope", "x"),
        ("rms_norm", "x"),
        ("layer_norm", "x"),
        ("activation", "x"),
        ("activation_erf", "x"),
        ("silu", "gate"),
        ("gelu", "up"),
        ("add", "a"),
        ("add", "b"),
        ("scale", "x"),
        ("soft_cap", "x"),
    ],
)
def test_outputs_that_overlap_a_part(operation: str, source: str) -> None:
    """In place is allowed; a shifted output would overwrite what is yet to be read."""
    array = array_of(operation, source)
    memory = floats(array.size + 1)
    shifted = {source: memory[:-1].reshape(array.shape), "out": memory[1:].reshape(array.shape)}
    refused(operation, ValueError, **shifted)


@pytest.mark.parametrize(
    ("operation", "changes"),
    [
        ("matvec", {"x": floats(0, 64), "y": floats(0, 65)}),
        ("matmul", {"scratch": linear_scratch.LinearScratch.allocate(3, 64, 2)}),
        ("matmul", {"scratch": linear_scratch.LinearScratch.allocate(20, 64, 1)}),
        ("attention", {"window": -1}),
        ("attention", {"cap": -1.0}),
        ("attention", {"scratch": attention.AttentionScratch.allocate(3, 64, 4, 2, 64, 1)}),
        ("attention", {"scratch": attention.AttentionScratch.allocate(3, 64, 6, 2, 32, 1)}),
        ("attention", {"scratch": attention.AttentionScratch.allocate(2, 64, 4, 2, 32, 1)}),
        ("attention", {"scratch": attention.AttentionScratch.allocate(3, 63, 4, 2, 32, 1)}),
        (
            "attention",
            {"q": floats(0, 4, 32), "out": floats(0, 4, 32), "positions": ints(0), "sequences": ints(0)},
        ),
        ("rope", {"head_size": 0}),
        ("rope", {"head_size": 5}),
        ("rope", {"head_size": 4, "x": floats(3, 16)}),
        ("rms_norm", {"eps": -1.0}),
        ("rms_norm", {"x": floats(3, 0), "weight": floats(0), "out": floats(3, 0)}),
        ("layer_norm", {"eps": -1.0}),
        ("layer_norm", {"x": floats(5, 8), "out": floats(5, 8)}),
        ("layer_norm", {"weight": floats(0, 8), "bias": floats(0, 8)}),
        ("layer_norm", {"weight": floats(2, 8)}),
        ("layer_norm", {"bias": floats(8)}),
        (
            "layer_norm",
            {"x": floats(3, 0), "weight": floats(3, 0), "bias": floats(3, 0), "out": floats(3, 0)},
        ),
        ("soft_cap", {"cap": 0.0}),
        ("soft_cap", {"cap": float("nan")}),
    ],
)
def test_arguments_that_do_not_fit(operation: str, changes: Arrays) -> None:
    refused(operation, ValueError, **changes)


@pytest.mark.parametrize("operation", ["attention", "store_kv"])
@pytest.mark.parametrize("kind", ["f32", "f16", "q8"])
def test_caches_whose_parts_do_not_fit(operation: str, kind: KVKind) -> None:
    whole = layer_kv.LayerKV.allocate(1, 2, 64, 32, kind)
    longer = layer_kv.LayerKV.allocate(1, 2, 128, 32, kind)
    other = layer_kv.LayerKV.allocate(1, 2, 64, 32, "f16" if kind == "q8" else "q8")
    for name in ("keys", "values", "key_scales", "value_scales"):
        if getattr(longer, name).size:
            refused(operation, ValueError, cache=replace(whole, **{name: getattr(longer, name)}))
    refused(operation, ValueError, cache=replace(whole, values=whole.values[:, :, :63].copy()))
    refused(operation, ValueError, cache=replace(whole, keys=whole.keys.swapaxes(3, 4)))
    refused(operation, TypeError, cache=replace(whole, keys=whole.keys.astype(np.int16)))
    refused(operation, TypeError, cache=replace(whole, values=other.values))
    refused(operation, ValueError, cache=replace(whole, key_scales=other.key_scales))
    refused(operation, ValueError, cache=replace(whole, value_scales=other.value_scales))


def test_caches_that_are_read_only_take_nothing() -> None:
    for name in ("keys", "values"):
        cache = layer_kv.LayerKV.allocate(1, 2, 64, 32)
        getattr(cache, name).flags.writeable = False
        refused("store_kv", ValueError, cache=cache)


@pytest.mark.parametrize("threads", [0, 1025])
def test_threads_of_scratch_and_packing(threads: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        linear_scratch.LinearScratch.allocate(1, 64, threads)
    with pytest.raises(ValueError, match="threads"):
        attention.AttentionScratch.allocate(1, 64, 4, 2, 32, threads)
    with pytest.raises(ValueError, match="threads"):
        pack_weight(make_weight("F32", 1, 1, "random"), threads)


def test_heads_that_do_not_share_evenly() -> None:
    with pytest.raises(ValueError, match="evenly"):
        attention.AttentionScratch.allocate(1, 64, 5, 2, 32, 1)


def test_things_that_are_no_arrays() -> None:
    refused("matvec", TypeError, x=[[1.0] * 64])
    refused("rms_norm", TypeError, weight=[1.0] * 8)
    refused("add", TypeError, b=None)

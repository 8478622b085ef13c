"""Whether a causal model of Transformers takes what the stream gives it, and does what is meant with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from recipe.errors import Problem, RecipeError
from recipe.integrations.torch.losses import IGNORED

Inputs = dict[str, Any]
Call = Callable[[Inputs], tuple[torch.Tensor, Any]]
_OTHER_LABELS = "set labels: inputs in the recipe, which the model shifts by itself"
_OTHER_MASK = (
    "take another model; or attention='flash' where it has FlashAttention; or attention='none', under which "
    "documents of a row see each other"
)
_ALIKE = 0.1
"""Losses of one batch that differ by less than this part are one loss, under other dropout."""


def call_problems(model: Any, labels: str, attention: str) -> list[Problem]:
    """Arguments that the stream gives and the model's ``forward`` has no place for."""
    taken = inspect.signature(model.forward).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values()):
        return []
    wanted = {"position_ids": "take a model whose positions can be told: they begin anew with each document"}
    if labels == "shifted":
        wanted["shift_labels"] = _OTHER_LABELS
    if attention == "mask":
        wanted["attention_mask"] = _OTHER_MASK
    if attention == "flash":
        wanted["cu_seq_lens_q"] = "take attention='mask'"
    expected = f"a model that takes it; {type(model).__name__} does not"
    return [Problem(name, "for forward", expected, fix) for name, fix in wanted.items() if name not in taken]


def first_loss(call: Call, inputs: Inputs, *, is_models_own: bool) -> tuple[torch.Tensor, Any]:
    """The loss and outputs of a call, the first of a training, which shows what the model is.

    Labels that are shifted are hidden from it: it is to take ``shift_labels``. One that takes ``labels``
    instead, and shifts them once more, has none, and its loss is none.

    Args:
        call: of the Trainer's loss.
        inputs: of the model.
        is_models_own: whether the model itself computes the loss.

    Raises:
        RecipeError: the model does not look at ``shift_labels``, or takes no mask of four dimensions.
    """
    shown = dict(inputs)
    shifted = inputs.get("shift_labels")
    is_shown = is_models_own and shifted is not None and bool((shifted != IGNORED).any())
    if is_shown:
        shown["labels"] = torch.full_like(shown["labels"], IGNORED)
    try:
        loss, outputs = call(shown)
    except (RuntimeError, ValueError, IndexError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and _is_the_masks_fault(call, inputs):
            raise _no_such_mask(error) from error
        raise
    if is_shown and _is_suspicious(loss, outputs):
        true, told = float(_again(call, inputs)), float(loss.detach())
        if true == true and not abs(true - told) <= _ALIKE * abs(true):
            raise _shifts_once_more()
    return loss, outputs


def _is_suspicious(loss: torch.Tensor, outputs: Any) -> bool:
    """No loss at all, or one that may be of something else than labels."""
    value = float(loss.detach())
    others = outputs.get("aux_loss") if isinstance(outputs, dict) else None
    return value == 0 or not torch.isfinite(loss.detach()).all() or others is not None


def _again(call: Call, inputs: Inputs) -> torch.Tensor:
    """The loss once more, without a trace in gradients or random numbers."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.no_grad(), torch.random.fork_rng(devices=devices):
        return call(dict(inputs))[0]


def _is_the_masks_fault(call: Call, inputs: Inputs) -> bool:
    mask = inputs.get("attention_mask")
    if mask is None or mask.dim() != 4:
        return False
    try:
        _again(call, {name: value for name, value in inputs.items() if name != "attention_mask"})
    except Exception:
        return False
    return True


def _no_such_mask(error: Exception) -> RecipeError:
    said = str(error).partition("\n")[0]
    return RecipeError.single(
        "a model that cannot keep documents apart by a mask",
        "attention",
        given=f"mask, on which the model fails: {said:.200}",
        expected="a model that takes an attention mask of [rows, 1, context, context]",
        fix=_OTHER_MASK,
    )


def _shifts_once_more() -> RecipeError:
    return RecipeError.single(
        "a model that would be trained on the token after the next",
        "labels",
        given="shifted, with a model that does not look at shift_labels and shifts labels by itself",
        expected="a model whose loss takes shift_labels, as Transformers' own do",
        fix=_OTHER_LABELS,
    )

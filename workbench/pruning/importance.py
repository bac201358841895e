"""How much a unit matters: norms of its weights, its batch norm's factor, or what removing it changes.

`taylor` is the first-order estimate of Molchanov et al., "Importance Estimation for Neural Network Pruning"
(CVPR 2019): the square of the sum of weight times gradient over all weights of the unit. Without a loss the
gradient is that of the outputs along random signs, so that its mean square is the squared change of all
outputs (Hutchinson's estimator); no labels are needed then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from workbench.backends.programs import flat_program
from workbench.errors import RecipeError
from workbench.pruning.coupling import Family, Slot

__all__ = ["CRITERIA", "Scores", "gradients", "inputs_of", "scores"]

Scores = npt.NDArray[np.float64]
CRITERIA = ("l1", "l2", "batch_norm", "taylor")


def scores(
    program: ExportedProgram, family: Family, criterion: str, products: Mapping[str, torch.Tensor]
) -> tuple[Scores, str]:
    """The importance of each unit of a family, scaled to a mean of 1.

    Args:
        program: Whose weights are looked at.
        family: The family.
        criterion: One of `CRITERIA`.
        products: What `gradients` gave, for `taylor`.

    Returns:
        The scores, and the criterion that was used: batch norms' factors only exist where there are any.
    """
    if criterion == "taylor":
        return _scaled(_taylor(family, products)), criterion
    if criterion == "batch_norm":
        if family.scales:
            return _scaled(_summed(program, family, family.scales, "l1")), criterion
        criterion = "l2"
    return _scaled(_summed(program, family, family.out, criterion)), criterion


def _scaled(values: Scores) -> Scores:
    mean = float(values.mean())
    return values / mean if mean > 0 and np.isfinite(mean) else values


def _summed(program: ExportedProgram, family: Family, slots: Iterable[Slot], norm: str) -> Scores:
    total = np.zeros(len(family.units))
    for slot in slots:
        tensor = _tensor(program, slot[0]).detach().double()
        rows = tensor.movedim(slot[1], 0).reshape(tensor.shape[slot[1]], -1)
        strength = rows.abs().sum(1) if norm == "l1" else rows.square().sum(1)
        own = _per_unit(family, slot, strength.numpy())
        total += _scaled(own if norm == "l1" else np.sqrt(own))
    return total


def _per_unit(family: Family, slot: Slot, values: npt.NDArray[Any]) -> Scores:
    """The sum of an index's values over the indices of each unit."""
    units = family.slots[slot]
    member = units >= 0
    places = np.searchsorted(family.units, units[member])
    return np.bincount(places, weights=values[member], minlength=len(family.units)).astype(np.float64)


def _taylor(family: Family, products: Mapping[str, torch.Tensor]) -> Scores:
    total: Any = 0.0
    for name, dim in family.out:
        product = products[name]  # (n, *shape)
        rows = product.movedim(dim + 1, 1).reshape(product.shape[0], product.shape[dim + 1], -1).sum(2)
        total = total + np.stack([_per_unit(family, (name, dim), row.numpy()) for row in rows.double()])
    squares: Scores = np.square(total).mean(axis=0)
    return squares


def _tensor(program: ExportedProgram, name: str) -> torch.Tensor:
    found = program.state_dict.get(name)
    return found if found is not None else program.constants[name]  # type: ignore[no-any-return]


def gradients(
    program: ExportedProgram,
    names: Iterable[str],
    data: Iterable[Any],
    loss: Callable[[Any, Any], torch.Tensor] | None,
    seed: int,
) -> dict[str, torch.Tensor]:
    """Weight times gradient of parameters, by sample.

    Args:
        program: It is only read.
        names: The parameters.
        data: Inputs; with a loss, pairs of inputs and target.
        loss: `loss(outputs, target)`; without it the outputs are weighted with random signs.
        seed: Of the signs.

    Raises:
        RecipeError: The data is empty, or an item does not fit the program.
    """
    flat = flat_program(program)
    leaves = {name: _tensor(program, name).detach().clone().requires_grad_(True) for name in names}
    for name, leaf in leaves.items():
        (flat.state_dict if name in flat.state_dict else flat.constants)[name] = leaf
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, list[torch.Tensor]] = {name: [] for name in leaves}
    for item in data:
        inputs, target = item if loss is not None else (item, None)
        try:
            with torch.enable_grad():
                outputs = flat.module()(*pytree.tree_leaves(inputs_of(inputs)))
        except Exception as error:
            raise RecipeError(
                "an item of the pruning data does not fit the program", stage="prune", found=str(error)
            ) from error
        with torch.enable_grad():
            value = _probe(outputs, generator) if loss is None else loss(_single(outputs), target)
        grads = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
        for (name, leaf), grad in zip(leaves.items(), grads, strict=True):
            found[name].append(torch.zeros_like(leaf) if grad is None else (leaf * grad).detach())
    if not any(found.values()):
        raise RecipeError(
            "the pruning data is empty",
            stage="prune",
            expected="at least one item",
            hint="an iterator is empty after its first use: give a list, or a function that makes it anew",
        )
    return {name: torch.stack(values) for name, values in found.items()}


def _probe(outputs: Any, generator: torch.Generator) -> torch.Tensor:
    total = torch.zeros(())
    for value in pytree.tree_leaves(outputs):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            signs = torch.randint(0, 2, value.shape, generator=generator).to(value.dtype) * 2 - 1
            total = total + (value * signs).sum()
    return total


def _single(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple) and len(outputs) == 1 else outputs


def inputs_of(item: Any) -> tuple[Any, ...]:
    """The positional inputs that an item of data stands for: a tensor, or several in a tuple or list."""
    return tuple(item) if isinstance(item, list | tuple) else (item,)

"""What the parameter groups of a PyTorch optimizer say, as options that the file carries."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

from ._refused import Refused

_SAME = ("betas", "eps", "momentum")  # over all groups
_ABSENT = {"amsgrad": False, "maximize": False, "nesterov": False, "dampening": 0,
           "lr_decay": 0, "initial_accumulator_value": 0}


def _kind(optimizer: Any) -> str:
    import torch

    for kind, name in ((torch.optim.AdamW, "adamw"), (torch.optim.Adam, "adam"), (torch.optim.SGD, "sgd"),
                       (torch.optim.Adagrad, "adagrad")):
        if type(optimizer) is kind:
            decoupled = name == "adam" and optimizer.param_groups[0].get("decoupled_weight_decay")
            return "adamw" if decoupled else name
    raise Refused(f"optimizer {type(optimizer).__name__} is not available: SGD, Adam, AdamW and Adagrad of torch.optim are")


def _check_groups(optimizer: Any) -> None:
    groups = optimizer.param_groups
    for at, group in enumerate(groups):
        for name, without in _ABSENT.items():
            if group.get(name, without) != without:
                raise Refused(f"parameter group {at} of {type(optimizer).__name__} has {name}={group[name]}, which is "
                              f"not available: {name}={without}")
        for name in _SAME:
            if group.get(name) != groups[0].get(name):
                raise Refused(f"parameter groups 0 and {at} of {type(optimizer).__name__} have {name}="
                              f"{groups[0].get(name)} and {group.get(name)}, expected one for all")
    # A new Adagrad has sums of 0 already, and has counted no step.
    if any(float(state.get("step", 1)) for state in optimizer.state.values()):
        raise Refused(f"{type(optimizer).__name__} has taken steps, whose state the file does not hold: export with a "
                      "new optimizer")


def _number(value: Any) -> str:
    return repr(float(value))


def optimizer_options(optimizer: Any, names: Mapping[int, str]) -> Tuple[Dict[str, Any], List[int]]:
    """Options by name, and the parameters (by id) that no group has. `names` gives the file's name of a parameter."""
    kind = _kind(optimizer)
    _check_groups(optimizer)
    groups = [(group, [names[id(one)] for one in group["params"] if id(one) in names]) for group in optimizer.param_groups]
    groups = [(group, members) for group, members in groups if members]
    grouped = {id(one) for group, _ in groups for one in group["params"]}
    left_out = [key for key in names if key not in grouped]
    if not groups:
        raise Refused(f"no parameter group of {type(optimizer).__name__} has a parameter of this model")
    first = groups[0][0]
    rates, decays = ([float(group[name]) for group, _ in groups] for name in ("lr", "weight_decay"))
    rate, decay = max(rates), max(decays)
    options: Dict[str, Any] = {"optimizer": kind, "lr": _number(rate), "weight-decay": _number(decay)}
    if kind == "sgd":
        options["momentum"] = _number(first["momentum"])
    else:
        if kind != "adagrad":
            options["betas"] = ",".join(_number(one) for one in first["betas"])
        options["eps"] = _number(first["eps"])
    scales: Dict[str, List[str]] = {"lr-scale": [], "decay-scale": []}
    for (_, members), own_rate, own_decay in zip(groups, rates, decays):
        for key, own, whole in (("lr-scale", own_rate, rate), ("decay-scale", own_decay, decay)):
            if own != whole:
                scales[key] += [f"{name}={_number(own / whole)}" for name in members]
    options.update((key, values) for key, values in scales.items() if values)
    return options, left_out

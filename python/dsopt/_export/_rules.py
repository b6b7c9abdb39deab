"""What is called instead of functions that exporters write with another meaning, or not at all."""
from __future__ import annotations

import functools
import math
from typing import Any, Optional

import numpy as np
import torch

from .._compat import builtin_function, nn_function, tree_map
from . import _operators as operators
from ._quantize import rounded
from ._recorder import RULES, Recorder, detached, replacement, rule, tensors_in
from ._refused import Refused

_REDUCTIONS = ("none", "mean", "sum")


def value_of(arguments: Any, keywords: Any, at: int, name: str, otherwise: Any) -> Any:
    return arguments[at] if len(arguments) > at else keywords.get(name, otherwise)


def _reduced(values: Any, reduction: int) -> Any:
    return values if reduction == 0 else values.sum()


@rule(nn_function("cross_entropy_loss"))
def _cross_entropy(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Smoothing and soft targets, spelled out as PyTorch computes them."""
    scores, target = arguments[0], arguments[1]
    weight = value_of(arguments, keywords, 2, "weight", None)
    reduction = value_of(arguments, keywords, 3, "reduction", 1)
    ignored = value_of(arguments, keywords, 4, "ignore_index", -100)
    smoothing = value_of(arguments, keywords, 5, "label_smoothing", 0.0)
    if not smoothing and not target.is_floating_point():
        return function(*arguments, **keywords)
    axis = 0 if scores.dim() == 1 else 1
    classes = scores.size(axis)
    shape = [classes if i == axis else 1 for i in range(scores.dim())]
    logarithms = torch.log_softmax(scores, axis)
    weighted = logarithms if weight is None else logarithms * weight.reshape(shape)
    if target.is_floating_point():
        if smoothing:
            target = target * (1 - smoothing) + smoothing / classes
        losses = -(weighted * target).sum(axis)
        return losses.sum() / (scores.numel() / classes) if reduction == 1 else _reduced(losses, reduction)
    counted = target != ignored
    chosen = torch.where(counted, target, torch.zeros_like(target))
    zero = torch.zeros((), dtype=scores.dtype, device=scores.device)
    plain = torch.where(counted, -torch.gather(weighted, axis, chosen.unsqueeze(axis)).squeeze(axis), zero)
    spread = torch.where(counted, -weighted.sum(axis), zero)
    total = (1 - smoothing) * _reduced(plain, reduction) + smoothing / classes * _reduced(spread, reduction)
    if reduction != 1:
        return total
    factors = torch.ones_like(plain) if weight is None else torch.nn.functional.embedding(
        chosen, weight.unsqueeze(1)).squeeze(-1)
    return total / torch.where(counted, factors, zero).sum()


@rule(torch.ctc_loss)
def _ctc_loss(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    log_probs, targets, input_lengths, target_lengths = arguments[:4]
    blank = value_of(arguments, keywords, 4, "blank", 0)
    reduction = value_of(arguments, keywords, 5, "reduction", 1)
    zero_infinity = value_of(arguments, keywords, 6, "zero_infinity", False)

    def lengths(values: Any) -> Any:
        if isinstance(values, torch.Tensor):
            return values
        return torch.tensor(list(values) if isinstance(values, (list, tuple)) else [values])

    input_lengths, target_lengths = lengths(input_lengths), lengths(target_lengths)
    if log_probs.dim() == 2:  # one sequence
        losses = operators.ctc_loss(log_probs.unsqueeze(1), targets.reshape(1, -1), input_lengths.reshape(1),
                                    target_lengths.reshape(1), blank, _REDUCTIONS[reduction], zero_infinity)
        return losses.squeeze(0) if reduction == 0 else losses
    return operators.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction],
                              zero_infinity)


@rule(torch.index_add, torch.Tensor.index_add, torch.Tensor.index_add_)
def _index_add(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """By places that may be one, which the older exporter looks for in the example alone."""
    x, dim, index, source = (value_of(arguments, keywords, at, name, None) for at, name in enumerate(("input", "dim", "index", "source")))
    changes = function is torch.Tensor.index_add_
    if not torch.jit.is_tracing():
        return recorder.change(function, arguments, keywords) if changes else function(*arguments, **keywords)
    places = index.to(torch.long).reshape([-1 if at == dim % x.dim() else 1 for at in range(x.dim())]).expand_as(source)
    given = (x, dim, places, source * keywords["alpha"] if keywords.get("alpha", 1) != 1 else source)
    return recorder.change(torch.Tensor.scatter_add_, given, {}) if changes else torch.scatter_add(*given)


@rule(torch.masked_scatter, torch.Tensor.masked_scatter, torch.Tensor.masked_scatter_)
def _masked_scatter(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """In the order of the places that are set: each takes what lies as far into the source as there are such places before it."""
    x, mask, source = (value_of(arguments, keywords, at, name, None) for at, name in enumerate(("input", "mask", "source")))
    if function is not torch.Tensor.masked_scatter_:
        x, mask = torch.broadcast_tensors(x, mask)
    else:
        mask = mask.expand_as(x)
    wide, size = mask.dim() > 1 and mask.stride(-1) == 0 and source.numel() % x.size(-1) == 0, x.size(-1)
    given, chosen = (source.reshape(-1, size), mask.select(-1, 0)) if wide else (source.reshape(-1), mask)
    places = (chosen.reshape(-1).to(torch.long).cumsum(0) - 1).clamp(0, given.size(0) - 1)
    taken = torch.where(mask, given.index_select(0, places).reshape(x.shape), x)
    return recorder.change(torch.Tensor.copy_, (x, taken), {}) if function is torch.Tensor.masked_scatter_ else taken


@rule(torch.lgamma, torch.Tensor.lgamma, torch.special.gammaln)
def _lgamma(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of positive numbers, by Stirling's series from 4 up: no exporter has it."""
    x = arguments[0]
    low = x < 4
    small = torch.where(low, x, torch.ones((), dtype=x.dtype))
    z = torch.where(low, small + 4, x)
    inverse = 1 / z
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    whole = (z - 0.5) * torch.log(z) - z + 0.5 * math.log(2 * math.pi) + series
    below = torch.where(low, torch.log(small * (small + 1) * (small + 2) * (small + 3)), torch.zeros((), dtype=x.dtype))
    return torch.where(x > 0, whole - below, torch.full((), math.nan, dtype=x.dtype))


@rule(torch.embedding)
def _embedding(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    weight = arguments[0]
    row = value_of(arguments, keywords, 2, "padding_idx", -1)
    if value_of(arguments, keywords, 3, "scale_grad_by_freq", False):
        raise Refused(f"{recorder.place()} looks up an embedding with scale_grad_by_freq, which the file cannot say: "
                      "export it with scale_grad_by_freq=False")
    name = recorder.own_parameter(weight)
    if name and weight.requires_grad:
        recorder.padding.setdefault(name, []).append(None if row < 0 else row)
    result = function(*arguments, **keywords)
    if row < 0 or name or not weight.requires_grad:
        return result
    # The rows of something computed: no option names it.
    return torch.where((arguments[1] == row).unsqueeze(-1), operators.stop_gradient(result), result)


@rule(torch.embedding_renorm_)
def _renormalize(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    raise Refused(f"{recorder.place()} looks up an embedding with max_norm, by which PyTorch changes the "
                  "weights in forward: scale what is looked up instead, as in "
                  "x * (max_norm / x.norm(dim=-1, keepdim=True)).clamp(max=1)")


@rule(torch.embedding_bag)
def _embedding_bag(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Sums and means of look-ups by the bag that each belongs to."""
    weight, indices, offsets = arguments[:3]
    scale = value_of(arguments, keywords, 3, "scale_grad_by_freq", False)
    mode = value_of(arguments, keywords, 4, "mode", 0)
    factors = value_of(arguments, keywords, 6, "per_sample_weights", None)
    includes_last = value_of(arguments, keywords, 7, "include_last_offset", False)
    row = value_of(arguments, keywords, 8, "padding_idx", None)
    if scale or mode == 2:
        raise Refused(f"{recorder.place()} calls embedding_bag with {'scale_grad_by_freq' if scale else 'mode max'}, "
                      "which the file cannot say: look up with nn.Embedding and reduce what it gives")
    if includes_last:
        offsets = offsets[:-1]
    found = _embedding(recorder, torch.embedding, (weight, indices, -1 if row is None else row), {})
    if factors is not None:
        found = found * factors.unsqueeze(-1)
    bags = offsets.size(0)
    begins = torch.zeros(indices.size(0) + 1, dtype=torch.long).index_add(0, offsets.long(),
                                                                          torch.ones_like(offsets.long()))
    bag = begins.cumsum(0)[:-1] - 1
    counted = torch.ones_like(bag) if row is None else (indices != row).to(bag.dtype)
    found = found * counted.unsqueeze(-1).to(found.dtype)
    total = torch.zeros(bags, weight.size(1), dtype=found.dtype).index_add(0, bag, found)
    if mode == 1:
        counts = torch.zeros(bags, dtype=found.dtype).index_add(0, bag, counted.to(found.dtype))
        total = total / counts.clamp(min=1).unsqueeze(-1)
    return total, bag, bag, bag


@rule(builtin_function("cdist"))
def _distances(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """No exporter has it. A distance of zero has no gradient."""
    x, y = arguments[:2]
    p = float(value_of(arguments, keywords, 2, "p", 2.0))
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    if p == 1:
        return apart.abs().sum(-1)
    if p == math.inf:
        return apart.abs().amax(-1)
    powers = (apart * apart if p == 2 else apart.abs().pow(p)).sum(-1)
    equal = powers == 0
    roots = torch.where(equal, torch.ones((), dtype=powers.dtype), powers)
    return torch.where(equal, torch.zeros((), dtype=powers.dtype), roots.sqrt() if p == 2 else roots.pow(1 / p))


@rule(builtin_function("einsum"))
def _einsum(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of complex numbers, by their parts."""
    equation, operands = arguments[0], list(arguments[1])
    if not any(one.is_complex() for one in operands):
        return function(*arguments, **keywords)
    parts = [torch.view_as_real(one).unbind(-1) if one.is_complex() else (one, None) for one in operands]
    terms: Any = [((), 0)]  # operands, and how many of them are imaginary
    for real, imaginary in parts:
        terms = [((*chosen, part), count + which) for chosen, count in terms
                 for which, part in enumerate((real, imaginary)) if part is not None]
    sums = [sum((-1) ** (count // 2) * function(equation, list(chosen)) for chosen, count in terms
                if count % 2 == odd) for odd in (0, 1)]
    return torch.view_as_complex(torch.stack(sums, -1))


def _parts(value: Any) -> Any:
    """A tensor's real and imaginary part."""
    if not value.is_complex():
        return value, torch.zeros_like(value)
    return torch.view_as_real(torch.resolve_conj(value)).unbind(-1)


def _joined(real: Any, imaginary: Any) -> Any:
    return torch.view_as_complex(torch.stack([real, imaginary], -1)) if isinstance(real, torch.Tensor) else real


#: What only moves or chooses elements, and exporters have of real numbers alone.
_MOVES = ("unsqueeze", "expand", "expand_as", "broadcast_to", "select", "unbind", "chunk", "split", "tensor_split",
          "index_select", "repeat", "repeat_interleave", "tile", "gather", "where", "unflatten")


@rule(*(getattr(owner, name) for owner in (torch, torch.Tensor) for name in _MOVES if hasattr(owner, name)))
def _move(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of complex numbers, by their parts."""
    if not any(one.is_complex() for one in tensors_in((arguments, keywords))):
        return function(*arguments, **keywords)

    def part(at: int) -> Any:
        def of(value: Any) -> Any:
            return _parts(value)[at] if isinstance(value, torch.Tensor) and value.is_complex() else value

        return function(*tree_map(of, tuple(arguments)), **tree_map(of, keywords))

    real, imaginary = part(0), part(1)
    return _joined(real, imaginary) if isinstance(real, torch.Tensor) else type(real)(map(_joined, real, imaginary))


@rule(torch.as_strided, torch.Tensor.as_strided)
def _as_strided(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """By the place in memory, which exporters take for the place in the tensor."""
    x, size, stride = (value_of(arguments, keywords, at, name, None) for at, name in enumerate(("input", "size", "stride")))
    offset = value_of(arguments, keywords, 3, "storage_offset", None)
    places = np.full(list(map(int, size)), 0 if offset is None else offset - x.storage_offset())
    for axis, step in enumerate(stride):
        places = places + step * np.arange(int(size[axis])).reshape([-1] + [1] * (len(size) - axis - 1))
    order = sorted(range(x.dim()), key=lambda axis: (-int(x.stride(axis)), -int(x.size(axis))))
    count = 1
    for axis in reversed(order):
        if x.size(axis) != 1 and x.stride(axis) != count:
            count = 0
        count *= int(x.size(axis))
    if places.size and (places.min() < 0 or places.max() >= count):
        raise Refused(f"{recorder.place()} reads by as_strided what is no element of the tensor that it is called on: call it on a tensor "
                      "that has its memory to itself (x.contiguous()), or use x.unfold or an index")
    moved = x.permute(order).reshape(-1)
    result = torch.index_select(moved, 0, torch.from_numpy(places.reshape(-1))).reshape(list(places.shape))
    recorder.sever(result)
    return result


@rule(torch.polar)
def _polar(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    length, angle = arguments[0], value_of(arguments, keywords, 1, "angle", None)
    return _joined(length * torch.cos(angle), length * torch.sin(angle))


@rule(torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine)
def _fake_quantize(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    return rounded(function, arguments, keywords)


@rule(torch.median, torch.Tensor.median)
def _median(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """The lower one of what is sorted."""
    x, dim = arguments[0], value_of(arguments, keywords, 1, "dim", None)
    values = x.flatten() if dim is None else x
    axis = 0 if dim is None else dim
    ordered = torch.sort(values, axis)
    at = (values.size(axis) - 1) // 2
    if dim is None:
        return ordered.values[at]
    keep = value_of(arguments, keywords, 2, "keepdim", False)
    found = [one.narrow(axis, at, 1) if keep else one.select(axis, at) for one in (ordered.values, ordered.indices)]
    return torch.return_types.median(found)


@rule(torch.cumprod, torch.Tensor.cumprod)
def _cumprod(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """By doubling: each place times what lies 1, 2, 4, ... before it."""
    x, dim = arguments[0], value_of(arguments, keywords, 1, "dim", 0)
    if keywords.get("dtype") is not None:
        x = x.to(keywords["dtype"])
    size, step = x.size(dim), 1
    while step < size:
        before = torch.cat([torch.ones_like(x.narrow(dim, 0, step)), x.narrow(dim, 0, size - step)], dim)
        x, step = x * before, 2 * step
    return x


@rule(nn_function("adaptive_max_pool2d"))
def _adaptive_max_pool(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    x, sizes = arguments[0], value_of(arguments, keywords, 1, "output_size", None)
    if any(whole % part for whole, part in zip(x.shape[-2:], sizes)):
        raise Refused(f"{recorder.place()} pools {list(x.shape[-2:])} adaptively to {list(sizes)}, which do not divide them: "
                      "torch.nn.functional.max_pool2d with a kernel and a stride, or a size that divides")
    kernel = [whole // part for whole, part in zip(x.shape[-2:], sizes)]
    return torch.nn.functional.max_pool2d(x, kernel, kernel, return_indices=True)


@rule(builtin_function("_pack_padded_sequence"))
def _pack(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    raise Refused(f"{recorder.place()} packs sequences, whose lengths one program cannot follow: give the recurrent network the "
                  "padded batch, and read of its output what the lengths say (torch.where with a mask, or gather at lengths - 1; "
                  "of a network backwards flip each sequence before)")


@rule(torch.zeros, torch.zeros_like)
def _zeros(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of complex numbers, as pairs: no constant of the file holds them."""
    plain = function(*arguments, **keywords)
    return torch.view_as_complex(torch.zeros((*plain.shape, 2), dtype=plain.real.dtype)) if plain.is_complex() else plain


@rule(torch.tensor, torch.as_tensor, torch.asarray)
def _tensor(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of tensors, alone or in lists, whose values a constant would keep."""
    data = arguments[0] if arguments else keywords.get("data", keywords.get("obj"))
    inside = list(tensors_in(data)) if isinstance(data, (list, tuple, torch.Tensor)) else []
    if not inside or isinstance(data, torch.Tensor) and function is not torch.tensor:
        return function(*arguments, **keywords)

    def stacked(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return detached(recorder, value).clone()
        if isinstance(value, (list, tuple)):
            parts = [stacked(one) for one in value]
            kind = functools.reduce(torch.promote_types, (one.dtype for one in parts))
            return torch.stack([one.to(kind) for one in parts])
        return torch.full((), value)

    dtype = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
    value = stacked(data)
    return value if dtype is None else value.to(dtype)


@rule(torch.Tensor.__getitem__)
def _get_item(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """By a drawn place, which indexing would make a number."""
    x, key = arguments
    keys = list(key) if isinstance(key, tuple) else [key]
    for one in keys:
        if isinstance(one, slice) and any(isinstance(at, torch.Tensor) and recorder.is_drawn(at) for at in (one.start, one.stop, one.step)):
            raise Refused(f"{recorder.place()} slices by what forward draws: index by tensors, as in x[:, start + torch.arange(n)]")

    def is_place(one: Any) -> bool:
        return isinstance(one, torch.Tensor) and one.dim() == 0 and not one.is_floating_point() and \
            one.dtype != torch.bool and recorder.is_drawn(one)

    if not any(map(is_place, keys)) or not all(is_place(one) or one is None or one is Ellipsis or isinstance(one, (int, slice))
                                               for one in keys):
        return _move(recorder, function, (x, key), {})
    taken = [one for one in keys if one is not None]
    for at, one in enumerate(taken):
        if is_place(one):
            axis = at - len(taken) if any(other is Ellipsis for other in taken[:at]) else at
            x = torch.index_select(x, axis, one.reshape(1))
    return _move(recorder, function, (x, tuple(0 if is_place(one) else one for one in keys)), {})


@rule(torch.full, torch.full_like, torch.Tensor.new_full)
def _full(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """With a number that is drawn."""
    place = 1 if function is not torch.Tensor.new_full else 2
    value = value_of(arguments, keywords, place, "fill_value", None)
    if not isinstance(value, torch.Tensor):
        return function(*arguments, **keywords)
    keywords = {name: one for name, one in keywords.items() if name != "fill_value"}
    if keywords.get("dtype") is None and function is torch.full:
        keywords["dtype"] = torch.get_default_dtype() if value.is_floating_point() else value.dtype
    empty = function(*arguments[:place], 0, **keywords)
    return empty + value.to(empty.dtype)


@rule(torch.Tensor.__setitem__)
def _set_item(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Of complex numbers, by their parts."""
    target, key, value = arguments
    if not target.is_complex():
        mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool and recorder.is_drawn(mask):
            return _fill(recorder, target, mask, value)
        return recorder.change(function, arguments, keywords)
    keys = key if isinstance(key, tuple) else (key,)
    keys = (*keys, slice(None)) if any(one is Ellipsis for one in keys) else keys
    parts = torch.view_as_real(value) if isinstance(value, torch.Tensor) and value.is_complex() else \
        torch.view_as_real(torch.as_tensor(value).to(target.dtype))
    return recorder.change(function, (torch.view_as_real(target), keys, parts), {})


def _fill(recorder: Recorder, target: Any, mask: Any, value: Any) -> Any:
    """Where a mask is set, a value that is the same for each element, or for each of the dimensions behind the mask's."""
    behind = target.dim() - mask.dim()
    value = value if isinstance(value, torch.Tensor) else torch.full((), value, dtype=target.dtype)
    if value.dim() > behind:
        raise Refused(f"{recorder.place()} puts values in the places of a mask that forward draws, whose number is not known: "
                      "x = torch.where(mask, value, x)")
    filled = torch.where(mask.reshape(*mask.shape, *[1] * behind), value.to(target.dtype), target)
    return recorder.change(torch.Tensor.copy_, (target, filled), {})


@rule(torch.batch_norm)
def _batch_norm(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """In training, exporters write the form for inference."""
    x, weight, bias, mean, var, training, momentum, eps = arguments[:8]
    if not training:
        return function(*arguments, **keywords)
    channels = x.size(1)
    weight = torch.ones(channels, dtype=x.dtype) if weight is None else weight
    bias = torch.zeros(channels, dtype=x.dtype) if bias is None else bias
    if mean is not None:
        return operators.batch_norm(x, weight, bias, mean, var, momentum, eps)
    axes, shape = [i for i in range(x.dim()) if i != 1], [1, channels] + [1] * (x.dim() - 2)
    centered = x - x.mean(axes, keepdim=True)
    scale = torch.rsqrt((centered * centered).mean(axes, keepdim=True) + eps)
    return centered * scale * weight.reshape(shape) + bias.reshape(shape)


@rule(torch.instance_norm)
def _instance_norm(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    if arguments[3] is not None and arguments[5]:
        raise Refused(f"{recorder.place()} keeps running statistics of an instance normalization, which the file "
                      "cannot say: track_running_stats=False")
    return function(*arguments, **keywords)


@rule(torch.feature_dropout)
def _feature_dropout(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    x, p, training = arguments
    if not training or p == 0:
        return x
    return x * torch.dropout(torch.ones(x.shape[:2] + (1,) * (x.dim() - 2), dtype=x.dtype), p, True)


@rule(torch.alpha_dropout, torch.feature_alpha_dropout)
def _alpha_dropout(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    x, p, training = arguments
    if not training or p == 0:
        return x
    alpha = 1.7580993408473766  # of the self-normalizing SELU
    scale = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p)) if p < 1 else 0.0
    ones = torch.ones(x.shape[:2] + (1,) * (x.dim() - 2) if function is torch.feature_alpha_dropout else x.shape,
                      dtype=x.dtype)
    stays = torch.dropout(ones, p, True)  # 0, or more than 1; 1 where dropout is switched off
    number = torch.full((), -alpha, dtype=x.dtype)
    return torch.where(stays == 1, x, torch.where(stays == 0, number, x) * scale + alpha * scale * p)


@rule(torch.dropout_, torch.feature_dropout_, torch.alpha_dropout_, torch.feature_alpha_dropout_)
def _dropout_in_place(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """Exporters draw numbers for these, which -dropout=off does not reach."""
    x, _, training = arguments
    if not training:
        return x
    away = getattr(torch, function.__name__[:-1])
    call = RULES.get(away)
    return x.copy_(call(recorder, away, arguments, {}) if call else away(*arguments))


@rule(torch.nn.functional.scaled_dot_product_attention)
def _attention(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    """With dropout, which exporters leave out of it: its parts."""
    q, k, v = arguments[:3]
    mask = value_of(arguments, keywords, 3, "attn_mask", None)
    p = value_of(arguments, keywords, 4, "dropout_p", 0.0)
    causal = value_of(arguments, keywords, 5, "is_causal", False)
    scale: Optional[float] = keywords.get("scale")
    if not p:
        if q.dim() != 3:
            return function(*arguments, **keywords)
        # The newer exporter knows four dimensions alone.
        q, k, v = (x.unsqueeze(0) for x in (q, k, v))
        mask = mask.unsqueeze(0) if mask is not None and mask.dim() == 3 else mask
        return function(q, k, v, mask, p, causal, scale=scale, enable_gqa=keywords.get("enable_gqa", False)).squeeze(0)
    if keywords.get("enable_gqa"):
        k, v = (x.repeat_interleave(q.size(-3) // x.size(-3), -3) for x in (k, v))
    scores = (q * (scale if scale is not None else 1 / math.sqrt(q.size(-1)))) @ k.transpose(-2, -1)
    if causal:
        mask = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    shares = torch.softmax(scores, -1)
    if mask is not None:  # a row that reads nothing gives zeros
        shares = torch.where(torch.isnan(shares), torch.zeros((), dtype=shares.dtype), shares)
    return torch.dropout(shares, p, True) @ v


@rule(torch.rrelu, torch.rrelu_)
def _rrelu(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    if value_of(arguments, keywords, 3, "training", False):
        raise Refused(f"{recorder.place()} draws the slopes of rrelu, which the file cannot say: use leaky_relu")
    return recorder.change(function, arguments, keywords) if function is torch.rrelu_ else function(*arguments, **keywords)


@rule(torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)
def _recurrent(recorder: Recorder, function: Any, arguments: Any, keywords: Any) -> Any:
    packed = isinstance(arguments[3], (list, tuple)) and not isinstance(arguments[3], bool)
    layers, p, training = arguments[5:8] if packed else arguments[4:7]
    if function is torch.lstm and not packed and arguments[1][0].shape[-1] != arguments[1][1].shape[-1]:
        raise Refused(f"{recorder.place()} has an LSTM with proj_size, for which ONNX has no operator: an nn.LSTM without it and an "
                      "nn.Linear behind it, or nn.LSTMCell and an nn.Linear in a loop over the steps")
    if training and p and layers > 1:
        raise Refused(f"{recorder.place()} drops out between the layers of a recurrent network, which exporters "
                      "leave out: use one network a layer with nn.Dropout between them")
    return function(*arguments, **keywords)


@replacement("gaussian_nll_loss")
def _gaussian(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """Without the check of the variance's values, which no program can make."""
    if isinstance(var, float):
        var = torch.full_like(input, var)
    elif var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    var = var + (var.clamp(min=eps) - var).detach()
    losses = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses

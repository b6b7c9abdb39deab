"""Rows that the data choose, of which one program cannot have another number each time: all of them, and a mask.

What nonzero, where(mask) or x[mask] gives has as many rows here as it could have at most. Those that PyTorch leaves out are
copies of the first one that is there, so that what is computed of them is as finite; a sum, an index_add or an assignment
takes them out again. Functions that treat each row by itself are followed in between, all others refused.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import torch

from .._compat import changes_of, tree_leaves
from ._refused import Decides, Refused

_ARITHMETIC = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"}
#: Functions of elements, which broadcast their operands.
_ELEMENTS = _ARITHMETIC | {
    "relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "elu", "selu", "celu", "leaky_relu", "softplus", "mish", "hardtanh", "hardswish",
    "hardsigmoid", "logsigmoid", "log_sigmoid", "softsign", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "abs",
    "neg", "sign", "sin", "cos", "tan", "erf", "reciprocal", "round", "floor", "ceil", "trunc", "clamp", "clamp_min", "clamp_max", "clip",
    "maximum", "minimum", "div", "true_divide", "multiply", "divide", "subtract", "negative", "invert", "logical_and", "logical_or",
    "logical_not", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge", "greater", "less", "greater_equal", "less_equal", "not_equal", "where",
    "masked_fill", "nan_to_num", "lerp", "addcmul", "addcdiv", "to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int",
    "bool", "contiguous", "clone", "detach", "requires_grad", "zeros_like", "ones_like", "full_like", "dropout", "isnan", "isinf", "isfinite",
    "expand", "expand_as", "broadcast_tensors",
    "stop_gradient", "branch", "xlogy", "atan2", "heaviside", "sinc", "pos", "positive"}
#: Of the shape of what they are given, by one dimension or more that is their argument at this place: not that of rows.
_WITHIN = {"softmax": 1, "log_softmax": 1, "cumsum": 1}
#: Whose result lacks the dimensions that they are given.
_REDUCE = {"sum": 1, "mean": 1, "amax": 1, "amin": 1, "logsumexp": 1, "norm": 2, "argmax": 1, "argmin": 1, "max": 1, "min": 1, "prod": 1,
           "std": 1, "var": 1, "any": 1, "all": 1, "vector_norm": 2, "linalg_vector_norm": 2}
#: That divide a tensor along a dimension.
_PARTS = {"chunk": 2, "split": 2, "tensor_split": 2, "narrow": 1, "topk": 2, "sort": 1}
#: Losses of rows by where they have `reduction`.
_LOSSES = {"mse_loss": 2, "l1_loss": 2, "smooth_l1_loss": 2, "huber_loss": 2, "binary_cross_entropy_with_logits": 4, "binary_cross_entropy": 3}
_ASKS = {"dim", "ndimension", "is_floating_point", "is_complex", "element_size", "get_device", "is_contiguous", "stride",
         "storage_offset"}


class Chosen:
    """The rows that a mask chooses, once for all that has them."""

    def __init__(self, mask: Any):
        self.shape = tuple(map(int, mask.shape))
        self.there = mask.reshape(-1)
        count = self.there.size(0)
        every = torch.arange(count)
        #: Which row each one is: of those that are left out the first that is there.
        self.order = torch.where(self.there, every, self.there.to(torch.long).argmax()) if count else every

    def cover(self, value: Any, dim: int) -> Any:
        """The mask, for what has its rows in a dimension."""
        return self.there.reshape([-1 if at == dim else 1 for at in range(value.dim())])

    def places(self) -> np.ndarray:
        """The indices of all rows, those of each in a row."""
        return np.stack(np.unravel_index(np.arange(math.prod(self.shape)), self.shape), -1) if self.shape else np.zeros((1, 0), int)


class Tag:
    """Where a tensor has such rows; `axis` of the mask's, of an index that nonzero gives."""

    def __init__(self, chosen: Chosen, dim: int, axis: Optional[int] = None, is_places: bool = False):
        self.chosen, self.dim, self.axis, self.is_places = chosen, dim, axis, is_places


class Count(int):
    """How many rows there are, which nothing may compute with."""
    words = ""

    def _refuse(self, *arguments: Any) -> Any:
        raise Refused(self.words)

    def __eq__(self, other: Any) -> bool:
        return True if isinstance(other, Count) and int.__eq__(self, other) else self._refuse()

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = int.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refuse
    __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __bool__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


def check_counts(function: Any, arguments: Any, keywords: Any) -> None:
    """Raises where a function gets the number of such rows as anything but a size of what it gives."""
    if getattr(function, "__name__", "") not in ("view", "reshape", "expand"):
        for one in tree_leaves((arguments, keywords)):
            if type(one) is Count:
                one._refuse()


def words(model: Any, what: str) -> str:
    """Why rows that the data choose are no part of a program."""
    undecided = getattr(getattr(model, "config", None), "problem_type", "") is None
    return (f"{what} gives as many elements as the data decide, which one program cannot: compute with all of them and "
            "take torch.where(mask, x, 0), or weights that are zero (experts: sum(weights[:, e, None] * expert(x) for e, expert in "
            "enumerate(experts)), over all rows)" +
            ("; a model of transformers may do so once it is told what its labels are: model.config.problem_type = "
             "'single_label_classification'" if undecided else ""))


class Follower:
    """What becomes of chosen rows in a recorder's calls."""

    def __init__(self, recorder: Any, tags: Any):
        self.recorder, self.tags = recorder, tags
        self.masks: Any = type(tags)()  #: of what was chosen already
        self.made: Any = type(tags)()  #: of masks: by what call, and how often they had been changed then
        self.known: Dict[Any, Chosen] = {}  #: by the call
        self.kept: List[Any] = []  #: so that no other tensor takes a number

    # Choosing.

    def note(self, function: Any, arguments: Any, keywords: Any, result: Any) -> Any:
        """Remembers what made a mask: `labels != -100`, twice, chooses the same rows."""
        if isinstance(result, torch.Tensor) and result.dtype == torch.bool and result.dim():
            parts = [self._number(one) if isinstance(one, torch.Tensor) else repr(one) for one in tree_leaves((arguments, keywords))]
            self.made[result] = (changes_of(result), (function, *parts))
        return result

    def _number(self, tensor: Any) -> Any:
        known = self.made.get(tensor)
        if known is not None and known[0] == changes_of(tensor):
            return known[1]
        self.kept.append(tensor)
        return id(tensor), changes_of(tensor)

    def chosen(self, mask: Any) -> Chosen:
        known = self.masks.get(mask)
        if known is None or known[0] != changes_of(mask):
            number = self._number(mask)
            if number not in self.known:
                self.known[number] = Chosen(mask)
            known = self.masks[mask] = (changes_of(mask), self.known[number])
        found: Chosen = known[1]
        return found

    def tagged(self, value: Any, chosen: Chosen, dim: int, axis: Optional[int] = None, is_places: bool = False) -> Any:
        self.tags[value] = Tag(chosen, dim, axis, is_places)
        return value

    def choose(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """What nonzero, where(mask) or x[mask] gives."""
        name, x = function.__name__, arguments[0] if arguments else next(iter(keywords.values()))
        if name == "masked_select":
            x, mask = torch.broadcast_tensors(x, arguments[1] if len(arguments) > 1 else keywords["mask"])
            if any(one in self.tags for one in (*arguments, *keywords.values())):
                raise self.refusal(function)
            chosen = self.chosen(mask)
            return self.tagged(x.reshape(-1).index_select(0, chosen.order), chosen, 0)
        if name == "__getitem__":
            return self._by_mask(x, arguments[1])
        if name not in ("nonzero", "where", "argwhere") or x in self.tags:
            raise self.refusal(function)
        chosen = self.chosen(x if x.dtype == torch.bool else x != 0)
        table = torch.from_numpy(chosen.places()).index_select(0, chosen.order)
        if name == "where" or keywords.get("as_tuple"):
            return tuple(self.tagged(table.select(1, axis), chosen, 0, axis) for axis in range(len(chosen.shape)))
        return self.tagged(table, chosen, 0, is_places=True)

    def _by_mask(self, x: Any, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        at = next(i for i, one in enumerate(keys) if isinstance(one, torch.Tensor) and one.dtype == torch.bool and one.dim())
        mask = keys[at]
        others = keys[:at] + keys[at + 1:]
        if x in self.tags or mask in self.tags or any(isinstance(one, torch.Tensor) or not (one is None or one is Ellipsis or isinstance(one, slice)) for one in others):
            raise self.refusal(torch.Tensor.__getitem__)
        keys[at:at + 1] = [slice(None)] * mask.dim()
        dim = sum(1 for one in keys[:at] if one is not Ellipsis)
        if any(one is Ellipsis for one in keys[:at]):
            dim += x.dim() - sum(1 for one in keys if isinstance(one, slice))
        y = x[tuple(keys)]
        if tuple(y.shape[dim:dim + mask.dim()]) != tuple(mask.shape):
            raise self.refusal(torch.Tensor.__getitem__)
        chosen = self.chosen(mask)
        y = y.reshape([*y.shape[:dim], -1, *y.shape[dim + mask.dim():]]) if mask.dim() != 1 else y
        return self.tagged(y.index_select(dim, chosen.order), chosen, dim)

    def elements(self, values: Any) -> Optional[List[Any]]:
        """The indices that nonzero gives, one by one, each with whether it is there; None of anything else."""
        tag = self.tags.get(values) if isinstance(values, torch.Tensor) else None
        if tag is None or tag.dim or not (tag.is_places or tag.axis is not None):
            return None
        places = tag.chosen.places() if tag.is_places else tag.chosen.places()[:, tag.axis]
        return [(tag.chosen.there[at], torch.tensor(one.tolist())) for at, one in enumerate(places)]

    # Following.

    def refusal(self, function: Any, tag: Optional[Tag] = None, follows: bool = True) -> Refused:
        where = self.recorder.place()
        name = getattr(function, "__name__", "a function")
        what = self.recorder.counted or f"{where}: {name}"
        return Refused(words(self.recorder.model, what) + (f"; {where} gives them to {name}, through which they are not followed" if tag or not follows else ""))

    def follow(self, function: Any, plain: Callable[..., Any], arguments: Any, keywords: Any, inside: List[Any]) -> Any:
        """What a function gives of tensors with such rows."""
        mine = [(one, self.tags[one]) for one in inside if one in self.tags]
        tag = mine[0][1]
        if any(other.chosen is not tag.chosen for _, other in mine):
            raise self.refusal(function, tag)
        name = getattr(function, "__name__", "").partition(".")[0]
        if name == "__get__":
            return self._property(function, arguments, keywords, tag)
        base = name.strip("_") if name not in ("__getitem__", "__setitem__") else name
        if name.startswith("__") and base[:1] in ("i", "r") and base[1:] in _ARITHMETIC:
            base = base[1:]
        call = {"size": self._size, "numel": self._size, "len": self._size, "nelement": self._size, "__getitem__": self._index,
                "__setitem__": self._assign, "index_add": self._add, "linear": self._linear, "matmul": self._product, "mm": self._product, "layer_norm": self._norm,
                "rms_norm": self._norm, "embedding": self._embedding, "cross_entropy_loss": self._cross_entropy, "index_select": self._select,
                "reshape": self._reshape, "view": self._reshape, "flatten": self._reshape, "transpose": self._transpose, "t": self._transpose,
                "swapaxes": self._transpose, "permute": self._permute, "unsqueeze": self._unsqueeze, "squeeze": self._squeeze,
                "ctc_loss": self._ctc}.get(base)
        if call is not None:
            return call(function, plain, arguments, keywords, mine)
        if base == "unbind" and tag.dim == 0 and tuple(arguments[1:]) in ((), (0,)) and not keywords:
            raise Decides(str(self.refusal(function)), *self.recorder.line())
        if base in _ASKS:
            return function(*arguments, **keywords)
        if base in _ELEMENTS:
            return self._elements(function, plain, arguments, keywords, mine, inside)
        if base in _LOSSES:
            return self._loss(function, plain, arguments, keywords, mine, inside, _LOSSES[base])
        if len(mine) == 1 and arguments and arguments[0] is mine[0][0]:
            if base in _WITHIN:
                return self._keep(function, plain, arguments, keywords, tag, _WITHIN[base])
            if base in _PARTS:
                return self._keep(function, plain, arguments, keywords, tag, _PARTS[base])
            if base in _REDUCE:
                return self._reduce(function, plain, arguments, keywords, tag, base)
        raise self.refusal(function, tag)

    def _property(self, function: Any, arguments: Any, keywords: Any, tag: Tag) -> Any:
        x, owner = arguments[0], getattr(function, "__self__", None)
        name = getattr(owner, "__name__", "")
        if name == "shape":
            return self._size(function, None, arguments, keywords, [(x, tag)])
        if name in ("T", "mT"):
            return self._transpose(torch.Tensor.t, torch.Tensor.t, (x,), {}, [(x, tag)])
        if name == "data":
            return self.tagged(self.recorder.stop(x, [x]) if x.requires_grad else x.detach(), tag.chosen, tag.dim, tag.axis)
        value = function(*arguments, **keywords)
        if isinstance(value, torch.Tensor):
            raise self.refusal(function, tag)
        return value

    def _count(self, number: int) -> Count:
        count = Count(number)
        count.words = words(self.recorder.model, self.recorder.counted) + f"; {self.recorder.place()} computes with their number"
        return count

    def _size(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        (x, tag), name = mine[0], function.__name__
        sizes = [self._count(size) if at == tag.dim else int(size) for at, size in enumerate(x.shape)]
        if name == "__get__" or (name == "size" and len(arguments) + len(keywords) == 1):
            return torch.Size(sizes)
        if name == "size":
            return sizes[arguments[1] if len(arguments) > 1 else keywords["dim"]]
        if name == "__len__" and tag.dim:
            return sizes[0]
        if name == "__len__":
            raise self.refusal(function, tag)
        return self._count(int(x.numel()))

    def _elements(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any, inside: Any) -> Any:
        tag, places = mine[0][1], {tag.dim - one.dim() for one, tag in mine}
        place = next(iter(places))
        others = [one for one in inside if one not in self.tags and one.dim() >= -place and one.size(place) != 1]
        name = function.__name__
        changes = (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") and name != "__invert__"
        if len(places) > 1 or others or (changes and arguments[0] not in self.tags):
            raise self.refusal(function, tag)
        result = plain(function, arguments, keywords)
        for one in [result] if isinstance(result, torch.Tensor) else result:
            self.tagged(one, tag.chosen, one.dim() + place)
        return result

    def _keep(self, function: Any, plain: Any, arguments: Any, keywords: Any, tag: Tag, at: int) -> Any:
        """By dimensions that are not that of rows."""
        default = -1 if function.__name__ in ("topk", "sort") else 0
        dims = arguments[at] if len(arguments) > at else keywords.get("dim", keywords.get("dims", default))
        if self._has(dims, arguments[0], tag):
            raise self.refusal(function, tag)
        result = plain(function, arguments, keywords)
        for one in [result] if isinstance(result, torch.Tensor) else result:
            self.tagged(one, tag.chosen, tag.dim)
        return result

    @staticmethod
    def _has(dims: Any, x: Any, tag: Tag) -> bool:
        dims = range(x.dim()) if dims is None else [dims] if isinstance(dims, int) else dims
        return any(not isinstance(one, int) or one % max(x.dim(), 1) == tag.dim for one in dims)

    def _reduce(self, function: Any, plain: Any, arguments: Any, keywords: Any, tag: Tag, base: str) -> Any:
        x, at = arguments[0], _REDUCE[base]
        dims = arguments[at] if len(arguments) > at else keywords.get("dim", keywords.get("axis"))
        if isinstance(dims, bool) or not isinstance(dims, (int, tuple, list, type(None))):
            raise self.refusal(function, tag)
        if self._has(dims, x, tag):
            if base not in ("sum", "mean"):
                raise self.refusal(function, tag)
            total = torch.where(tag.chosen.cover(x, tag.dim), x, torch.zeros((), dtype=x.dtype))
            if base == "sum":
                return plain(function, (total, *arguments[1:]), keywords)
            result = plain(function, (total, *arguments[1:]), keywords)
            return result * (x.size(tag.dim) / tag.chosen.there.to(result.dtype).sum())
        keep = arguments[at + 1] if len(arguments) > at + 1 else keywords.get("keepdim", False)
        axes = [dims] if isinstance(dims, int) else list(dims or ())
        count = 0 if keep else sum(int(one % x.dim() < tag.dim) for one in axes)
        result = plain(function, arguments, keywords)
        for one in [result] if isinstance(result, torch.Tensor) else result:
            self.tagged(one, tag.chosen, tag.dim - count)
        return result

    def _linear(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        if len(mine) > 1 or arguments[0] is not x or tag.dim == x.dim() - 1:
            raise self.refusal(function, tag)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, tag.dim)

    def _product(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        if len(mine) > 1 or len(arguments) != 2 or arguments[0] is not x or tag.dim == x.dim() - 1 or arguments[1].dim() != 2:
            raise self.refusal(function, tag)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, tag.dim)

    def _norm(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        shape = arguments[1] if len(arguments) > 1 else keywords["normalized_shape"]
        if len(mine) > 1 or arguments[0] is not x or tag.dim >= x.dim() - len(shape):
            raise self.refusal(function, tag)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, tag.dim)

    def _embedding(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        if len(mine) > 1 or arguments[1] is not x:
            raise self.refusal(function, tag)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, tag.dim)

    def _ctc(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        """Of what a mask selects in targets it knows the number: they come first, and whatever behind them."""
        x, tag = mine[0]
        if len(mine) > 1 or arguments[1] is not x or x.dim() != 1:
            raise self.refusal(function, tag)
        there, count = tag.chosen.there, x.size(0)
        places = torch.where(there, there.to(torch.long).cumsum(0) - 1, torch.full((), count))
        first = torch.zeros(count + 1, dtype=x.dtype).scatter(0, places, x)[:count]
        return plain(function, (arguments[0], first, *arguments[2:]), keywords)

    # Moves.

    def _reshape(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        result = plain(function, arguments, keywords)
        before, size = math.prod(x.shape[:tag.dim]), x.size(tag.dim)
        for at in range(result.dim()):
            if result.dtype == x.dtype and math.prod(result.shape[:at]) == before and result.size(at) == size:
                return self.tagged(result, tag.chosen, at, tag.axis if result.dim() == 1 else None)
        raise self.refusal(function, tag)

    def _transpose(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        a, b = (arguments[1:] if len(arguments) == 3 else (keywords.get("dim0", -2), keywords.get("dim1", -1)))
        result = function(*arguments, **keywords) if plain is function else plain(function, arguments, keywords)
        a, b = (one % x.dim() for one in (a, b)) if x.dim() > 1 else (0, 0)
        return self.tagged(result, tag.chosen, b if tag.dim == a else a if tag.dim == b else tag.dim)

    def _permute(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        dims = keywords["dims"] if "dims" in keywords else arguments[1] if isinstance(arguments[1], (tuple, list)) else arguments[1:]
        result = plain(function, arguments, keywords)
        return self.tagged(result, tag.chosen, [one % x.dim() for one in dims].index(tag.dim))

    def _unsqueeze(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        at = (arguments[1] if len(arguments) > 1 else keywords["dim"]) % (x.dim() + 1)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, tag.dim + (at <= tag.dim))

    def _squeeze(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, tag = mine[0]
        at = arguments[1] if len(arguments) > 1 else keywords.get("dim")
        if not isinstance(at, int) or at % x.dim() == tag.dim:  # without one it may take rows away, where there is one
            raise self.refusal(function, tag)
        result = plain(function, arguments, keywords)
        return self.tagged(result, tag.chosen, tag.dim - (at % x.dim() < tag.dim and result.dim() < x.dim()))

    # Indices.

    def _index(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        x, key = arguments
        keys = list(key) if isinstance(key, tuple) else [key]
        tag = mine[0][1]
        tensors = [at for at, one in enumerate(keys) if isinstance(one, torch.Tensor)]
        if x in self.tags:  # by slices of other dimensions
            if tensors or len(mine) > 1:
                raise self.refusal(function, tag)
            return self._slice(function, plain, x, keys, tag)
        if any(keys[at] not in self.tags or keys[at].dim() != 1 for at in tensors) or any(
                isinstance(one, (int, list, np.ndarray)) for one in keys):
            raise self.refusal(function, tag)
        dim = 0
        if tensors[-1] - tensors[0] == len(tensors) - 1:
            ahead = keys[:tensors[0]]
            dim = sum(1 for one in ahead if one is not Ellipsis)
            if any(one is Ellipsis for one in ahead):
                dim += x.dim() - sum(1 for one in keys if one is not None and one is not Ellipsis)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, dim)

    def _slice(self, function: Any, plain: Any, x: Any, keys: List[Any], tag: Tag) -> Any:
        taken = sum(1 for one in keys if one is not None and one is not Ellipsis)
        if not any(one is Ellipsis for one in keys):
            keys = [*keys, Ellipsis]
        source = result = 0
        for one in keys:
            if one is Ellipsis:
                left = x.dim() - taken
                if source <= tag.dim < source + left:
                    return self.tagged(plain(function, (x, tuple(keys)), {}), tag.chosen, result + tag.dim - source)
                source, result = source + left, result + left
            elif one is None:
                result += 1
            elif source == tag.dim:
                if not isinstance(one, slice) or one != slice(None):
                    break
                return self.tagged(plain(function, (x, tuple(keys)), {}), tag.chosen, result)
            else:
                source, result = source + 1, result + isinstance(one, slice)
        raise self.refusal(function, tag)

    def _select(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        index, tag = mine[0]
        if len(mine) > 1 or len(arguments) != 3 or arguments[2] is not index:
            raise self.refusal(function, tag)
        return self.tagged(plain(function, arguments, keywords), tag.chosen, arguments[1] % arguments[0].dim())

    def _add(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        """x.index_add(dim, index, rows): what is left out adds nothing."""
        names = ("input", "dim", "index", "source")
        x, dim, index, source = (arguments[at] if len(arguments) > at else keywords[name] for at, name in enumerate(names))
        tag = mine[0][1]
        if x in self.tags or index not in self.tags or source not in self.tags or self.tags[source].dim != dim % x.dim():
            raise self.refusal(function, tag)
        dim, shape, axis = dim % x.dim(), tag.chosen.shape, self.tags[index].axis
        if axis is None or x.size(dim) != shape[axis]:
            raise self.refusal(function, tag)
        source = torch.where(tag.chosen.cover(source, dim), source, torch.zeros((), dtype=source.dtype))
        source = source.reshape([*source.shape[:dim], *shape, *source.shape[dim + 1:]])
        others = [dim + at for at in range(len(shape)) if at != axis]
        added = source.sum(others) if others else source
        alpha = keywords.get("alpha", 1)
        added = added if alpha == 1 else added * alpha
        return plain(torch.Tensor.add_ if function.__name__.endswith("_") else torch.add, (x, added), {})

    def _assign(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        """x[mask] = rows, or by the indices of all of the mask's dimensions."""
        x, key, value = arguments
        keys = list(key) if isinstance(key, tuple) else [key]
        tag = mine[0][1]
        shape = tag.chosen.shape
        if len(keys) == 1 and isinstance(keys[0], torch.Tensor) and keys[0].dtype == torch.bool:
            fits = self.chosen(keys[0]) is tag.chosen
        else:
            axes = [self.tags[one].axis if isinstance(one, torch.Tensor) and one in self.tags else None for one in keys]
            shape = tuple(shape[axis] for axis in axes if axis is not None)
            fits = None not in axes and math.prod(shape) == math.prod(tag.chosen.shape) and axes == sorted(set(axes))  # type: ignore[type-var]
        rank = len(shape)
        if x in self.tags or not fits or tuple(x.shape[:rank]) != shape:
            raise self.refusal(function, tag)
        if isinstance(value, torch.Tensor) and value in self.tags:
            if self.tags[value].dim != 0:
                raise self.refusal(function, tag)
            value = value.reshape(*shape, *value.shape[1:])
            value = value.expand(*shape, *x.shape[rank:]) if value.dim() == x.dim() else value
        elif isinstance(value, torch.Tensor) and value.dim() > x.dim() - rank:
            raise self.refusal(function, tag)
        there = tag.chosen.there.reshape(*shape, *[1] * (x.dim() - rank))
        value = value.to(x.dtype) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=x.dtype)
        return self.recorder.change(torch.Tensor.copy_, (x, torch.where(there, value, x)), {})

    # Losses.

    def _cross_entropy(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any) -> Any:
        scores, target = arguments[:2]
        tag, ignored = mine[0][1], arguments[4] if len(arguments) > 4 else keywords.get("ignore_index", -100)
        if any(one not in self.tags or self.tags[one].dim for one in (scores, target)) or target.is_floating_point() or len(mine) != 2:
            raise self.refusal(function, tag)
        target = torch.where(tag.chosen.there.reshape([-1] + [1] * (target.dim() - 1)), target, torch.full((), ignored))
        result = plain(function, (scores, target, *arguments[2:]), keywords)
        return self.tagged(result, tag.chosen, 0) if result.dim() else result

    def _loss(self, function: Any, plain: Any, arguments: Any, keywords: Any, mine: Any, inside: Any, at: int) -> Any:
        how = arguments[at] if len(arguments) > at else keywords.get("reduction", 1)
        given = list(arguments)
        if len(arguments) > at:
            given[at] = 0
        else:
            keywords = {**keywords, "reduction": 0}
        losses = self._elements(function, plain, tuple(given), keywords, mine, inside)
        tag = self.tags[losses]
        if how not in (0, 1, 2):
            raise self.refusal(function, tag)
        if how == 0:
            return losses
        reduce = torch.mean if how == 1 else torch.sum
        return self._reduce(reduce, plain, (losses,), {}, tag, reduce.__name__)

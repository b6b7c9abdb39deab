"""Functions in which a draw decides, rewritten so that both sides of a branch run, and what either assigns is selected.

`if` with what follows it in a loop or function that it leaves early, conditional expressions, `and`, `or`, `not`, and a
choice among a list's elements become calls of _branches.py, at the lines at which a draw has decided.
"""
from __future__ import annotations

import __future__
import ast
import copy
import linecache
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from ._refused import Refused

_RUNTIME, _RESULT, _STATE = "_dsopt_branches", "_dsopt_result", "_dsopt_branch"
#: Methods of containers that change them.
_CHANGES = {"append", "extend", "insert", "add", "update", "pop", "remove", "clear", "setdefault", "appendleft", "popitem", "sort", "reverse"}
#: Of Python's module operator.
_OPERATIONS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
               ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift"}
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _spans(node: Any, lines: Set[int]) -> bool:
    return any(node.lineno <= line <= node.end_lineno for line in lines)


def _leaves(statements: List[Any], kind: Any) -> bool:
    return bool(statements) and isinstance(statements[-1], kind)


def _parsed(code: str) -> List[Any]:
    return ast.parse(code).body


def _expression(code: str) -> Any:
    return _parsed(code)[0].value


def _assigned(statements: List[Any]) -> List[str]:
    """Names that statements bind, outside of functions that they define."""
    found: Dict[str, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
            return
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        if isinstance(node, ast.alias):
            found[(node.asname or node.name).partition(".")[0]] = None
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in statements:
        visit(statement)
    return [name for name in found if not name.startswith(_STATE)]


class _Effects(ast.NodeVisitor):
    """What no branch may do whose other side runs too."""

    def __init__(self) -> None:
        self.found: Optional[Tuple[int, str]] = None
        self.loops = 0

    def refuse(self, node: Any, what: str) -> None:
        self.found = self.found or (node.lineno, what)

    def visit_loop(self, node: Any) -> None:
        self.loops += 1
        self.generic_visit(node)
        self.loops -= 1

    visit_For = visit_While = visit_loop

    def visit_leaving(self, node: Any) -> None:
        if isinstance(node, ast.Return) or not self.loops:
            self.refuse(node, f"leaves a loop or function by '{type(node).__name__.lower()}'")

    visit_Return = visit_Break = visit_Continue = visit_leaving

    def visit_function(self, node: Any) -> None:
        pass

    visit_FunctionDef = visit_Lambda = visit_ClassDef = visit_function

    def visit_other(self, node: Any) -> None:
        self.refuse(node, f"has '{type(node).__name__.lower()}'")

    visit_Delete = visit_Global = visit_Nonlocal = visit_Yield = visit_YieldFrom = visit_Await = visit_other

    def visit_Attribute(self, node: Any) -> None:
        if isinstance(node.ctx, ast.Store):
            self.refuse(node, f"assigns to '{ast.unparse(node)}'")
        self.generic_visit(node)

    def visit_Subscript(self, node: Any) -> None:
        if isinstance(node.ctx, ast.Store) and not isinstance(node.value, ast.Name):
            self.refuse(node, f"assigns to '{ast.unparse(node)}'")
        self.generic_visit(node)

    def visit_Expr(self, node: Any) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES:
            self.refuse(node, f"changes '{ast.unparse(call.func.value)}' by {call.func.attr}()")
        self.generic_visit(node)


def _changed(statements: List[Any]) -> List[str]:
    """Names of what statements change in place: x[...] = y, x.add_(y)."""
    found: Dict[str, None] = {}
    for node in [one for statement in statements for one in ast.walk(statement)]:
        target: Any = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and node.func.attr[:1] != "_":
            target = node.func.value
        if isinstance(target, ast.Name):
            found[target.id] = None
    return list(found)


def _augmented(statements: List[Any]) -> List[str]:
    """Names of what statements change in place, where it is a tensor: x += y."""
    nodes = [one for statement in statements for one in ast.walk(statement)]
    return list(dict.fromkeys(one.target.id for one in nodes if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)))


class _Augmented(ast.NodeTransformer):
    """`x += y` changes a tensor in place, and makes another of anything else: the other side reads it, too."""

    def visit_AugAssign(self, node: Any) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        operation = ast.Constant(_OPERATIONS[type(node.op)])
        value = ast.Call(_expression(f"{_RUNTIME}.augmented"), [operation, ast.Name(node.target.id, ast.Load()), node.value], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))


class _Super(ast.NodeTransformer):
    """super() in a function inside of a method."""

    def __init__(self, first: str):
        self.first = first

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in ("__class__", self.first)]
        return node


class _Rewriter(ast.NodeTransformer):
    """One function, whose lines are given at which a draw has decided."""

    def __init__(self, file: str, lines: Set[int]):
        self.file, self.lines = file, lines
        self.count = 0  #: of what was rewritten
        self.first = ""  #: argument
        self.shared: Set[str] = set()  #: names that the function assigns and others see

    # Statements.

    def function(self, node: Any) -> Any:
        """The function, whose last statement returns one result where a branch returned."""
        self.whole = copy.deepcopy(node)
        self.first = next((one.arg for one in [*node.args.posonlyargs, *node.args.args]), "")
        self.shared = {name for one in ast.walk(node) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
        node.body = self.statements(self._without_leaving(node.body, ast.Return))
        imported = _parsed(f"{_RUNTIME} = __import__('dsopt._export._branches', fromlist=['branches'])")
        first = 1 if ast.get_docstring(node) is not None else 0
        node.body[first:first] = [ast.copy_location(one, node.body[0]) for one in imported]
        return ast.fix_missing_locations(node)

    def statements(self, body: List[Any]) -> List[Any]:
        found: List[Any] = []
        for one in body:
            new = self.visit(one)
            found.extend(new if isinstance(new, list) else [new])
        return found

    def _decides(self, node: Any) -> bool:
        return isinstance(node, ast.If) and _spans(node.test, self.lines)

    def _leaving(self, statement: Any, kind: Any) -> bool:
        """Whether a branch by a draw in it leaves the loop's iteration, or the function."""
        inner = [ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda]
        if not isinstance(statement, ast.If):
            return False
        sides = [*statement.body, *statement.orelse]
        if self._decides(statement):
            open_: List[Any] = list(sides)
            while open_:
                node = open_.pop()
                if isinstance(node, kind):
                    return True
                if not isinstance(node, tuple(inner)):
                    open_.extend(ast.iter_child_nodes(node))
        return any(self._leaving(one, kind) for one in sides)

    def _without_leaving(self, body: List[Any], kind: Any) -> List[Any]:
        """The same statements, of which those behind a branch that leaves are its other side."""
        if not any(self._leaving(one, kind) for one in body):
            return body
        return self._tail(body, kind) + (_parsed(f"return {_RESULT}") if kind is ast.Return else [])

    def _tail(self, body: List[Any], kind: Any) -> List[Any]:
        """Statements that nothing follows, without leaving; a function's result is in a variable."""
        result: List[Any] = []
        for at, one in enumerate(body):
            if isinstance(one, kind):
                if kind is ast.Return:
                    value = one.value or ast.Constant(None)
                    result.append(ast.copy_location(ast.Assign([ast.Name(_RESULT, ast.Store())], value), one))
                elif not result:
                    result.append(ast.copy_location(ast.Pass(), one))
                return result
            if isinstance(one, ast.If) and self._has(one, kind):
                rest = body[at + 1:]
                then = self._tail([*one.body, *copy.deepcopy(rest)], kind)
                otherwise = self._tail([*one.orelse, *rest], kind)
                result.append(ast.copy_location(ast.If(one.test, then or [ast.Pass()], otherwise), one))
                return result
            result.append(one)
        if kind is ast.Return and body is not None and not _leaves(result, ast.Raise):
            result.extend(_parsed(f"{_RESULT} = None"))
        return result

    @staticmethod
    def _has(node: Any, kind: Any) -> bool:
        """Whether a statement may leave, outside of loops and functions in it."""
        if isinstance(node, kind):
            return True
        if isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            return False
        return any(_Rewriter._has(one, kind) for one in ast.iter_child_nodes(node))

    def visit_For(self, node: Any) -> Any:
        if not _spans(node.iter, self.lines):
            return self.visit_While(node)
        # Each iteration is a branch, which the data take.
        self.count += 1
        reached = f"{_STATE}{self.count}"
        inside = ast.copy_location(ast.If(ast.Name(reached, ast.Load()), self._tail(node.body, ast.Continue) or [ast.Pass()], []), node)
        own = [name for name in _assigned(inside.body) if self._is_fresh(name, node)]
        node.body = self._both(inside, inside.test, own)
        node.target = ast.Tuple([ast.Name(reached, ast.Store()), node.target], ast.Store())
        node.iter = self._called("rows", [self.visit(node.iter)], node)
        return ast.fix_missing_locations(node)

    def visit_While(self, node: Any) -> Any:
        node.body = self._without_leaving(node.body, ast.Continue)
        return self.generic_visit(node)

    def _is_fresh(self, name: str, loop: Any) -> bool:
        """Whether an iteration assigns to a name before it reads it, and nothing behind the loop reads it."""
        def names(node: Any, kind: Any = ast.Name) -> List[Any]:
            return [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, kind)]

        place = (loop.lineno, loop.col_offset)  # which other branches may have rewritten in part
        loop = next(one for one in ast.walk(self.whole) if isinstance(one, ast.For) and (one.lineno, one.col_offset) == place)
        if len(names(self.whole, ast.Load)) != sum(len(names(part, ast.Load)) for part in loop.body):
            return False
        if names(loop.target, ast.Store):
            return True
        first = next(part for part in loop.body if names(part, (ast.Load, ast.Store)))
        return isinstance(first, ast.Assign) and not names(first.value, ast.Load)

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # has code of its own

    visit_Lambda = visit_ClassDef = visit_FunctionDef

    def visit_If(self, node: Any) -> Any:
        return self._both(node, self.decided(node.test)) if self._decides(node) else self.generic_visit(node)

    def _both(self, node: Any, test: Any, fresh: Sequence[str] = ()) -> Any:
        """A branch: both sides, and what either assigns."""
        self.count += 1
        state, place = f"{_STATE}{self.count}", f"{self.file.rpartition('/')[2]}:{node.lineno}"
        effects = _Effects()
        for one in [*node.body, *node.orelse]:
            effects.visit(one)
        names = [name for name in _assigned([*node.body, *node.orelse]) if name not in fresh]
        changes, augmented = ([name for name in find([*node.body, *node.orelse]) if name not in fresh] for find in (_changed, _augmented))
        hidden = next((name for name in names if name in self.shared or (name.startswith("__") and not name.endswith("__"))), None)
        if hidden:  # it is not the function's own, or a class gives it another name
            effects.refuse(node, f"assigns to '{hidden}'")
        plain: Any = ast.If(ast.Name(state, ast.Load()), copy.deepcopy(node.body), copy.deepcopy(node.orelse))
        plain = self.generic_visit(plain)
        if effects.found:
            line, what = effects.found
            words = (f"{self.file.rpartition('/')[2]}:{line} {what} in a branch that a draw decides, of which the file "
                     "computes both sides: let both assign to a variable, and use it behind them")
            both = _parsed(f"{_RUNTIME}.refuse({words!r})")
        else:
            flat, rest = ([_Augmented().visit(one) for one in self.statements(side)] for side in (node.body, node.orelse))
            begin = f"{state} = {_RUNTIME}.Branch({state}, locals(), {place!r}, {changes!r}, {augmented!r})"
            both = [*_parsed(begin), *flat, *_parsed(f"{state}.other(locals())")]
            for name in names:
                both += _parsed(f"if {state}.was({name!r}): {name} = {state}.before[{name!r}]")
            both += [*rest, *_parsed(f"{state}.end(locals())")]
            for name in names:
                both += _parsed(f"if {state}.has({name!r}): {name} = {state}.merged({name!r})")
        found = [ast.Assign([ast.Name(state, ast.Store())], test),
                 ast.If(_expression(f"{_RUNTIME}.is_drawn({state})"), both, [plain])]
        for one in found:
            for part in ast.walk(one):
                if not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        for one in both:
            if one.lineno == 1 and node.lineno != 1:
                for part in ast.walk(one):
                    ast.copy_location(part, node)
        return found

    # Expressions.

    def decided(self, node: Any) -> Any:
        """A test, of which a draw may be any part."""
        if isinstance(node, ast.BoolOp) and self._may_wait(node):
            name = "every" if isinstance(node.op, ast.And) else "some"
            parts = [self._later(self.decided(one)) for one in node.values]
            return self._called(name, parts, node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._called("inverse", [self.decided(node.operand)], node)
        return self.visit(node)

    def _later(self, node: Any) -> Any:
        node = _Super(self.first).visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.copy_location(ast.Lambda(nothing, node), node)

    def _called(self, name: str, arguments: List[Any], node: Any) -> Any:
        self.count += 1
        call = ast.Call(_expression(f"{_RUNTIME}.{name}"), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def _fits(self, node: Any) -> bool:
        return _spans(node, self.lines) and self._may_wait(node)

    @staticmethod
    def _may_wait(node: Any) -> bool:
        """Whether an expression may be computed in a function of its own."""
        return not any(isinstance(one, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for one in ast.walk(node))

    def visit_BoolOp(self, node: Any) -> Any:
        return self.decided(node) if self._fits(node) else self.generic_visit(node)

    def visit_UnaryOp(self, node: Any) -> Any:
        return self.decided(node) if isinstance(node.op, ast.Not) and self._fits(node) else self.generic_visit(node)

    def visit_IfExp(self, node: Any) -> Any:
        if not self._fits(node):
            return self.generic_visit(node)
        parts = [self.decided(node.test), self._later(self.visit(node.body)), self._later(self.visit(node.orelse)),
                 ast.Constant(f"{self.file.rpartition('/')[2]}:{node.lineno}")]
        return self._called("choose", parts, node)

    def visit_Subscript(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and not isinstance(node.slice, (ast.Slice, ast.Tuple)) and _spans(node, self.lines):
            return self._called("item", [node.value, node.slice], node)
        return node


def _path_to(tree: Any, code: Any) -> List[Any]:
    """The function of a piece of code, with what it is defined in, from the outside."""
    def search(node: Any, above: List[Any]) -> Optional[List[Any]]:
        for child in ast.iter_child_nodes(node):
            inside = above
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inside = [*above, child]
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                if isinstance(child, ast.FunctionDef) and child.name == code.co_name and first == code.co_firstlineno:
                    return inside
            found = search(child, inside)
            if found:
                return found
        return None

    return search(tree, []) or []


def _around(definition: str, body: List[Any]) -> List[Any]:
    (outer,) = _parsed(definition)
    outer.body = body
    return [outer]


def rewritten(code: Any, lines: Set[int]) -> Any:
    """Code of the same signature and free variables that computes both sides at these lines; None where it has no source, or
    nothing there that can be."""
    source = "".join(linecache.getlines(code.co_filename))
    try:
        path = _path_to(ast.parse(source), code)
    except SyntaxError:
        return None
    if not path:
        return None
    node = copy.deepcopy(path[-1])
    rewriter = _Rewriter(code.co_filename, lines)
    node.decorator_list = []
    node = rewriter.function(node)
    if not rewriter.count:
        return None
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [one and ast.Constant(None) for one in node.args.kw_defaults]
    node.returns = None
    for one in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
        if one is not None:
            one.annotation = None
    outer: List[Any] = [node]
    owner = next((one for one in reversed(path[:-1]) if isinstance(one, ast.ClassDef)), None)
    if owner is not None:
        outer = _around(f"class {owner.name}: pass", outer)
    names = [name for name in code.co_freevars if name != "__class__"]
    if names:
        outer = _around("def _dsopt_outer(): pass", [*_parsed(" = ".join([*names, "None"])), *outer])
    tree = ast.fix_missing_locations(ast.Module(outer, []))
    open_ = [compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)]
    while open_:
        one = open_.pop()
        if one.co_name == code.co_name and one.co_varnames[:one.co_argcount] == code.co_varnames[:code.co_argcount] and \
                one.co_name != "<module>":
            return one if one.co_freevars == code.co_freevars else None
        open_.extend(const for const in one.co_consts if hasattr(const, "co_name"))
    return None


def refuse(words: str) -> None:
    raise Refused(words)

"""Which mutants there are: small changes of the package, drawn by a fixed seed (scripts/mutants.py runs them)."""

from __future__ import annotations

import ast
import copy
import random
from collections import Counter
from pathlib import Path
from typing import Any

SEED = 20261118
ROOMS = {  # mutants of each room: files below src/lasca, how many
    "kernels": (["kernels/*.py"], 90),
    "truth": (["truth/*.py"], 110),
    "formats": (["formats/*.py"], 90),
    "crf": (["crf/*.py"], 35),
    "ambiguity": (["ambiguity/*.py"], 30),
    "queue": (["review/queue.py", "review/items.py", "review/promise.py"], 20),
    "learn": (["learn.py"], 13),
    "confusion": (["confusion.py"], 12),
}
KINDS = {  # how likely each kind of change is to be drawn, however many places there are
    "comparison": 5,
    "constant": 5,
    "operator": 4,
    "statement": 3,
    "arguments": 2,
    "not": 1,
    "condition": 1,
    "boolean": 1,
    "flag": 1,
    "name": 1,
}
LEFT_OUT = {"kernels/compiled.py", "kernels/simd.py"}  # how kernels are compiled and kept

OTHER = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Add],
    ast.Pow: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
NAMES = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "floor": "ceil", "log": "log1p"}
EITHER = {"min", "max", "minimum", "maximum", "logaddexp", "array_equal"}  # in whichever order
NAMES |= {new: old for old, new in NAMES.items()}


class Mutant:
    """A change of one file: what stands from one byte to another, and what shall stand there."""

    def __init__(self, file: str, node: Any, kind: str, new: str, function: str) -> None:
        self.file, self.kind, self.new, self.function = file, kind, new, function
        self.line, self.begin, self.last, self.end = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset

    @property
    def name(self) -> str:
        """Return what it is known by among the results."""
        return f"{self.file}:{self.line}:{self.begin}-{self.end} {self.kind} {self.new}"

    def applied(self, text: str) -> tuple[str, str]:
        """Return the file with the change, and what stood there."""
        lines = text.encode().splitlines(keepends=True)
        begin = sum(map(len, lines[: self.line - 1])) + self.begin
        end = sum(map(len, lines[: self.last - 1])) + self.end
        whole = text.encode()
        old, new = whole[begin:end].decode(), self.new
        gone = "\n" * (old.count("\n") - new.count("\n"))  # the lines below stay where they are
        new = f"{new[:-1]}{gone})" if new.endswith(")") else f"{new}{gone}"
        return whole[:begin].decode() + new + whole[end:].decode(), old


class Mutator(ast.NodeVisitor):
    """All places of a file where a change fits."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.lines, self.found, self.within = file, text.splitlines(), list[Mutant](), list[str]()
        self.visit(ast.parse(text))

    def add(self, node: Any, kind: str, new: Any) -> None:
        """Note a place, unless it is marked as one that tests do not reach."""
        if "no cover" not in self.lines[node.lineno - 1]:
            text = new if isinstance(new, str) else f"({ast.unparse(new)})"
            self.found.append(Mutant(self.file, node, kind, text, ".".join(self.within)))

    def changed(self, node: Any, **fields: Any) -> Any:
        """Return a copy of a node with other fields."""
        new = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return new

    def visit_FunctionDef(self, node: Any) -> None:
        """Look at the body, defaults and decorators; types are no code."""
        self.within.append(node.name)
        for part in (*node.body, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self.visit(part)
        self.within.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at the body."""
        self.within.append(node.name)
        for part in node.body:
            self.visit(part)
        self.within.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value."""
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Raise nothing; leave what is said alone."""
        self.add(node, "statement", "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave what never fails alone."""

    def visit_Import(self, node: Any) -> None:
        """Leave imports alone."""

    visit_ImportFrom = visit_Import

    def visit_Compare(self, node: ast.Compare) -> None:
        """Swap the first comparison."""
        for other in OTHER.get(type(node.ops[0]), []):
            self.add(node, "comparison", self.changed(node, ops=[other(), *node.ops[1:]]))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Swap an operator, but not of texts."""
        texts = [part for part in (node.left, node.right) if isinstance(part, ast.JoinedStr) or is_text(part)]
        for other in [] if texts else OTHER.get(type(node.op), []):
            self.add(node, "operator", self.changed(node, op=other()))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Swap and, or."""
        self.add(node, "boolean", self.changed(node, op=OTHER[type(node.op)][0]()))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop not, minus, ~."""
        if not isinstance(node.op, ast.UAdd):
            self.add(node, "not", node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Move a number by one, or double it; flip a truth value."""
        value = node.value
        if isinstance(value, bool):
            self.add(node, "flag", str(not value))
        elif isinstance(value, int):
            self.add(node, "constant", str(value + 1))
            if value > 0:
                self.add(node, "constant", str(value - 1))
        elif isinstance(value, float):
            self.add(node, "constant", repr(value * 2 if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        """Swap two neighbours, and min and max."""
        plain = [not isinstance(part, ast.Starred) and named(node.func) not in EITHER for part in node.args]
        for i in range(len(node.args) - 1):
            if plain[i] and plain[i + 1] and ast.unparse(node.args[i]) != ast.unparse(node.args[i + 1]):
                args = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
                self.add(node, "arguments", self.changed(node, args=args))
        called = node.func
        if isinstance(called, ast.Name) and called.id in NAMES:
            self.add(called, "name", NAMES[called.id])
        elif isinstance(called, ast.Attribute) and called.attr in NAMES:
            self.add(called, "name", self.changed(called, attr=NAMES[called.attr]))
        self.generic_visit(node)

    def visit_If(self, node: Any) -> None:
        """Negate a condition."""
        if not isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):  # which are changed as such
            self.add(node.test, "condition", f"(not {ast.unparse(node.test)})")
        self.generic_visit(node)

    visit_IfExp = visit_If
    visit_While = visit_If

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call out."""
        if isinstance(node.value, ast.Call):
            self.add(node, "statement", "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave it out, or turn it round."""
        self.add(node, "statement", "pass")
        for other in OTHER.get(type(node.op), []):
            self.add(node, "operator", ast.unparse(self.changed(node, op=other())))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave out what changes something that is there."""
        if isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            self.add(node, "statement", "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: Any) -> None:
        """Go on where the loop should."""
        self.add(node, "statement", "pass")

    visit_Break = visit_Continue


def named(node: ast.AST) -> str:
    """Return what a node names."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def is_text(node: ast.AST) -> bool:
    """Return whether an expression is a text as it stands there."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants(source: Path, seed: int) -> list[tuple[str, Mutant]]:
    """Return the mutants of all rooms in the order of a seed, each with its room."""
    rng = random.Random(seed)
    chosen = []
    for room, (patterns, wanted) in ROOMS.items():
        files = sorted({file for pattern in patterns for file in source.glob(pattern)})
        names = [str(file.relative_to(source)) for file in files]
        names = [name for name in names if name not in LEFT_OUT]
        there = [mutant for name in names for mutant in Mutator(name, (source / name).read_text("utf-8")).found]
        of_kind = Counter(mutant.kind for mutant in there)
        place = {mutant: rng.random() ** (of_kind[mutant.kind] / KINDS[mutant.kind]) for mutant in there}
        chosen += [(room, mutant) for mutant in sorted(there, key=lambda mutant: -place[mutant])[:wanted]]
    rng.shuffle(chosen)
    return chosen

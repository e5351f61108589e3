"""From text to tokens: Python's own parser makes a syntax tree, of which only whitelisted nodes are accepted."""

from __future__ import annotations

import ast
import difflib
import math
import re
import warnings
from collections.abc import Collection, Mapping
from typing import NamedTuple

from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import opcodes as OP
from loopdyn.quantities.expressions.functions import CONSTANTS, FUNCTIONS, Function
from loopdyn.quantities.expressions.terms import TERMS, Term, term_of
from loopdyn.quantities.wording import short

MAX_LENGTH = 2000  # most characters of a formula
MAX_DEPTH = 60  # most nested levels of brackets, calls and choices

_HABITS = {"ln": "log", "heaviside": "step", "pow": "**", "fmod": "mod", "wrap": "mod"}  # usual elsewhere
_PLAIN = "Write ordinary arithmetic with * in every product, e.g. '2*x + 0.1*sin(pi*t)'"

_OPERATORS: Mapping[type[ast.operator], int] = {
    ast.Add: OP.ADD,
    ast.Sub: OP.SUB,
    ast.Mult: OP.MUL,
    ast.Div: OP.DIV,
    ast.Pow: OP.POW,
}
_REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("a dot after a name is not allowed", "Write functions by their plain name, e.g. sin(x)"),
    ast.Subscript: ("indexing with [ ] is not allowed", "Use a name for each value"),
    ast.Compare: ("a comparison gives no number", "Use it as in 'a if x > 0 else b', or use step(x)"),
    ast.BoolOp: ("'and' and 'or' give no number", "Use them in the condition of 'a if condition else b'"),
    ast.Lambda: ("'lambda' is not allowed", _PLAIN),
    ast.NamedExpr: ("':=' is not allowed", "Define a parameter instead"),
    ast.Tuple: ("a comma is allowed only between the arguments of a function", "Write decimals with a point"),
    ast.List: ("a list is not allowed", "A formula gives one number"),
    ast.JoinedStr: ("text in quotes is not allowed", "Write names without quotes"),
    ast.Starred: ("'*' must stand between two factors", _PLAIN),
    ast.BitXor: ("'^' is not allowed", "Write ** for a power"),
    ast.Mod: ("'%' is not allowed", "Write mod(x, y)"),
    ast.FloorDiv: ("'//' is not allowed", "Write (x - mod(x, y))/y"),
    ast.Not: ("'not' gives no number", "Use it in the condition of 'a if condition else b'"),
    ast.Invert: ("'~' is not allowed", "Use + - * / and **"),
}


class Token(NamedTuple):
    """One step of a formula in postfix order."""

    op: int
    value: float | str = 0.0  # the number of a constant, the name of a variable
    column: int = 0


def read(text: str, with_terms: bool = False) -> tuple[tuple[Token, ...], dict[str, Term]]:
    """Tokens of a formula, with names not yet resolved, and its terms by name if it may have any."""
    if not isinstance(text, str):
        raise ExpressionError(f"a formula is a text, not {type(text).__name__}. Write it in quotes")
    if not text.strip():
        raise refusal(text, None, "it is empty", "Write a number or a formula such as '2*t'")
    if len(text) > MAX_LENGTH:
        what = f"it has {len(text)} characters, {MAX_LENGTH} are allowed"
        raise refusal(text, None, what, "Split it into parameters, or give the curve as a table")
    depth = 0
    for character in text:  # Python's parser must not get too many brackets
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_DEPTH:
            raise _too_deep(text)
    reader = _Reader(text, with_terms)
    reader.value(reader.tree(), 0)
    return tuple(reader.tokens), reader.terms


def refusal(text: str, column: int | None, what: str, hint: str) -> ExpressionError:
    """Error that says what is wrong in the formula `text`, and where."""
    place = "" if column is None else f", column {column}"
    return ExpressionError(f"formula {short(text)!r}{place}: {what}. {hint}")


def suggestion(name: str, known: Collection[str], kind: str) -> str:
    """Hint with the known name most like `name`, ignoring case, or else all known names."""
    names = sorted(k for k in known if isinstance(k, str))  # files may hold other keys, reported elsewhere
    if not names:
        return f"There are no {kind} here"
    lowered = {k.lower(): k for k in names}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{lowered[near[0]]}'?"
    return f"The {kind} known here are: {', '.join(names[:30])}" + (", ..." if len(names) > 30 else "")


def _too_deep(text: str) -> ExpressionError:
    what = f"it is nested more than {MAX_DEPTH} levels deep"
    return refusal(text, None, what, "Split it into parameters, or leave out brackets that are not needed")


def _not_text(text: str) -> ExpressionError:
    return refusal(text, None, "it holds characters that are not text", _PLAIN)


def _call_of(name: str) -> str:
    function = FUNCTIONS[name]
    return f"{name}({', '.join(function.arguments)}{', ...' if function.open_ended else ''})"


def _numpy_number(node: ast.Call) -> ast.expr | None:
    """Number in ``np.float64(0.5)``, which NumPy's numbers become in an f-string; None for other calls."""
    f = node.func
    if not (isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in ("np", "numpy")):
        return None
    number = re.fullmatch(r"(float|int|uint)\d+", f.attr) is not None
    return node.args[0] if number and len(node.args) == 1 and not node.keywords else None


class _Reader:
    """Turns one formula into tokens."""

    def __init__(self, text: str, with_terms: bool) -> None:
        self.text, self.with_terms = text, with_terms
        self.terms: dict[str, Term] = {}
        line = text.replace("\r", " ").replace("\n", " ")
        self.source = line.lstrip()
        self.margin = len(line) - len(self.source)
        self.bytes = self.source.encode(errors="replace")  # the tree counts columns in bytes
        self.tokens: list[Token] = []

    def tree(self) -> ast.expr:
        """Syntax tree of the formula by Python's parser."""
        if "#" in self.source:
            column = self.margin + self.source.index("#") + 1
            raise refusal(self.text, column, "a comment cannot stand inside a formula", "Remove it")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "1if x<0 else 2" gives a warning, but is valid
                return ast.parse(self.source, mode="eval").body
        except SyntaxError as error:
            raise self._syntax_error(error) from None
        except (RecursionError, MemoryError):
            raise _too_deep(self.text) from None
        except ValueError:
            raise _not_text(self.text) from None

    def value(self, node: ast.expr, depth: int) -> None:
        """Read a node that gives a number."""
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        if isinstance(node, ast.Constant):
            self._number(node)
        elif isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.Attribute) and self.with_terms:
            self._label(self._source(node).replace(" ", ""), node)
        elif isinstance(node, ast.BinOp):
            self._arithmetic(node, depth)
        elif isinstance(node, ast.UnaryOp):
            self._sign(node, depth)
        elif isinstance(node, ast.Call):
            number = _numpy_number(node)
            if number is not None:
                self.value(number, depth + 1)
            elif self.with_terms and isinstance(node.func, ast.Name) and node.func.id in TERMS:
                self._term(node, node.func.id)
            else:
                self._call(node, depth)
        elif isinstance(node, ast.IfExp):
            self._condition(node.test, depth + 1)
            self.value(node.body, depth + 1)
            self.value(node.orelse, depth + 1)
            self._emit(OP.WHERE, node=node.orelse)
        else:
            raise self._error(node, *_REFUSED.get(type(node), ("this is not allowed in a formula", _PLAIN)))

    def _condition(self, node: ast.expr, depth: int) -> None:
        """Read a node that is true (1) or false (0)."""
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        if isinstance(node, ast.Compare):
            self._comparison(node, depth)
        elif isinstance(node, ast.BoolOp):
            self._connection(node, depth)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._condition(node.operand, depth + 1)
            self._emit(OP.CONSTANT, 0.0)
            self._emit(OP.CONSTANT, 1.0)
            self._emit(OP.WHERE)
        else:
            raise self._error(node, "this is not a condition", "Compare two values, e.g. 'x > 0'")

    def _number(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and self.with_terms:
            self._label(node.value, node)
            return
        if isinstance(node.value, (str, bytes)):
            raise self._error(node, *_REFUSED[ast.JoinedStr])
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise self._error(node, f"{node.value!r} is not a real number", "Write a number such as 1 or 0.5e-3")
        try:
            number = float(node.value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise self._error(node, "the number is too large", "Numbers go up to 1.8e308")
        self._emit(OP.CONSTANT, number)

    def _name(self, node: ast.Name) -> None:
        name = self._source(node)
        if name in FUNCTIONS:
            raise self._error(node, f"'{name}' is a function and needs its arguments", f"Write {_call_of(name)}")
        if name in CONSTANTS:
            self._emit(OP.CONSTANT, CONSTANTS[name])
        else:
            self.tokens.append(Token(OP.VARIABLE, name, self._column(node)))

    def _arithmetic(self, node: ast.BinOp, depth: int) -> None:
        chain = []  # a + b + c + ... nests to the left: read in a loop, it is one level deep
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            chain.append(first)
            first = first.left
        self.value(first, depth + 1)
        for part in reversed(chain):
            if type(part.op) not in _OPERATORS:
                other = ("this operator is not allowed", "Use + - * / and **")
                raise self._error(part, *_REFUSED.get(type(part.op), other))
            self.value(part.right, depth + 1)
            self._emit(_OPERATORS[type(part.op)], node=part.right)

    def _sign(self, node: ast.UnaryOp, depth: int) -> None:
        if type(node.op) in _REFUSED:
            raise self._error(node, *_REFUSED[type(node.op)])
        self.value(node.operand, depth + 1)
        if isinstance(node.op, ast.USub):
            self._emit(OP.CONSTANT, -1.0)
            self._emit(OP.MUL)

    def _call(self, node: ast.Call, depth: int) -> None:
        codes = self._function(node).codes
        for index, argument in enumerate(node.args):
            self.value(argument, depth + 1)
            code = codes[min(index, len(codes) - 1)]
            if code is not None:
                self._emit(code, node=argument)

    def _label(self, name: str, node: ast.expr) -> None:
        self.tokens.append(Token(OP.VARIABLE, name, self._column(node)))

    def _term(self, node: ast.Call, name: str) -> None:
        """Read a function of named points."""
        given = [self._name_in_term(argument) for argument in node.args]
        options = {str(k.arg): self._name_in_term(k.value) for k in node.keywords}
        found = term_of(name, given, options)
        if isinstance(found, str):
            raise self._error(node, found, f"Write {TERMS[name].usage}")
        self.terms[str(found)] = found
        self._label(str(found), node)

    def _name_in_term(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if not isinstance(node, ast.Name):
            raise self._error(node, "the name of a point is expected here", "Add the point to 'points:' and name it")
        return self._source(node)

    def _function(self, node: ast.Call) -> Function:
        """Function that is called, with its number of arguments checked."""
        if isinstance(node.func, ast.Attribute):
            raise self._error(node, *_REFUSED[ast.Attribute])
        if not isinstance(node.func, ast.Name):
            what = "only the name of a function can precede a bracket"
            raise self._error(node, what, "Write * between the factors of a product")
        name = self._source(node.func)
        if name not in FUNCTIONS:
            usual = _HABITS.get(name.lower())
            known = {*FUNCTIONS, *(TERMS if self.with_terms else ())}
            hint = f"Did you mean '{usual}'?" if usual else suggestion(name, known, "functions")
            raise self._error(node, f"unknown function '{name}'", hint)
        function = FUNCTIONS[name]
        if node.keywords:
            raise self._error(node, f"arguments of '{name}' cannot be given by name", f"Write {_call_of(name)}")
        count, least = len(node.args), len(function.arguments)
        if count < least or (count > least and not function.open_ended):
            plural = "" if least == 1 else "s"
            what = f"'{name}' takes {'at least ' * function.open_ended}{least} argument{plural}, {count} given"
            raise self._error(node, what, f"Write {_call_of(name)}")
        return function

    def _comparison(self, node: ast.Compare, depth: int) -> None:
        if len(node.ops) > 1:
            raise self._error(node, "two comparisons in a row", "Join them with 'and': 'x > 0 and x < 1'")
        kind = type(node.ops[0])
        if kind not in (ast.Lt, ast.LtE, ast.Gt, ast.GtE):
            raise self._error(node, "this comparison is not allowed", "Use < <= > >=")
        small, large = node.left, node.comparators[0]
        if kind in (ast.Gt, ast.GtE):
            small, large = large, small
        self.value(small, depth + 1)
        self.value(large, depth + 1)
        self._emit(OP.LESS if kind in (ast.Lt, ast.Gt) else OP.LESS_EQUAL, node=node.comparators[0])

    def _connection(self, node: ast.BoolOp, depth: int) -> None:
        """Read 'p and q' as 'q if p else 0', and 'p or q' as '1 if p else q'."""
        self._condition(node.values[0], depth + 1)
        for part in node.values[1:]:
            if isinstance(node.op, ast.Or):
                self._emit(OP.CONSTANT, 1.0)
            self._condition(part, depth + 1)
            if isinstance(node.op, ast.And):
                self._emit(OP.CONSTANT, 0.0)
            self._emit(OP.WHERE)

    def _emit(self, op: int, value: float = 0.0, node: ast.expr | None = None) -> None:
        self.tokens.append(Token(op, value, 0 if node is None else self._column(node)))

    def _source(self, node: ast.expr) -> str:
        """Name as it was written: Python would turn a micro sign into a Greek mu."""
        return self.bytes[node.col_offset : node.end_col_offset].decode()

    def _column(self, node: ast.expr) -> int:
        return self.margin + len(self.bytes[: node.col_offset].decode(errors="replace")) + 1

    def _error(self, node: ast.expr, what: str, hint: str) -> ExpressionError:
        return refusal(self.text, self._column(node), what, hint)

    def _syntax_error(self, error: SyntaxError) -> ExpressionError:
        if error.offset is None:
            return _not_text(self.text)
        if error.offset == 0:  # the parser expected more
            column = self.margin + len(self.source.rstrip()) + 1
            return refusal(self.text, column, "it ends too early", "Complete it")
        hint = "Write only the right-hand side of the '='" if "=" in self.source else _PLAIN
        return refusal(self.text, self.margin + error.offset, error.msg.split(". ")[0].rstrip("."), hint)

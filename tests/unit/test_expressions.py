"""Formulas and tables: values against `math`, derivatives against SymPy, refusals by their words.

Expected derivatives come from SymPy at 40 digits; a tolerance of 1e-11 relative to the larger of the
expected number and 1 leaves room for the conditioning of the formulas at the sampled points.
"""

import contextlib
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from loopdyn.errors import ExpressionError, ModelError
from loopdyn.quantities.expressions import (
    CONSTANTS,
    FUNCTIONS,
    MAX_DEPTH,
    MAX_LENGTH,
    Program,
    constant_program,
    pack,
    parse,
    resolve_parameters,
    run_program,
    table_program,
)

pytestmark = pytest.mark.jit_off

RELATIVE = 1e-11
X, Y, Z, T = sp.symbols("x y z t", real=True)


def close(actual, expected, tolerance=RELATIVE):
    return abs(actual - expected) <= tolerance * max(1.0, abs(expected))


def run(program, jets):
    """Run the kernel itself, in the dtype of the jets."""
    jets = np.asarray(jets)
    stack = np.full((program.depth, 3), np.nan, dtype=jets.dtype)
    with np.errstate(all="ignore"):
        return run_program(program.code, 0, len(program.code), program.constants, jets, stack)


def value_of(text, **values):
    """Value of a formula by the kernel, its names as variables."""
    return parse(text).program(list(values)).evaluate(list(values.values()))


# --- values ----------------------------------------------------------------------------------------

ONE_ARGUMENT = {
    "sin": (math.sin, -7.0, 7.0),
    "cos": (math.cos, -7.0, 7.0),
    "tan": (math.tan, -1.4, 1.4),
    "asin": (math.asin, -0.99, 0.99),
    "acos": (math.acos, -0.99, 0.99),
    "atan": (math.atan, -5.0, 5.0),
    "sinh": (math.sinh, -4.0, 4.0),
    "cosh": (math.cosh, -4.0, 4.0),
    "tanh": (math.tanh, -4.0, 4.0),
    "exp": (math.exp, -4.0, 4.0),
    "log": (math.log, 0.01, 9.0),
    "log10": (math.log10, 0.01, 9.0),
    "sqrt": (math.sqrt, 0.01, 9.0),
    "abs": (math.fabs, -3.0, 3.0),
    "radians": (math.radians, -400.0, 400.0),
    "degrees": (math.degrees, -7.0, 7.0),
}


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_value_of_a_function_of_one_argument_is_that_of_math(name):
    function, low, high = ONE_ARGUMENT[name]
    for x in np.random.default_rng(1).uniform(low, high, 20):
        assert close(value_of(f"{name}(x)", x=x), function(x), 1e-15)
        assert parse(f"{name}(x)").evaluate({"x": x}) == function(x)


BINARY = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "-x": lambda x, y: -x,
    "abs(x) ** y": lambda x, y: math.pow(abs(x), y),
    "atan2(x, y)": math.atan2,
    "hypot(x, y)": math.hypot,
    "min(x, y)": min,
    "max(x, y)": max,
    "mod(x, y)": lambda x, y: x % y,
    "clip(x, -1, y*y)": lambda x, y: min(max(x, -1.0), y * y),
    "x if x < y else y": min,
    "x if x >= y else y": max,
}


@pytest.mark.parametrize("text", BINARY)
def test_value_of_two_numbers_is_that_of_python(text):
    for x, y in np.random.default_rng(2).uniform(-3.0, 3.0, (40, 2)):
        expected = BINARY[text](float(x), float(y))
        assert close(value_of(text, x=x, y=y), expected, 1e-14)
        assert close(parse(text).evaluate({"x": x, "y": y}), expected, 1e-14)


def test_every_function_of_the_list_is_tested_above_or_below():
    two_and_more = {"atan2", "hypot", "min", "max", "mod", "clip", "sign", "step"}
    assert set(FUNCTIONS) == set(ONE_ARGUMENT) | two_and_more


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("sign(x)", -2.0, -1.0),
        ("sign(x)", 0.0, 0.0),
        ("sign(x)", 2.0, 1.0),
        ("step(x)", -1e-300, 0.0),
        ("step(x)", 0.0, 1.0),
        ("step(x)", 5.0, 1.0),
        ("min(x, 2, 1, 3)", 5.0, 1.0),
        ("max(x, 2, 1, 3)", 5.0, 5.0),
        ("mod(x, 3)", -1.0, 2.0),
        ("mod(x, -3)", 1.0, -2.0),
        ("mod(x, 0.1)", 1.0, 1.0 % 0.1),
        ("-x**2", 3.0, -9.0),
        ("2**3**x", 2.0, 512.0),
        ("10 - x - 3", 2.0, 5.0),
        ("16 / x / 2", 4.0, 2.0),
        ("+x", 2.0, 2.0),
        ("x**0", 0.0, 1.0),
        ("x**-2", -2.0, 0.25),
        ("x**3", -2.0, -8.0),
        ("x**0.5", 9.0, 3.0),
        ("pi + 0*x", 1.0, math.pi),
        ("e + 0*x", 1.0, math.e),
        ("0x10 + 1_000 + x", 1.0, 1017.0),
        ("  x\n  + 1 ", 1.0, 2.0),
    ],
)
def test_value_at_a_point_computed_by_hand(text, x, expected):
    assert value_of(text, x=x) == pytest.approx(expected, rel=1e-15, abs=1e-16)
    assert parse(text).evaluate({"x": x}) == pytest.approx(expected, rel=1e-15, abs=1e-16)


CONDITIONS = [
    "x < y",
    "x <= y",
    "x > y",
    "x >= y",
    "not x < y",
    "x < y and y < 1",
    "x < y or y < 1",
    "not (x < 0 or y < 0) and x > y",
    "x < 0 and y < 0 or not x > y and x <= 1",
    "x > 0 and x < 1 and y > 0",
    "x > 0 or x < -1 or y > 0",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition_decides_as_python_does(condition):
    grid = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]
    for x in grid:
        for y in grid:
            expected = 10.0 if eval(condition, {"x": x, "y": y}) else 20.0
            assert value_of(f"10 if {condition} else 20", x=x, y=y) == expected
            assert parse(f"10 if {condition} else 20").evaluate({"x": x, "y": y}) == expected


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3).filter(lambda y: abs(y) > 1e-3))
@settings(max_examples=200, deadline=None)
def test_mod_is_exactly_the_remainder_of_python(x, y):
    assert value_of("mod(x, y)", x=x, y=y) == x % y


# --- derivatives -----------------------------------------------------------------------------------

DERIVATIVES = [
    ("sin(x)", sp.sin(X), -7, 7),
    ("cos(x)", sp.cos(X), -7, 7),
    ("tan(x)", sp.tan(X), -1.3, 1.3),
    ("asin(x)", sp.asin(X), -0.95, 0.95),
    ("acos(x)", sp.acos(X), -0.95, 0.95),
    ("atan(x)", sp.atan(X), -5, 5),
    ("sinh(x)", sp.sinh(X), -4, 4),
    ("cosh(x)", sp.cosh(X), -4, 4),
    ("tanh(x)", sp.tanh(X), -4, 4),
    ("exp(x)", sp.exp(X), -4, 4),
    ("log(x)", sp.log(X), 0.1, 9),
    ("log10(x)", sp.log(X) / sp.log(10), 0.1, 9),
    ("sqrt(x)", sp.sqrt(X), 0.1, 9),
    ("radians(x)**2", (X * sp.pi / 180) ** 2, -90, 90),
    ("degrees(x)**2", (X * 180 / sp.pi) ** 2, -3, 3),
    ("x + 3", X + 3, -3, 3),
    ("3 - x", 3 - X, -3, 3),
    ("x*x", X**2, -3, 3),
    ("(x + 1)/(x**2 + 1)", (X + 1) / (X**2 + 1), -3, 3),
    ("-x**3", -(X**3), -3, 3),
    ("x**7", X**7, -2, 2),
    ("x**-3", X**-3, 0.3, 3),
    ("x**-1", X**-1, -3, -0.3),
    ("x**0.5", X ** sp.Rational(1, 2), 0.1, 3),
    ("x**1.25", X ** sp.Rational(5, 4), 0.1, 3),
    ("x**-0.75", X ** sp.Rational(-3, 4), 0.1, 3),
    ("3**x", sp.Integer(3) ** X, -3, 3),
    ("x**x", X**X, 0.1, 3),
    ("(1 + x*x)**sin(x)", (1 + X**2) ** sp.sin(X), -3, 3),
    ("atan2(sin(x), x)", sp.atan2(sp.sin(X), X), -3, 3),
    ("atan2(x, -2)", sp.atan2(X, -2), 0.1, 3),
    ("atan2(1 + x*x, x)", sp.atan2(1 + X**2, X), -3, 3),
    ("hypot(x, 2)", sp.sqrt(X**2 + 4), -3, 3),
    ("hypot(exp(x), sin(x))", sp.sqrt(sp.exp(2 * X) + sp.sin(X) ** 2), -2, 2),
    ("abs(x**3)", -(X**3), -3, -0.1),
    ("abs(x**3)", X**3, 0.1, 3),
    ("sign(x)*x**2", -(X**2), -3, -0.1),
    ("step(x)*x**2", X**2, 0.1, 3),
    ("step(x)*x**2", sp.Integer(0), -3, -0.1),
    ("min(x**2, x**3)", X**2, 1.1, 3),
    ("max(x**2, x**3)", X**3, 1.1, 3),
    ("clip(x**2, 1, 4)", X**2, 1.1, 1.9),
    ("clip(x**2, 1, 4)", sp.Integer(4), 2.1, 3),
    ("clip(x**2, 1, 4)", sp.Integer(1), -0.9, 0.9),
    ("mod(x**2, 10)", X**2 - 10, 3.2, 4.4),
    ("mod(7, x)", 7 - 2 * X, 2.4, 3.4),
    ("sin(x) if x < 0 else x**2", sp.sin(X), -3, -0.1),
    ("sin(x) if x < 0 else x**2", X**2, 0.1, 3),
    ("0.1*sin(2*pi*x) + exp(-x)*cos(3*x)/2", sp.sin(2 * sp.pi * X) / 10 + sp.exp(-X) * sp.cos(3 * X) / 2, -1, 1),
]


def exact(formula, symbol, order, point):
    return float(sp.diff(formula, symbol, order).evalf(40, subs={symbol: sp.Float(point, 40)}))


@pytest.mark.parametrize(("text", "formula", "low", "high"), DERIVATIVES)
def test_value_and_two_derivatives_are_those_of_sympy(text, formula, low, high):
    program = parse(text).program(["x"])
    for x in np.random.default_rng(3).uniform(low, high, 6):
        for order, actual in enumerate(program.jet([(x, 1.0, 0.0)])):
            assert close(actual, exact(formula, X, order, x)), (x, order)


PATHS = [
    "x*y - z/x",
    "x**y",
    "(x*x)**z",
    "atan2(y, x)",
    "atan2(z - 2, x - 3)",
    "hypot(x, z)",
    "sin(x*y)*exp(-z) + log(x + y)",
    "sqrt(x + y*z)",
    "x**3 * tanh(y) / (1 + z**2)",
]
PATH = {X: sp.Float(1.7) + T / 2 + T**2, Y: sp.cos(T) + 2, Z: sp.exp(T / 3)}


@pytest.mark.parametrize("text", PATHS)
def test_total_derivative_along_a_path_is_that_of_sympy(text):
    known = {"x": X, "y": Y, "z": Z, "hypot": lambda a, b: sp.sqrt(a**2 + b**2)}
    along = sp.sympify(text, locals=known).subs(PATH)
    program = parse(text).program(["x", "y", "z"])
    for t in (0.0, 0.3, -0.4, 1.1):
        jets = [[exact(curve, T, order, t) for order in range(3)] for curve in PATH.values()]
        for order, actual in enumerate(program.jet(jets)):
            assert close(actual, exact(along, T, order, t)), (t, order)


@pytest.mark.parametrize(("text", "formula", "low", "high"), DERIVATIVES)
def test_complex_step_through_the_kernel_is_the_derivative(text, formula, low, high):
    """A step of 1e-20 has no rounding error: the imaginary parts are the next derivatives."""
    program = parse(text).program(["x"])
    for x in np.random.default_rng(4).uniform(low, high, 3):
        results = run(program, np.array([(x + 1e-20j, 1.0, 0.0)]))
        for order, actual in enumerate(results):
            assert close(actual.real, exact(formula, X, order, x))
            assert close(actual.imag / 1e-20, exact(formula, X, order + 1, x), 1e-10)


@pytest.mark.parametrize("text", ["sqrt(x)", "log(x)", "log10(x)", "x**0.3", "x**1.5", "asin(x)", "acos(x)", "x**x"])
def test_outside_its_domain_a_function_is_nan_for_floats_and_in_complex_numbers(text):
    program = parse(text).program(["x"])
    for x in (-1.7, -1.2):
        assert all(math.isnan(part) for part in run(program, np.array([(x, 1.0, 0.0)])))
        assert all(math.isnan(part.real) for part in run(program, np.array([(x + 0j, 1.0, 0.0)])))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", (0.0, 1.0, 0.0)),
        ("x**1", (0.0, 1.0, 0.0)),
        ("x**2", (0.0, 0.0, 2.0)),
        ("x**3", (0.0, 0.0, 0.0)),
        ("x**0", (1.0, 0.0, 0.0)),
        ("(1 + x)**-2", (1.0, -2.0, 6.0)),
        ("x**2.5", (0.0, 0.0, 0.0)),
        ("abs(x)", (0.0, 1.0, 0.0)),
        ("step(x)", (1.0, 0.0, 0.0)),
        ("sign(x)", (0.0, 0.0, 0.0)),
        ("atan2(x, 1)", (0.0, 1.0, 0.0)),
        ("hypot(x, 1)", (1.0, 0.0, 1.0)),
        ("0 if x <= 0 else sqrt(x)", (0.0, 0.0, 0.0)),
        ("0 if x <= 0 else 1/x", (0.0, 0.0, 0.0)),
    ],
)
def test_jet_at_zero_is_exact(text, expected):
    assert parse(text).program(["x"]).jet([(0.0, 1.0, 0.0)]) == expected


def test_integer_power_with_the_exponent_as_a_variable_works_for_a_negative_base():
    program = parse("x**n").program(["x", "n"])
    assert program.jet([(-2.0, 1.0, 0.0), (3.0, 0.0, 0.0)]) == (-8.0, 12.0, -12.0)
    assert program.jet([(0.0, 1.0, 0.0), (1.0, 0.0, 0.0)]) == (0.0, 1.0, 0.0)
    assert program.evaluate([-2.0, -3.0]) == -0.125
    assert math.isnan(program.evaluate([-2.0, 0.5]))


@pytest.mark.parametrize("text", ["sqrt(x)", "x**0.5 + t", "hypot(x, x) + t", "atan2(x, x)", "x**1.5", "abs(x)**0.1*t"])
def test_a_variable_at_rest_has_no_part_in_the_derivative_even_at_a_singular_point(text):
    f, f1, f2 = parse(text).program(["x", "t"]).jet([(0.0, 0.0, 0.0), (0.0, 1.0, 0.0)])
    assert (f, f1, f2) == (0.0, 1.0 if text.endswith("+ t") else 0.0, 0.0)


@pytest.mark.parametrize("text", ["x", "step(x)", "sign(x)", "abs(x)", "min(x, 1)", "min(1, x)", "max(x, 1)"])
def test_nan_stays_visible(text):
    assert math.isnan(value_of(text, x=math.nan))


@pytest.mark.parametrize("text", ["1 if x < 0 else 2", "1 if not x < 0 else 2", "mod(x, 3)", "clip(x, 0, 1)", "x**2"])
def test_nan_stays_visible_through_decisions(text):
    assert math.isnan(value_of(text, x=math.nan))


def test_division_by_zero_at_run_time_gives_infinity_and_no_exception():
    assert value_of("1/x", x=0.0) == math.inf
    assert math.isnan(value_of("mod(1, x)", x=0.0))


def test_steep_functions_keep_their_small_derivatives():
    _, slope, _ = parse("tanh(x)").program(["x"]).jet([(20.0, 1.0, 0.0)])
    assert slope == pytest.approx(exact(sp.tanh(X), X, 1, 20.0), rel=1e-14)
    assert parse("tanh(x)").program(["x"]).jet([(-1000.0, 1.0, 0.0)]) == (-1.0, 0.0, 0.0)


@pytest.mark.parametrize("x", [-0.0, 0.0])
def test_angle_on_the_branch_cut_is_plus_pi_whatever_the_sign_of_zero(x):
    assert value_of("atan2(x, -1)", x=x) == math.pi
    assert parse("atan2(x, -1)").evaluate({"x": x}) == math.pi
    assert value_of("atan2(-x, -1)", x=x) == math.pi


@pytest.mark.parametrize("x", [-0.3, 0.3, 19.9, 20.1, -700.0, 1e5])
def test_tanh_in_complex_numbers_is_finite_far_out(x):
    f, f1, f2 = run(parse("tanh(x)").program(["x"]), np.array([(x + 1e-20j, 1.0, 0.0)]))
    assert f.real == pytest.approx(math.tanh(x), rel=1e-15)
    assert f.imag / 1e-20 == pytest.approx(exact(sp.tanh(X), X, 1, x), rel=1e-13)
    assert f1.real == pytest.approx(exact(sp.tanh(X), X, 1, x), rel=1e-13)
    assert f2.real == pytest.approx(exact(sp.tanh(X), X, 2, x), rel=1e-13)


@pytest.mark.parametrize(
    "text",
    ["1/x", "x**-2", "log(x)", "log10(x)", "sqrt(x)", "atan2(x, x)", "hypot(x, x)", "mod(1, x)", "x**x", "x**-0.5"]
    + ["asin(1 - x)", "acos(1 - x)", "(1 - x)/x", "x**(x - 1)"],
)
def test_singular_points_raise_nothing_and_are_not_seen_through_a_choice(text):
    choice = parse(f"3*x + 2 if x <= 0 else {text}").program(["x"])
    for dtype in (float, complex):
        assert not np.isfinite(run(parse(text).program(["x"]), np.array([(0, 1, 1)], dtype=dtype))).all()
        assert run(choice, np.array([(0, 1, 1)], dtype=dtype)) == (2.0, 3.0, 3.0)


# --- programs --------------------------------------------------------------------------------------


def test_constant_parts_are_computed_once():
    assert len(parse("2*pi*sqrt(g/L)").program(["t"], {"g": 9.81, "L": 2.0}).code) == 1
    assert len(parse("sin(2*pi*50*t)").program(["t"]).code) == 3
    assert parse("1/L if L > 0 else 0").program([], {"L": 0.0}).evaluate([]) == 0.0


def test_connected_conditions_stop_at_the_first_that_decides():
    assert parse("1 if L > 0 and 1/L > 2 else 5").evaluate({"L": 0.0}) == 5.0
    assert parse("1 if L <= 0 or 1/L > 2 else 5").evaluate({"L": 0.0}) == 1.0


def test_input_and_output_scale_convert_units():
    program = parse("k*x**2 + t").program(["t", "x"], {"k": 2.0}, input_scale=[1.0, 1000.0], output_scale=0.001)
    f, f1, f2 = program.jet([(3.0, 0.0, 0.0), (0.002, 1.0, 0.0)])  # x = 2 mm
    assert f == pytest.approx(0.001 * (2.0 * 2.0**2 + 3.0), rel=1e-14)
    assert f1 == pytest.approx(0.001 * 2.0 * 2.0 * 2.0 * 1000.0, rel=1e-14)
    assert f2 == pytest.approx(0.001 * 2.0 * 2.0 * 1000.0**2, rel=1e-14)


def test_negative_input_scale_is_allowed():
    assert parse("exp(x)").program(["x"], input_scale=[-2.0]).evaluate([1.5]) == pytest.approx(math.exp(-3.0))


def test_constant_program_does_not_move():
    assert constant_program(2.5).jet([]) == (2.5, 0.0, 0.0)
    assert constant_program(2).evaluate([7.0]) == 2.0
    with pytest.raises(ExpressionError, match="finite"):
        constant_program(math.nan)


def test_depth_is_the_largest_number_of_rows_in_use():
    assert parse("x").program(["x"]).depth == 1
    assert parse("x + x + x + x").program(["x"]).depth == 2
    assert parse("x + (x + (x + x))").program(["x"]).depth == 4
    assert parse("x if x < x else x").program(["x"]).depth == 3


def test_stack_is_not_read_or_written_outside_its_depth():
    program = parse("x + (x*sin(x) + (x if x < 2 else min(x, 1)))").program(["x"])
    stack = np.full((program.depth + 1, 3), 77.0)
    run_program(program.code, 0, len(program.code), program.constants, np.array([(1.0, 1.0, 0.0)]), stack)
    assert (stack[program.depth] == 77.0).all()


def test_packed_programs_give_what_each_gives_alone():
    programs = [
        constant_program(4.0),
        parse("3*x + sin(2*t)").program(["t", "x"]),
        table_program([0.0, 1.0, 3.0], [1.0, 2.0, -1.0], 1, input_scale=2.0, output_scale=5.0),
        parse("x**5 - 2").program(["t", "x"]),
        parse("1.5").program(["t", "x"]),
    ]
    code, constants, start, depth = pack(programs)
    assert code.dtype == np.int64
    assert constants.dtype == np.float64
    assert start.dtype == np.int64
    assert len(start) == len(programs) + 1
    assert depth == max(p.depth for p in programs)
    t, x = 0.3, 0.4
    spline = CubicSpline([0.0, 1.0, 3.0], [1.0, 2.0, -1.0], bc_type="natural")
    expected = [4.0, 3 * x + math.sin(2 * t), 5 * float(spline(2 * x)), x**5 - 2, 1.5]
    jets, stack = np.array([(t, 1.0, 0.0), (x, 0.0, 0.0)]), np.zeros((depth, 3))
    for k, value in enumerate(expected):
        assert run_program(code, start[k], start[k + 1], constants, jets, stack)[0] == pytest.approx(value, rel=1e-14)


def test_packing_nothing_gives_empty_arrays():
    code, constants, start, depth = pack([])
    assert (len(code), len(constants), start.tolist(), depth) == (0, 0, [0], 0)


def test_packing_leaves_the_programs_as_they_were():
    program = parse("2*x + 1").program(["x"])
    before = program.code.copy(), program.constants.copy()
    pack([constant_program(1.0), program, program])
    assert (program.code == before[0]).all()
    assert (program.constants == before[1]).all()


def test_program_given_too_few_variables_says_so():
    program = parse("x + y").program(["t", "x", "y"])
    assert program.variables_read == 3
    with pytest.raises(ExpressionError, match="2 variables given, the program reads 3"):
        program.evaluate([1.0, 2.0])
    with pytest.raises(ExpressionError, match="shape"):
        program.jet([1.0, 2.0, 3.0])


def test_program_of_a_formula_whose_name_is_unknown_names_the_nearest():
    with pytest.raises(ExpressionError, match=r"column 9: unknown name 'sped'\. Did you mean 'speed'"):
        parse("drive + sped").program(["speed", "drive"])


def test_program_refuses_a_name_with_two_meanings():
    with pytest.raises(ExpressionError, match="both a variable and a parameter"):
        parse("2*crank").program(["crank"], {"crank": 1.0})
    parse("2*t").program(["t", "crank"], {"crank": 1.0})  # not used, no harm
    with pytest.raises(ExpressionError, match="already means a constant"):
        parse("2*t").program(["t", "e"])


def test_program_refuses_wrong_scales_and_values():
    with pytest.raises(ExpressionError, match="2 variables have 1 input scales"):
        parse("x").program(["x", "y"], input_scale=[1.0])
    with pytest.raises(ExpressionError, match="scale"):
        parse("x").program(["x"], output_scale=math.inf)
    with pytest.raises(ExpressionError, match="'k' is nan"):
        parse("k*x").program(["x"], {"k": math.nan})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x + 1/0", "1 / 0 has no finite value"),
        ("x*log(-2)", r"log\(-2\) has no finite value"),
        ("x if x < sqrt(-1) else 2", r"sqrt\(-1\)"),
        ("9**9**9**9 + x", r"9 \*\* 3.8742e\+08"),
    ],
)
def test_program_refuses_a_constant_part_without_finite_value(text, words):
    with pytest.raises(ExpressionError, match=words):
        parse(text).program(["x"])


def test_expression_is_frozen_equal_by_text_and_survives_pickling():
    expression = parse("a*sin(t) + pi + e")
    assert expression.names == {"a", "t"}
    assert expression.text == "a*sin(t) + pi + e"
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    assert again.evaluate({"a": 0.0, "t": 1.0}) == math.pi + math.e
    with pytest.raises(AttributeError):
        expression.text = "1"
    with pytest.raises(AttributeError):
        constant_program(1.0).depth = 3
    assert isinstance(constant_program(1.0), Program)


def test_long_sums_are_one_level_deep():
    text = "+".join(["x"] * 900)
    assert value_of(text, x=0.5) == 450.0
    assert parse(text).evaluate({"x": 1.0}) == 900.0


def test_names_keep_the_spelling_of_the_user():
    micro = "\N{MICRO SIGN}"  # Python itself would turn it into a Greek mu
    assert parse(f"2*{micro}").names == {micro}
    assert resolve_parameters({micro: 0.3, "k": f"2*{micro}"}) == {micro: 0.3, "k": 0.6}


# --- tables ----------------------------------------------------------------------------------------

TABLES = [
    ([0.0, 1.0], [2.0, 5.0]),
    ([0.0, 1.0, 3.0], [1.0, -2.0, 4.0]),
    (np.cumsum(np.random.default_rng(5).uniform(0.1, 2.0, 30)), np.random.default_rng(6).normal(size=30)),
]


@pytest.mark.parametrize(("x", "y"), TABLES)
def test_table_is_the_natural_spline_of_scipy(x, y):
    spline, program = CubicSpline(x, y, bc_type="natural"), table_program(x, y, 0)
    points = np.concatenate([np.random.default_rng(7).uniform(x[0], x[-1], 50), x])
    for point in points:
        for order, actual in enumerate(program.jet([(point, 1.0, 0.0)])):
            assert close(actual, float(spline(point, order)), 1e-11)


@pytest.mark.parametrize(("x", "y"), TABLES)
def test_table_goes_on_along_its_end_tangents(x, y):
    spline, program = CubicSpline(x, y, bc_type="natural"), table_program(x, y, 0)
    for end, away in ((x[0], -1e-9), (x[0], -3.0), (x[-1], 1e-9), (x[-1], 3.0)):
        slope = float(spline(end, 1))
        f, f1, f2 = program.jet([(end + away, 1.0, 0.0)])
        assert close(f, float(spline(end)) + slope * away, 1e-12)
        assert close(f1, slope, 1e-12)
        assert f2 == 0.0


def test_table_has_no_jump_in_value_slope_or_curvature():
    x, y = TABLES[2]
    program = table_program(x, y, 0)
    for knot in x:
        before, after = (program.jet([(knot + side, 1.0, 0.0)]) for side in (-1e-10, 1e-10))
        assert np.allclose(before, after, rtol=1e-7, atol=1e-6)


def test_table_along_a_path_follows_the_chain_rule():
    x, y = TABLES[2]
    spline, program = CubicSpline(x, y, bc_type="natural"), table_program(x, y, 1)
    u, u1, u2 = 7.3, -1.4, 2.2
    f, f1, f2 = program.jet([(0.0, 1.0, 0.0), (u, u1, u2)])
    assert f == pytest.approx(float(spline(u)), rel=1e-12)
    assert f1 == pytest.approx(float(spline(u, 1)) * u1, rel=1e-12)
    assert f2 == pytest.approx(float(spline(u, 2)) * u1**2 + float(spline(u, 1)) * u2, rel=1e-11)


def test_table_in_complex_numbers_gives_the_slope():
    x, y = TABLES[2]
    spline, program = CubicSpline(x, y, bc_type="natural"), table_program(x, y, 0)
    f, f1, _ = run(program, np.array([(5.1 + 1e-20j, 1.0, 0.0)]))
    assert f.imag / 1e-20 == pytest.approx(float(spline(5.1, 1)), rel=1e-12)
    assert f1.imag / 1e-20 == pytest.approx(float(spline(5.1, 2)), rel=1e-11)


def test_table_scales_convert_units():
    x, y = TABLES[1]
    spline, program = CubicSpline(x, y, bc_type="natural"), table_program(x, y, 0, input_scale=-10.0, output_scale=0.5)
    f, f1, f2 = program.jet([(-0.17, 1.0, 0.0)])
    assert f == pytest.approx(0.5 * float(spline(1.7)), rel=1e-13)
    assert f1 == pytest.approx(0.5 * -10.0 * float(spline(1.7, 1)), rel=1e-12)
    assert f2 == pytest.approx(0.5 * 100.0 * float(spline(1.7, 2)), rel=1e-12)


def test_table_shows_a_variable_that_is_nan():
    assert math.isnan(table_program([0.0, 1.0], [2.0, 5.0], 0).evaluate([math.nan]))


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([0.0], [1.0], r"1 point\(s\)\. Give at least two"),
        ([], [], r"0 point\(s\)"),
        ([0.0, 1.0], [1.0], "2 x and 1 y"),
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], r"point 3 \(1\) follows 2"),
        ([0.0, 1.0, 1.0], [0.0, 1.0, 2.0], r"point 3 \(1\) follows 1"),
        ([0.0, math.nan], [0.0, 1.0], "point 2 of the table is not finite"),
        ([0.0, 1.0], [math.inf, 1.0], "point 1 of the table is not finite"),
        ([[0.0, 1.0]], [[0.0, 1.0]], "flat lists"),
        (["a", "b"], [0.0, 1.0], "not a number"),
        ([0.0, 1e-320, 1.0], [0.0, 1e300, 0.0], "too steep"),
    ],
)
def test_wrong_table_is_refused_in_words(x, y, words):
    with pytest.raises(ExpressionError, match=words):
        table_program(x, y, 0)


def test_table_refuses_a_negative_index_and_scales_without_meaning():
    with pytest.raises(ExpressionError, match="negative"):
        table_program([0.0, 1.0], [0.0, 1.0], -1)
    with pytest.raises(ExpressionError, match="scale"):
        table_program([0.0, 1.0], [0.0, 1.0], 0, input_scale=math.nan)


# --- refusals --------------------------------------------------------------------------------------

REFUSED = [
    ("", "empty"),
    ("   \n", "empty"),
    ("__import__('os').system('x')", "dot after a name"),
    ("__import__('os')", "unknown function '__import__'"),
    ("().__class__", "dot after a name"),
    ("().__class__.__bases__[0].__subclasses__()", "dot after a name"),
    ("x.real", "dot after a name"),
    ("math.sin(x)", r"Write functions by their plain name, e\.g\. sin\(x\)"),
    ("x[0]", r"indexing with \[ \]"),
    ("lambda: 1", "'lambda' is not allowed"),
    ("(lambda: 1)()", "precede a bracket"),
    ("f(x=1)", "unknown function 'f'"),
    ("sin(x=1)", r"cannot be given by name\. Write sin\(x\)"),
    ("sin(**x)", "cannot be given by name"),
    ("max(*x, 1)", r"'\*' must stand between two factors"),
    ("eval(x)", "unknown function 'eval'"),
    ("open('/etc/passwd')", "unknown function 'open'"),
    ("exec('1')", "unknown function 'exec'"),
    ("'text'", "text in quotes"),
    ("b'text'", "text in quotes"),
    ("f'{x}'", "text in quotes"),
    ("x + 'a'", "column 5: text in quotes"),
    ("True", "True is not a real number"),
    ("None", "None is not a real number"),
    ("...", "not a real number"),
    ("1j*x", "1j is not a real number"),
    ("[1, 2]", "a list is not allowed"),
    ("{1: 2}", "not allowed"),
    ("{1, 2}", "not allowed"),
    ("[x for x in y]", "not allowed"),
    ("(x for x in y)", "not allowed"),
    ("1,5", "Write decimals with a point"),
    ("(y := 3)", "':=' is not allowed"),
    ("await x", "not allowed"),
    ("(yield)", "not allowed"),
    ("import os", "invalid syntax"),
    ("x = 1", "right-hand side of the '='"),
    ("x; y", "invalid syntax"),
    ("1 +", "column 4: it ends too early|column 4: invalid syntax"),
    ("(1 + 2", "never closed"),
    ("1 + 2)", "unmatched"),
    ("2x", r"Write ordinary arithmetic with \* in every product"),
    ("2(x + 1)", r"Write \* between the factors"),
    ("x(2)", "unknown function 'x'"),
    ("x^2", r"Write \*\* for a power"),
    ("x % 2", r"Write mod\(x, y\)"),
    ("x // 2", r"mod\(x, y\)"),
    ("x @ y", r"Use \+ - \* / and \*\*"),
    ("x << 2", "operator is not allowed"),
    ("~x", "'~' is not allowed"),
    ("not x", "'not' gives no number"),
    ("x < 1", "a comparison gives no number"),
    ("x and y", "'and' and 'or' give no number"),
    ("(x < 1) + 1", "column 2: a comparison gives no number"),
    ("1 if x else 2", "column 6: this is not a condition"),
    ("1 if x == 2 else 2", "Use < <= > >="),
    ("1 if x in y else 2", "Use < <= > >="),
    ("1 if 0 < x < 1 else 2", "Join them with 'and'"),
    ("1 if x < 2", "expected 'else'"),
    ("sin", r"'sin' is a function and needs its arguments\. Write sin\(x\)"),
    ("sin()", "'sin' takes 1 argument, 0 given"),
    ("sin(x, y)", "'sin' takes 1 argument, 2 given"),
    ("atan2(x)", r"'atan2' takes 2 arguments, 1 given\. Write atan2\(y, x\)"),
    ("max(x)", "'max' takes at least 2 arguments, 1 given"),
    ("clip(x, 1)", "'clip' takes 3 arguments, 2 given"),
    ("sinn(t)", r"column 1: unknown function 'sinn'\. Did you mean 'sin'"),
    ("1 + Cos(t)", r"column 5: unknown function 'Cos'\. Did you mean 'cos'"),
    ("  1 + Cos(t)", "column 7"),
    ("\N{GREEK SMALL LETTER ALPHA} + koz(t)", "column 5"),
    ("arctan2(x, y)", "Did you mean 'atan2'"),
    ("ln(x)", "Did you mean 'log'"),
    ("qqqq(x)", "functions known here are: abs, acos"),
    ("1e999", "the number is too large"),
    ("9" * 400, "the number is too large"),
    ("x # comment", "column 3: a comment"),
    ("x \x00", "not text"),
    ("x \ud800", "not text"),
    ("x \N{NO-BREAK SPACE}+ 1", "non-printable character"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_text_that_is_no_formula_is_refused_in_words(text, words):
    with pytest.raises(ExpressionError, match=words):
        parse(text)


@pytest.mark.parametrize(
    "text", ["(" * 900 + "x" + ")" * 900, "-" * 1900 + "x", "2**" * 600 + "2", "abs(" * 61 + "x" + ")" * 61]
)
def test_deep_nesting_is_refused_with_its_own_message(text):
    with pytest.raises(ExpressionError, match=f"nested more than {MAX_DEPTH} levels deep"):
        parse(text)


@pytest.mark.parametrize("text", ["x if x < 0 else " * 100 + "x", "1 if " + "not " * 400 + "x < 0 else 2"])
def test_deep_choices_are_refused_with_the_same_message(text):
    with pytest.raises(ExpressionError, match=f"nested more than {MAX_DEPTH} levels deep"):
        parse(text)


def test_nesting_up_to_the_limit_is_allowed():
    assert value_of("(" * 60 + "x" + ")" * 60, x=2.0) == 2.0
    assert value_of("abs(" * 60 + "x" + ")" * 60, x=-2.0) == 2.0


def test_long_text_is_refused_with_its_own_message():
    assert parse("x" + " " * (MAX_LENGTH - 1)).names == {"x"}
    with pytest.raises(ExpressionError, match=f"has {MAX_LENGTH + 1} characters, {MAX_LENGTH} are allowed"):
        parse("x" + " " * MAX_LENGTH)
    with pytest.raises(ExpressionError) as caught:
        parse("(" * 1000 + "x" + ")" * 1000)
    assert len(str(caught.value)) < 250


def test_what_is_no_text_is_refused():
    with pytest.raises(ExpressionError, match="a formula is a text, not int"):
        parse(3)


def test_power_towers_end_at_once():
    with pytest.raises(ExpressionError, match="has no finite value"):
        parse("9**9**9**9").evaluate({})


@pytest.mark.parametrize(
    "text", ["1/0", "log(-1)", "log(0)", "sqrt(-1)", "asin(2)", "exp(1000)", "(-8)**(1/3)", "0**-1"]
)
def test_evaluation_without_finite_result_is_refused(text):
    with pytest.raises(ExpressionError, match="has no finite value"):
        parse(text).evaluate({})


@pytest.mark.parametrize("text", ["atan(1/0)", "max(1, log(-1))", "0*(1/0)", "1 if 1/0 > 0 else 2", "mod(1, 0)"])
def test_a_part_without_finite_value_is_not_hidden_by_what_follows(text):
    with pytest.raises(ExpressionError, match="has no finite value"):
        parse(text).evaluate({})


def test_evaluation_with_unknown_name_names_the_nearest():
    with pytest.raises(ExpressionError, match=r"formula '2\*lenght', column 3: unknown name 'lenght'. Did you mean"):
        parse("2*lenght").evaluate({"length": 1.0})
    with pytest.raises(ExpressionError, match="names known here are: e, pi, radius"):
        parse("q").evaluate({"radius": 1.0})


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_and_nothing_else_happens(text):
    with contextlib.suppress(ExpressionError):
        parse(text)


@given(
    st.lists(
        st.sampled_from([*"xyt019.+-*/()<>,= ", "**", "sin(", "max(", " if ", " else ", " and ", "1e9"]), max_size=30
    )
)
@settings(max_examples=300, deadline=None)
def test_any_row_of_valid_pieces_is_read_or_refused_and_what_is_read_runs(pieces):
    try:
        program = parse("".join(pieces)).program(["x", "y", "t"])
    except ExpressionError:
        return
    program.evaluate([0.5, -2.0, 3.0])


# --- parameters ------------------------------------------------------------------------------------


def problems_of(parameters, overrides=None):
    with pytest.raises(ModelError) as caught:
        resolve_parameters(parameters, overrides)
    return caught.value.problems


def test_parameters_may_refer_to_each_other_in_any_order():
    given_ = {"c": "a + b", "a": 2, "b": "3*a", "d": "sqrt(c + 1)"}
    assert resolve_parameters(given_) == {"c": 8.0, "a": 2.0, "b": 6.0, "d": 3.0}
    assert list(resolve_parameters(given_)) == ["c", "a", "b", "d"]
    assert resolve_parameters({}) == {}


def test_override_replaces_a_parameter_before_others_are_computed():
    assert resolve_parameters({"a": 1, "b": "2*a"}, {"a": "3 + 4"}) == {"a": 7.0, "b": 14.0}
    assert resolve_parameters({"a": "nonsense +", "b": 1}, {"a": np.float64(2.0)}) == {"a": 2.0, "b": 1.0}


def test_long_chain_of_parameters_is_resolved():
    chain = {f"p{k}": f"p{k + 1} + 1" for k in range(3000)} | {"p3000": 0}
    assert resolve_parameters(chain)["p0"] == 3000.0


def test_cycle_is_named_once_in_the_order_of_reference():
    (problem,) = problems_of({"x": 1, "a": "b + x", "b": "2*c", "c": "a", "d": "a + 1"})
    assert problem.element == "parameter 'a'"
    assert problem.path == ("parameters", "a")
    assert "a -> b -> c -> a" in problem.message
    assert problem.hint


def test_every_separate_cycle_is_named():
    messages = [p.message for p in problems_of({"a": "b", "b": "a", "s": "s + 1", "p": "q", "q": "p*2"})]
    assert [m.partition(": ")[2] for m in messages] == ["a -> b -> a", "s -> s", "p -> q -> p"]


def test_all_problems_of_parameters_come_at_once_in_their_order():
    problems = problems_of(
        {
            "a": "lenght*2",
            "length": 1.0,
            "b": "sinn(a)",
            "c": "c",
            "d": "1/0",
            "f": math.nan,
            "g": True,
            "h": None,
            "i": "t + 1",
            "j": "d + 1",  # d is reported, not j
            "k": "u + v",
            "l": 10**400,
        }
    )
    assert [p.path[1] for p in problems] == ["a", "b", "c", "d", "f", "g", "h", "i", "k", "k", "l"]
    words = ["'length'", "'sin'", "c -> c", "1 / 0", "nan", "True", "None", "time", "'u'", "'v'", "inf"]
    for problem, word in zip(problems, words, strict=True):
        assert word in problem.message
        assert problem.element == f"parameter '{problem.path[1]}'"


@pytest.mark.parametrize("name", ["2a", "a b", "", "a-b", "if", "lambda", "t", *CONSTANTS, "sin", "max", 7])
def test_parameter_name_that_formulas_cannot_use_is_refused(name):
    (problem,) = problems_of({name: 1.0, "fine": 2.0})
    assert problem.path == ("parameters", name)
    assert "name" in problem.message


def test_keys_that_are_no_text_do_not_hide_other_problems():
    assert len(problems_of({7: 1.0, "a": "lenght", "length": 1.0})) == 2


def test_override_of_a_parameter_that_is_not_there_names_the_nearest():
    (problem,) = problems_of({"length": 1.0}, {"lenght": 2.0})
    assert "length" in str(problem)
    assert problem.path == ("parameters", "lenght")


# --- the package -----------------------------------------------------------------------------------


def test_importing_formulas_does_not_import_scipy():
    code = "import sys, loopdyn.quantities.expressions; sys.exit('scipy.interpolate' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_DISABLE_JIT": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0

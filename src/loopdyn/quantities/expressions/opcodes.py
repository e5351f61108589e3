"""Instruction set: an instruction is one integer, ``opcode + 256*operand``.

Opcodes are plain integers, which kernels read as constants. Their order matters: families are distinguished by
range. The operand is the index of a constant or of a variable, or an exponent.
"""

CONSTANT, VARIABLE = 0, 1  # push one jet
SCALE, POWER, SPLINE = 2, 3, 4  # one operand on the stack, one in the instruction
SIN, COS, TAN, ASIN, ACOS, ATAN = 5, 6, 7, 8, 9, 10
SINH, COSH, TANH, EXP, LOG, LOG10, SQRT = 11, 12, 13, 14, 15, 16, 17
ABS, SIGN, STEP, RADIANS, DEGREES = 18, 19, 20, 21, 22
ADD, SUB, MUL, DIV, POW, ATAN2, HYPOT = 23, 24, 25, 26, 27, 28, 29
MIN, MAX, MOD, LESS, LESS_EQUAL = 30, 31, 32, 33, 34
WHERE = 35  # condition, value if true, value if false

BITS = 8
MASK = 2**BITS - 1
READS_CONSTANTS = (CONSTANT, SCALE, SPLINE)  # their operand is an index into the constants
MAX_INTEGER_POWER = 2**31  # beyond it an integer exponent is treated like any other number


def operand_count(op: int) -> int:
    """Number of jets that an instruction pops from the stack; it pushes one."""
    return 0 if op <= VARIABLE else 1 if op < ADD else 2 if op < WHERE else 3

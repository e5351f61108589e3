"""Arrays of the distribution of loads: its structure, and scratch for one state.

An *unknown* is a scaled multiplier y of a row that is not one of a tree joint, or theta of a freedom; unknowns are
numbered in the order of their elimination. A *slot* is an unknown y that is open at a body: its load acts on the body
or on one further out, and its reaction does not. Rows are numbered as in the balance
(:mod:`loopdyn.loops.reactions_balance`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

# at[i]: integers of body i. SLOTS, SLOTS_END: its slots; CUT: its tree joint as a cut, or -1 if that has no rows or is
# severed; ROW: first row of this joint; FREEDOMS: their number, six if severed; THETA: first of their unknowns, or -1;
# LOOSE: 1 if severed; PAIRS, COUPLES: first entry of its pairs of slots, and of its slots and freedoms, in `pair` and
# `couple`; SHARES: first number of its Y.
SLOTS, SLOTS_END, CUT, ROW, FREEDOMS, THETA, LOOSE, PAIRS, COUPLES, SHARES, N_AT = range(11)
# slot[x]: unknown, and slot of the parent's body or -1.
UNKNOWN, UP, N_SLOT = range(3)
# acting[n]: rows of a cut that act on one of its bodies: first slot, cut, first row of the balance, sign.
A_SLOT, A_CUT, A_ROW, A_SIGN, N_ACTING = range(5)
# related[n]: entry of a relation with a coordinate of a cut joint that acts on a body: slot, cut, freedom, entry, row
# of the balance, sign. inner[n]: a row that acts on freedom k of the tree joint of a body: slot, body, k, row of the
# balance; then the entry of a relation, or -1 and the number of the user row; the joint as a cut.
R_SLOT, R_CUT, R_FREEDOM, R_ENTRY, R_ROW, R_SIGN, N_RELATED = range(7)
I_SLOT, I_BODY, I_FREEDOM, I_ROW, I_ENTRY, I_USER, I_CUT, N_INNER = range(8)
# unknown[u]: row of the balance, or -1 for a freedom; where its column begins in the matrix, and where the numbers of
# the entries that it changes begin in `target`.
U_ROW, U_COLUMN, U_TARGET, N_UNKNOWN = range(4)
# varying[n]: joint whose row wrenches, seen in F, depend on the pose: joint, cut, first row of the balance.
V_JOINT, V_CUT, V_ROW, N_VARYING = range(4)


class DistributionTables(NamedTuple):
    """Tables of the distribution, the same at all states."""

    at: Any  # (bodies, N_AT)
    slot: Any  # (slots, N_SLOT)
    acting: Any  # (n, N_ACTING)
    related: Any  # (n, N_RELATED)
    inner: Any  # (n, N_INNER)
    pair: Any  # entries of the matrix
    couple: Any
    unknown: Any  # (unknowns + 1, N_UNKNOWN); the last one has the ends
    below: Any  # unknowns of the entries below the diagonal, column by column, as they lie in the matrix
    target: Any  # entries that a column changes when it is eliminated, pair by pair
    varying: Any  # (n, N_VARYING)
    row_joint: Any  # (rows of joints,)


class DistributionScratch(NamedTuple):
    """Arrays that are overwritten at each state."""

    load: Any  # (bodies, 6) loads of all joints on a body; then on it and all bodies further out
    missing: Any  # (bodies, 6) loads that the reactions do not balance
    column: Any  # (slots, 6) load of a unit unknown on the body and those further out, about its reference point
    inner: Any  # (slots, 6) load of a unit unknown across the joint of the body
    joint: Any  # (6, 6) rows of one joint
    share: Any  # Y of all bodies, slot by slot
    matrix: Any
    size: Any  # (unknowns,) what rows have added to the diagonal of a freedom: its pivot is compared with it
    natural: Any  # (unknowns,) natural size of it
    weakest: Any  # (unknowns,) smallest pivot of a freedom that changed this unknown, as a fraction of its size
    inverse: Any  # (unknowns,) of the pivots, zero for dropped ones
    x: Any  # (unknowns, right sides)
    y: Any  # (rows, right sides) scaled multipliers; the first is that of the loads, the others those of the probes
    first: Any  # (rows,) scaled multipliers before they are refined
    direction: Any  # (rows of joints, 6) wrench of each row in axes of F
    root: Any  # (rows,) root of the weight of a row in the norm

"""Distribution of the loads of all bodies over the joints, compiled.

The reactions of tree joints follow from those of the cut joints by the balance of the bodies further out. What remains
is a small problem in the multipliers y of the cut rows, scaled so that the norm is Euclidean:

    minimise |y|^2 + sum over tree joints |y0 - Y y|^2    subject to    C^T y = c

y0 - Y y are the scaled multipliers of a tree joint, c the loads along the freedoms of the tree, which no constraint
carries. With theta the multipliers of these conditions,

    (1 + Y^T Y) y + C theta = Y^T y0        C^T y = c

which is solved by sparse elimination: `plan` has its order, `passes` the numbers at one state, `along` the loop over
states.
"""

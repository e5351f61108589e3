"""`ld.analyses.coordinates`: ranking of coordinates, sets and cuts; the criterion along a motion."""

import numpy as np
import pytest

import loopdyn as ld


@pytest.fixture(scope="module")
def four_bar() -> ld.results.Coordinates:
    system = ld.library.four_bar().compile(cuts=["C"])
    return ld.analyses.coordinates(system, ld.assemble(system))


def test_coordinates_are_ranked_and_the_best_is_what_partition_takes(four_bar):
    assert four_bar.freedoms == 1
    assert four_bar.complete
    measures = [value for _, value in four_bar.sets]
    assert measures == sorted(measures, reverse=True)
    assert {labels[0]: value for labels, value in four_bar.sets} == pytest.approx(four_bar.cosine)
    assert ld.prepare(four_bar.system, "partition", four_bar.state).active == four_bar.best


def test_the_criterion_is_mobility_with_constraints_over_mobility_without(four_bar):
    """cos^2 alpha_i: acceleration of i that a unit force on it adds, in the mechanism and in the open tree."""
    system, state = four_bar.system, four_bar.state
    M, J = (getattr(ld.terms(system, state), name) for name in ("M", "J"))
    for i, label in enumerate(system.speeds):
        KKT = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        force = np.eye(len(KKT))[i]
        bound = np.linalg.lstsq(KKT, force, rcond=1e-12)[0][i]
        assert four_bar.cosine[label] == pytest.approx(bound / np.linalg.inv(M)[i, i], rel=1e-9)


def test_a_dead_centre_is_told_as_singular():
    """Crank and rod of the slider-crank in line: the slide cannot be independent."""
    m = ld.Mechanism("dead", gravity=(0, 0, -9.81))
    crank = m.add_body("crank", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    rod = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(1, 0, 0), end=(3, 0, 0)))
    block = m.add_body("block", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(3, 0, 0)))
    pin = ld.Revolute(axis=(0, 1, 0))
    m.add_joint("A", pin, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", pin, crank, rod, at=(1, 0, 0))
    m.add_joint("C", pin, rod, block, at=(3, 0, 0))
    m.add_joint("D", ld.Prismatic(axis=(1, 0, 0)), m.ground, block, at=(3, 0, 0))
    system = m.compile(cuts=["C"])
    found = ld.analyses.coordinates(system, system.state())
    assert found.singular == ("D",)
    assert dict(found.sets)[("D",)] == 0.0
    assert "singular here" in str(found)
    with pytest.raises(ld.errors.SingularityError, match="'D' cannot be independent"):
        ld.accelerations(system, system.state(), ld.Partition(independent=["D"]))


def test_all_four_cuts_of_the_four_bar_are_ranked(four_bar):
    assert {cut.joints for cut in four_bar.cuts} == {("A",), ("B",), ("C",), ("D",)}
    measures = [cut.measure for cut in four_bar.cuts]
    assert measures == sorted(measures, reverse=True)
    assert not any(cut.refused for cut in four_bar.cuts)
    for cut in four_bar.cuts:  # each is what the mechanism with that cut says of itself
        system = ld.library.four_bar().compile(cuts=list(cut.joints))
        found = ld.analyses.coordinates(system, ld.assemble(system))
        assert found.best == cut.best
        assert found.sets[0][1] == pytest.approx(cut.measure, rel=1e-9)


def test_a_cut_at_a_massless_body_is_refused_and_the_advised_one_works():
    """Section 3 of Blajer 1994: recursive methods fail where the loop is cut at a body whose mass is neglected."""
    m = ld.library.four_bar()
    m.bodies["coupler"] = ld.Body(mass=0.0, com=(0.0, 0.0, 0.0), inertia=np.zeros((3, 3)).tolist())
    system = m.compile(cuts=["C"])
    found = ld.analyses.coordinates(system, ld.assemble(system, v={"A": 1.0}))
    refused = {cut.joints[0] for cut in found.cuts if cut.refused}
    assert refused == {"B", "C"}
    assert all("'coupler' has no inertia" in cut.refused for cut in found.cuts if cut.refused)
    assert not found.cuts[0].refused
    assert "refused: body 'coupler'" in str(found)
    for cut in found.cuts:
        other = m.compile(cuts=list(cut.joints))
        state = ld.analyses.reconnect(system, other, found.state).state
        expected = ld.accelerations(other, state, "oracle")
        if cut.refused:
            with pytest.raises(ld.errors.SingularityError, match="no inertia"):
                ld.accelerations(other, state, "relative")
        else:
            np.testing.assert_allclose(ld.accelerations(other, state, "relative"), expected, rtol=1e-9)
        # partition takes every cut: only the inertia of the independent motion counts
        np.testing.assert_allclose(ld.accelerations(other, state, "partition"), expected, rtol=1e-9)


def test_sweep_covers_a_turn_of_the_crank_and_stays_closed(four_bar):
    sweep = four_bar.sweep("A")
    assert abs(sweep.value[-1] - sweep.value[0]) > 2 * np.pi - 0.05
    for q in sweep.q[::40]:
        assert np.abs(ld.tree.constraint_equations(sweep.system, ld.State(0.0, q, np.zeros(3)))[0]).max() < 1e-9
    np.testing.assert_allclose(sweep.svd.sum(axis=1), 1.0, atol=1e-12)
    lines = sweep.plot().axes[0].lines
    assert [line.get_label() for line in lines[::2]] == list(sweep.system.speeds)


def test_sweep_needs_one_freedom_and_a_coordinate(four_bar):
    with pytest.raises(ld.LoopdynError, match="no coordinate 'Z'"):
        four_bar.sweep("Z")
    system = ld.library.five_bar().compile()
    with pytest.raises(ld.LoopdynError, match="has 2 degrees of freedom here, but a sweep needs one"):
        ld.analyses.coordinates(system, ld.assemble(system)).sweep("A")


def test_many_sets_are_told_by_the_best_and_its_neighbours():
    system = ld.library.random_mechanism(5, bodies=16, loops=1).compile()
    found = ld.analyses.coordinates(system, ld.assemble(system))
    if not found.complete:
        assert "its neighbours" in str(found)
    assert found.sets[0][1] >= found.sets[-1][1]


def test_a_sweep_ends_at_the_limit_of_a_cut_joint():
    """D is cut, and limited to 0.3 rad: read where another joint is cut, so that it is a coordinate of the tree."""
    free = ld.library.four_bar()
    limited = ld.library.four_bar()
    limited.joints["D"] = limited.joints["D"].model_copy(update={"limits": (-1.0, 0.3)})
    whole, system = free.compile(cuts=["D"]), limited.compile(cuts=["D"])
    sweeps = [ld.analyses.coordinates(s, ld.assemble(s)).sweep("A") for s in (whole, system)]
    assert abs(sweeps[0].value[-1] - sweeps[0].value[0]) > 6.2
    there = free.compile(cuts=["C"])  # D in the tree
    start = ld.assemble(there, q={"A": sweeps[1].value[-1]}).q[there.coordinates.index("D")]
    assert 0.3 - 0.1 < start <= 0.3  # the last pose within: a step of the sweep moves D by less than 0.1 rad

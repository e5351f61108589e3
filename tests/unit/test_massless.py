"""Bodies without inertia: legal where drivers or couplers hold them; elsewhere the right one is named."""

import numpy as np
import pytest

import loopdyn as ld

PIN = ld.Revolute(axis=(0, 0, 1))
pytestmark = [
    pytest.mark.jit_off,
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),  # of NumPy, as plain Python
]


def driven_table() -> ld.Mechanism:
    """A massless table that a motor turns by 2 t^2 + t: its acceleration is 4 rad/s^2."""
    m = ld.Mechanism("turntable")
    m.add_body("table", ld.Inertia.massless())
    m.add_joint("A", PIN, m.ground, "table", at=(0, 0, 0))
    m.add_driver("motor", "A", "2*t**2 + t")
    return m


def table_on_a_pendulum() -> ld.Mechanism:
    """The same at the end of a pendulum, 1 kg at 0.5 m, level: it falls with g / l whatever the table does."""
    m = ld.Mechanism("pendulum", gravity=(0, -10, 0))
    m.add_body("arm", ld.Inertia.point(mass=1.0, at=(0.5, 0, 0)))
    m.add_body("table", ld.Inertia.massless())
    m.add_joint("P", PIN, m.ground, "arm", at=(0, 0, 0))
    m.add_joint("A", PIN, "arm", "table", at=(0.5, 0, 0))
    m.add_driver("motor", "A", "2*t**2 + t")
    return m


def geared_pointer() -> ld.Mechanism:
    """A massless pointer geared to a wheel: twice its angle."""
    m = ld.Mechanism("pointer")
    m.add_body("wheel", ld.Inertia(mass=1.0, com=(0, 0, 0), inertia=np.diag([1.0, 1.0, 2.0]).tolist()))
    m.add_body("pointer", ld.Inertia.massless())
    m.add_joint("W", PIN, m.ground, "wheel", at=(0, 0, 0))
    m.add_joint("Q", PIN, m.ground, "pointer", at=(1, 0, 0))
    m.add_constraint("gear", ld.constraints.Coupler(terms={"Q": 1, "W": -2}))
    m.add_motor("torque", "W", torque=6.0)
    return m


# ------------------------------------------------------------------------------------------------ held by drivers


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (driven_table, {"A": 4.0}),
        (table_on_a_pendulum, {"P": -20.0, "A": 4.0}),  # -g / l
        (geared_pointer, {"W": 3.0, "Q": 6.0}),  # torque / inertia, and twice that
    ],
    ids=["driven", "driven on a heavy body", "geared"],
)
@pytest.mark.parametrize("formulation", ["auto", "partition", "oracle"])
def test_a_massless_body_that_a_driver_or_a_gear_holds_has_the_acceleration_by_hand(build, expected, formulation):
    system = build().compile()
    a = ld.accelerations(system, ld.assemble(system), formulation)
    assert dict(zip(system.speeds, a, strict=True)) == pytest.approx(expected, rel=1e-12)  # a few operations


def test_auto_says_that_it_leaves_graph_and_why():
    plan = ld.Auto().plan(driven_table().compile())
    assert plan.startswith("auto: partition, since body 'table' has no inertia in the tree; no momentum steps\n")
    assert ld.Auto().plan(ld.library.four_bar().compile()).startswith("auto: graph")


def test_a_run_and_its_loads_of_a_driven_massless_body():
    """phi = 2 t^2 + t, and the motor has nothing to turn."""
    system = driven_table().compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.5), t_eval=[0, 0.25, 0.5], progress=False)
    assert run.status == "finished", run.message
    np.testing.assert_allclose(run.path.q[:, 0], [0.0, 0.375, 1.0], atol=1e-9)  # driven: closed to rounding
    last = ld.State(0.5, run.path.q[-1], run.path.v[-1])
    assert abs(ld.reactions(system, last).multipliers["motor"]) < 1e-12


@pytest.mark.parametrize("formulation", ["absolute", "rcr", "closure"])
def test_formulations_that_reduce_by_all_rows_take_a_driven_massless_body(formulation):
    system = driven_table().compile()
    assert ld.accelerations(system, ld.assemble(system), formulation) == pytest.approx([4.0], rel=1e-12)


# ----------------------------------------------------------------------------------------------- who is to blame


@pytest.mark.parametrize("formulation", ["graph", "relative", "momentum"])
def test_the_massless_body_is_blamed_and_not_the_heavy_one_that_carries_it(formulation):
    system = table_on_a_pendulum().compile()
    with pytest.raises(ld.errors.SingularityError, match="body 'table' has no inertia") as error:
        ld.accelerations(system, ld.assemble(system), formulation)
    assert "arm" not in str(error.value)
    assert "auto" in str(error.value)  # what can


def chain(*massless: str) -> ld.Mechanism:
    """Five bodies on pins in a row, heavy but for some."""
    m = ld.Mechanism("chain")
    before = m.ground
    for k in range(5):
        name = f"b{k}"
        heavy = ld.Inertia.rod(mass=1.0, start=(k, 0, 0), end=(k + 0.9, 0.3, 0))
        m.add_body(name, ld.Inertia.massless() if name in massless else heavy)
        m.add_joint(f"P{k}", PIN, before, name, at=(k, 0.1 * k * k, 0))
        before = name
    return m


@pytest.mark.parametrize(("massless", "blamed"), [(("b4",), "b4"), (("b3", "b4"), "b4"), (("b1", "b4"), "b4")])
def test_the_tree_names_the_outermost_massless_body_of_a_chain(massless, blamed):
    system = chain(*massless).compile()
    with pytest.raises(ld.errors.SingularityError, match=f"body '{blamed}' has no inertia"):
        ld.tree.open_tree_forward_dynamics(system, system.state())


def test_bodies_that_lack_inertia_apart_from_each_other_are_not_told_that_one_of_them_is_enough():
    """Two thin rods, each on its own ball joint: each must get a thickness."""
    m = ld.Mechanism("two rods")
    for name, x in (("left", 0.0), ("right", 3.0)):
        m.add_body(name, ld.Inertia.rod(mass=1.0, start=(x, 0, 0), end=(x + 0.3, 0.5, 0.7)))
        m.add_joint(f"S {name}", ld.Spherical(), m.ground, name, at=(x, 0, 0))
    system = m.compile()
    with pytest.raises(ld.errors.SingularityError) as error:
        ld.accelerations(system, system.state(v=np.array([0.3, 0.2, 0.1, 0.2, -0.1, 0.4])))
    assert str(error.value).startswith("body 'left'; body 'right': each can move where there is no inertia")
    assert "one of them" not in str(error.value)


def test_a_massless_link_between_two_heavy_bodies_is_blamed_for_its_spin():
    m = ld.Mechanism("link", gravity=(0, -10, 0))
    for name, at in (("first", (0, 0, 0)), ("last", (2, 0, 0))):
        m.add_body(name, ld.Inertia.sphere(mass=1.0, radius=0.3, at=at))
    m.add_body("link", ld.Inertia.massless())
    m.add_joint("F", PIN, m.ground, "first", at=(0, 1, 0))
    m.add_joint("S1", ld.Spherical(), "first", "link", at=(0.3, 0.1, 0.2))
    m.add_joint("S2", ld.Spherical(), "link", "last", at=(1.7, 0.4, -0.3))
    m.add_joint("L", PIN, m.ground, "last", at=(2, 1, 0))
    for cuts in (None, ["F"], ["S1"], ["S2"], ["L"]):
        system = m.compile(cuts=cuts)
        with pytest.raises(ld.errors.SingularityError, match="body 'link' can move where it has no inertia"):
            ld.accelerations(system, system.state())

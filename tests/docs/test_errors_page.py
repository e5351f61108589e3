"""The page of errors shows messages as they are: each is provoked here and compared with its row."""

from pathlib import Path

import pytest

import loopdyn as ld

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text("utf-8")
PIN = ld.Revolute(axis=(0, 0, 1))


def arm(radius: float = 0.1, **placed) -> ld.Mechanism:
    """Rod on a pin, or on a joint that is placed otherwise."""
    m = ld.Mechanism("arm")
    m.add_body("rod", ld.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), radius))
    m.add_joint("A", placed.pop("joint", PIN), m.ground, "rod", **(placed or {"at": (0, 0, 0)}))
    return m


def motor(**law) -> ld.Mechanism:
    m = arm()
    m.add_motor("motor", "A", **law)
    return m


def unknown_body():
    m = arm()
    m.add_joint("B", PIN, "rod", "rood", at=(1, 0, 0))
    m.compile()


def different_units():
    m = arm()
    m.add_measure("sum", "A + A.fx")
    m.compile()


def nowhere():
    m = ld.Mechanism("arm")
    m.add_body("rod", ld.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0), 0.1))
    m.add_joint("A", PIN, m.ground, "rod")
    m.compile()


def out_of_reach():
    ld.assemble(ld.library.four_bar().compile(), q={"D": 1.5})


def massless():
    system = arm(radius=0, joint=ld.Spherical(), at=(0, 0, 0)).compile()
    ld.accelerations(system, ld.assemble(system))


def beyond_the_limit():
    system = ld.library.four_bar().compile()
    start = ld.assemble(system, v={"D": 2.0})
    ld.simulate(system, start, (0, 3), formulation=ld.Closure(independent=["D"]), progress=False).raise_if_failed()


def velocities_alone():
    m = ld.library.four_bar()
    m.add_constraint("u", ld.constraints.VelocityRelation(formula="a*0", speeds={"a": "A"}))
    ld.prepare(m.compile(), "closure")


def division_by_zero():
    system = motor(torque="1/position").compile()
    ld.accelerations(system, ld.assemble(system))


PROVOKED = {
    "there is no body": unknown_body,
    "unknown name": lambda: motor(torque="2*k").compile(),
    "'+' joins rad and N": different_units,
    "'A' takes a torque, not a force": lambda: motor(force=2.0).compile(),
    "'axis' has length zero": lambda: arm(joint=ld.Revolute(axis=(0, 0, 0)), at=(0, 0, 0)).compile(),
    "has no placement": nowhere,
    "is placed twice": lambda: arm(at=(0, 0, 0), parent_frame=ld.Frame(), child_frame=ld.Frame()).compile(),
    "there is no label": lambda: ld.assemble(arm().compile())["Q"],
    "the mechanism cannot be closed with": out_of_reach,
    "can move where it has no inertia": massless,
    "that is the limit of": beyond_the_limit,
    "cannot treat": velocities_alone,
    "there is no formulation": lambda: ld.prepare(arm().compile(), "grahp"),
    "is not a finite number at t =": division_by_zero,
}


@pytest.mark.parametrize("words", PROVOKED)
def test_the_page_has_the_message_of_an_error_as_it_is(words):
    assert words in PAGE
    with pytest.raises(ld.LoopdynError) as caught:
        PROVOKED[words]()
    assert words in str(caught.value)

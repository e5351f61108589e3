"""Tables of variants as people and spreadsheets write them: every value arrives in the variant it was written for."""

from __future__ import annotations

import pytest

import loopdyn as ld

END = 1e-3  # s: hardly moved, so that the pin carries a quarter of the weight but for 1e-5 of it


def rod():
    m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"length": 1.0, "half": "length/2", "mass": "2*half"})
    body = m.add_body("rod", ld.Inertia.rod(mass="mass", start=(0, 0, 0), end=("length", 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, body, at=(0, 0, 0))
    return m


def forces(table):
    """Force of the pin by variant, N, to five digits."""
    column = ld.analyses.variants(rod(), table, (0, END), progress=False).table()["A radial force, N"]
    return {name: round(float(x), 4) for name, x in column.items()}


@pytest.mark.parametrize(
    "text",
    [
        "name,length\na,1\nb,2\n",
        "name,length\na,1,\nb,2,\n",  # a comma too many at the end of each line, as spreadsheets leave it
        "name,length,,\na,1,,\nb,2,,\n,,,\n",
        "\ufeffname, length\r\n a , 1\r\n b , 2*1\r\n",
        'name,half\na,\nb,"max(1, 0.5)"\n',
    ],
)
def test_a_table_is_read_as_it_is_written(tmp_path, text):
    file = tmp_path / "variants.csv"
    file.write_text(text, encoding="utf-8")
    assert forces(file) == pytest.approx({"a": 2.5, "b": 5.0}, rel=1e-4)


def test_names_of_variants_stay_as_they_are(tmp_path):
    file = tmp_path / "variants.csv"
    file.write_text("name,length\n007,1\n1.50,2\nNA,3\n,4\n")
    assert forces(file) == pytest.approx({"007": 2.5, "1.50": 5.0, "NA": 7.5, "4": 10.0}, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,length\na,1,2\nb,3,4\n", "line 2: more cells than the 2 names"),
        ("name;length\na;1\n", "semicolons"),
        ("name,length,length\na,1,2\n", "two columns 'length'"),
        ("name,,length\na,1,2\n", "without a name"),
        ("Name,length\na,1\n", "Did you mean 'name'"),
        ("name,length\n", "is empty"),
    ],
)
def test_a_table_that_is_not_clear_is_refused(tmp_path, text, message):
    file = tmp_path / "variants.csv"
    file.write_text(text)
    with pytest.raises(ld.LoopdynError, match=message):
        forces(file)


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_value_that_is_not_finite_fails_alone(tmp_path, value):
    file = tmp_path / "variants.csv"
    file.write_text(f"name,length\nwrong,{value}\nright,2\n")
    found = ld.analyses.variants(rod(), file, (0, END), progress=False)
    assert [v.name for v in found.failed] == ["wrong"]
    assert "finite" in found["wrong"].why
    with pytest.raises(ld.errors.ModelError, match="finite"):
        rod().with_(length=float(value))


def test_parameters_are_the_first_columns_also_if_the_first_variant_has_none():
    table = ld.analyses.variants(
        rod(), [{"name": "as drawn"}, {"name": "long", "length": 2}], (0, END), progress=False
    ).table()
    assert list(table.columns)[:2] == ["length", "status"]
    assert list(table.columns)[-1] == "why"

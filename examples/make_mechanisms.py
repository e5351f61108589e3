"""Write the model files in examples/mechanisms/ from the library: run it after a mechanism of the library changed."""

from functools import partial
from pathlib import Path

from loopdyn.library import ALL, scissor_lift, stewart_6ups

FOLDER = Path(__file__).parent / "mechanisms"

if __name__ == "__main__":
    others = {"scissor_lift_20": scissor_lift, "stewart_6ups_stops": partial(stewart_6ups, stops=True)}
    for name, build in {**ALL, **others}.items():
        build().save(FOLDER / f"{name}.yaml")
        print(f"mechanisms/{name}.yaml")

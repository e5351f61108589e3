"""Write the model files in examples/mechanisms/ from the library: run it after a mechanism of the library changed."""

from pathlib import Path

from loopdyn.library import ALL, scissor_lift

FOLDER = Path(__file__).parent / "mechanisms"

if __name__ == "__main__":
    for name, build in {**ALL, "scissor_lift_20": scissor_lift}.items():
        build().save(FOLDER / f"{name}.yaml")
        print(f"mechanisms/{name}.yaml")

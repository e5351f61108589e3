"""Write the model files in examples/mechanisms/ from the library: run it after a mechanism of the library changed."""

from pathlib import Path

from loopdyn.library import ALL

FOLDER = Path(__file__).parent / "mechanisms"

if __name__ == "__main__":
    for name, build in ALL.items():
        build().save(FOLDER / f"{name}.yaml")
        print(f"mechanisms/{name}.yaml")

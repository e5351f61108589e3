"""``loopdyn warm``: kernels compiled in advance."""

from __future__ import annotations

from typing import Annotated

import typer


def warm(
    everything: Annotated[
        bool, typer.Option("--all", help="All formulations and analyses, not only the default way.")
    ] = False,
) -> None:
    """Compile kernels in advance, so that no later call waits for them.

    Without --all those of assemble, simulate and reactions by the default
    formulation. Kernels are kept in the user's cache folder and serve every
    environment and checkout of the same sources.

    Example: loopdyn warm --all
    """
    from loopdyn.app.warm import main as compile_kernels

    compile_kernels(everything)

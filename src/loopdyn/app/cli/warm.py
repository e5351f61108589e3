"""``loopdyn warm``: kernels compiled in advance."""

from __future__ import annotations

from typing import Annotated

import typer


def warm(
    everything: Annotated[bool, typer.Option("--all", help="Kernels of all formulations and analyses.")] = False,
) -> None:
    """Compile kernels in advance, so that no later call waits for them.

    Without --all only those of assemble, simulate and reactions with the default
    formulation are compiled. Kernels are kept in the user's cache folder and are
    shared by all environments and checkouts of the same sources.

    Example: loopdyn warm --all
    """
    from loopdyn.app.warm import main as compile_kernels

    compile_kernels(everything)

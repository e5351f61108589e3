"""View of a mechanism in Jupyter: its start in 3-D, about 1 MB in the notebook, which needs no network."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.output.viewer.page import page_text
from loopdyn.output.viewer.scene import StillPose, describe

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism

HEIGHT = 420  # px of a view


def mechanism_view(mechanism: Mechanism) -> str:
    """HTML with a 3-D view of a mechanism in its start pose, or with its parts and why it cannot be drawn.

    Examples
    --------
    >>> import loopdyn as ld
    >>> mechanism_view(ld.library.pendulum())[:8]
    '<iframe '
    >>> print(mechanism_view(ld.Mechanism("no <parts>")))
    <pre>no &lt;parts&gt;: 0 bodies, 0 joints
    It cannot be drawn: it has no bodies yet</pre>
    """
    try:
        if not mechanism.bodies:
            raise LoopdynError("it has no bodies yet")
        system = mechanism.compile()
        page = page_text(describe(StillPose(system, assemble(system))), system.name)
    except LoopdynError as error:
        parts = f"{mechanism.name}: {len(mechanism.bodies)} bodies, {len(mechanism.joints)} joints"
        said = html.escape(f"{parts}\nIt cannot be drawn: {error}", quote=False)
        return f"<pre>{said}</pre>"
    return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'

"""Contact types: the list. compile() rejects a type that is not listed here."""

from __future__ import annotations

from loopdyn.contacts.base import OneSided, Side
from loopdyn.contacts.stop import Stop

# The public names of `loopdyn.contacts`.
__all__ = ["OneSided", "Side", "Stop"]

AnyContact = Stop
TYPES: tuple[type[OneSided], ...] = (Stop,)

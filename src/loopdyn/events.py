"""Events of a run: what to detect, what to do there, and what a run records."""

from loopdyn.run.events import At, Crossing, Event, Limits
from loopdyn.run.locking import Add, Lock, Release

__all__ = ["Add", "At", "Crossing", "Event", "Limits", "Lock", "Release"]

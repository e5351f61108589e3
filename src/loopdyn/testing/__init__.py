"""Contract tests of formulations."""

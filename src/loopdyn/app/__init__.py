"""Command line, studio, demonstration, benchmarks and diagnostics."""

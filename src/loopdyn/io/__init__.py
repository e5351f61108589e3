"""Model files: reading, writing, and their JSON Schema; files of runs."""

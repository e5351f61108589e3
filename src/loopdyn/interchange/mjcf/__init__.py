"""MJCF, MuJoCo's format: reading a part of a model in each file, and writing."""

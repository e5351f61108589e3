"""SDFormat (Gazebo, Drake): models and frames of a file, and reading a model."""

"""A mechanism as a user describes it: names, bodies, joints, forces, parameters. No mathematics."""

"""Description of a mechanism: names, bodies, joints, forces, parameters. No mathematics."""

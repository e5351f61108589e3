"""Models in the formats of other tools: reading and writing them with their loops, and reports of losses."""

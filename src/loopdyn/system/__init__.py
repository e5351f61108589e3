"""A mechanism as it is computed: spanning tree, cut joints, frozen arrays."""

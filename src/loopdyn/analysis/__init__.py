"""Questions about a mechanism: does it close, how can it move, what do its joints carry."""

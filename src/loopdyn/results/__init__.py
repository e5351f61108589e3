"""Results of simulations and analyses, and quantities computed from them."""

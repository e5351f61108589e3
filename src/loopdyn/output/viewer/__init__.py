"""A run as one page for the browser: the mechanism in 3-D, its motion, loads and plots; no network, no server.

The page is `page.html` with `page.css`, `page.js`, the data of the run, and three.js, which draws: it is brought
into the package when this is built (`hatch_build.py`) and copied into each page (docs/decisions/0004). Numbers are
stored as base64 of float32 arrays.
"""

"""HTTP: what the daemon answers over its socket and its port. Every request is checked, bounded and timed.

`table` has the read-only interface as data, `values` checks parameters by it, `openapi` describes it; `hooks` takes
events, `guard` decides who may ask, `asgi` lets the MCP application answer, `application` puts them together,
`connections` bounds what is open, `server` runs it all beside the daemon. Only these import aiohttp, and late.
"""

"""Bodies of requests: never more than there is room for, never waited for without end."""

from __future__ import annotations

import asyncio

from aiohttp import web

__all__ = ["bounded", "too_large", "whole_body"]


def too_large(most: int) -> web.HTTPRequestEntityTooLarge:
    """Why a body is not read."""
    return web.HTTPRequestEntityTooLarge(most, text=f"A body has at most {most} bytes here.")


def bounded(request: web.Request, most: int) -> None:
    """HTTPRequestEntityTooLarge when the request says itself that its body is too large: nothing of it is read."""
    if (request.content_length or 0) > most:
        raise too_large(most)


async def whole_body(request: web.Request, most: int, seconds: float) -> bytes:
    """The body, of at most `most` bytes and within so many seconds. HTTPRequestEntityTooLarge, TimeoutError;
    RequestPayloadError when it is not what the headers say.
    """
    bounded(request, most)
    pieces, come = [], 0
    async with asyncio.timeout(seconds):
        while piece := await request.content.readany():
            pieces.append(piece)
            come += len(piece)
            if come > most:
                raise too_large(most)
    return b"".join(pieces)

"""HTTP as a connection speaks it. What is no HTTP is answered as all is: in JSON, and nothing of it is repeated."""

from __future__ import annotations

import logging

from aiohttp.web import BaseRequest, RequestHandler, StreamResponse

from vaultd.http.answers import error, secure

__all__ = ["Spoken"]

log = logging.getLogger("vaultd.http")


class Spoken(RequestHandler):
    """aiohttp's protocol, which would quote a malformed request in its answer and in the log."""

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """The answer to what cannot be read, and to a fault outside the application; the connection ends with it."""
        if status >= 500 and not isinstance(exc, ConnectionError):  # that one only says that the client is gone
            log.error("a fault in answering", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer is sent already")
        told = (
            "vaultd failed here; its log says where." if status >= 500 else "This is not HTTP as it can be read here."
        )
        response = error(status, "fault" if status >= 500 else "malformed", told)
        secure(response)
        response.force_close()
        return response

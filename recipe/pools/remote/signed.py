"""Ranges of S3 objects by URLs that are signed once for each object.

To sign and wrap each request by itself takes the processor several times as long as to send it. The
connections are those of the store's package, with its certificates and proxies.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import Any

RESIGNED_SECONDS = 600.0
"""A URL is used for so long, and valid twice as long."""
_MOST = 4096
"""URLs that are kept."""


_SIGNATURE = re.compile(r"\?[^\s\"'?]*X-Amz-[^\s\"']*")


def unsigned(text: str) -> str:
    """A message without what signs the URLs in it: whoever has that may read the object, too.

    >>> unsigned('no answer from "http://host/a?X-Amz-Algorithm=AWS4&X-Amz-Signature=1": refused')
    'no answer from "http://host/a": refused'
    """
    return _SIGNATURE.sub("", text)


class Signer:
    """The URLs of one store."""

    def __init__(self, system: Any) -> None:
        """``system``: the file system of `s3fs`."""
        self._system = system
        self._urls: dict[str, tuple[str, float]] = {}
        self._rests_until = 0.0
        # What says more in a request than range and version is left to the store's package.
        self._is_plain = not (
            getattr(system, "s3_additional_kwargs", None) or getattr(system, "req_kw", None)
        )

    async def get(self, path: str, headers: dict[str, str]) -> bytes | None:
        """The bytes of an object that ``headers`` ask for; None: ask the store's package, which says why.

        Raises:
            OSError: the store is busy or broken.
            Exception: what the store's package raises where there is no connection.
        """
        if not self._is_plain or monotonic() < self._rests_until:
            return None
        bucket, _, key = path.partition("/")
        await self._system.set_session()
        client = await self._system.get_s3(bucket)
        session = getattr(getattr(client, "_endpoint", None), "http_session", None)
        if session is None:
            return None
        from botocore.awsrequest import AWSPreparedRequest, HeadersDict

        url = await self._url(client, path, {"Bucket": bucket, "Key": key})
        answer = await session.send(AWSPreparedRequest("GET", url, HeadersDict(headers), None, False))
        data: bytes = await answer.content
        if answer.status_code in (200, 206):
            return data
        if answer.status_code >= 500:
            raise OSError(f"HTTP {answer.status_code}")
        self._urls.pop(path, None)
        if answer.status_code in (401, 403):
            # Credentials that ran out, a clock that is wrong, a policy: each range would be asked for twice.
            self._rests_until = monotonic() + RESIGNED_SECONDS
        return None

    async def _url(self, client: Any, path: str, params: dict[str, str]) -> str:
        known = self._urls.get(path)
        if known is not None and monotonic() < known[1]:
            return known[0]
        if len(self._urls) >= _MOST:
            self._urls.clear()
        url: str = await client.generate_presigned_url(
            "get_object", Params=params, ExpiresIn=int(2 * RESIGNED_SECONDS)
        )
        self._urls[path] = url, monotonic() + RESIGNED_SECONDS
        return url

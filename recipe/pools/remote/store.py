"""A store as reading pools needs it: a listing with versions, and exact ranges of one version."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import fsspec

from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.pools.remote.loop import background, submit
from recipe.pools.remote.signed import Signer

IN_FLIGHT = 64
"""Requests of one process under way at once."""
ANSWER_SECONDS = 20.0
"""A request that says nothing for so long is given up, and made again."""

_VERSIONS = (
    *("ETag", "etag", "md5Hash", "content_md5", "generation"),
    *("LastModified", "last_modified", "updated", "modified", "mtime", "created"),
)
"""What stores call the version of an object, the surest first."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What is known of an object without reading it: its bytes, and what its store calls its version."""

    size: int
    version: str | None

    def __str__(self) -> str:
        """For messages."""
        return f"{self.size} bytes, version {self.version or 'not known'}"


class ChangedError(Exception):
    """The object has another version than it had; ``stamp`` is the present one, as far as it is known."""

    def __init__(self, stamp: Stamp | None) -> None:
        """``stamp``: None where the store does not say."""
        super().__init__(str(stamp))
        self.stamp = stamp


class Store:
    """What fsspec calls a file system, used on this process's loop; see :func:`store_of`."""

    def __init__(self, scheme: str) -> None:
        """Settings come from the environment, as each store's package reads them."""
        self.scheme = scheme
        options: dict[str, Any] = {}
        self._conditional = scheme in ("s3", "s3a")
        if self._conditional:
            # One attempt below this package: it tries again itself, and knows what of.
            options["config_kwargs"] = {
                "max_pool_connections": IN_FLIGHT,
                "connect_timeout": ANSWER_SECONDS,
                "read_timeout": ANSWER_SECONDS,
                "retries": {"total_max_attempts": 1},
                "signature_version": "s3v4",
            }
        try:
            kind = fsspec.get_filesystem_class(scheme)
            if kind.async_impl:
                options |= {"asynchronous": True, "loop": background(), "skip_instance_cache": True}
            self._system = kind(use_listings_cache=False, **options)
        except (ImportError, ValueError) as error:
            extra = how_to_install("s3") if self._conditional else "install what it names"
            raise RecipeError.single(
                "pools",
                f"{scheme}://",
                given=str(error),
                expected=f"a package that opens {scheme}://",
                fix=extra,
            ) from error
        self._system.retries = 1
        self._signer = Signer(self._system)
        self.limit = asyncio.Semaphore(IN_FLIGHT)
        """Held by whoever has a request under way."""

    async def listing(self, path: str) -> dict[str, Stamp]:
        """Objects that lie in a folder, by name; not those of its own folders."""
        if self._system.async_impl:
            entries = await self._system._ls(path, detail=True, refresh=True)
        else:
            entries = await asyncio.to_thread(self._system.ls, path, detail=True)
        stamps = {str(e["name"]).rstrip("/").rpartition("/")[2]: e for e in entries if e["type"] == "file"}
        return {name: _stamp(entry) for name, entry in stamps.items()}

    async def get(self, path: str, span: tuple[int, int] | None, stamp: Stamp | None) -> bytes:
        """Bytes ``span`` of an object, or all of it; of the version ``stamp``, if the store tells.

        Raises:
            ChangedError: it has another version.
        """
        if self._conditional:
            return await self._get_s3(path, span, stamp)
        start, stop = span or (None, None)
        if self._system.async_impl:
            data: bytes = await self._system._cat_file(path, start=start, end=stop)
        else:
            data = await asyncio.to_thread(self._system.cat_file, path, start=start, end=stop)
        # Other stores' packages have no condition on a range: the version is looked up behind each.
        if stamp is not None and (now := await self.stamp(path)) != stamp:
            raise ChangedError(now)
        return data

    async def stamp(self, path: str) -> Stamp:
        """What is known of an object now."""
        if self._system.async_impl:
            return _stamp(await self._system._info(path, refresh=True))
        return _stamp(await asyncio.to_thread(self._system.info, path))

    async def _get_s3(self, path: str, span: tuple[int, int] | None, stamp: Stamp | None) -> bytes:
        bucket, _, key = path.partition("/")
        how = {"Range": f"bytes={span[0]}-{span[1] - 1}"} if span else {}
        version = {} if stamp is None or stamp.version is None else {"If-Match": f'"{stamp.version}"'}
        found = await self._signer.get(path, how | version)
        if found is not None:
            return found
        if version:
            how["IfMatch"] = version["If-Match"]
        try:
            answer = await self._system._call_s3("get_object", Bucket=bucket, Key=key, **how)
        except Exception as error:
            if _code(error) in ("PreconditionFailed", "412", "InvalidRange", "416"):
                raise ChangedError(await self._now(path)) from error
            raise
        async with answer["Body"] as body:
            data: bytes = await body.read()
        return data

    async def close(self) -> None:
        """Close connections, at the end of the process: packages complain of those that are left open."""
        if self._conditional and self._system._s3 is not None:
            await self._system._s3.close()

    async def _now(self, path: str) -> Stamp | None:
        try:
            return await self.stamp(path)
        except Exception:  # each store's package has exceptions of its own; the change is told without it
            return None


def store_of(scheme: str) -> Store:
    """The store of a scheme in this process, with the environment's present settings."""
    settings = tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith(("AWS_", "FSSPEC_"))))
    return _store(scheme, settings, os.getpid())


@lru_cache(maxsize=16)
def _store(scheme: str, _settings: tuple[tuple[str, str], ...], _process: int) -> Store:
    store, process = Store(scheme), os.getpid()

    def close() -> None:
        if os.getpid() == process:
            with contextlib.suppress(Exception):
                submit(store.close()).result(1)

    atexit.register(close)
    return store


def is_missing(error: BaseException) -> bool:
    """Whether an error of a store's package says that there is no such object."""
    return isinstance(error, FileNotFoundError) or _code(error) in ("NoSuchKey", "NoSuchBucket", "404")


def is_refused(error: BaseException) -> bool:
    """Whether it says that nobody is let in: asking again would not help."""
    words = ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken")
    return isinstance(error, PermissionError) or _code(error) in words or type(error).__name__ in (
        "NoCredentialsError", "TokenRetrievalError", "PartialCredentialsError",
    )  # fmt: skip


def _code(error: BaseException) -> str:
    """What S3 called an error, of its package's exceptions or of those that s3fs makes of them."""
    seen: BaseException | None = error
    while seen is not None:
        answer = getattr(seen, "response", None)
        if isinstance(answer, dict):
            return str(answer.get("Error", {}).get("Code", ""))
        seen = seen.__cause__
    return ""


def _stamp(entry: Any) -> Stamp:
    version = next((entry[key] for key in _VERSIONS if entry.get(key) is not None), None)
    if isinstance(version, datetime):  # a listing gives a time where a look at one object gives seconds
        version = version.timestamp()
    words = f"{version:.3f}" if isinstance(version, float) else str(version).strip('"')
    return Stamp(int(entry["size"] or 0), None if version is None else words)

"""JSON that somebody else wrote: decoded into a type, or a Problem that says where it is not of that form."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from installer.domain.problems import InstallerError, MalformedFile

T = TypeVar("T")

NOT_OF_THAT_FORM: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What msgspec raises for a document that cannot be decoded: also for text that is none, and for endless nesting."""


def decoded(data: bytes | str, kind: type[T], path: str) -> T:
    """Decode a document, with or without a byte order mark (Windows' editors and shells write one).

    Raises InstallerError(MalformedFile) with the path inside the document and the reason.
    """
    data = data.removeprefix("\ufeff") if isinstance(data, str) else data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data, type=kind)
    except NOT_OF_THAT_FORM as error:
        raise InstallerError(MalformedFile.of(path, error)) from error

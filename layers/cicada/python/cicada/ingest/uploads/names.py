"""Names of uploaded documents: which are safe, and can be a document's source."""

from __future__ import annotations

from cicada.corpus.declared.declaration import DECLARATION
from cicada.errors import UploadInvalid
from cicada.ingest.contracts import MAX_SOURCE_CHARS
from cicada.ingest.incoming.places import collection_and_source, folder
from cicada.text.characters import composed

MAX_KEY_BYTES = 1_024  # of an object's key in UTF-8 (S3)


def checked_name(collection: str, name: str, *, declarations: bool) -> str:
    """A document's name as it is stored: its path below the collection's folder, with ``/``, in composed form (NFC).

    Args:
        collection: its collection.
        name: as the client writes it; macOS writes letters and their marks apart.
        declarations: whether ``collection.yaml`` may be uploaded, which declares the collection's readers.

    Raises:
        UploadInvalid: the name is not safe, or no document can have it.
    """
    name = composed(name)
    if not name.isprintable() or "\\" in name:
        raise UploadInvalid("name: must consist of printable characters, without a backslash")
    if "${" in name:  # S3 replaces ${filename} in a form's key by a name that the sender chooses
        raise UploadInvalid("name: must not contain ${")
    if any(part != part.strip() or part.startswith(".") for part in name.split("/")):
        raise UploadInvalid("name: no part of the path may be empty, begin with a dot, or begin or end with a space")
    key = f"{folder(collection)}{name}"
    if collection_and_source(key) != (collection, name) or len(key.encode()) > MAX_KEY_BYTES:
        raise UploadInvalid(
            f"name: must be a path of at most {MAX_SOURCE_CHARS} characters, whose parts are not empty, and not "
            f"{DECLARATION} in a subfolder"
        )
    if name == DECLARATION and not declarations:
        raise UploadInvalid(f"name: {DECLARATION} declares the collection's access rules: users may not upload it")
    return name

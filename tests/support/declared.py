"""A declaration for tests of loading: sections by heading, of a shelf."""

from __future__ import annotations

from cicada.corpus.declared.declaration import CollectionDeclaration


def declaration(
    collection: str = "shelf", *, description: str = "A shelf.", **sections: list[str]
) -> CollectionDeclaration:
    """Of a collection whose sections have these headings; by default boats and places."""
    given = sections or {"boats": ["Boats"], "places": ["Places"]}
    return CollectionDeclaration.model_validate(
        {
            "collection": collection,
            "kind": "shelf",
            "description": description,
            "sections": [{"name": name, "description": "d", "headings": found} for name, found in given.items()],
            "intentions": [{"name": "any", "description": "d", "sections": list(given)}],
        }
    )


def declared_yaml(collection: str = "shelf", *, description: str = "A shelf.", **sections: list[str]) -> str:
    """The same as a file."""
    return declaration(collection, description=description, **sections).model_dump_json(by_alias=True)

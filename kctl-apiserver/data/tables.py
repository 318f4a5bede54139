"""Writes the tables of built-in kinds in kctl-runtime, which can't read the files of this folder: they are another package's.

    python3 kctl-apiserver/data/tables.py  # needs no server and no Go

kctl-runtime/src/manifest/crd/merging.txt comes from types.json, and kctl-runtime/src/manifest/rbac/resources.txt from resources.json.
generate.py runs this after it has written both. Tests fail while a table differs from its source.
"""

import json
import pathlib

here = pathlib.Path(__file__).parent
manifest = here / "../../kctl-runtime/src/manifest"

MERGING = """\
# Merge strategies of lists and objects in the built-in types: type, field (`*` is the type itself), and the strategy. That is `atomic`,
# `granular`, `set`, or `map` with the keys of an item. A key that an item may omit is followed by its default.
# Written by kctl-apiserver/data/tables.py from the OpenAPI document of kube-apiserver.
"""
RESOURCES = """\
# The built-in resources in stable versions: name and group, the scope, and the subresources.
# Written by kctl-apiserver/data/tables.py from the discovery documents of kube-apiserver.
"""


def key(items, name):
    """Returns a key of a list for merging.txt, or `None` if a list in a CRD can't have it."""
    if name in items.get("required", []):
        return name
    default = items["properties"][name].get("default")
    if default is None:
        return None
    assert isinstance(default, str) and " " not in default, default
    return f"{name}={default}"


def strategy(types, schema):
    """Returns the strategy of a field or type, or `None` if it has none that a CRD can have."""
    kind = schema.get("type", "object")
    if kind == "object":
        return schema.get("x-kubernetes-map-type")
    if kind != "array" or "x-kubernetes-list-type" not in schema:
        return None
    items = types.get(schema["items"].get("$ref"), schema["items"])
    keys = [key(items, name) for name in schema.get("x-kubernetes-list-map-keys", [])]
    # API servers reject a CRD with a list whose keys are optional and have no default. Some built-in types have such lists.
    return None if None in keys else " ".join([schema["x-kubernetes-list-type"], *keys])


def merging():
    types = {entry["name"]: entry["type"] for entry in json.loads((here / "types.json").read_text())}
    for name in sorted(types):
        for field, schema in [("*", types[name]), *sorted(types[name].get("properties", {}).items())]:
            found = strategy(types, schema)
            if found:
                yield f"{name} {field} {found}"


def resources():
    found = {}
    for group in json.loads((here / "resources.json").read_text()):
        name, _, version = group["groupVersion"].rpartition("/")
        if "alpha" in version or "beta" in version:
            continue
        for resource in group["resources"]:
            plural, _, subresource = resource["name"].partition("/")
            of_group = found.setdefault((name, plural), {"scope": None, "subresources": set()})
            if subresource:
                of_group["subresources"].add(subresource)
            else:
                of_group["scope"] = "namespaced" if resource["namespaced"] else "cluster"
    for (group, plural), of_group in sorted(found.items()):
        yield " ".join([f"{plural}.{group}".rstrip("."), of_group["scope"], *sorted(of_group["subresources"])])


def write():
    for path, header, lines in [("crd/merging.txt", MERGING, merging()), ("rbac/resources.txt", RESOURCES, resources())]:
        (manifest / path).write_text(header + "".join(line + "\n" for line in lines))


if __name__ == "__main__":
    write()

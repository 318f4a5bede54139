"""Prints what a new version of Kubernetes changed in the data beside this file, kind by kind, compared with a git revision.

    python3 kctl-apiserver/data/changes.py [REVISION]  # HEAD without one
"""

import json
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).parent


def of_revision(revision, name):
    """The entries of a file as they were."""
    show = ["git", "-C", here, "show", f"{revision}:./{name}"]
    return json.loads(subprocess.run(show, check=True, capture_output=True).stdout)


def of_now(name):
    return json.loads((here / name).read_text())


def without(fields, entry):
    return {key: value for key, value in entry.items() if key not in fields}


def kinds(entries):
    """The served resources: what each is, by `group/version Kind name`."""
    found = {}
    for group in entries:
        for resource in group["resources"]:
            found[f"{group['groupVersion']} {resource['kind']} ({resource['name']})"] = resource
    return found


def fields(entries):
    """The fields of the types, by type and field."""
    found = {}
    for entry in entries:
        described = entry["type"]
        found[entry["name"]] = without(["properties"], described)
        for name, field in described.get("properties", {}).items():
            found[f"{entry['name']}: {name}"] = field
    return found


def by_name(entries):
    return {entry.get("name", json.dumps(entry, sort_keys=True)[:80]): entry for entry in entries}


def report(title, before, after):
    lines = [f"  - {name}" for name in sorted(before.keys() - after.keys())]
    lines += [f"  + {name}" for name in sorted(after.keys() - before.keys())]
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            was, now = (json.dumps(value, sort_keys=True) for value in (before[name], after[name]))
            lines.append(f"  ~ {name}: {was} is now {now}" if len(was + now) < 400 else f"  ~ {name}")
    print("\n".join([f"{title}: {len(lines)} changes", *lines]))


revision = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
for file, title, entries in [
    ("resources.json", "served resources", kinds),
    ("types.json", "types and fields", fields),
    ("validation.json", "rules of declarative validation", by_name),
    ("columns.json", "columns of tables", by_name),
    ("parameters.json", "parameters of requests", by_name),
    ("access.json", "bootstrap roles", by_name),
    ("standard.json", "objects of a new cluster", by_name),
]:
    report(title, entries(of_revision(revision, file)), entries(of_now(file)))

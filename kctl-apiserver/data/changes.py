"""Prints the changes that a new version of Kubernetes brings, compared with a git revision. Lists the changed data in this folder kind by
kind, and the changed recorded responses case by case.

    python3 kctl-apiserver/data/changes.py [REVISION]  # HEAD without one
"""

import json
import pathlib
import re
import subprocess
import sys

here = pathlib.Path(__file__).parent
tests = here.parent.parent / "tests"
revision = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
# Longer values are truncated. The Git diff shows them in full.
SHOWN_MAX = 120


def was(path):
    """Returns a JSON file at the git revision; None if it did not exist."""
    show = ["git", "-C", path.parent, "show", f"{revision}:./{path.name}"]
    found = subprocess.run(show, check=False, capture_output=True)
    return json.loads(found.stdout) if found.returncode == 0 else None


def both(name):
    return [was(here / name) or [], json.loads((here / name).read_text())]


def shown(value):
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def heading(title, lines):
    lines = list(lines)
    print(f"\n## {title}: {len(lines) or 'no'} changes")
    for line in lines:
        print(line)


def changes(before, after, show=shown):
    """Returns the entries that differ between two maps: `+` is new, `-` is removed."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"+ {name}{show_of(show, after[name])}"
        elif name not in after:
            yield f"- {name}"
        elif before[name] != after[name]:
            yield f"~ {name}: {show(before[name])} -> {show(after[name])}"


def show_of(show, value):
    text = show(value)
    return f": {text}" if text else ""


def resources(entries):
    """Returns the served resources by version and name."""
    return {f"{group['groupVersion']} {of['name']}": of["kind"] for group in entries for of in group["resources"]}


def gates(entries):
    """Returns the default and the stage of each feature gate."""
    last = {gate["name"]: gate["stages"][-1] for gate in entries}
    return {name: f"{stage['stage']}, {'on' if stage['default'] else 'off'} by default" for name, stage in last.items()}


def gated(entries):
    """Returns the feature gates that each field needs, by type and field."""
    found = {}
    for entry in entries:
        for name, fields in entry.get("fields", {}).items():
            for field in fields:
                found.setdefault((name, field), []).append(f"{entry['name']}, {'on' if entry['stages'][-1]['default'] else 'off'}")
    return found


def references(node):
    """Returns the names of the types that a schema refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def kinds_of_types(types):
    """Returns the kinds that contain each type."""
    found = {}
    for name, described in types.items():
        for of in described.get("x-kubernetes-group-version-kind", []):
            left, seen = [name], set()
            while left:
                part = left.pop()
                if part in seen or part not in types:
                    continue
                seen.add(part)
                if not of["kind"].endswith("List"):
                    found.setdefault(part, set()).add(of["kind"])
                left.extend(references(types[part]))
    return found


def fields_of(described):
    return {name: field for name, field in (described or {}).get("properties", {}).items()}


def of_type(before, after, rules_before, rules_after, gates_of_fields):
    """Returns the changes of one type: fields, enums, tags and the rest of the schema."""
    old, new = fields_of(before), fields_of(after)
    for name in sorted(old.keys() | new.keys()):
        needs = gates_of_fields.get(name)
        needs = f" (feature gate {'; '.join(needs)})" if needs else ""
        if name not in old:
            yield f"  + {name}{needs}"
        elif name not in new:
            yield f"  - {name}"
        elif old[name] != new[name]:
            for keyword in sorted(old[name].keys() | new[name].keys()):
                one, other = old[name].get(keyword), new[name].get(keyword)
                if one != other:
                    yield f"  ~ {name}: {keyword}: {shown(one)} -> {shown(other)}"
    rest = [{key: value for key, value in (of or {}).items() if key != "properties"} for of in (before, after)]
    yield from (f"  {line}" for line in changes(*rest) if before and after)
    for line in changes(rules_before, rules_after):
        yield f"  {line[0]} tag of {line[2:]}"


def types(found, rules, features):
    before, after = ({entry["name"]: entry["type"] for entry in entries} for entries in found)
    rules_before, rules_after = ({entry["name"]: entry["fields"] for entry in entries} for entries in rules)
    containing = kinds_of_types(before)
    for name, kinds in kinds_of_types(after).items():
        containing.setdefault(name, set()).update(kinds)
    fields = {}
    for (name, field), needs in gated(features[1]).items():
        fields.setdefault(name, {})[field] = needs
    for name in sorted(before.keys() | after.keys()):
        lines = of_type(
            before.get(name), after.get(name), rules_before.get(name, {}), rules_after.get(name, {}), fields.get(name, {})
        )
        lines = list(lines)
        if lines:
            short = name.removeprefix("io.k8s.api.").removeprefix("io.k8s.")
            kinds = sorted(containing.get(name, []))
            sign = "" if name in before and name in after else "+ " if name in after else "- "
            is_own = not kinds or kinds == [short.rpartition(".")[2]]
            shared = "" if is_own else f" (in {', '.join(kinds[:6])}{', …' if len(kinds) > 6 else ''})"
            yield "\n".join([f"{sign}{short}{shared}", *lines])


def by_name(entries):
    keys = ("group", "resource", "kind", "namespace", "name")

    def key(entry):
        of = entry.get("object", {}).get("metadata", {})
        parts = [entry.get(part, of.get(part)) for part in keys]
        parameter = entry.get("parameter", {}).get("name")
        return " ".join(part for part in [*parts, parameter, entry.get("of")] if part) or shown(entry)

    return {key(entry): entry for entry in entries}


def differing(one, other, at=""):
    """Returns the JSON pointers at which two responses differ. Ignores the wording of messages and warnings."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if key not in ("message", "warning"):
                yield from differing(one.get(key), other.get(key), f"{at}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differing(left, right, f"{at}/{index}")
    elif one != other:
        # UIDs are numbered in the order in which they appear in a test case, so their numbers are ignored.
        one, other = (re.sub(r"UID\d+", "UID", shown(value)) for value in (one, other))
        if one != other:
            yield f"{at}: {one} -> {other}"


def recorded():
    """Returns the recorded responses that changed, by topic and case."""
    of_topics = [*(tests / "conformance/recorded").glob("*.json"), *(tests / "kubectl/recorded").glob("*.json")]
    for path in [here.parent / "src/defaulting/answers.json", *sorted([*of_topics, tests / "schemas/recorded.json"])]:
        before, after = was(path) or {}, json.loads(path.read_text())
        if not isinstance(after, dict):
            before, after = {"all": before}, {"all": after}
        for case in sorted(before.keys() | after.keys()):
            lines = list(differing(before.get(case), after.get(case)))
            if lines:
                more = [f"  … and {len(lines) - 8} more"] if len(lines) > 8 else []
                yield "\n".join([f"{path.parent.parent.name}/{path.stem}: {case}", *(f"  {line}" for line in lines[:8]), *more])


features = both("features.json")
heading("Served resources", changes(*map(resources, both("resources.json"))))
heading("Feature gates", changes(*map(gates, features), show=str))
heading("Types", types(both("types.json"), both("validation.json"), features))
for file, title in [
    ("columns.json", "Columns of tables"),
    ("parameters.json", "Parameters of requests"),
    ("access.json", "Bootstrap roles"),
    ("standard.json", "Objects of a new cluster"),
]:
    heading(title, changes(*map(by_name, both(file))))
heading("Recorded answers", recorded())

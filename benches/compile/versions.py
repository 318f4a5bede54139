"""Reads the versions that the measured programs need from the manifests of kctl."""

import re


def newest(checkout):
    """Returns the feature of kctl that selects the newest Kubernetes version, such as `v1_37`."""
    manifest = (checkout / "kctl" / "Cargo.toml").read_text()
    return max(re.findall(r"^(v1_\d+) = ", manifest, re.MULTILINE), key=lambda name: int(name.removeprefix("v1_")))


def dependency(checkout, name):
    """Returns the version of a dependency of the workspace."""
    return re.search(rf'^{name} = .*?"(\d[\d.]*)"', (checkout / "Cargo.toml").read_text(), re.MULTILINE)[1]

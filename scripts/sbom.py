#!/usr/bin/env python3
"""Writes the SBOM of the program `daybook`, in CycloneDX's JSON: sbom.py FOLDER TRIPLE FEATURES

Its components are the Rust crates that cargo builds for this target and these features, and C code in them; names, versions,
licences, the hashes of Cargo.lock, and who depends on whom. Crates that only run during the build have the scope `excluded`.
The same commit gives the same bytes: the time is SOURCE_DATE_EPOCH, and the serial number is a hash of the rest.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(r"(\d+) (\S+) v(\S+?)(?: \((.*)\))?\|(.*?)(?: \(\*\))?")


def tree(triple: str, features: str, edges: str, *options: str) -> list[str]:
    command = [os.environ.get("CARGO", "cargo"), "tree", "--locked", "--package", "cli", "--features", features]
    command += ["--target", triple, "--edges", edges, "--prefix", "depth", "--format", " {p}|{l}", *options]
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()


def read(lines: list[str]):
    """The crates and what each depends on, by (name, version)."""
    crates, edges, above = {}, {}, []
    for line in lines:
        found = LINE.fullmatch(line)
        if not found:
            sys.exit(f"error: cargo tree wrote `{line}`")
        depth, crate, licence = int(found[1]), (found[2], found[3]), found[5]
        crates[crate] = licence
        needs = edges.setdefault(crate, set())
        if depth:
            edges[above[depth - 1]].add(crate)
        above[depth:] = [crate]
    return crates, edges


def reference(crate: tuple[str, str]) -> str:
    name, version = crate
    return f"pkg:cargo/{name}@{version.replace('+', '%2B')}"


def component(crate: tuple[str, str], licence: str, hashes: dict, linked: set) -> dict:
    found = {"type": "library", "bom-ref": reference(crate), "name": crate[0], "version": crate[1]}
    found["scope"] = "required" if crate in linked else "excluded"
    if crate in hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": hashes[crate]}]
    # Old manifests write `/` for OR.
    found["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    # A crate of this workspace is in no registry.
    if crate in hashes:
        found["purl"] = reference(crate)
    return found


def main():
    folder, triple, features = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    crates, edges = read(tree(triple, features, "normal,build"))
    linked = set(read(tree(triple, features, "normal,no-proc-macro"))[0])
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(it["name"], it["version"]): it["checksum"] for it in lock if "checksum" in it}
    [root] = [crate for crate in crates if crate[0] == "cli"]
    version = root[1]
    # The binary's name, as people know it.
    own = {"type": "application", "bom-ref": reference(root), "name": "daybook", "version": version}
    own["licenses"] = [{"expression": crates[root]}]
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 0))))
    others = sorted(crate for crate in crates if crate != root)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": at,
            "component": own,
            "properties": [
                {"name": "daybook:target", "value": triple},
                {"name": "daybook:features", "value": features},
            ],
        },
        "components": [component(crate, crates[crate], hashes, linked) for crate in others],
        "dependencies": [
            {"ref": reference(crate), "dependsOn": sorted(map(reference, edges[crate]))} for crate in [root, *others]
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bom, sort_keys=True))
    bom = {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "serialNumber": f"urn:uuid:{serial}", **bom}
    architecture = triple.partition("-")[0]
    path = folder / f"daybook-{version}-{architecture}-linux.cdx.json"
    path.write_text(json.dumps(bom, indent=1) + "\n")
    print(f"{path} ({len(others)} crates, {len(linked) - 1} of them linked)")


if __name__ == "__main__":
    main()

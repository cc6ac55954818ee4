"""Validates SBOMs against CycloneDX's schema, and that each reference has its component: sbom-check.py FILE...

It runs with the Python of the tool `dist-checks`.
"""

import json
import pathlib
import sys

from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for path in sys.argv[1:]:
    text = pathlib.Path(path).read_text()
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem:
        sys.exit(f"error: {path}: {problem}")
    # Reads it, and fails for a dependency that is no component.
    bom = Bom.from_json(json.loads(text))
    if not bom.validate():
        sys.exit(f"error: {path}: a reference has no component")
    lonely = [str(it.name) for it in bom.components if not it.licenses]
    if lonely:
        sys.exit(f"error: {path}: no licence of {', '.join(lonely)}")

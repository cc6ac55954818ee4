"""JSON schemas from annotations, and values from JSON. Anything unknown is accepted as it is."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON schema of a type; ``{}`` for a type that says nothing."""
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(arg) for arg in args]}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(args[0])} if args else {"type": "array"}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(args[1])} if len(args) == 2 else {"type": "object"}
    if isinstance(annotation, type):
        if hasattr(annotation, "model_json_schema"):
            return dict(annotation.model_json_schema())
        if issubclass(annotation, enum.Enum):
            return {"enum": [member.value for member in annotation]}
        if dataclasses.is_dataclass(annotation):
            return _of_dataclass(annotation)
    return {}


def _of_dataclass(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    properties = {field.name: schema_of(hints.get(field.name, Any)) for field in fields}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def parameters(function: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The input schema of a function whose first parameter is the context, and its annotations by name."""
    hints = typing.get_type_hints(function)
    given = list(inspect.signature(function).parameters.values())[1:]
    properties: dict[str, Any] = {}
    required: list[str] = []
    is_open = False
    for parameter in given:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            is_open = True
            continue
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise TypeError(f"the parameter `{parameter.name}` cannot be a field of the input; give it a name")
        properties[parameter.name] = schema_of(hints.get(parameter.name, Any))
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": is_open}
    return schema, {parameter.name: hints.get(parameter.name, Any) for parameter in given}


def built(annotation: Any, value: Any) -> Any:
    """A value of this type from JSON: dataclasses, pydantic models and enums are built."""
    if value is None:
        return None
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list and args and isinstance(value, list):
        return [built(args[0], item) for item in value]
    if origin is dict and len(args) == 2 and isinstance(value, dict):
        return {key: built(args[1], item) for key, item in value.items()}
    if origin in (Union, types.UnionType):
        real = [arg for arg in args if arg is not type(None)]
        return built(real[0], value) if len(real) == 1 else value
    if isinstance(annotation, type):
        if hasattr(annotation, "model_validate"):
            return annotation.model_validate(value)
        if issubclass(annotation, enum.Enum):
            return annotation(value)
        if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
            hints = typing.get_type_hints(annotation)
            return annotation(**{name: built(hints.get(name, Any), item) for name, item in value.items()})
    return value

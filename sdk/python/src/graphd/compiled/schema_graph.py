"""The schemas of a compiled graph, under the methods that LangGraph users know."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from graphd.compiled import schemas
from graphd.compiled.composable_graph import ComposableGraph
from graphd.warnings import LangGraphDeprecatedSinceV10


class SchemaGraph(ComposableGraph):
    """A graph that says what it takes and returns; all of it needs pydantic, or raises MissingPackageError."""

    @property
    def context_schema(self) -> Any:
        """The class of the context, None without one."""
        return self.builder.context_schema

    @property
    def InputType(self) -> Any:
        """The type of the input."""
        return self.builder.input.type

    @property
    def OutputType(self) -> Any:
        """The type of an output that is one value, None of one that has keys."""
        output = self.builder.output
        return schemas.value_type(*output.channels().values()) if output.is_root else None

    @property
    def input_schema(self) -> Any:
        """See get_input_schema."""
        return self.get_input_schema()

    @property
    def output_schema(self) -> Any:
        """See get_output_schema."""
        return self.get_output_schema()

    def get_input_schema(self, config: Mapping[str, Any] | None = None) -> Any:
        """A pydantic model of the input."""
        del config
        return schemas.build_input_model(self.builder.input, self.get_name("Input"))

    def get_input_jsonschema(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON schema of the input."""
        del config
        return schemas.build_json_schema(self.builder.input, self.get_name("Input"))

    def get_output_schema(self, config: Mapping[str, Any] | None = None) -> Any:
        """A pydantic model of the output."""
        del config
        return schemas.build_output_model(self.builder.output, self.get_name("Output"))

    def get_output_jsonschema(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON schema of the output."""
        del config
        return schemas.build_json_schema(self.builder.output, self.get_name("Output"))

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The JSON schema of the context, None of a graph that declares none."""
        return schemas.build_context_schema(self.context_schema)

    def config_schema(self, *, include: Sequence[str] | None = None) -> Any:
        """A pydantic model of the config; get_context_jsonschema is the newer way.

        ``include`` names further fields of LangChain's RunnableConfig, and needs langchain-core.
        """
        message = "config_schema is deprecated: use get_context_jsonschema"
        warnings.warn(LangGraphDeprecatedSinceV10(message), stacklevel=2)
        return schemas.build_config_model(self.context_schema, include or (), self.get_name("Config"))

    def get_config_jsonschema(self, *, include: Sequence[str] | None = None) -> dict[str, Any]:
        """The JSON schema of config_schema; get_context_jsonschema is the newer way."""
        message = "get_config_jsonschema is deprecated: use get_context_jsonschema"
        warnings.warn(LangGraphDeprecatedSinceV10(message), stacklevel=2)
        model = schemas.build_config_model(self.context_schema, include or (), self.get_name("Config"))
        return dict(model.model_json_schema())

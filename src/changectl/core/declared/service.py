"""A service: the instances of one inference service, how each is started, where its values live, how it is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from changectl.core.declared import templates
from changectl.core.declared.carrier_entry import CarrierEntry
from changectl.core.declared.fields import (
    AbsolutePath,
    Duration,
    HostPath,
    Lease,
    Level,
    Line,
    Name,
    ProjectPath,
    Version,
    is_template,
    some_levels,
    text_of,
)
from changectl.core.declared.grammar import Fault, Grammar, fault, faults, validate
from changectl.core.declared.instances import Instances
from changectl.core.declared.load_fields import Requests
from changectl.core.declared.measured_path import ENDPOINT, MeasuredPath
from changectl.core.declared.metric_fields import Guards
from changectl.core.declared.service_parts import TENSORS, Engine, ManagerField
from changectl.core.declared.source import Source, read_yaml
from changectl.core.declared.traffic_spec import NONE, TrafficField
from changectl.core.settings import Carrier


class Model(Grammar):
    """The model files of the service."""

    path: HostPath = Field(description="file or folder on the host", examples=["/srv/models/chat"])
    name: Line | None = Field(None, description="the name under which the engine serves it", examples=["chat"])
    exclude: tuple[Line, ...] = Field((), description="patterns of files that are not part of the model")


def _bearer(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, SecretStr):
        return value
    text = text_of(value)
    rendered = (info.context or {}).get("rendered", False)
    if not rendered and not is_template(text):
        raise fault(
            "a token stands here in clear text", 'put it into a vault variable: `bearer: "{{ vault_chat_key }}"`'
        )
    if rendered and not (text.isascii() and text.isprintable() and text and " " not in text):
        raise fault("the token cannot be sent in a header", "it has to be printable ASCII without spaces")
    return text


class Auth(Grammar):
    """How requests to the service are authorised."""

    bearer: Annotated[SecretStr, BeforeValidator(_bearer), WithJsonSchema({"type": "string"})] = Field(
        description="token, taken from a vault variable", examples=['"{{ vault_chat_key }}"']
    )


class Conditions(Grammar):
    """What is equal in all measurements of the service."""

    workload: ProjectPath = Field(
        description="JSON lines file of requests", examples=["inventory/workloads/chat.jsonl"]
    )
    levels: Annotated[dict[Name, Level], AfterValidator(some_levels)] = Field(
        description="load levels, lowest first", examples=["{low: 1 stream, normal: 8 streams}"]
    )
    seconds: Duration | None = Field(None, description="time per level and phase")
    seed: int | None = Field(None, ge=0, le=2**63 - 1, description="seed of the requests and of an open level's times")
    requests: Requests | None = Field(None, description="requests per level and phase, instead of time")
    path: MeasuredPath = Field(
        ENDPOINT, description="endpoint: straight to each instance; balancer: by its `through_balancer`"
    )


class Limits(Grammar):
    """What a change may do to the service."""

    max_out: Duration | None = Field(
        None, description="the longest time an instance may be out: no start gets more", examples=["45m"]
    )
    load_on_live: bool = Field(False, description="whether a serving instance may get more load than the level `low`")


class Ready(Grammar):
    """How long a start may take."""

    deadline: Duration = Field(description="from the start command to the first real answer", examples=["10m"])


def _caller(value: Any) -> str:
    if isinstance(value, list | dict):
        raise fault("the load comes from one host", "write the name of one host of the inventory: `caller: gateway-1`")
    text = text_of(value).strip()
    if not text or is_template(text):
        raise fault("the caller is not named", "write the name of one host of the inventory: `caller: gateway-1`")
    return text


class Service(Grammar):
    """One AI inference service on one or more hosts."""

    version: Version = Field(description="version of this grammar", examples=[1])
    service: Name = Field(description="its name; the file is services/NAME.yml", examples=["chat"])
    class_: Literal["interactive", "offline"] = Field(
        alias="class", description="sets the default guards", examples=["interactive"]
    )
    instances: Instances = Field(description="where it runs", examples=["{group: gpu, each: {endpoint: ...}}"])
    engine: Engine = Field(description="the inference server", examples=["vllm"])
    manager: ManagerField = Field(description="what starts it", examples=["{systemd: {unit: vllm.service}}"])
    config: tuple[CarrierEntry, ...] = Field((), description="where its values live, strongest first")
    model: Model = Field(description="its model files", examples=["{path: /srv/models/chat, name: chat}"])
    auth: Auth | None = Field(None, description="how its requests are authorised")
    traffic: TrafficField = Field(NONE, description="how an instance is taken out of service", examples=["none"])
    caller: Annotated[str, BeforeValidator(_caller), WithJsonSchema({"type": "string"})] | None = Field(
        None,
        description="host of the inventory that sends the load; default: each instance's own",
        examples=["gateway-1"],
    )
    slo: Guards = Field((), description="absolute limits that always hold", examples=["{ttft_user_p95: <= 800ms}"])
    conditions: Conditions = Field(description="how it is measured", examples=["{workload: ..., levels: {...}}"])
    limits: Limits = Field(Limits(), description="what a change may do to it")
    ready: Ready | None = Field(None, description="how long a start may take; default: from the last loads")
    log_file: AbsolutePath | None = Field(None, description="where a `command` manager's engine writes its log")
    drain: Duration | None = Field(
        None, description="how long requests in work may take to end: the stop grace has to cover it"
    )
    state_dir: AbsolutePath | None = Field(None, description="changectl's folder on the hosts")
    lease: Lease | None = Field(
        None, description="how long a host waits for a sign of life before it restores", examples=["5m"]
    )

    _source: Source = PrivateAttr(default_factory=lambda: Source("", None))

    @model_validator(mode="after")
    def _host_files_have_a_folder(self) -> Self:
        named: list[tuple[tuple[str | int, ...], str | None]] = [(("model", "path"), self.model.path)]
        named += [(("config", index, "file"), entry.file) for index, entry in enumerate(self.config)]
        hint = "write the absolute path; only a `command` manager with `cwd` gives relative ones a meaning"
        found = [
            Fault(f"`{path}` is relative to an unknown folder", hint, at)
            for at, path in named
            if path and not path.startswith("/") and not is_template(path) and self.folder is None
        ]
        if found:
            raise faults(found)
        return self

    @model_validator(mode="after")
    def _model_of_a_path_has_a_name(self) -> Self:
        own = self.engine.generic
        if own is not None and own.answer.protocol == TENSORS and self.model.name is None:
            text = f"`{TENSORS}` has the model's name in its path, and none is said here"
            raise faults([Fault(text, "add `name: ...`, as the server calls it", ("model",))])
        return self

    @property
    def folder(self) -> str | None:
        """The folder that relative paths of the service mean: the `command` manager's working folder."""
        return self.manager.command.cwd if self.manager.command is not None else None

    @property
    def carriers(self) -> tuple[Carrier, ...]:
        """Where its values live, strongest first, with absolute files."""
        return tuple(entry.carrier(self.folder) for entry in self.config)

    @property
    def model_path(self) -> str:
        """The model's file or folder, absolute."""
        path = self.model.path
        return path if path.startswith("/") else f"{self.folder}/{path.removeprefix('./')}"

    @property
    def source(self) -> Source:
        """The file it was read from; rendering starts from it."""
        return self._source


def load(content: bytes | str, file: str, *, engines: Iterable[str] | None = None) -> Service:
    """Read a service file; templates in it stay as they are (`render.render` fills them per host).

    Args:
        content: the file's bytes.
        file: its name for messages.
        engines: the known engines; None: any name is taken.

    Raises:
        InputError: with every problem of the file.
    """
    source = read_yaml(content, file)
    source = replace(source, problems=(*source.problems, *templates.check(source)))
    return from_source(source, {"engines": None if engines is None else tuple(engines)})


def from_source(source: Source, context: Mapping[str, Any]) -> Service:
    """The service of a file that is read already. Raises InputError with every problem of the file."""
    service = validate(source, Service, {"levels": own_levels(source.data), **context})
    service._source = source
    return service


def own_levels(data: Any) -> tuple[str, ...] | None:
    """The names of the levels that a service's metrics may point at; None: it does not say them readably."""
    conditions = data.get("conditions") if isinstance(data, dict) else None
    levels = conditions.get("levels") if isinstance(conditions, dict) else None
    return tuple(levels) if isinstance(levels, dict) and levels else None


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a service file, for editors."""
    return {
        **Service.model_json_schema(),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "changectl service",
    }

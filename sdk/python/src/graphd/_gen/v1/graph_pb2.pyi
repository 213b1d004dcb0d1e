from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import interrupt_pb2 as _interrupt_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GraphView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GRAPH_VIEW_UNSPECIFIED: _ClassVar[GraphView]
    GRAPH_VIEW_BASIC: _ClassVar[GraphView]
    GRAPH_VIEW_FULL: _ClassVar[GraphView]

class SubgraphPersistence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUBGRAPH_PERSISTENCE_UNSPECIFIED: _ClassVar[SubgraphPersistence]
    SUBGRAPH_PERSISTENCE_INHERIT: _ClassVar[SubgraphPersistence]
    SUBGRAPH_PERSISTENCE_PERSIST: _ClassVar[SubgraphPersistence]
    SUBGRAPH_PERSISTENCE_DISABLED: _ClassVar[SubgraphPersistence]
GRAPH_VIEW_UNSPECIFIED: GraphView
GRAPH_VIEW_BASIC: GraphView
GRAPH_VIEW_FULL: GraphView
SUBGRAPH_PERSISTENCE_UNSPECIFIED: SubgraphPersistence
SUBGRAPH_PERSISTENCE_INHERIT: SubgraphPersistence
SUBGRAPH_PERSISTENCE_PERSIST: SubgraphPersistence
SUBGRAPH_PERSISTENCE_DISABLED: SubgraphPersistence

class Graph(_message.Message):
    __slots__ = ("graph", "version", "versions", "description", "metadata", "input_schema", "output_schema", "context_schema", "create_time", "spec")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    graph: str
    version: str
    versions: _containers.RepeatedScalarFieldContainer[str]
    description: str
    metadata: _containers.ScalarMap[str, str]
    input_schema: _payload_pb2.Payload
    output_schema: _payload_pb2.Payload
    context_schema: _payload_pb2.Payload
    create_time: _timestamp_pb2.Timestamp
    spec: GraphSpec
    def __init__(self, graph: _Optional[str] = ..., version: _Optional[str] = ..., versions: _Optional[_Iterable[str]] = ..., description: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., input_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., output_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., context_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., spec: _Optional[_Union[GraphSpec, _Mapping]] = ...) -> None: ...

class GraphSpec(_message.Message):
    __slots__ = ("name", "version", "description", "metadata", "channels", "input", "output", "strict", "input_schema", "output_schema", "context_schema", "nodes", "edges", "branches", "interrupt_before", "interrupt_after", "step_limit", "step_timeout", "defaults", "drift", "drift_ignore")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    BRANCHES_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_AFTER_FIELD_NUMBER: _ClassVar[int]
    STEP_LIMIT_FIELD_NUMBER: _ClassVar[int]
    STEP_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    DRIFT_IGNORE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    description: str
    metadata: _containers.ScalarMap[str, str]
    channels: _containers.RepeatedCompositeFieldContainer[ChannelSpec]
    input: _containers.RepeatedScalarFieldContainer[str]
    output: _containers.RepeatedScalarFieldContainer[str]
    strict: bool
    input_schema: _payload_pb2.Payload
    output_schema: _payload_pb2.Payload
    context_schema: _payload_pb2.Payload
    nodes: _containers.RepeatedCompositeFieldContainer[NodeSpec]
    edges: _containers.RepeatedCompositeFieldContainer[EdgeSpec]
    branches: _containers.RepeatedCompositeFieldContainer[BranchSpec]
    interrupt_before: _containers.RepeatedScalarFieldContainer[str]
    interrupt_after: _containers.RepeatedScalarFieldContainer[str]
    step_limit: int
    step_timeout: _duration_pb2.Duration
    defaults: PolicySpec
    drift: _interrupt_pb2.Drift
    drift_ignore: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., channels: _Optional[_Iterable[_Union[ChannelSpec, _Mapping]]] = ..., input: _Optional[_Iterable[str]] = ..., output: _Optional[_Iterable[str]] = ..., strict: bool = ..., input_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., output_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., context_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[NodeSpec, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[EdgeSpec, _Mapping]]] = ..., branches: _Optional[_Iterable[_Union[BranchSpec, _Mapping]]] = ..., interrupt_before: _Optional[_Iterable[str]] = ..., interrupt_after: _Optional[_Iterable[str]] = ..., step_limit: _Optional[int] = ..., step_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., defaults: _Optional[_Union[PolicySpec, _Mapping]] = ..., drift: _Optional[_Union[_interrupt_pb2.Drift, str]] = ..., drift_ignore: _Optional[_Iterable[str]] = ...) -> None: ...

class ChannelSpec(_message.Message):
    __slots__ = ("name", "reducer", "default_value", "reducer_name")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REDUCER_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    REDUCER_NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    reducer: str
    default_value: _payload_pb2.Payload
    reducer_name: str
    def __init__(self, name: _Optional[str] = ..., reducer: _Optional[str] = ..., default_value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., reducer_name: _Optional[str] = ...) -> None: ...

class NodeSpec(_message.Message):
    __slots__ = ("name", "description", "metadata", "reads", "deferred", "destinations", "policy", "function", "expr", "ask", "graph", "remote")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    DEFERRED_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    REMOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    metadata: _containers.ScalarMap[str, str]
    reads: _containers.RepeatedScalarFieldContainer[str]
    deferred: bool
    destinations: _containers.RepeatedScalarFieldContainer[str]
    policy: PolicySpec
    function: FunctionSpec
    expr: ExprSpec
    ask: AskSpec
    graph: SubgraphSpec
    remote: RemoteSpec
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., reads: _Optional[_Iterable[str]] = ..., deferred: bool = ..., destinations: _Optional[_Iterable[str]] = ..., policy: _Optional[_Union[PolicySpec, _Mapping]] = ..., function: _Optional[_Union[FunctionSpec, _Mapping]] = ..., expr: _Optional[_Union[ExprSpec, _Mapping]] = ..., ask: _Optional[_Union[AskSpec, _Mapping]] = ..., graph: _Optional[_Union[SubgraphSpec, _Mapping]] = ..., remote: _Optional[_Union[RemoteSpec, _Mapping]] = ...) -> None: ...

class FunctionSpec(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExprSpec(_message.Message):
    __slots__ = ("update", "goto_expr")
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    GOTO_EXPR_FIELD_NUMBER: _ClassVar[int]
    update: _containers.RepeatedCompositeFieldContainer[Assignment]
    goto_expr: str
    def __init__(self, update: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., goto_expr: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("channel", "expr")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    channel: str
    expr: str
    def __init__(self, channel: _Optional[str] = ..., expr: _Optional[str] = ...) -> None: ...

class AskSpec(_message.Message):
    __slots__ = ("condition", "value", "message", "key", "reason", "response_schema", "update", "otherwise", "goto_expr", "assignees", "ttl", "expiry_action", "default_response", "drift", "drift_ignore", "assignees_expr", "people", "priority", "steps", "undo", "ttl_expr", "default_expr", "secret")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    OTHERWISE_FIELD_NUMBER: _ClassVar[int]
    GOTO_EXPR_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_ACTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    DRIFT_IGNORE_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_EXPR_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    TTL_EXPR_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_EXPR_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    condition: str
    value: str
    message: str
    key: str
    reason: str
    response_schema: _payload_pb2.Payload
    update: _containers.RepeatedCompositeFieldContainer[Assignment]
    otherwise: _containers.RepeatedCompositeFieldContainer[Assignment]
    goto_expr: str
    assignees: _containers.RepeatedScalarFieldContainer[str]
    ttl: _duration_pb2.Duration
    expiry_action: _interrupt_pb2.ExpiryAction
    default_response: _payload_pb2.Payload
    drift: _interrupt_pb2.Drift
    drift_ignore: _containers.RepeatedScalarFieldContainer[str]
    assignees_expr: str
    people: PeopleSpec
    priority: _interrupt_pb2.Priority
    steps: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Step]
    undo: _duration_pb2.Duration
    ttl_expr: str
    default_expr: str
    secret: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, condition: _Optional[str] = ..., value: _Optional[str] = ..., message: _Optional[str] = ..., key: _Optional[str] = ..., reason: _Optional[str] = ..., response_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., update: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., otherwise: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., goto_expr: _Optional[str] = ..., assignees: _Optional[_Iterable[str]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., expiry_action: _Optional[_Union[_interrupt_pb2.ExpiryAction, str]] = ..., default_response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., drift: _Optional[_Union[_interrupt_pb2.Drift, str]] = ..., drift_ignore: _Optional[_Iterable[str]] = ..., assignees_expr: _Optional[str] = ..., people: _Optional[_Union[PeopleSpec, _Mapping]] = ..., priority: _Optional[_Union[_interrupt_pb2.Priority, str]] = ..., steps: _Optional[_Iterable[_Union[_interrupt_pb2.Step, _Mapping]]] = ..., undo: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., ttl_expr: _Optional[str] = ..., default_expr: _Optional[str] = ..., secret: _Optional[_Iterable[str]] = ...) -> None: ...

class PeopleSpec(_message.Message):
    __slots__ = ("users", "users_expr", "groups", "groups_expr", "approvals", "vetoes", "agree", "not_requester", "requester", "exclusive", "not_contributor", "delegable", "reveal")
    USERS_FIELD_NUMBER: _ClassVar[int]
    USERS_EXPR_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_EXPR_FIELD_NUMBER: _ClassVar[int]
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    VETOES_FIELD_NUMBER: _ClassVar[int]
    AGREE_FIELD_NUMBER: _ClassVar[int]
    NOT_REQUESTER_FIELD_NUMBER: _ClassVar[int]
    REQUESTER_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    NOT_CONTRIBUTOR_FIELD_NUMBER: _ClassVar[int]
    DELEGABLE_FIELD_NUMBER: _ClassVar[int]
    REVEAL_FIELD_NUMBER: _ClassVar[int]
    users: _containers.RepeatedScalarFieldContainer[str]
    users_expr: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    groups_expr: str
    approvals: int
    vetoes: int
    agree: str
    not_requester: bool
    requester: str
    exclusive: bool
    not_contributor: bool
    delegable: bool
    reveal: _interrupt_pb2.Audience
    def __init__(self, users: _Optional[_Iterable[str]] = ..., users_expr: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., groups_expr: _Optional[str] = ..., approvals: _Optional[int] = ..., vetoes: _Optional[int] = ..., agree: _Optional[str] = ..., not_requester: bool = ..., requester: _Optional[str] = ..., exclusive: bool = ..., not_contributor: bool = ..., delegable: bool = ..., reveal: _Optional[_Union[_interrupt_pb2.Audience, _Mapping]] = ...) -> None: ...

class SubgraphSpec(_message.Message):
    __slots__ = ("graph", "version", "persistence")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PERSISTENCE_FIELD_NUMBER: _ClassVar[int]
    graph: str
    version: str
    persistence: SubgraphPersistence
    def __init__(self, graph: _Optional[str] = ..., version: _Optional[str] = ..., persistence: _Optional[_Union[SubgraphPersistence, str]] = ...) -> None: ...

class RemoteSpec(_message.Message):
    __slots__ = ("endpoint", "tls")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    tls: bool
    def __init__(self, endpoint: _Optional[str] = ..., tls: bool = ...) -> None: ...

class EdgeSpec(_message.Message):
    __slots__ = ("sources", "target")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedScalarFieldContainer[str]
    target: str
    def __init__(self, sources: _Optional[_Iterable[str]] = ..., target: _Optional[str] = ...) -> None: ...

class BranchSpec(_message.Message):
    __slots__ = ("source", "name", "cases", "expr", "router", "worker_router", "paths", "targets")
    class PathsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CASES_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    ROUTER_FIELD_NUMBER: _ClassVar[int]
    WORKER_ROUTER_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    source: str
    name: str
    cases: Cases
    expr: str
    router: str
    worker_router: str
    paths: _containers.ScalarMap[str, str]
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source: _Optional[str] = ..., name: _Optional[str] = ..., cases: _Optional[_Union[Cases, _Mapping]] = ..., expr: _Optional[str] = ..., router: _Optional[str] = ..., worker_router: _Optional[str] = ..., paths: _Optional[_Mapping[str, str]] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...

class Cases(_message.Message):
    __slots__ = ("cases",)
    CASES_FIELD_NUMBER: _ClassVar[int]
    cases: _containers.RepeatedCompositeFieldContainer[Case]
    def __init__(self, cases: _Optional[_Iterable[_Union[Case, _Mapping]]] = ...) -> None: ...

class Case(_message.Message):
    __slots__ = ("condition", "targets")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    condition: str
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, condition: _Optional[str] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...

class PolicySpec(_message.Message):
    __slots__ = ("retry", "timeout", "idle_timeout", "error_handler")
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_HANDLER_FIELD_NUMBER: _ClassVar[int]
    retry: _containers.RepeatedCompositeFieldContainer[RetrySpec]
    timeout: _duration_pb2.Duration
    idle_timeout: _duration_pb2.Duration
    error_handler: str
    def __init__(self, retry: _Optional[_Iterable[_Union[RetrySpec, _Mapping]]] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., idle_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., error_handler: _Optional[str] = ...) -> None: ...

class RetrySpec(_message.Message):
    __slots__ = ("max_attempts", "initial_interval", "backoff", "max_interval", "no_jitter", "failure_types")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    MAX_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    NO_JITTER_FIELD_NUMBER: _ClassVar[int]
    FAILURE_TYPES_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    initial_interval: _duration_pb2.Duration
    backoff: float
    max_interval: _duration_pb2.Duration
    no_jitter: bool
    failure_types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_attempts: _Optional[int] = ..., initial_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., backoff: _Optional[float] = ..., max_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., no_jitter: bool = ..., failure_types: _Optional[_Iterable[str]] = ...) -> None: ...

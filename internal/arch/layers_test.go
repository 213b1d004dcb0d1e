package arch_test

const module = "github.com/graphd-dev/graphd"

// A layer is one folder with the rules for all packages in it, except for those of
// a layer below it. CONTRIBUTING.md shows the same map.
type layer struct {
	path string // below the module; "" is the module itself
	// mayImport lists the layers whose packages it may import; its own is implied.
	mayImport []string
	// importsAnything permits all imports: the layer wires others together.
	importsAnything bool
	// neverLinks lists prefixes of packages that must not be linked, not even
	// through another package.
	neverLinks []string
	// isPure forbids the clock as well.
	isPure bool
	// isOpenToAll permits every layer to import it. It imports no package of ours.
	isOpenToAll bool
	// containsPanics requires that no goroutine of the layer may end the process: a
	// panic ends one task.
	containsPanics bool
	// isTestSupport marks packages for tests, which no shipped package may link.
	isTestSupport bool
}

// Packages that a layer below the transport must never import: the wire, and every
// driver.
var (
	wirePackages     = []string{"google.golang.org/grpc", module + "/gen"}
	driverPackages   = []string{"github.com/redis/", "modernc.org/sqlite"}
	protobufPackages = []string{"google.golang.org/protobuf"}
	tracePackages    = []string{"go.opentelemetry.io/otel"}
	outerPackages    = concatLists(wirePackages, protobufPackages, driverPackages, tracePackages)
)

// Packages that the demo does without.
var demoOmits = concatLists(driverPackages, []string{
	"modernc.org/libc", "go.opentelemetry.io/otel/exporters", "github.com/go-jose", "github.com/spf13/cobra", "github.com/dop251/goja", "golang.org/x/image", module + "/internal/server",
})

// The layers, from the inside out.
var layers = []layer{
	{path: "internal/contain", isOpenToAll: true, neverLinks: outerPackages},
	{path: "internal/stack", isOpenToAll: true, neverLinks: outerPackages, isPure: true},
	{path: "internal/tenant", isOpenToAll: true, neverLinks: outerPackages, isPure: true},
	{path: "internal/backoff", isOpenToAll: true, neverLinks: outerPackages},
	{path: "internal/tlsalert", isOpenToAll: true, neverLinks: outerPackages},
	{path: "internal/loopback", neverLinks: outerPackages, isPure: true},
	{path: "internal/filelock", neverLinks: outerPackages},
	{path: "internal/payload", neverLinks: outerPackages, isPure: true},
	{path: "internal/redact", mayImport: []string{"internal/payload"}, isOpenToAll: true, neverLinks: outerPackages, isPure: true},
	{path: "internal/approval", mayImport: []string{"internal/payload"}, isOpenToAll: true, neverLinks: outerPackages, isPure: true},
	{path: "internal/trail", mayImport: []string{"internal/payload"}, isOpenToAll: true, neverLinks: outerPackages, isPure: true},
	{path: "internal/graph", mayImport: []string{"internal/payload"}, neverLinks: outerPackages, isPure: true},
	// CEL itself is built on protobuf, so only the wire is refused here.
	{path: "internal/graph/expr/syntax", neverLinks: concatLists(wirePackages, driverPackages)},
	{
		path: "internal/graph/expr", mayImport: []string{"internal/graph/expr/syntax", "internal/graph", "internal/payload"},
		neverLinks: concatLists(wirePackages, driverPackages),
	},
	{
		path: "internal/graph/graphfile", mayImport: []string{"internal/graph", "internal/payload"},
		neverLinks: outerPackages,
	},
	{path: "internal/link", neverLinks: outerPackages, isPure: true},
	{path: "internal/checkpoint", mayImport: []string{"internal/payload"}, neverLinks: outerPackages},
	{
		path: "internal/checkpoint/codec/packed", mayImport: []string{"internal/checkpoint", "internal/payload"},
		neverLinks: outerPackages,
	},
	{
		path: "internal/checkpoint/codec", mayImport: []string{"internal/checkpoint/codec/packed", "internal/checkpoint", "internal/payload"},
		neverLinks: outerPackages,
	},
	{
		path:       "internal/checkpoint/dump",
		mayImport:  []string{"internal/checkpoint", "internal/checkpoint/codec", "internal/payload", "internal/visible"},
		neverLinks: outerPackages,
	},
	{path: "internal/checkpoint/seal", mayImport: []string{"internal/checkpoint", "internal/payload"}, neverLinks: outerPackages},
	{
		path: "internal/checkpoint/faulty", isTestSupport: true,
		mayImport: []string{"internal/checkpoint", "internal/payload"}, neverLinks: outerPackages,
	},
	{
		path: "internal/checkpoint/memory", mayImport: []string{"internal/checkpoint", "internal/payload"},
		neverLinks: outerPackages,
	},
	{
		path: "internal/checkpoint/sqlite/format3",
		mayImport: []string{
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/codec/packed", "internal/payload",
		},
		neverLinks: outerPackages,
	},
	{
		path: "internal/checkpoint/sqlite/layout", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/format3",
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/file", containsPanics: true,
		mayImport:  []string{"internal/checkpoint", "internal/filelock"},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/setup", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/file", "internal/checkpoint/sqlite/format3", "internal/checkpoint/sqlite/layout",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/writer", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/file", "internal/checkpoint/sqlite/layout",
			"internal/checkpoint",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/tags", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/layout", "internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal",
			"internal/tenant",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/threads", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/layout", "internal/checkpoint/sqlite/tags", "internal/checkpoint/sqlite/writer",
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/index", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/layout", "internal/checkpoint/sqlite/tags",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite/graphs", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/layout", "internal/checkpoint/sqlite/writer",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/sqlite", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/sqlite/file", "internal/checkpoint/sqlite/graphs", "internal/checkpoint/sqlite/index",
			"internal/checkpoint/sqlite/layout", "internal/checkpoint/sqlite/setup", "internal/checkpoint/sqlite/tags", "internal/checkpoint/sqlite/threads",
			"internal/checkpoint/sqlite/writer",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/redis/layout",
		mayImport: []string{
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		neverLinks: outerPackages,
	},
	{
		path: "internal/checkpoint/redis/script", containsPanics: true,
		mayImport:  []string{"internal/checkpoint/redis/layout", "internal/checkpoint"},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/pubsub", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script",
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/setup", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/graphs", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script", "internal/checkpoint/redis/setup",
			"internal/checkpoint", "internal/checkpoint/seal",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/threads", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script", "internal/checkpoint/redis/setup",
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/index", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script", "internal/checkpoint/redis/setup",
			"internal/checkpoint/redis/threads", "internal/checkpoint",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis", containsPanics: true,
		mayImport: []string{
			"internal/checkpoint/redis/layout", "internal/checkpoint/redis/script", "internal/checkpoint/redis/pubsub",
			"internal/checkpoint/redis/setup", "internal/checkpoint/redis/index", "internal/checkpoint/redis/threads", "internal/checkpoint/redis/graphs",
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		neverLinks: concatLists(wirePackages, protobufPackages, []string{"modernc.org/sqlite"}),
	},
	{
		path: "internal/checkpoint/redis/redistest", isTestSupport: true, mayImport: []string{"internal/testkit"},
		neverLinks: concatLists(wirePackages, protobufPackages),
	},
	{
		path: "internal/checkpoint/checkpointtest", isTestSupport: true,
		mayImport: []string{"internal/checkpoint", "internal/checkpoint/seal", "internal/payload"}, neverLinks: outerPackages,
	},
	{
		path: "internal/runtime/pregel", isPure: true, neverLinks: outerPackages,
		mayImport: []string{"internal/checkpoint", "internal/graph", "internal/payload"},
	},
	{
		path: "internal/runtime", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload"},
	},
	{
		path: "internal/runtime/commit", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/runtime/feed", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/runtime/query", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/feed", "internal/runtime/pregel",
			"internal/checkpoint", "internal/graph",
		},
	},
	{path: "internal/sim/sweep", neverLinks: outerPackages, isPure: true},
	{path: "internal/sim", mayImport: []string{"internal/sim/sweep"}, neverLinks: outerPackages, isPure: true},
	{
		path: "internal/runtime/scheduler", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint"},
	},
	{
		path: "internal/runtime/capacity", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime"},
	},
	{
		path: "internal/runtime/holdings", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint"},
	},
	{
		path: "internal/runtime/statistics", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/runtime/views", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint"},
	},
	{
		path: "internal/runtime/threads", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/feed", "internal/runtime/query",
			"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload",
		},
	},
	{
		path: "internal/runtime/questions", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint"},
	},
	{
		path: "internal/runtime/items", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/runtime/assistants", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint", "internal/graph", "internal/payload"},
	},
	{
		path: "internal/runtime/crons", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint", "internal/graph", "internal/payload"},
	},
	{
		path: "internal/runtime/webhooks", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/runtime/commit", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/runtime/placement", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint", "internal/graph"},
	},
	{
		path: "internal/runtime/superstep", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/placement", "internal/runtime/query",
			"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload", "internal/visible",
		},
	},
	{
		path: "internal/runtime/snapshot", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/query", "internal/runtime/superstep",
			"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload",
		},
	},
	{
		path: "internal/runtime/cancellation", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/query", "internal/runtime/superstep", "internal/checkpoint",
		},
	},
	{
		path: "internal/runtime/edit", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/commit", "internal/runtime/query", "internal/runtime/snapshot", "internal/runtime/superstep",
			"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload",
		},
	},
	{
		path: "internal/runtime/ownership", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/capacity", "internal/runtime/commit", "internal/runtime/feed",
			"internal/runtime/placement", "internal/runtime/superstep", "internal/runtime/threads", "internal/checkpoint",
		},
	},
	{
		path: "internal/runtime/admission", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/capacity", "internal/runtime/commit", "internal/runtime/ownership", "internal/runtime/query",
			"internal/runtime/superstep", "internal/runtime/questions", "internal/runtime/threads", "internal/checkpoint", "internal/graph", "internal/payload",
		},
	},
	{
		path: "internal/runtime/due", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/capacity", "internal/runtime/commit", "internal/runtime/ownership", "internal/runtime/placement",
			"internal/runtime/query", "internal/runtime/superstep", "internal/runtime/webhooks", "internal/runtime/crons", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/runtime/engine", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/runtime/admission", "internal/runtime/cancellation", "internal/runtime/capacity", "internal/runtime/commit",
			"internal/runtime/due", "internal/runtime/edit", "internal/runtime/feed", "internal/runtime/holdings", "internal/runtime/ownership",
			"internal/runtime/placement", "internal/runtime/query", "internal/runtime/scheduler", "internal/runtime/snapshot", "internal/runtime/statistics", "internal/runtime/superstep", "internal/runtime/threads", "internal/runtime/questions", "internal/runtime/assistants", "internal/runtime/items", "internal/runtime/webhooks", "internal/runtime/crons",
			"internal/runtime/views", "internal/runtime/pregel", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/node/function", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"graph", "internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/graph",
			"internal/payload",
		},
	},
	{
		path: "internal/node", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/node/function",
			"graph", "internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/graph",
			"internal/payload",
		},
	},
	{
		path: "internal/registry", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/runtime", "internal/checkpoint", "internal/graph", "internal/graph/graphfile",
			"internal/payload",
		},
	},
	{path: "internal/egress", neverLinks: outerPackages, isPure: true},
	{path: "internal/schema", mayImport: []string{"internal/runtime", "internal/payload"}, neverLinks: outerPackages},
	{
		path: "internal/worker", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/worker/attempt", "internal/worker/coverage", "internal/worker/inbox", "internal/worker/kept", "internal/worker/lease",
			"internal/worker/message", "internal/worker/outbox", "internal/worker/profile", "internal/worker/queue",
			"internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/worker/message", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/worker/kept", "internal/runtime", "internal/runtime/pregel", "internal/checkpoint"},
	},
	{path: "internal/worker/kept", containsPanics: true, neverLinks: outerPackages},
	{
		path: "internal/worker/outbox", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/worker/message"},
	},
	{
		path: "internal/worker/inbox", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/worker/message", "internal/runtime", "internal/checkpoint"},
	},
	{
		path: "internal/worker/attempt", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/worker/lease", "internal/runtime", "internal/checkpoint", "internal/payload"},
	},
	{
		path: "internal/worker/coverage", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/worker/message", "internal/runtime", "internal/checkpoint"},
	},
	{
		path: "internal/worker/profile", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{
			"internal/worker/coverage", "internal/worker/message", "internal/worker/queue", "internal/runtime", "internal/checkpoint",
		},
	},
	{
		path: "internal/worker/lease", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint"},
	},
	{
		path: "internal/worker/queue", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/runtime", "internal/checkpoint", "internal/graph"},
	},
	{path: "internal/telemetry/sloglines", neverLinks: outerPackages},
	{
		path: "internal/telemetry", neverLinks: concatLists(wirePackages, driverPackages),
		mayImport: []string{"internal/notify", "internal/runtime", "internal/audit", "internal/checkpoint", "internal/payload", "internal/visible"},
	},
	{
		path: "internal/tracing", containsPanics: true, neverLinks: concatLists(driverPackages, []string{module + "/gen", "go.opentelemetry.io/otel/exporters"}),
		mayImport: []string{"internal/runtime/superstep", "internal/runtime/ownership", "internal/runtime/commit", "internal/checkpoint", "internal/graph"},
	},
	{path: "internal/tracing/export", containsPanics: true, neverLinks: concatLists(driverPackages, []string{module + "/gen", module + "/internal/runtime"})},
	{
		path: "internal/transport/reason", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/identity", "internal/quota", "internal/runtime", "internal/checkpoint", "internal/graph", "internal/payload",
		},
	},
	{
		path: "internal/transport/wire", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason",
			"gen", "internal/runtime", "internal/worker/message", "internal/graph", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/transport/listing", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason", "internal/transport/wire",
			"gen", "internal/runtime", "internal/checkpoint",
		},
	},
	{
		path: "internal/transport/flow", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"internal/transport/reason", "internal/runtime"},
	},
	{
		path: "internal/transport/handshake", containsPanics: true, neverLinks: driverPackages,
	},
	{
		path: "internal/transport/callrecord", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"gen", "internal/audit", "internal/payload"},
	},
	{
		path: "internal/transport/interceptor", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/callrecord", "internal/audit", "internal/transport/reason", "internal/transport/wire", "internal/transport/flow",
			"internal/transport/handshake", "gen",
			"internal/identity", "internal/quota", "internal/runtime",
		},
	},
	{
		path: "internal/transport/cloudevent", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"internal/transport/wire", "gen", "internal/cli/jsontext", "internal/notify"},
	},
	{
		path: "internal/transport/permission", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"internal/transport/interceptor", "gen", "internal/access", "internal/identity", "internal/runtime"},
	},
	{
		path: "internal/transport/stream", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason", "internal/transport/wire", "internal/transport/flow",
			"internal/transport/interceptor",
			"gen", "internal/runtime", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/transport/endpoint", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason", "internal/transport/wire", "internal/transport/flow",
			"gen", "internal/runtime", "internal/worker", "internal/graph", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/transport/workers", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason", "internal/transport/wire", "internal/transport/interceptor", "internal/transport/permission",
			"gen", "internal/runtime", "internal/worker", "internal/graph", "internal/checkpoint", "internal/payload",
		},
	},
	{
		path: "internal/transport/linkpage", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/interceptor",
			"gen", "internal/cli/form", "internal/cli/jsontext", "internal/identity", "internal/link", "internal/visible",
		},
	},
	{
		path: "internal/transport/linkmaker", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"internal/transport/wire", "internal/identity", "internal/link", "internal/runtime"},
	},
	{
		path: "internal/transport", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{
			"internal/transport/reason", "internal/transport/wire", "internal/transport/listing",
			"internal/transport/flow", "internal/transport/handshake", "internal/transport/interceptor", "internal/transport/permission", "internal/transport/stream",
			"internal/transport/workers",
			"gen", "internal/runtime", "internal/worker", "internal/graph", "internal/checkpoint", "internal/payload",
		},
	},
	{path: "page", neverLinks: outerPackages},
	{path: "internal/web", mayImport: []string{"gen", "internal/identity"}, containsPanics: true, neverLinks: concatLists(driverPackages, []string{module + "/internal/runtime", module + "/internal/transport"})},
	{path: "internal/agentserver", mayImport: []string{"gen", "internal/web"}, containsPanics: true, neverLinks: concatLists(driverPackages, []string{module + "/internal/runtime", module + "/internal/transport"})},
	{
		path: "internal/web/signin", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/identity", "internal/identity/session", "internal/visible"},
	},
	{path: "internal/audit", mayImport: []string{"internal/visible"}, containsPanics: true, neverLinks: outerPackages},
	{
		path: "internal/audit/otlp", mayImport: []string{"internal/audit"}, containsPanics: true,
		neverLinks: concatLists(driverPackages, []string{module + "/gen"}),
	},
	{path: "internal/audit/file", mayImport: []string{"internal/audit", "internal/filelock"}, containsPanics: true, neverLinks: outerPackages},
	{path: "internal/visible", neverLinks: outerPackages, isPure: true},
	{path: "internal/identity", mayImport: []string{"internal/visible"}, neverLinks: outerPackages},
	{path: "internal/identity/file", mayImport: []string{"internal/filelock"}, containsPanics: true, neverLinks: outerPackages},
	{
		path: "internal/identity/certificate", neverLinks: outerPackages,
		mayImport: []string{"internal/identity", "internal/identity/file"},
	},
	{
		path: "internal/identity/apikey", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/identity", "internal/identity/file"},
	},
	{
		path: "internal/identity/jwt", containsPanics: true, neverLinks: outerPackages,
		mayImport: []string{"internal/identity", "internal/identity/file", "internal/loopback", "internal/payload", "internal/visible"},
	},
	{path: "internal/identity/session", neverLinks: outerPackages, containsPanics: true, mayImport: []string{"internal/identity"}},
	{path: "internal/identity/proxy", neverLinks: outerPackages, mayImport: []string{"internal/identity", "internal/identity/certificate"}},
	{path: "internal/quota", neverLinks: outerPackages, isPure: true, mayImport: []string{"internal/identity", "internal/identity/file"}},
	// CEL itself is built on protobuf, so only the wire is refused here.
	{path: "internal/access", neverLinks: concatLists(wirePackages, driverPackages)},
	{path: "internal/tlsfiles", containsPanics: true, neverLinks: outerPackages},
	{path: "internal/notify", mayImport: []string{"internal/checkpoint"}, containsPanics: true, neverLinks: outerPackages},
	{path: "internal/notify/webhook", mayImport: []string{"internal/notify", "internal/egress"}, containsPanics: true, neverLinks: outerPackages},
	{path: "internal/notify/cursor", mayImport: []string{"internal/notify", "internal/checkpoint"}, containsPanics: true, neverLinks: outerPackages},
	{
		path: "internal/notify/endpointfile", neverLinks: outerPackages,
		mayImport: []string{"internal/notify", "internal/notify/webhook", "internal/egress", "internal/identity/file"},
	},
	{path: "internal/cli/exit", neverLinks: outerPackages},
	{path: "internal/cli/shell", neverLinks: outerPackages},
	{path: "internal/cli/jsontext", mayImport: []string{"gen"}, neverLinks: driverPackages},
	{
		path: "internal/cli/form", mayImport: []string{"internal/cli/jsontext", "gen", "internal/visible"},
		neverLinks: driverPackages,
	},
	{
		path: "internal/cli/output", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/exit", "internal/cli/form", "internal/cli/jsontext", "gen", "internal/visible"},
	},
	{
		path: "internal/cli/report", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/exit", "internal/cli/output", "internal/cli/shell", "internal/visible"},
	},
	{
		path: "internal/cli/argument", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/exit", "internal/cli/jsontext", "internal/cli/shell", "gen"},
	},
	{
		path: "internal/cli/client", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/argument", "internal/cli/exit", "internal/loopback", "internal/tlsfiles", "client", "gen"},
	},
	{
		path: "internal/cli/auditlog", neverLinks: driverPackages,
		mayImport: []string{
			"internal/cli/exit", "internal/cli/output", "internal/access", "internal/audit", "internal/graph", "internal/visible",
		},
	},
	{
		path: "internal/cli/certs", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/exit", "internal/tlsfiles"},
	},
	{
		path: "internal/cli/contexts", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/client", "internal/cli/exit", "internal/identity/file"},
	},
	{
		path: "internal/cli/drawing", neverLinks: driverPackages,
		mayImport: []string{"internal/cli/exit", "gen", "internal/visible", "page"},
	},
	{
		path: "internal/cli/keys", neverLinks: driverPackages,
		mayImport: []string{"internal/access", "internal/cli/exit", "internal/identity/apikey", "internal/identity/file"},
	},
	{
		path: "internal/cli/stream", neverLinks: driverPackages,
		mayImport: []string{
			"internal/cli/argument", "internal/cli/client", "internal/cli/exit", "internal/cli/form", "internal/cli/jsontext",
			"internal/cli/output", "internal/cli/report", "internal/cli/shell", "gen",
		},
	},
	{
		path: "internal/cli/prompt", neverLinks: driverPackages,
		mayImport: []string{
			"internal/cli/form", "internal/cli/jsontext", "internal/cli/output", "internal/payload", "internal/runtime", "internal/schema",
			"internal/visible", "gen",
		},
	},
	{
		path: "internal/cli", neverLinks: driverPackages,
		mayImport: []string{
			"internal/cli/argument", "internal/cli/client", "internal/cli/exit", "internal/cli/form", "internal/cli/jsontext",
			"internal/cli/output", "internal/cli/prompt", "internal/cli/report", "internal/cli/shell", "internal/cli/stream",
			"gen",
		},
	},
	{path: "internal/testkit", importsAnything: true, isTestSupport: true},
	{path: "internal/arch", importsAnything: true, isTestSupport: true},
	{path: "gen", neverLinks: driverPackages},
	// The API for nodes of users: it imports no package of graphd.
	{path: "graph", neverLinks: outerPackages},
	{path: "client", mayImport: []string{"gen"}, neverLinks: concatLists(driverPackages, []string{module + "/internal"})},
	{
		path: "worker/internal/task", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"gen", "graph", "internal/node/function", "internal/transport/wire", "internal/payload", "internal/runtime/pregel"},
	},
	{
		path: "worker/internal/session", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"worker/internal/task", "client", "gen", "graph", "internal/node/function", "internal/telemetry/sloglines"},
	},
	{
		path: "worker/internal/document", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"gen", "internal/graph", "internal/graph/graphfile", "internal/transport/wire"},
	},
	{
		path: "worker", containsPanics: true, neverLinks: driverPackages,
		mayImport: []string{"worker/internal/document", "worker/internal/session", "worker/internal/task", "client", "gen", "graph"},
	},
	// The engine in the process of its user wires a server.
	{path: "", importsAnything: true},
	// Workers in Go compare answers with it.
	{path: "seen", mayImport: []string{"internal/payload"}, neverLinks: outerPackages},
	// It wires a server, as cmd/graphd wires commands.
	{path: "internal/server", importsAnything: true},
	{path: "cmd/graphd", importsAnything: true},
	// A clone shows it before it has compiled what is heavy: every prefix here costs seconds.
	{path: "cmd/demo", importsAnything: true, neverLinks: demoOmits},
	{path: "examples", importsAnything: true},
	{path: "docs", importsAnything: true, isTestSupport: true},
	{path: "tests", importsAnything: true, isTestSupport: true},
}

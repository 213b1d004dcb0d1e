package arch_test

import "strings"

const module = "github.com/graphd-dev/graphd"

// A room is one folder with the rules for all packages in it, up to the next
// room below. CONTRIBUTING.md draws the same picture.
type room struct {
	path string // below the module; "" is the module itself
	// may lists the rooms whose packages it may import; its own is implied.
	may []string
	// everything lifts may: the room wires others together.
	everything bool
	// links lists prefixes of packages that must not be linked, not even
	// through somebody else.
	never []string
	// pure forbids the clock as well.
	pure bool
	// everywhere says that every room may import it, besides the others that it
	// may: it imports none of ours.
	everywhere bool
	// contained says that no goroutine of its own may end the process: a panic
	// there ends one task.
	contained bool
	// support is for tests: nothing that ships may link it.
	support bool
}

// Who a room below the border must never know: the wire, and every driver.
var (
	wire    = []string{"google.golang.org/grpc", module + "/gen"}
	drivers = []string{"github.com/redis/", "modernc.org/sqlite"}
	protos  = []string{"google.golang.org/protobuf"}
	inner   = join(wire, protos, drivers)
)

// The rooms, from the inside out.
var rooms = []room{
	{path: "internal/contain", everywhere: true, never: inner},
	{path: "internal/payload", never: inner, pure: true},
	{path: "internal/graph", may: []string{"internal/payload"}, never: inner, pure: true},
	{
		// CEL itself is built on protobuf, so only the wire is refused here.
		path: "internal/graph/expr", may: []string{"internal/graph", "internal/payload"},
		never: join(wire, drivers),
	},
	{
		path: "internal/graph/graphfile", may: []string{"internal/graph", "internal/payload"},
		never: inner,
	},
	{path: "internal/checkpoint", may: []string{"internal/payload"}, never: inner},
	{
		path: "internal/checkpoint/codec", may: []string{"internal/checkpoint", "internal/payload"},
		never: inner,
	},
	{path: "internal/checkpoint/seal", may: []string{"internal/checkpoint", "internal/payload"}, never: inner},
	{
		path: "internal/checkpoint/faulty", support: true,
		may: []string{"internal/checkpoint", "internal/payload"}, never: inner,
	},
	{
		path: "internal/checkpoint/memory", may: []string{"internal/checkpoint", "internal/payload"},
		never: inner,
	},
	{
		path: "internal/checkpoint/sqlite", contained: true,
		may: []string{
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		never: join(wire, protos, []string{"github.com/redis/"}),
	},
	{
		path: "internal/checkpoint/redis", contained: true,
		may: []string{
			"internal/checkpoint", "internal/checkpoint/codec", "internal/checkpoint/seal", "internal/payload",
		},
		never: join(wire, protos, []string{"modernc.org/sqlite"}),
	},
	{path: "internal/checkpoint/redis/redistest", support: true, never: join(wire, protos)},
	{
		path: "internal/checkpoint/checkpointtest", support: true,
		may: []string{"internal/checkpoint", "internal/payload"}, never: inner,
	},
	{
		path: "internal/runtime/pregel", pure: true, never: inner,
		may: []string{"internal/checkpoint", "internal/graph", "internal/payload"},
	},
	{
		path: "internal/runtime", contained: true, never: inner,
		may: []string{
			"internal/runtime/pregel", "internal/checkpoint", "internal/graph", "internal/payload", "internal/visible",
		},
	},
	{
		path: "internal/node", contained: true, never: inner,
		may: []string{
			"graph", "internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/graph",
			"internal/payload",
		},
	},
	{
		path: "internal/registry", contained: true, never: inner,
		may: []string{
			"internal/runtime", "internal/checkpoint", "internal/graph", "internal/graph/graphfile",
			"internal/payload",
		},
	},
	{path: "internal/schema", may: []string{"internal/runtime", "internal/payload"}, never: inner},
	{
		path: "internal/worker", contained: true, never: inner,
		may: []string{
			"internal/runtime", "internal/runtime/pregel", "internal/checkpoint", "internal/graph",
			"internal/payload",
		},
	},
	{
		path: "internal/telemetry", never: join(wire, drivers),
		may: []string{"internal/runtime", "internal/checkpoint", "internal/payload", "internal/visible"},
	},
	{
		path: "internal/transport", contained: true, never: drivers,
		may: []string{
			"gen", "internal/runtime", "internal/runtime/pregel", "internal/node", "internal/worker",
			"internal/graph", "internal/graph/expr", "internal/graph/graphfile", "internal/checkpoint",
			"internal/payload",
		},
	},
	{path: "internal/visible", never: inner, pure: true},
	{path: "internal/cli", may: []string{"gen", "internal/visible"}, never: drivers},
	{path: "internal/testkit", everything: true, support: true},
	{path: "internal/arch", everything: true, support: true},
	{path: "gen", never: drivers},
	// What users write nodes against: it knows nobody.
	{path: "graph", never: inner},
	// What workers in Go compare answers with.
	{path: "seen", may: []string{"internal/payload"}, never: inner},
	{path: "cmd/graphd", everything: true},
	{path: "sdk/go", may: []string{"gen"}, never: drivers},
	{path: "examples", everything: true},
	{path: "docs", everything: true, support: true},
	{path: "tests", everything: true, support: true},
}

func join(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// roomOf finds the innermost room that contains a package.
func roomOf(importPath string) (room, bool) {
	rel, ok := relative(importPath)
	if !ok {
		return room{}, false
	}
	var best room
	found := false
	for _, r := range rooms {
		if within(rel, r.path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// relative cuts the module off the path of one of its packages.
func relative(importPath string) (string, bool) {
	if importPath == module {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

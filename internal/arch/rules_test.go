package arch_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rule that can't fail is useless, so each rule is tested with a violation.

func TestArrowsRefuseALeak(t *testing.T) {
	for _, c := range []struct{ from, imports, complaint string }{
		{"/internal/runtime", "/internal/transport", "may import only"},
		{"/internal/runtime", "/internal/checkpoint/memory", "may import only"},
		{"/internal/runtime/pregel", "/internal/runtime", "may import only"},
		{"/internal/runtime", "/internal/runtime/engine", "may import only"},
		{"/internal/transport", "/internal/runtime/engine", "may import only"},
		{"/internal/runtime/admission", "/internal/runtime/engine", "may import only"},
		{"/internal/runtime/due", "/internal/runtime/admission", "may import only"},
		{"/internal/runtime/due", "/internal/runtime/scheduler", "may import only"},
		{"/internal/checkpoint", "/internal/graph", "may import only"},
		{"/internal/checkpoint/sqlite", "/internal/checkpoint/memory", "may import only"},
		{"/internal/checkpoint/sqlite/schema", "/internal/runtime", "may import only"},
		{"/internal/payload", "/internal/graph", "may import only"},
		{"/internal/contain", "/internal/payload", "may import only"},
		{"/internal/node", "/gen/graphd/v1", "may import only"},
		{"/internal/checkpoint/redis/layout", "/internal/checkpoint/redis/script", "may import only"},
		{"/internal/checkpoint/redis/pubsub", "/internal/checkpoint/redis", "may import only"},
		{"/internal/transport", "/internal/checkpoint/redis", "may import only"},
		{"/internal/transport/reason", "/internal/transport/wire", "may import only"},
		{"/internal/transport/wire", "/internal/transport/flow", "may import only"},
		{"/internal/transport/flow", "/internal/transport/stream", "may import only"},
		{"/internal/transport/endpoint", "/internal/transport/stream", "may import only"},
		{"/internal/transport/stream", "/internal/transport", "may import only"},
	} {
		err := checkImports(module+c.from, []string{"fmt", module + c.imports})
		require.ErrorContains(t, err, c.complaint, "%s imports %s", c.from, c.imports)
		require.ErrorContains(t, err, module+c.imports)
	}
	for _, c := range []struct{ from, imports string }{
		{"/internal/runtime", "/internal/runtime/pregel"},
		{"/internal/runtime", "/internal/contain"},
		{"/internal/transport", "/gen/graphd/v1"},
		{"/internal/transport/convert", "/internal/transport"},
		{"/internal/checkpoint/redis", "/internal/checkpoint"},
		{"/cmd/graphd", "/internal/checkpoint/memory"},
	} {
		require.NoError(t, checkImports(module+c.from, []string{module + c.imports}))
	}
}

func TestLinksRefuseALeak(t *testing.T) {
	for _, c := range []struct{ from, dep string }{
		{"/internal/runtime", "google.golang.org/grpc/status"},
		{"/internal/runtime/pregel", "google.golang.org/protobuf/proto"},
		{"/internal/worker", "github.com/redis/go-redis/v9"},
		{"/internal/node", module + "/gen/graphd/v1"},
		{"/internal/checkpoint/sqlite", "github.com/redis/go-redis/v9"},
		{"/internal/checkpoint/redis", "modernc.org/sqlite/lib"},
		{"/internal/graph/expr", "google.golang.org/grpc"},
		{"/internal/transport", "modernc.org/sqlite"},
	} {
		require.ErrorContains(t, checkLinks(module+c.from, []string{"fmt", c.dep}), c.dep)
	}
	require.NoError(t, checkLinks(module+"/internal/checkpoint/sqlite", []string{"modernc.org/sqlite"}))
	require.NoError(t, checkLinks(module+"/internal/transport", []string{"google.golang.org/grpc"}))
	require.NoError(t, checkLinks(module+"/internal/runtime", []string{"google.golang.org/grpcish"}))
}

func TestSupportRefusesALeak(t *testing.T) {
	for _, dep := range []string{
		module + "/internal/testkit",
		module + "/internal/checkpoint/checkpointtest",
		"github.com/stretchr/testify/require",
	} {
		require.ErrorContains(t, checkTestSupport(module+"/cmd/graphd", []string{dep}), dep)
		require.NoError(t, checkTestSupport(module+"/internal/testkit", []string{dep}))
	}
}

func TestFanOutRefusesAMeetingPlace(t *testing.T) {
	var imports []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		imports = append(imports, module+"/internal/"+name)
	}
	from := module + "/internal/transport"
	require.NoError(t, checkFanOut(from, append(imports, "fmt", "google.golang.org/grpc")))
	require.NoError(t, checkFanOut(from, append(imports, module+"/internal/transport/wire")), "a part of its own")
	require.NoError(t, checkFanOut(from+"/stream", append(imports, module+"/internal/transport/wire")), "its neighbour")
	imports = append(imports, module+"/internal/g")
	require.ErrorContains(t, checkFanOut(from, imports), "imports 7 packages")
	require.NoError(t, checkFanOut(module+"/cmd/graphd", imports))
}

func TestClockIsFound(t *testing.T) {
	pure := `package p
import "time"
const wait = time.Second
func later(t time.Time) time.Time { return t.Add(wait) }`
	require.NoError(t, checkClock("pure.go", []byte(pure)))

	for _, call := range []string{"time.Now()", "time.Since(t)", "time.NewTimer(1)", "time.Sleep(1)"} {
		src := "package p\nimport \"time\"\nvar t time.Time\nfunc f() { _ = " + call + " }\n"
		require.ErrorContains(t, checkClock("impure.go", []byte(src)), "impure.go:4")
	}
}

func TestUnknownPackageHasNoLayer(t *testing.T) {
	_, ok := layerOf(module + "/internal/util")
	require.False(t, ok)
	require.ErrorContains(t, checkLayer(module+"/internal/util"), `{path: "internal/util"`)
	require.NoError(t, checkLayer(module+"/internal/payload"))
	_, ok = layerOf("fmt")
	require.False(t, ok)
	r, ok := layerOf(module + "/internal/checkpoint/sqlite/schema")
	require.True(t, ok)
	require.Equal(t, "internal/checkpoint/sqlite", r.path)
}

func TestUncontainedGoroutinesAreFound(t *testing.T) {
	contained := `package p
func f() {
	go contain.Func(work, caught)()
	group.Go(contain.Func(work, caught))
	time.AfterFunc(1, hub.containPanics(work))
	go h.containPanics(work)()
}`
	require.NoError(t, checkGoroutines("fine.go", []byte(contained)))
	for _, start := range []string{
		"go work()", "go func() { work() }()", "group.Go(work)", "group.Go(func() error { return nil })",
		"time.AfterFunc(1, work)", "context.AfterFunc(ctx, func() {})",
	} {
		src := "package p\nfunc f() {\n\t" + start + "\n}\n"
		require.ErrorContains(t, checkGoroutines("bare.go", []byte(src)), "bare.go:3", start)
	}
}

const drawnMap = `# Contributing

## The layers

` + "```" + `
cmd/graphd/   the program
internal/
  store/      what is kept
    memory/ redis/  one folder each
      keys/   names
  graph/      what a graph is
tests/        many
` + "```" + `
`

func TestTheMapRefusesALeak(t *testing.T) {
	folders := []string{
		"cmd/graphd", "internal", "internal/store", "internal/store/memory", "internal/store/redis", "internal/store/redis/keys",
		"internal/graph", "tests",
	}
	existsIn := func(folders []string) func(string) bool {
		return func(folder string) bool { return slices.Contains(folders, folder) }
	}
	mapped, err := parseFolderMap(drawnMap, existsIn(folders))
	require.NoError(t, err)
	var shown []string
	for _, m := range mapped {
		shown = append(shown, m.path)
	}
	require.Equal(t, folders, shown)

	require.NoError(t, checkMappedFolders(mapped, []string{"cmd/graphd", "internal/store/redis/keys", "tests/chaos"}))
	err = checkMappedFolders(mapped, []string{"internal/store/redis/scripts", "seen"})
	require.ErrorContains(t, err, `internal/store/redis/scripts is not in the map: add the line "      scripts/  WHAT IT IS" below line 9, internal/store/redis/`)
	require.ErrorContains(t, err, `seen is not in the map: add the line "seen/  WHAT IT IS"`)

	_, err = parseFolderMap(drawnMap, existsIn(slices.DeleteFunc(folders, func(f string) bool { return f == "internal/graph" })))
	require.ErrorContains(t, err, "CONTRIBUTING.md:11: there is no folder graph")
	_, err = parseFolderMap("# Contributing", existsIn(nil))
	require.ErrorContains(t, err, "there is no map")
}

func TestLayersWithoutPackagesAreFound(t *testing.T) {
	var packages []string
	for _, l := range layers[1:] {
		packages = append(packages, l.path)
	}
	require.ErrorContains(t, checkLayerFolders(packages), layers[0].path)
	require.NoError(t, checkLayerFolders(append(packages, layers[0].path+"/below")))
}

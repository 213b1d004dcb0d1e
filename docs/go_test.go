package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// A reason without a constant is one that Go programs have to spell.
func TestGoHasAConstantForEveryReason(t *testing.T) {
	want := map[string]bool{}
	for _, row := range reason.Table() {
		want[row.Reason] = true
	}
	for _, failed := range failureReasons(t) {
		want[failed] = true
	}
	require.Equal(t, want, reasonConstants(t))
}

// reasonConstants reads the constants of client/reason.go.
func reasonConstants(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "client", "reason.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	constants := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			lit, ok := v.(*ast.BasicLit)
			require.True(t, ok, "%s is not a literal", spec.Names[0].Name)
			value, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			constants[value] = true
		}
		return true
	})
	return constants
}

// Each piece of code on the page is in a file that is compiled and run, line by line.
func TestTheGoPageShowsCodeThatRuns(t *testing.T) {
	var sources []string
	for _, path := range []string{
		"example_test.go", "route_example_test.go", "client/example_test.go", "worker/example_test.go", "examples/worker-go/main.go", "examples/handler-go/handler.go",
	} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		require.NoError(t, err)
		sources = append(sources, withoutIndents(string(text)))
	}
	blocks := strings.Split(read(t, "docs", "go.md"), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		code, _, isClosed := strings.Cut(block, "```")
		require.True(t, isClosed)
		code = withoutIndents(code)
		isThere := false
		for _, source := range sources {
			isThere = isThere || strings.Contains(source, code)
		}
		require.True(t, isThere, "docs/go.md shows code that no example has:\n%s", code)
	}
}

func withoutIndents(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

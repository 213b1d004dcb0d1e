package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Clients read reasons in docs/protocol.md; the code declares them. Neither may
// know one that the other does not.
func TestProtocolPageHasEveryReason(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "protocol.md"))
	require.NoError(t, err)
	_, errorsSection, ok := strings.Cut(string(page), "\n## Errors\n")
	require.True(t, ok, "docs/protocol.md has no section Errors")
	errorsSection, _, _ = strings.Cut(errorsSection, "\n## ")

	declared := declaredReasons(t)
	for reason := range declared {
		require.Contains(t, errorsSection, "`"+reason+"`", "docs/protocol.md lacks a reason")
	}
	for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(errorsSection, -1) {
		word := m[1]
		if grpcCodes[word] || word == "FAILED" || word == "TIMED_OUT" {
			continue
		}
		require.True(t, declared[word], "docs/protocol.md names %s, which internal/runtime/errors.go does not", word)
	}
}

var grpcCodes = map[string]bool{
	"INVALID_ARGUMENT": true, "NOT_FOUND": true, "ALREADY_EXISTS": true, "FAILED_PRECONDITION": true,
	"ABORTED": true, "OUT_OF_RANGE": true, "RESOURCE_EXHAUSTED": true, "UNAVAILABLE": true,
	"PERMISSION_DENIED": true, "UNAUTHENTICATED": true, "UNIMPLEMENTED": true,
	"DEADLINE_EXCEEDED": true, "DATA_LOSS": true, "INTERNAL": true,
}

// declaredReasons reads the constants of internal/runtime/errors.go.
func declaredReasons(t *testing.T) map[string]bool {
	t.Helper()
	path := filepath.Join(root, "internal", "runtime", "errors.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	reasons := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !regexp.MustCompile(`^(Reason|Failed)`).MatchString(spec.Names[0].Name) {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		require.True(t, ok, "%s is not a literal", spec.Names[0].Name)
		value, err := strconv.Unquote(lit.Value)
		require.NoError(t, err)
		reasons[value] = true
		return true
	})
	require.NotEmpty(t, reasons)
	return reasons
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}

func TestREADMEStaysShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 200, "README.md: move the rest to docs/")
}

// pages lists the Markdown files of the module.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, "*.md"))
	require.NoError(t, err)
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	require.NoError(t, err)
	return all
}

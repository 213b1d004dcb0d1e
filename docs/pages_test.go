// Package docs_test keeps the pages true: they name what the code has.
package docs_test

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
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/internal/transport/reason"
)

const root = ".."

// Clients read reasons and codes in docs/protocol.md; transport has the table.
// Neither may know a row that the other does not.
func TestProtocolPageHasTheErrorTable(t *testing.T) {
	inCode := map[string]string{}
	for _, row := range reason.Table() {
		inCode[row.Reason] = codeName(row.Code)
	}
	require.Equal(t, inCode, documentedReasons(t))
}

// A reason without an exception reaches Python programs as one that means nothing.
func TestPythonHasAnExceptionForEveryReason(t *testing.T) {
	classes := read(t, "sdk", "python", "src", "graphd", "transport", "errors.py")
	for _, row := range reason.Table() {
		require.Contains(t, classes, `"`+row.Reason+`"`, "transport/errors.py of the SDK lacks a reason")
	}
}

func TestProtocolPageHasEveryReasonOfAFailedRun(t *testing.T) {
	section := errorSection(t)
	for _, failedReason := range failureReasons(t) {
		require.Contains(t, section, "`"+failedReason+"`", "docs/protocol.md lacks a reason of failed runs")
	}
}

// codeName spells a code as gRPC's documents do: INVALID_ARGUMENT.
func codeName(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	words := regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(c.String(), "${1}_${2}")
	return strings.ToUpper(words)
}

func errorSection(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "protocol.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Errors\n")
	require.True(t, ok, "docs/protocol.md has no section Errors")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// documentedReasons reads the table of errors: reason → code. A row without a
// code continues the one above.
func documentedReasons(t *testing.T) map[string]string {
	t.Helper()
	quoted := regexp.MustCompile("`([A-Z_]+)`")
	reasons, code := map[string]string{}, ""
	for line := range strings.Lines(errorSection(t)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if m := quoted.FindStringSubmatch(cells[1]); m != nil {
			code = m[1]
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			require.NotContains(t, reasons, m[1], "a reason stands in two rows")
			reasons[m[1]] = code
		}
	}
	return reasons
}

// failureReasons reads the Failed constants of internal/runtime/errors.go.
func failureReasons(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(root, "internal", "runtime", "errors.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Failed") {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		require.True(t, ok, "%s is not a literal", spec.Names[0].Name)
		value, err := strconv.Unquote(lit.Value)
		require.NoError(t, err)
		reasons = append(reasons, value)
		return true
	})
	require.NotEmpty(t, reasons)
	return reasons
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	code := regexp.MustCompile("(?s)```.*?```") // f[T](x) is no link
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			require.NoError(t, err, "%s links to %s", page, m[1])
		}
	}
}

// A promise is worth the test that forces it: each row of the tables of promises
// names tests that exist.
func TestPromisesNameTheirTests(t *testing.T) {
	page := read(t, "docs", "concepts.md")
	_, section, ok := strings.Cut(page, "\n## What is promised about answers and effects\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	known := testNames(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	rows, tables := 0, 0
	forced := false // the table at hand says what forces its promises
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			forced = false
			continue
		}
		if strings.TrimSpace(cells[2]) == "forced by" {
			forced = true
			tables++
			continue
		}
		if !forced || strings.HasPrefix(cells[1], "---") {
			continue
		}
		rows++
		named := quoted.FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, named, "a promise without a test: %s", cells[1])
		for _, m := range named {
			require.True(t, known(m[1]), "concepts.md names %s, which is no test", m[1])
		}
	}
	require.Equal(t, 2, tables, "one of answers, one of effects")
	require.Greater(t, rows, 15)
}

// A defence is worth the test that forces it, too.
func TestThreatsNameTheirTests(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs", "threats.md"), "\n## Attacks and defences\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	known := testNames(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "forced by" {
			continue
		}
		require.Len(t, cells, 5, line)
		rows++
		named := quoted.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, named, "a defence without a test: %s", cells[1])
		for _, m := range named {
			require.True(t, known(m[1]), "threats.md names %s, which is no test", m[1])
		}
	}
	require.Greater(t, rows, 20)
}

// testNames reports whether there is a test of a name: TestX of Go, also with the
// file of a scenario behind it, test_x of Python, a file or a folder of tests.
func testNames(t *testing.T) func(name string) bool {
	t.Helper()
	functions := map[string]bool{}
	files := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^(?:func (Test\w+)\(|(?:async )?def (test_\w+)\()`)
	for _, dir := range []string{"cmd", "internal", "tests", "seen", "graph", "sdk/python/tests"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			base := filepath.Base(path)
			isTest := strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "test_") && filepath.Ext(base) == ".py"
			if err != nil || !isTest {
				return err
			}
			files[base] = true
			text, err := os.ReadFile(path)
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				functions[m[1]+m[2]] = true
			}
			return err
		}))
	}
	return func(name string) bool {
		if functions[name] || files[name] {
			return true
		}
		if scenario, ok := strings.CutPrefix(name, "TestScenarios/"); ok && functions["TestScenarios"] {
			name = "internal/runtime/engine/testdata/" + scenario + ".txt"
		}
		if !strings.Contains(name, "/") {
			return false
		}
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
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
	var all []string
	for _, pattern := range []string{"*.md", "sdk/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		all = append(all, found...)
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	require.NoError(t, err)
	return all
}

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/schema"
)

// Every YAML snippet of these pages is a whole graph; those of one page may use
// each other as subgraphs.
func TestSnippetsOfThePagesCompile(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```") //nolint:gocritic // m makes ^ begin a line
	expressions, err := expr.New(expr.Options{})
	require.NoError(t, err)
	schemas := schema.New(schema.Limits{})
	env := graph.Env{Expressions: expressions, CheckSchema: schemas.CheckSchema, CheckValue: schemas.CheckValue}
	for page, least := range map[string]int{"graphs.md": 7, "quickstart.md": 1, "changing-graphs.md": 1} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		require.NoError(t, err)
		var files []graphfile.File
		for i, m := range block.FindAllStringSubmatch(string(text), -1) {
			name := fmt.Sprintf("%s snippet %d", page, i+1)
			spec, positions, err := graphfile.Parse(name+".yaml", []byte(m[1]))
			require.NoError(t, err, name)
			files = append(files, graphfile.File{Path: name, Spec: spec, Positions: positions})
		}
		require.GreaterOrEqual(t, len(files), least, page)
		graphs, err := graphfile.CompileAll(files, env)
		require.NoError(t, err)
		require.Len(t, graphs, len(files))
	}
}

// The reference names every field that the reader knows, and every reducer.
func TestGraphPageHasEveryField(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "graphs.md"))
	require.NoError(t, err)
	field := regexp.MustCompile(`(?:readers\[)?"([a-z_]+)"\]?(?::| =)\s+(?:r\.|func)`)
	known := 0
	for _, name := range []string{"spec.go", "edges.go"} {
		source, err := os.ReadFile(filepath.Join(root, "internal", "graph", "graphfile", name))
		require.NoError(t, err)
		for _, m := range field.FindAllStringSubmatch(string(source), -1) {
			known++
			require.Regexp(t, "`[^`\n]*\\b"+m[1]+"\\b[^`\n]*`", string(page), "docs/graphs.md lacks the field %s", m[1])
		}
	}
	require.Greater(t, known, 50)
	for _, r := range graph.Reducers() {
		require.Contains(t, string(page), "`"+r.Name+"`", "docs/graphs.md lacks a reducer")
	}
}

// Links within and between the pages name headings that exist.
func TestLinksToHeadingsLeadSomewhere(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	link := regexp.MustCompile(`\]\(([^)#\s:]*)#([^)]*)\)`)
	anchors := map[string][]string{} // by page
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if anchors[target] == nil {
				there, err := os.ReadFile(target)
				require.NoError(t, err)
				for _, h := range heading.FindAllStringSubmatch(string(there), -1) {
					anchors[target] = append(anchors[target], anchor(h[1]))
				}
			}
			require.Contains(t, anchors[target], m[2], "%s links to #%s of %s", page, m[2], target)
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor is what GitHub makes of a heading.
func anchor(heading string) string {
	kept := notInAnchor.ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

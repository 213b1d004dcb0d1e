package main

import (
	"bytes"
	"fmt"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/drawing"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

var demoGraph = filepath.Join(examplesDir, "graph.yaml")

func TestGraphsAreDrawnAsPictures(t *testing.T) {
	c := startServer(t, "memory")
	offline := commandRunner{server: "127.0.0.1:1"}
	svg := offline.runCommand(t, "graph", "draw", demoGraph, "-o", "svg")
	require.Equal(t, 0, svg.code, svg.err)
	require.Contains(t, svg.out, `<title id="graph-title">Graph refund-review</title>`)
	require.Contains(t, svg.out, "start to analyze; analyze to human_review; human_review to execute; execute to end")
	fromServer := c.runCommand(t, "graph", "draw", "refund-review", "-o", "svg")
	require.Equal(t, svg.out, fromServer.out, fromServer.err)

	picture := offline.runCommand(t, "graph", "draw", demoGraph, "-o", "png")
	require.Equal(t, 0, picture.code, picture.err)
	decoded, err := png.Decode(strings.NewReader(picture.out))
	require.NoError(t, err)
	require.Greater(t, decoded.Bounds().Dy(), decoded.Bounds().Dx())
}

// CI compares the picture of the README in the same way.
func TestTheReadmeShowsTheGraphOfTheDemo(t *testing.T) {
	shown, err := os.ReadFile("../../docs/pictures/refund-review.svg")
	require.NoError(t, err)
	drawn := commandRunner{}.runCommand(t, "graph", "draw", demoGraph, "-o", "svg")
	require.Equal(t, string(shown), drawn.out, "run `make drawings`")
}

func TestAPictureGoesToAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.png")
	c := commandRunner{isTerminal: true, columns: 80}
	r := c.runCommand(t, "graph", "draw", demoGraph, "-o", "png")
	require.Equal(t, 2, r.code)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "a PNG is not for a terminal")
	require.Contains(t, r.err, "--file graph.png")
	require.Equal(t, 2, commandRunner{columns: 80}.runCommand(t, "graph", "draw", demoGraph, "-o", "png").code, "only the output is a terminal")

	r = c.runCommand(t, "graph", "draw", demoGraph, "--file", file, "--theme", "dark")
	require.Equal(t, 0, r.code, r.err)
	require.Empty(t, r.out+r.err)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(written))
	require.NoError(t, err)

	r = c.runCommand(t, "graph", "draw", demoGraph, "--file", file, "-o", "text")
	require.Equal(t, 0, r.code, r.err)
	written, err = os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(written), "flowchart TD\n"), "-o decides, not the name")

	r = c.runCommand(t, "graph", "draw", demoGraph, "--file", filepath.Join(file, "graph.svg"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "graph.svg")
}

func TestOptionsOfPicturesAreChecked(t *testing.T) {
	for want, args := range map[string][]string{
		"-o gif: the formats are text, json, jsonl, svg and png": {"-o", "gif"},
		"--theme red: the themes are auto, light and dark":       {"-o", "svg", "--theme", "red"},
		"--theme is for pictures":                                {"--theme", "dark"},
		"graph draw: unexpected argument \"more\"":               {"more"},
	} {
		r := commandRunner{}.runCommand(t, append([]string{"graph", "draw", demoGraph}, args...)...)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.err, want)
	}
}

func TestAPNGSaysWhichLettersItLacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	require.NoError(t, os.WriteFile(file, []byte("graph: g\nchannels: {x: {}}\nnodes: {退款: {expr: {update: {x: '1'}}}}\nedges: [START -> 退款]\n"), 0o600))
	r := commandRunner{}.runCommand(t, "graph", "draw", file, "-o", "png")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.err, "退款")
	require.Empty(t, commandRunner{}.runCommand(t, "graph", "draw", file, "-o", "svg").err)
}

// arrows are from where to where, each once.
type arrows []string

func (a arrows) sort() []string {
	slices.Sort(a)
	return slices.Compact(a)
}

// readMermaid returns the edges of the text of Mermaid; those of a join lead from its sources to its
// target.
func readMermaid(t *testing.T, g *graph.Graph) []string {
	t.Helper()
	names := map[string]string{"START": graph.Start, "END": graph.End}
	for _, n := range g.Nodes[1:] {
		names[fmt.Sprintf("n%d", n.Index)] = n.Name
	}
	line := regexp.MustCompile(`^  (\w+) (---|-->|-\.->)(?:\|".*"\|)? (\w+)$`)
	sources := map[string][]string{} // of joins
	var all arrows
	for text := range strings.Lines(g.Mermaid()) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		switch {
		case m == nil:
		case m[2] == "---":
			sources[m[3]] = append(sources[m[3]], m[1])
		case sources[m[1]] != nil:
			for _, source := range sources[m[1]] {
				all = append(all, names[source]+" "+names[m[3]])
			}
		default:
			all = append(all, names[m[1]]+" "+names[m[3]])
		}
	}
	return all.sort()
}

// listDrawn returns the edges of the drawing.
func listDrawn(t *testing.T, g *graph.Graph) []string {
	t.Helper()
	limits := drawing.DefaultLimits()
	limits.Time = 10 * time.Minute
	d, err := drawing.LayoutGraph(t.Context(), wire.GraphToProto(runtime.GraphEntry{Graph: g}, true).GetSpec(), limits)
	require.NoError(t, err)
	require.Len(t, d.Nodes, len(g.Nodes)+1)
	var all arrows
	for _, e := range d.Edges {
		require.NotEmpty(t, e.Path)
		all = append(all, e.From+" "+e.To)
	}
	return all.sort()
}

// listGraphFiles lists the graph files of the repository.
func listGraphFiles(t *testing.T) []string {
	t.Helper()
	const root = "../.."
	var files []string
	for _, folder := range []string{"examples", "tests", "page/tests", "cmd/graphd/testdata"} {
		require.NoError(t, fs.WalkDir(os.DirFS(root), folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".yaml") {
				files = append(files, filepath.Join(root, path))
			}
			return err
		}))
	}
	return files
}

// A picture and the text of Mermaid show the same edges.
func TestPicturesHaveTheEdgesOfMermaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	require.NoError(t, os.WriteFile(file, []byte(everyEdge), 0o600))
	good, failures, err := checkFiles([]string{file}, nil)
	require.NoError(t, err)
	require.Empty(t, failures)
	others, _, err := checkFiles(listGraphFiles(t), nil)
	require.NoError(t, err)
	require.Greater(t, len(others), 20)
	for _, g := range append(good, others...) {
		if len(g.Nodes) <= 100 {
			require.Equal(t, readMermaid(t, g), listDrawn(t, g), g.Name)
		}
	}
	require.Len(t, readMermaid(t, good[0]), 38)
}

// everyEdge has each way in which a node leads to another one, or to the end.
const everyEdge = `
graph: every-edge
channels: {x: {}}
nodes:
  a: {expr: {update: {x: '1'}}}
  b: {expr: {update: {x: '1'}, goto: "'a'"}}
  c: {expr: {update: {x: '1'}}, destinations: [a, END]}
  d: {ask: {value: state.x, update: {x: answer}}}
  e: {ask: {value: state.x, goto: "'a'"}}
  f: {remote: {}}
  g: {remote: {}, destinations: [b]}
  h: {expr: {update: {x: '1'}}, error_handler: i}
  i: {expr: {update: {x: '1'}}}
  j: {expr: {update: {x: '1'}}}
defaults: {error_handler: j}
edges:
  - START -> a
  - START -> h
  - [a, h] -> d
  - [a, d] -> END
  - a -> a
  - d -> e
  - d -> f
conditional_edges:
  - {from: a, cases: [{when: state.x > 1, to: [b, c]}, {when: state.x > 0, to: b}, {to: END}]}
  - {from: h, expr: "'k'", paths: {k: g, again: h, over: END}}
  - {from: i, expr: "'a'", then: [a, c]}
  - {from: j, expr: "'a'"}
`

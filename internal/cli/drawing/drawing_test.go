package drawing_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/drawing"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

var updateGolden = flag.Bool("update-golden", false, "write testdata/*.svg instead of comparing them")

// patient are the limits of tests that must not fail on a slow machine.
func patient() drawing.Limits {
	l := drawing.DefaultLimits()
	l.Time = 10 * time.Minute
	return l
}

func askNode(name string) *graphdv1.NodeSpec {
	return &graphdv1.NodeSpec{Name: name, Kind: &graphdv1.NodeSpec_Ask{Ask: &graphdv1.AskSpec{}}}
}

func exprNode(name string) *graphdv1.NodeSpec {
	return &graphdv1.NodeSpec{Name: name, Kind: &graphdv1.NodeSpec_Expr{Expr: &graphdv1.ExprSpec{}}}
}

func edge(target string, sources ...string) *graphdv1.EdgeSpec {
	return &graphdv1.EdgeSpec{Sources: sources, Target: target}
}

// variedSpec has every kind of nodes and edges.
func variedSpec() *graphdv1.GraphSpec {
	retried := exprNode("pay_out")
	retried.Policy = &graphdv1.PolicySpec{ErrorHandler: "human_review"}
	return &graphdv1.GraphSpec{
		Name: "varied",
		Nodes: []*graphdv1.NodeSpec{
			exprNode("analyze"), askNode("human_review"), retried,
			{Name: "fetch_order", Kind: &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{}}, Destinations: []string{"human_review"}},
			{Name: "fetch_customer", Kind: &graphdv1.NodeSpec_Graph{Graph: &graphdv1.SubgraphSpec{}}},
			{Name: "a_name_that_is_longer_than_any_node_in_a_drawing", Kind: &graphdv1.NodeSpec_Function{Function: &graphdv1.FunctionSpec{}}},
		},
		Edges: []*graphdv1.EdgeSpec{
			edge("analyze", "__start__"), edge("fetch_order", "analyze"), edge("fetch_customer", "analyze"),
			edge("human_review", "fetch_order", "fetch_customer"), edge("a_name_that_is_longer_than_any_node_in_a_drawing", "pay_out"),
		},
		Branches: []*graphdv1.BranchSpec{{
			Source: "human_review", Decision: &graphdv1.BranchSpec_Cases{Cases: &graphdv1.Cases{Cases: []*graphdv1.Case{
				{Condition: "state.x < 1 && state.name == '退款'", Targets: []string{"pay_out", "__end__"}}, {Targets: []string{"human_review"}},
			}}},
		}},
	}
}

func drawWith(t *testing.T, r drawing.Request) drawing.Picture {
	t.Helper()
	if r.Theme == "" {
		r.Theme = drawing.Auto
	}
	r.Limits = patient()
	picture, err := drawing.DrawGraph(t.Context(), r)
	require.NoError(t, err)
	return picture
}

func TestSVGIsWhatItWas(t *testing.T) {
	const golden = "testdata/varied.svg"
	got := drawWith(t, drawing.Request{Spec: variedSpec(), Format: drawing.SVG})
	if *updateGolden {
		require.NoError(t, os.WriteFile(golden, got.Data, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got.Data), "look at it in a browser; -args -update-golden takes it over")
}

func TestSVGIsOneOfTheTheme(t *testing.T) {
	for theme, want := range map[drawing.Theme][]string{
		drawing.Auto: {"prefers-color-scheme:dark", `fill="#f7f7f8"`}, drawing.Light: {`fill="#f7f7f8"`}, drawing.Dark: {`fill="#0c0d10"`},
	} {
		svg := string(drawWith(t, drawing.Request{Spec: variedSpec(), Format: drawing.SVG, Theme: theme}).Data)
		for _, part := range want {
			require.Contains(t, svg, part)
		}
		require.Equal(t, theme == drawing.Auto, strings.Contains(svg, "<style>"), theme)
	}
	_, err := drawing.DrawGraph(t.Context(), drawing.Request{Spec: variedSpec(), Format: drawing.SVG, Theme: "red", Limits: patient()})
	var usage *exit.UsageError
	require.ErrorAs(t, err, &usage)
}

func TestHostileNamesAreText(t *testing.T) {
	names := []string{
		"<script>alert(1)</script>", "\u202egnp.exe", "]]>\"'&lt;", "a\nb\x00\x1b[2J", "\U000e0041\u200b", "</title><a href='https://example.com'>", "__proto__", "constructor",
	}
	spec := &graphdv1.GraphSpec{Name: "<script>\u202e"}
	paths := map[string]string{}
	for _, name := range names {
		spec.Nodes = append(spec.Nodes, exprNode(name))
		paths["to "+name] = name
	}
	spec.Branches = []*graphdv1.BranchSpec{{Source: "__start__", Decision: &graphdv1.BranchSpec_Expr{Expr: "x"}, Paths: paths}}
	svg := drawWith(t, drawing.Request{Spec: spec, Format: drawing.SVG}).Data

	known := map[string]bool{"svg": true, "title": true, "desc": true, "style": true, "rect": true, "path": true, "text": true}
	var shown []string
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			require.True(t, known[token.Name.Local], token.Name.Local)
			for _, a := range token.Attr {
				require.NotContains(t, []string{"href", "onload", "onclick", "src"}, a.Name.Local)
			}
		case xml.CharData:
			shown = append(shown, string(token))
		}
	}
	all := strings.Join(shown, "|")
	for _, part := range []string{"<script>alert(1)</script>", `\u{202e}gnp.exe`, `to \u{202e}gnp.exe`, `a\u{a}b\u{0}\u{1b}[2J`, `\u{e0041}\u{200b}`, `Graph <script>\u{202e}`, "__proto__"} {
		require.Contains(t, all, part)
	}
	for _, r := range string(svg) {
		require.True(t, r == '\n' || unicode.IsGraphic(r), "%U", r)
	}
}

func decodePNG(t *testing.T, r drawing.Request) image.Image {
	t.Helper()
	r.Format = drawing.PNG
	decoded, err := png.Decode(bytes.NewReader(drawWith(t, r).Data))
	require.NoError(t, err)
	return decoded
}

func TestPNGHasTwoPixelsForEach(t *testing.T) {
	d, err := drawing.LayoutGraph(t.Context(), variedSpec(), patient())
	require.NoError(t, err)
	for theme, want := range map[drawing.Theme]struct{ ground, panel, accent color.RGBA }{
		drawing.Auto: {color.RGBA{0xf7, 0xf7, 0xf8, 0xff}, color.RGBA{0xff, 0xff, 0xff, 0xff}, color.RGBA{0x5b, 0x5b, 0xd6, 0xff}},
		drawing.Dark: {color.RGBA{0x0c, 0x0d, 0x10, 0xff}, color.RGBA{0x16, 0x18, 0x1d, 0xff}, color.RGBA{0x7d, 0x7d, 0xff, 0xff}},
	} {
		picture := decodePNG(t, drawing.Request{Spec: variedSpec(), Theme: theme})
		require.Equal(t, image.Rect(0, 0, int(2*d.Width), int(2*d.Height)), picture.Bounds())
		at := func(x, y float64) color.Color { return color.RGBAModel.Convert(picture.At(int(2*x), int(2*y))) }
		require.Equal(t, color.RGBA{}, at(0, 0), "the corner is round")
		require.Equal(t, want.ground, at(3, d.Height-12))
		for _, n := range d.Nodes {
			require.Equal(t, want.panel, at(n.X+n.Width/2-12, n.Y+n.Height/2-4), n.Name)
			if n.Kind == "ask" {
				require.Equal(t, want.accent, at(n.X, n.Y+n.Height/2), "the border of a node that asks people")
			}
		}
		require.NotEqual(t, want.ground, at(d.Joins[0].X, d.Joins[0].Y), "the bar of the join")
	}
}

// What the layout says is where the edges are painted.
func TestPNGHasTheEdges(t *testing.T) {
	spec := &graphdv1.GraphSpec{Nodes: []*graphdv1.NodeSpec{exprNode("a"), exprNode("b")}, Edges: []*graphdv1.EdgeSpec{edge("a", "__start__"), edge("b", "a")}}
	d, err := drawing.LayoutGraph(t.Context(), spec, patient())
	require.NoError(t, err)
	picture := decodePNG(t, drawing.Request{Spec: spec})
	between := (d.Nodes[1].Y + d.Nodes[2].Y) / 2
	line := color.RGBAModel.Convert(picture.At(int(2*d.Nodes[1].X), int(2*between)))
	require.Equal(t, color.RGBA{0xa3, 0xa7, 0xb4, 0xff}, line)
	require.NotEqual(t, line, color.RGBAModel.Convert(picture.At(int(2*d.Nodes[1].X)+20, int(2*between))))
}

func TestPNGSaysWhichLettersItLacks(t *testing.T) {
	spec := &graphdv1.GraphSpec{Nodes: []*graphdv1.NodeSpec{exprNode("退款 Müller Ωж")}}
	require.Equal(t, "退款", drawWith(t, drawing.Request{Spec: spec, Format: drawing.PNG}).Lacking)
	require.Empty(t, drawWith(t, drawing.Request{Spec: variedSpec(), Format: drawing.SVG}).Lacking)
}

// longSpec is a chain with edges that skip a few nodes.
func longSpec(nodes int) *graphdv1.GraphSpec {
	name := func(i int) string { return fmt.Sprintf("node_%d", i) }
	spec := &graphdv1.GraphSpec{Name: "long", Edges: []*graphdv1.EdgeSpec{edge(name(0), "__start__")}}
	for i := range nodes {
		spec.Nodes = append(spec.Nodes, exprNode(name(i)))
		if i > 0 {
			spec.Edges = append(spec.Edges, edge(name(i), name(i-1)))
		}
		if i%3 == 2 {
			spec.Edges = append(spec.Edges, edge(name(i), name(i-2)))
		}
	}
	return spec
}

func TestThreeHundredNodesAreDrawn(t *testing.T) {
	require.Equal(t, 300, strings.Count(string(drawWith(t, drawing.Request{Spec: longSpec(300), Format: drawing.SVG}).Data), "<title>node_"))
}

func BenchmarkThreeHundredNodes(b *testing.B) {
	for b.Loop() {
		_, err := drawing.LayoutGraph(b.Context(), longSpec(300), drawing.DefaultLimits())
		require.NoError(b, err)
	}
}

func TestWhatCostsTooMuchIsRefused(t *testing.T) {
	for limit, narrow := range map[string]func(l *drawing.Limits){
		"10ms":                           func(l *drawing.Limits) { l.Time = 10 * time.Millisecond },
		"0 MiB of memory":                func(l *drawing.Limits) { l.Memory = 0 },
		"100 calls inside of each other": func(l *drawing.Limits) { l.Calls = 100 },
	} {
		limits := patient()
		narrow(&limits)
		_, err := drawing.DrawGraph(t.Context(), drawing.Request{Spec: longSpec(1000), Format: drawing.SVG, Theme: drawing.Auto, Limits: limits})
		var large *drawing.LimitError
		require.ErrorAs(t, err, &large)
		require.Equal(t, "the graph is too large to draw: the layout of its 1000 nodes needs more than "+limit, err.Error())
		var hint *exit.HintError
		require.ErrorAs(t, err, &hint)
		require.Contains(t, hint.Hint, "-o text")
	}
}

func TestALayoutEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := drawing.LayoutGraph(ctx, longSpec(1000), patient())
	require.ErrorIs(t, err, context.Canceled)
}

func TestAPNGHasABound(t *testing.T) {
	d := &drawing.Drawing{Width: 20_000, Height: 20_000}
	_, _, err := d.EncodePNG(t.Context(), drawing.Light)
	require.EqualError(t, err, "the graph is too large for a PNG: it would have 40000 × 40000 pixels, and may have 64 million")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = (&drawing.Drawing{Width: 10, Height: 10}).EncodePNG(ctx, drawing.Light)
	require.ErrorIs(t, err, context.Canceled)
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/drawing"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

func (p *program) graphDrawCommand() *cobra.Command {
	d := drawCommand{program: p}
	cmd := &cobra.Command{
		Use:   "draw NAME[@VERSION] | FILE",
		Short: "Draw a graph of the server, or of a file, as Mermaid, SVG or PNG",
		Long: `Draw a graph of the server, or of a file, as text for Mermaid, or as a picture: with -o svg or -o png, or when the name
of --file ends in .svg or .png. Dashed edges are taken when a condition, an error or the node itself says so. The
edges of a join meet in a bar. An SVG is light or dark as its reader prefers, needs no other file, and has all
letters. A PNG has the letters of Latin, Greek and Cyrillic.`,
		Example: `  graphd graph draw refund-review
  graphd graph draw refund-review.yaml --file refund-review.svg
  graphd graph draw refund-review -o png --theme dark > refund-review.png`,
		Args: exactArgs("NAME or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return d.drawGraph(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&d.format, "output", "o", string(output.Text), "text (Mermaid), svg, png, or json and jsonl with the Mermaid in it")
	f.StringVar(&d.file, "file", "", "write to this `FILE` instead of standard output")
	f.StringVar(&d.theme, "theme", string(drawing.Auto), "colours of a picture: auto, light or dark; a PNG is light with auto")
	return cmd
}

// drawCommand has the options of graph draw.
type drawCommand struct {
	*program

	format, file, theme string
}

func (d *drawCommand) drawGraph(cmd *cobra.Command, name string) error {
	if ending := strings.TrimPrefix(filepath.Ext(d.file), "."); drawing.IsFormat(ending) && !cmd.Flags().Changed("output") {
		d.format = ending
	}
	isPicture := drawing.IsFormat(d.format)
	switch {
	case !isPicture && cmd.Flags().Changed("theme"):
		return exit.Usagef("--theme is for pictures").WithHint("add -o svg or -o png")
	case isPicture:
	case d.format == string(output.Text) || d.format == string(output.JSON) || d.format == string(output.JSONL):
		d.outputFormat = d.format
	default:
		return exit.Usagef("-o %s: the formats are text, json, jsonl, svg and png", d.format)
	}
	if d.format == string(drawing.PNG) && d.file == "" && (d.IsTerminal || d.Columns > 0) {
		return exit.Usagef("a PNG is not for a terminal").WithHint("add --file %s.png, or > %[1]s.png", "graph")
	}
	return d.withSession(func(s *cli.Session) error {
		g, err := compileForDrawing(cmd.Context(), s, name)
		if err != nil {
			return err
		}
		if isPicture {
			return d.writePicture(cmd.Context(), s, g)
		}
		return d.writeTo(s, func() error { return writeMermaid(s, g) })
	})
}

// writePicture draws the graph.
func (d *drawCommand) writePicture(ctx context.Context, s *cli.Session, g *graph.Graph) error {
	picture, err := drawing.DrawGraph(ctx, drawing.Request{
		Spec: wire.GraphToProto(runtime.GraphEntry{Graph: g}, true).GetSpec(), Format: drawing.Format(d.format), Theme: drawing.Theme(d.theme),
		Limits: drawing.DefaultLimits(),
	})
	if err != nil {
		return err
	}
	if picture.Lacking != "" {
		s.PrintNote("note: a PNG has no letters like %s, and shows boxes; -o svg has them", picture.Lacking)
	}
	return d.writeTo(s, func() error { return output.WriteBytes(s.Out, picture.Data) })
}

// writeTo has write write to the file of --file, if there is one.
func (d *drawCommand) writeTo(s *cli.Session, write func() error) error {
	if d.file == "" {
		return write()
	}
	file, err := os.Create(d.file)
	if err != nil {
		return err
	}
	s.Out = file
	err = write()
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

func writeMermaid(s *cli.Session, g *graph.Graph) error {
	if s.Format == output.Text {
		return output.WriteDocument(s.Out, g.Mermaid())
	}
	return output.WriteValue(s.Out, s.Format, map[string]string{"graph": g.Name, "version": g.Version, "mermaid": g.Mermaid()})
}

// compileForDrawing compiles the graph to draw. It fetches subgraphs from the
// server.
func compileForDrawing(ctx context.Context, s *cli.Session, name string) (*graph.Graph, error) {
	env, err := server.NewCompileEnv(schema.New(schema.Limits{}), expr.Options{})
	if err != nil {
		return nil, err
	}
	env.Lookup = func(name, version string) (*graph.Graph, bool) {
		if version != "" {
			name += "@" + version
		}
		g, err := fetchGraph(ctx, s, name, env)
		return g, err == nil
	}
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return fetchGraph(ctx, s, name, env)
	}
	file, err := graphfile.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return file.Compile(env)
}

func fetchGraph(ctx context.Context, s *cli.Session, name string, env graph.Env) (*graph.Graph, error) {
	g, err := s.FetchGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	spec, err := wire.ReadSpec(g.GetSpec())
	if err != nil {
		return nil, err
	}
	return graph.Compile(spec, env)
}

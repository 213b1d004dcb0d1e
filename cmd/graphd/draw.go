package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

func (p *program) graphDrawCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "draw NAME[@VERSION] | FILE",
		Short: "Draw a graph of the server, or of a file, as Mermaid",
		Args:  exactArgs("NAME or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(func(s *cli.Session) error {
				g, err := compileForDrawing(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if s.Format == output.Text {
					return output.WriteDocument(p.Out, g.Mermaid())
				}
				return output.WriteValue(p.Out, s.Format, map[string]string{"graph": g.Name, "version": g.Version, "mermaid": g.Mermaid()})
			})
		},
	}
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

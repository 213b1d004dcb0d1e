package cli

import (
	"context"
	"os"
	"path/filepath"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// ListGraphs lists the graphs of the server. Errors: gRPC statuses, and those of
// the output.
func (s *Session) ListGraphs(ctx context.Context) error {
	all, err := client.CollectPages(0, func(token string, size int32) ([]*graphdv1.Graph, string, error) {
		resp, err := s.Registry.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: size, PageToken: token})
		return resp.GetGraphs(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return output.ShowList(&s.Output, &graphdv1.ListGraphsResponse{Graphs: all}, all)
	}
	p := s.NewPrinter()
	rows := [][]string{{"GRAPH", "VERSION", "VERSIONS", "DESCRIPTION"}}
	for _, g := range all {
		rows = append(rows, []string{
			g.GetGraph(), g.GetVersion(), output.FormatInteger(len(g.GetVersions())), g.GetDescription(),
		})
	}
	p.PrintTable(rows)
	return p.WriteError()
}

// ShowGraph shows a graph, NAME or NAME@VERSION. Errors: gRPC statuses, and those
// of the output.
func (s *Session) ShowGraph(ctx context.Context, name string) error {
	g, err := s.FetchGraph(ctx, name)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(g)
	}
	p := s.NewPrinter()
	p.PrintLine("%s  version %s", p.Colorize(output.Bold, g.GetGraph()), g.GetVersion())
	if g.GetDescription() != "" {
		p.PrintLine("%s", g.GetDescription())
	}
	p.PrintLine("")
	rows := [][]string{{"NODE", "KIND", "DESCRIPTION"}}
	for _, n := range g.GetSpec().GetNodes() {
		rows = append(rows, []string{n.GetName(), nodeKindName(n), n.GetDescription()})
	}
	p.PrintTable(rows)
	p.PrintLine("")
	rows = [][]string{{"CHANNEL", "REDUCER", "DEFAULT"}}
	for _, c := range g.GetSpec().GetChannels() {
		reducer := c.GetReducer()
		if reducer == "" {
			reducer = "last"
		}
		rows = append(rows, []string{c.GetName(), reducer, output.OrDash(jsontext.CompactText(c.GetDefaultValue().GetJson()))})
	}
	p.PrintTable(rows)
	if g.GetInputSchema() != nil {
		p.PrintLine("")
		p.PrintLine("input  %s", form.ParseSchema(g.GetInputSchema().GetJson()).DescribeAnswer())
	}
	return p.WriteError()
}

func nodeKindName(n *graphdv1.NodeSpec) string {
	switch k := n.GetKind().(type) {
	case *graphdv1.NodeSpec_Function:
		return "function"
	case *graphdv1.NodeSpec_Expr:
		return "expr"
	case *graphdv1.NodeSpec_Ask:
		return "ask"
	case *graphdv1.NodeSpec_Graph:
		return "graph " + k.Graph.GetGraph()
	case *graphdv1.NodeSpec_Remote:
		return "remote"
	}
	return "-"
}

// PutGraph sends a graph file to the server, which checks and stores it. Errors:
// those of os.ReadFile, gRPC statuses, and those of the output.
func (s *Session) PutGraph(ctx context.Context, path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	g, err := s.PutGraphDocument(ctx, filepath.Base(path), string(text))
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(g)
	}
	p := s.NewPrinter()
	p.PrintLine("%s  version %s", g.GetGraph(), g.GetVersion())
	return p.WriteError()
}

// DeleteGraph deletes a version of a graph, or all for an empty version. Errors:
// gRPC statuses, and those of the output.
func (s *Session) DeleteGraph(ctx context.Context, name, version string, force bool) error {
	if at, found := argument.SplitGraphName(name); found != "" && version == "" {
		name, version = at, found
	}
	var gone *graphdv1.DeleteGraphResponse
	var err error
	if version == "" {
		gone, err = s.Registry.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: name, Force: force})
	} else {
		gone, err = s.Registry.DeleteGraphVersion(ctx, &graphdv1.DeleteGraphVersionRequest{Graph: name, Version: version, Force: force})
	}
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(gone)
	}
	p := s.NewPrinter()
	for _, v := range gone.GetVersions() {
		p.PrintLine("%s  version %s  deleted", name, v)
	}
	return p.WriteError()
}

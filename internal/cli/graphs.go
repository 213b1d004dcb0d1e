package cli

import (
	"context"
	"os"
	"path/filepath"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// ListGraphs lists the graphs of the server.
func (s *Session) ListGraphs(ctx context.Context) error {
	all, err := collectPages(0, func(token string, size int32) ([]*graphdv1.Graph, string, error) {
		resp, err := s.Registry.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: size, PageToken: token})
		return resp.GetGraphs(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if s.Format != Text {
		return showList(&s.Output, &graphdv1.ListGraphsResponse{Graphs: all}, all)
	}
	p := s.newPrinter()
	rows := [][]string{{"GRAPH", "VERSION", "VERSIONS", "DESCRIPTION"}}
	for _, g := range all {
		rows = append(rows, []string{
			g.GetGraph(), g.GetVersion(), formatInteger(len(g.GetVersions())), g.GetDescription(),
		})
	}
	p.printTable(rows)
	return p.writeError()
}

// ShowGraph shows one graph, NAME or NAME@VERSION.
func (s *Session) ShowGraph(ctx context.Context, name string) error {
	g, err := s.FetchGraph(ctx, name)
	if err != nil {
		return err
	}
	if s.Format != Text {
		return s.showMessage(g)
	}
	p := s.newPrinter()
	p.printLine("%s  version %s", p.colorize(bold, g.GetGraph()), g.GetVersion())
	if g.GetDescription() != "" {
		p.printLine("%s", g.GetDescription())
	}
	p.printLine("")
	rows := [][]string{{"NODE", "KIND", "DESCRIPTION"}}
	for _, n := range g.GetSpec().GetNodes() {
		rows = append(rows, []string{n.GetName(), nodeKindName(n), n.GetDescription()})
	}
	p.printTable(rows)
	p.printLine("")
	rows = [][]string{{"CHANNEL", "REDUCER", "DEFAULT"}}
	for _, c := range g.GetSpec().GetChannels() {
		reducer := c.GetReducer()
		if reducer == "" {
			reducer = "last"
		}
		rows = append(rows, []string{c.GetName(), reducer, orDash(Compact(c.GetDefaultValue().GetJson()))})
	}
	p.printTable(rows)
	if g.GetInputSchema() != nil {
		p.printLine("")
		p.printLine("input  %s", parseForm(g.GetInputSchema().GetJson()).describeAnswer())
	}
	return p.writeError()
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

// PutGraph sends a graph file to the server, which checks and keeps it.
func (s *Session) PutGraph(ctx context.Context, path string) error {
	text, err := os.ReadFile(path) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	g, err := s.putGraphDocument(ctx, filepath.Base(path), string(text))
	if err != nil {
		return err
	}
	if s.Format != Text {
		return s.showMessage(g)
	}
	p := s.newPrinter()
	p.printLine("%s  version %s", g.GetGraph(), g.GetVersion())
	return p.writeError()
}

// DeleteGraph deletes a version of a graph, or all for an empty version.
func (s *Session) DeleteGraph(ctx context.Context, name, version string, force bool) error {
	if at, found := splitGraphName(name); found != "" && version == "" {
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
	if s.Format != Text {
		return s.showMessage(gone)
	}
	p := s.newPrinter()
	for _, v := range gone.GetVersions() {
		p.printLine("%s  version %s  deleted", name, v)
	}
	return p.writeError()
}


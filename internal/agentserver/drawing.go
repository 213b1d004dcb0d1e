package agentserver

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// drawing is a graph as it is drawn.
type drawing struct {
	Nodes []drawnNode `json:"nodes"`
	Edges []drawnEdge `json:"edges"`
}

type drawnNode struct {
	ID   string    `json:"id"`
	Type string    `json:"type"`
	Data drawnData `json:"data"`
}

type drawnData struct {
	Name string `json:"name"`
}

type drawnEdge struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Data        string `json:"data,omitempty"`
	Conditional bool   `json:"conditional,omitempty"`
}

// The nodes at which graphs begin and end.
const (
	startNode = "__start__"
	endNode   = "__end__"
)

// getAssistantGraph answers GET /assistants/{id}/graph.
func getAssistantGraph(c *call) error {
	depth, err := c.queryXray()
	if err != nil {
		return err
	}
	g, err := c.readGraph(graphdv1.GraphView_GRAPH_VIEW_FULL)
	if err != nil {
		return err
	}
	d := drawing{Nodes: []drawnNode{}, Edges: []drawnEdge{}}
	if err := c.drawGraph(&d, g.GetSpec(), "", depth); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, d)
}

// queryXray reads how many levels of subgraphs are to be drawn: a number, or true for all.
func (c *call) queryXray() (int, error) {
	if given := c.r.URL.Query().Get("xray"); given != "" {
		if n, err := strconv.Atoi(given); err == nil && n >= 0 {
			return min(n, deepestSubgraph), nil
		}
	}
	isDeep, err := c.queryFlag("xray")
	if isDeep {
		return deepestSubgraph, err
	}
	return 0, err
}

// drawGraph adds a graph to a drawing. The nodes of a graph that is a node have names "outer:inner".
func (c *call) drawGraph(d *drawing, g *graphdv1.GraphSpec, prefix string, depth int) error {
	d.addNode(prefix, startNode)
	expanded := map[string]bool{}
	for _, node := range g.GetNodes() {
		named := node.GetGraph()
		if named == nil || depth == 0 {
			d.addNode(prefix, node.GetName())
			continue
		}
		below, err := c.registry.GetGraph(c.ctx, &graphdv1.GetGraphRequest{Graph: named.GetGraph(), Version: named.GetVersion(), View: graphdv1.GraphView_GRAPH_VIEW_FULL})
		if err != nil {
			return err
		}
		expanded[node.GetName()] = true
		if err := c.drawGraph(d, below.GetSpec(), prefix+node.GetName()+":", depth-1); err != nil {
			return err
		}
	}
	d.addNode(prefix, endNode)
	for _, e := range listEdges(g) {
		if expanded[e.Source] {
			e.Source += ":" + endNode
		}
		if expanded[e.Target] {
			e.Target += ":" + startNode
		}
		e.Source, e.Target = prefix+e.Source, prefix+e.Target
		d.Edges = append(d.Edges, e)
	}
	return nil
}

func (d *drawing) addNode(prefix, name string) {
	d.Nodes = append(d.Nodes, drawnNode{ID: prefix + name, Type: "runnable", Data: drawnData{Name: name}})
}

// listEdges lists the edges of a graph, and where its nodes may go besides.
func listEdges(g *graphdv1.GraphSpec) []drawnEdge {
	var list []drawnEdge
	for _, e := range g.GetEdges() {
		for _, source := range e.GetSources() {
			list = append(list, drawnEdge{Source: source, Target: e.GetTarget()})
		}
	}
	for _, b := range g.GetBranches() {
		for label, target := range branchTargets(b) {
			list = append(list, drawnEdge{Source: b.GetSource(), Target: target, Data: label, Conditional: true})
		}
	}
	for _, node := range g.GetNodes() {
		for _, target := range node.GetDestinations() {
			list = append(list, drawnEdge{Source: node.GetName(), Target: target, Conditional: true})
		}
	}
	return list
}

// branchTargets yields the nodes to which a branch leads, with what it calls them.
func branchTargets(b *graphdv1.BranchSpec) func(yield func(label, target string) bool) {
	return func(yield func(label, target string) bool) {
		for _, label := range slices.Sorted(maps.Keys(b.GetPaths())) {
			if !yield(label, b.GetPaths()[label]) {
				return
			}
		}
		targets := slices.Clone(b.GetTargets())
		for _, one := range b.GetCases().GetCases() {
			targets = append(targets, one.GetTargets()...)
		}
		for _, target := range targets {
			if !yield("", target) {
				return
			}
		}
	}
}

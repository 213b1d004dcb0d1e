package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Graph is a graph that a [Builder] describes: the document that a server takes, and the functions
// that it names.
type Graph struct {
	name      string
	document  document
	functions Functions
	reducers  map[string]Reduce
	subgraphs []*Graph
	problems  []Problem
	builder   *Builder // of this graph
}

// Name returns the name of the graph.
func (g *Graph) Name() string { return g.name }

// Subgraphs returns the graphs that nodes of this one run, each once.
func (g *Graph) Subgraphs() []*Graph { return slices.Clone(g.subgraphs) }

// Functions returns the functions of nodes and routes, by the names that the document has for them.
func (g *Graph) Functions() Functions { return maps.Clone(g.functions) }

// Nodes returns the functions of nodes, by the names of the nodes.
func (g *Graph) Nodes() Functions {
	nodes := make(Functions)
	for name, n := range g.document.Nodes {
		if n.Function != "" {
			nodes[name] = g.functions[n.Function]
		}
	}
	return nodes
}

// Reducers returns the reducers in Go, by the names that the document has for them.
func (g *Graph) Reducers() map[string]Reduce { return maps.Clone(g.reducers) }

// Place says who runs the functions of a graph.
type Place int

const (
	// InProcess is the process that has the server in it.
	InProcess Place = iota
	// InWorker is a worker of the server.
	InWorker
)

// Document returns the graph as a file in JSON, as docs/graphs.md describes it.
func (g *Graph) Document(where Place) ([]byte, error) {
	d := g.document
	d.Nodes = maps.Clone(d.Nodes)
	for name, n := range d.Nodes {
		switch {
		case n.Graph != "":
		case where == InWorker:
			n.Remote, n.Function = &struct{}{}, ""
		}
		d.Nodes[name] = n
	}
	d.Routes = slices.Clone(d.Routes)
	for i := range d.Routes {
		d.Routes[i].InWorker = where == InWorker
	}
	return json.MarshalIndent(d, "", "  ")
}

// document is a graph file. Names of channels and nodes are sorted: their order means nothing.
type document struct {
	Graph           string                     `json:"graph"`
	Description     string                     `json:"description,omitempty"`
	Strict          bool                       `json:"strict,omitempty"`
	Channels        map[string]channelDocument `json:"channels"`
	Nodes           map[string]nodeDocument    `json:"nodes"`
	Edges           []edgeDocument             `json:"edges,omitempty"`
	Routes          []routeDocument            `json:"conditional_edges,omitempty"`
	InterruptBefore []string                   `json:"interrupt_before,omitempty"`
	InterruptAfter  []string                   `json:"interrupt_after,omitempty"`
	StepLimit       int                        `json:"step_limit,omitempty"`
}

type channelDocument struct {
	Reducer  string          `json:"reducer,omitempty"`
	Function string          `json:"function,omitempty"`
	Default  json.RawMessage `json:"default,omitempty"`
}

type nodeDocument struct {
	Description  string          `json:"description,omitempty"`
	Function     string          `json:"function,omitempty"`
	Remote       *struct{}       `json:"remote,omitempty"`
	Graph        string          `json:"graph,omitempty"`
	Reads        []string        `json:"reads,omitempty"`
	Defer        bool            `json:"defer,omitempty"`
	Destinations []string        `json:"destinations,omitempty"`
	Timeout      string          `json:"timeout,omitempty"`
	IdleTimeout  string          `json:"idle_timeout,omitempty"`
	Retry        []retryDocument `json:"retry,omitempty"`
	ErrorHandler string          `json:"error_handler,omitempty"`
}

type retryDocument struct {
	MaxAttempts     int      `json:"max_attempts,omitempty"`
	InitialInterval string   `json:"initial_interval,omitempty"`
	Backoff         float64  `json:"backoff,omitempty"`
	MaxInterval     string   `json:"max_interval,omitempty"`
	NoJitter        bool     `json:"no_jitter,omitempty"`
	On              []string `json:"on,omitempty"`
}

type edgeDocument struct {
	From []string `json:"from"`
	To   string   `json:"to"`
}

type routeDocument struct {
	From     string   `json:"from"`
	Router   string   `json:"router"`
	InWorker bool     `json:"in_worker,omitempty"`
	Then     []string `json:"then,omitempty"`
}

// newGraph makes the graph of a builder, which is the last of those around it. The errors are those of
// subgraphs.
func newGraph(b *Builder, around []*Builder) (g *Graph, subgraphErrors []error) {
	g = &Graph{name: b.name, builder: b, functions: make(Functions), reducers: make(map[string]Reduce)}
	g.document = document{
		Graph: b.name, Description: b.description, Strict: b.isStrict, Channels: make(map[string]channelDocument), Nodes: make(map[string]nodeDocument),
		InterruptBefore: b.before, InterruptAfter: b.after, StepLimit: b.stepLimit,
	}
	for i := range b.channels {
		g.addChannel(&b.channels[i])
	}
	for i := range b.nodes {
		subgraphErrors = append(subgraphErrors, g.addNode(&b.nodes[i], around))
	}
	for _, e := range b.edges {
		g.document.Edges = append(g.document.Edges, edgeDocument{e.from, e.to})
	}
	for i := range b.routes {
		r := &b.routes[i]
		function := g.functionName("route " + strconv.Itoa(i+1) + " from " + r.from)
		g.functions[function] = b.strictFunc(r.checkedFunc())
		g.document.Routes = append(g.document.Routes, routeDocument{From: r.from, Router: function, Then: r.to})
	}
	return g, subgraphErrors
}

// strictFunc returns a function of the graph.
func (b *Builder) strictFunc(f Func) Func {
	if b.isStrict {
		return Strict(f)
	}
	return f
}

// functionName returns how the document calls a function: functions of several graphs are in one
// process.
func (g *Graph) functionName(of string) string { return g.name + ": " + of }

func (g *Graph) addChannel(c *channel) {
	d := channelDocument{Reducer: c.reducer}
	if c.reduce != nil {
		if c.reducer != "" {
			g.addProblem("channels."+c.name, "has the reducer %q and a function: want one of them", c.reducer)
		}
		d.Reducer, d.Function = "remote", g.functionName("reducer of "+c.name)
		g.reducers[d.Function] = c.reduce
	}
	if c.hasStart {
		text, err := encodeJSON(c.initial)
		if err != nil {
			g.addProblem("channels."+c.name+".default", "can't be written as JSON: %v", err)
		}
		d.Default = text
	}
	g.document.Channels[c.name] = d
}

func (g *Graph) addProblem(field, format string, arguments ...any) {
	g.problems = append(g.problems, Problem{field, fmt.Sprintf(format, arguments...)})
}

// addNode adds a node of a builder, which is the last of those around it. The error is that of a
// subgraph.
func (g *Graph) addNode(n *node, around []*Builder) (subgraphError error) {
	p := &n.policy
	d := nodeDocument{
		Description: p.description, Reads: p.reads, Defer: p.waits, Destinations: p.destinations, ErrorHandler: p.errorHandler,
		Timeout: formatDuration(p.timeout), IdleTimeout: formatDuration(p.idleTimeout),
	}
	for _, r := range p.retries {
		d.Retry = append(d.Retry, retryDocument{
			r.MaxAttempts, formatDuration(r.InitialInterval), r.Backoff, formatDuration(r.MaxInterval), r.NoJitter, r.On,
		})
	}
	switch {
	case n.graph == nil:
		d.Function = g.functionName("node " + n.name)
		g.functions[d.Function] = g.builder.strictFunc(n.run)
	case slices.Contains(around, n.graph):
		g.addProblem("nodes."+n.name, "runs the graph %q, which contains this one: want a graph without it", n.graph.name)
		d.Graph = n.graph.name
	default:
		var sub *Graph
		sub, subgraphError = n.graph.buildWithin(around)
		d.Graph = sub.name
		g.addSubgraph(n.name, sub)
	}
	g.document.Nodes[n.name] = d
	return subgraphError
}

// addSubgraph adds a graph that a node runs.
func (g *Graph) addSubgraph(node string, sub *Graph) {
	for _, known := range g.subgraphs {
		if known.name != sub.name {
			continue
		}
		if known.builder != sub.builder {
			g.addProblem("nodes."+node, "runs another graph %q than a node before: want names that differ", sub.name)
		}
		return
	}
	g.subgraphs = append(g.subgraphs, sub)
}

// formatDuration writes a duration as graph files have it, "" = none.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

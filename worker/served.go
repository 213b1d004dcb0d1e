package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker/internal/document"
	"github.com/graphd-dev/graphd/worker/internal/task"
)

// served is what a worker serves.
type served struct {
	graphs []*graphdv1.GraphSpec // brought along, subgraphs first
	nodes  []*graphdv1.ServedNode
	code   map[string]*graphCode // by graph
}

// graphCode has the functions of one graph.
type graphCode struct {
	nodes, routers graph.Functions
	reducers       map[string]graph.Reduce
	state          task.StateForm
	document       string // "" = the server has it
}

func newServed(o *Options) (*served, error) {
	s := &served{code: make(map[string]*graphCode)}
	graphs, err := buildGraphs(o.Graphs)
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		if err := s.addGraph(g); err != nil {
			return nil, err
		}
	}
	for i := range o.Nodes {
		if err := s.addNodes(fmt.Sprintf("Nodes[%d]", i), &o.Nodes[i]); err != nil {
			return nil, err
		}
	}
	if len(s.code) == 0 {
		return nil, &OptionError{Field: "Graphs", Reason: "is empty, and Nodes too: want a graph to serve"}
	}
	return s, nil
}

// buildGraphs builds graphs. The error has all that is wrong with their descriptions.
func buildGraphs(builders []*graph.Builder) ([]*graph.Graph, error) {
	graphs := make([]*graph.Graph, 0, len(builders))
	var wrong []error
	for _, b := range builders {
		if b == nil {
			wrong = append(wrong, &OptionError{Field: "Graphs", Reason: "has a nil graph: want graphs of graph.New"})
			continue
		}
		g, err := b.Build()
		if err != nil {
			wrong = append(wrong, err)
		}
		graphs = append(graphs, g)
	}
	return graphs, joinErrors(wrong)
}

// joinErrors joins errors; one alone stays what it is.
func joinErrors(all []error) error {
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// addGraph adds a graph and, before it, its subgraphs.
func (s *served) addGraph(g *graph.Graph) error {
	text, err := g.Document(graph.InWorker)
	if err != nil {
		return fmt.Errorf("the graph %q: %w", g.Name(), err)
	}
	if known := s.code[g.Name()]; known != nil {
		if known.document != string(text) {
			return &OptionError{Field: "Graphs", Reason: fmt.Sprintf("has two graphs %q: want each name once, also among subgraphs", g.Name())}
		}
		return nil // the subgraph of several graphs
	}
	for _, sub := range g.Subgraphs() {
		if err := s.addGraph(sub); err != nil {
			return err
		}
	}
	d, err := document.Parse(text)
	if err != nil {
		return fmt.Errorf("the graph %q: %w", g.Name(), err)
	}
	s.bring(d, &graphCode{nodes: g.Nodes(), routers: g.Functions(), reducers: g.Reducers(), document: string(text)})
	return nil
}

// bring adds a graph that is brought along, and its functions.
func (s *served) bring(d *document.Document, c *graphCode) {
	s.graphs = append(s.graphs, d.Spec)
	if d.HasSingleValue {
		c.state = task.SingleValue
	}
	s.code[d.Name] = c
}

// addNodes adds functions of a graph file.
func (s *served) addNodes(field string, n *Nodes) error {
	if n.File != nil {
		return s.addFile(field, n)
	}
	if n.Graph == "" {
		return &OptionError{Field: field + ".Graph", Reason: "is empty: want the name of a graph of the server"}
	}
	if s.code[n.Graph] != nil {
		return &OptionError{Field: field + ".Graph", Reason: fmt.Sprintf("is %q, which is served already: want each graph once", n.Graph)}
	}
	if len(n.Functions)+len(n.Routers)+len(n.Reducers) == 0 {
		return &OptionError{Field: field + ".Functions", Reason: "is empty, and Routers and Reducers too: want functions of the graph"}
	}
	if err := n.checkFunctions(field); err != nil {
		return err
	}
	s.code[n.Graph] = &graphCode{
		nodes: maps.Clone(n.Functions), routers: maps.Clone(n.Routers), reducers: maps.Clone(n.Reducers), state: task.UnknownForm,
	}
	if len(n.Routers)+len(n.Reducers) > 0 {
		s.nodes = append(s.nodes, &graphdv1.ServedNode{Graph: n.Graph, GraphVersion: n.Version})
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.Functions)) {
		s.nodes = append(s.nodes, &graphdv1.ServedNode{Graph: n.Graph, GraphVersion: n.Version, Node: name})
	}
	return nil
}

// protocol is the version of the protocol of workers.
const protocol = 1

func (s *served) manifest(o *Options) *graphdv1.WorkerManifest {
	return &graphdv1.WorkerManifest{
		Deployment: o.Deployment, BuildId: o.BuildID, MinProtocol: protocol, MaxProtocol: protocol,
		Features: []string{"memo", "scopes", "drift", "batch"}, Nodes: s.nodes, Graphs: s.graphs,
	}
}

// find returns the code of a task.
func (s *served) find(a *graphdv1.TaskAssignment) (task.Code, bool) {
	c := s.code[a.GetGraph()]
	if c == nil {
		return task.Code{}, false
	}
	code := task.Code{State: c.state}
	switch a.GetKind() {
	case graphdv1.TaskKind_TASK_KIND_REDUCER:
		code.Reduce = c.reducers[a.GetFunction()]
	case graphdv1.TaskKind_TASK_KIND_ROUTER:
		code.Function = c.routers[a.GetFunction()]
	default:
		code.Function = c.nodes[a.GetNode()]
	}
	return code, code.Function != nil || code.Reduce != nil
}

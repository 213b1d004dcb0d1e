package graph

import "fmt"

// Limits bound the cost of a Spec to the compiler, the store and the runtime. A
// zero field is no limit.
type Limits struct {
	Nodes           int // of a Spec; state keys, too
	Bytes           int // of the Spec as JSON
	ExpressionBytes int // of all expressions of a Spec
	Depth           int // graphs in graphs, itself included
	Expanded        int // nodes of a graph and all graphs in it, as often as they are in it
}

// DefaultLimits returns the limits of a server without options.
func DefaultLimits() Limits {
	return Limits{Nodes: 1000, Bytes: 1 << 20, ExpressionBytes: 256 << 10, Depth: 16, Expanded: 10_000}
}

// exceedsLimits reports whether a Spec is beyond a limit that can be seen without
// compiling it.
func (b *builder) exceedsLimits() bool {
	l := b.env.Limits
	b.checkLimit("nodes", "nodes", "max-graph-nodes", len(b.spec.Nodes), l.Nodes)
	b.checkLimit("channels", "channels", "max-graph-nodes", len(b.spec.Channels), l.Nodes)
	b.checkLimit("nodes", "bytes of expressions", "max-graph-expression-bytes", b.spec.ExpressionBytes(), l.ExpressionBytes)
	if l.Bytes > 0 {
		b.checkLimit("", "bytes of JSON", "max-graph-bytes", len(EncodeSpec(b.spec)), l.Bytes)
	}
	return len(b.found) > 0
}

func (p *problemList) checkLimit(path, what, limit string, got, most int) {
	if most > 0 && got > most {
		p.addErrorProblem(path, ReasonLimitExceeded, "%v", &LimitError{
			Limit: limit, Max: int64(most), Needed: int64(got),
			Problem: fmt.Sprintf("the graph has %d %s; the limit is %d (%s)", got, what, most, limit),
		})
	}
}

// countExpanded counts the nodes and levels of the graphs in the graph. They are
// compiled and have their counts; none is walked through.
func (b *builder) countExpanded() {
	g := b.graph
	g.Depth, g.Expanded = 1, len(g.Nodes)-1
	for _, n := range g.Nodes {
		if n.Kind == KindFunction || n.Kind == KindRemote {
			g.mayCommandParent = true
		}
		if n.Sub == nil {
			continue
		}
		g.Depth = max(g.Depth, n.Sub.Depth+1)
		g.Expanded = min(g.Expanded+n.Sub.Expanded, maxExpanded)
		g.mayCommandParent = g.mayCommandParent || n.Sub.mayCommandParent
	}
	b.checkLimit("nodes", "graphs inside of one another", "max-graph-depth", g.Depth, b.env.Limits.Depth)
	b.checkLimit("nodes", "nodes, those of graphs in it included", "max-graph-expanded-nodes", g.Expanded, b.env.Limits.Expanded)
}

// maxExpanded is where counting stops, far from overflow.
const maxExpanded = 1 << 30

// ExpressionBytes returns the length of all expressions.
func (s *Spec) ExpressionBytes() int {
	bytes, _ := s.measureExpressions()
	return bytes
}

// measureExpressions sums up the expressions of a Spec.
func (s *Spec) measureExpressions() (bytes, count int) {
	add := func(sources ...string) {
		for _, source := range sources {
			if source != "" {
				bytes, count = bytes+len(source), count+1
			}
		}
	}
	assign := func(list []Assignment) {
		for i := range list {
			add(list[i].Expr)
		}
	}
	for i := range s.Nodes {
		if e := s.Nodes[i].Expr; e != nil {
			assign(e.Update)
			add(e.Goto)
		}
		if a := s.Nodes[i].Ask; a != nil {
			add(a.When, a.Value, a.Message, a.Goto, a.Assignees.Expr, a.TTLExpr, a.DefaultExpr)
			if p := a.People; p != nil {
				add(p.Users.Expr, p.Groups.Expr, p.Agree, p.Requester)
			}
			assign(a.Update)
			assign(a.Otherwise)
		}
	}
	for i := range s.Branches {
		add(s.Branches[i].Expr)
		for _, c := range s.Branches[i].Cases {
			add(c.When)
		}
	}
	return bytes, count
}

// Memory of a compiled graph, as measured by TestFootprint.
const (
	nodeBytes       = 2 << 10
	programBytes    = 6 << 10
	expressionBytes = 60 // for each byte of an expression
	specBytes       = 6  // for each byte of the Spec as JSON
)

// Footprint estimates the memory of a compiled graph, without the graphs that are in it.
func (g *Graph) Footprint(source int) int {
	bytes, count := g.Spec.measureExpressions()
	return nodeBytes*len(g.Nodes) + programBytes*count + expressionBytes*bytes + specBytes*source
}

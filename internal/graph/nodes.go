package graph

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Actions when nobody answers a question in time.
const (
	ExpiryFailNode      = "fail_node"
	ExpiryResumeDefault = "resume_default"
	ExpiryCancelRun     = "cancel_run"
)

// Persistence of a subgraph's state.
const (
	PersistenceInherit  = "inherit"
	PersistencePersist  = "persist"
	PersistenceDisabled = "disabled"
)

// declareNodes makes the nodes, so that what follows can refer to them.
func (b *builder) declareNodes() {
	start := &Node{Name: Start, Kind: KindStart}
	b.g.Nodes = []*Node{start}
	b.g.nodes[Start] = start
	for i := range b.spec.Nodes {
		spec := &b.spec.Nodes[i]
		path := "nodes." + spec.Name
		b.nodeName(path, spec.Name)
		if _, taken := b.g.nodes[spec.Name]; taken {
			if spec.Name != Start {
				b.add(path, ReasonDuplicateName, "node %q is declared twice", spec.Name)
			}
			continue
		}
		n := &Node{Name: spec.Name, Index: len(b.g.Nodes), Spec: spec, Metadata: spec.Metadata}
		b.g.Nodes = append(b.g.Nodes, n)
		b.g.nodes[spec.Name] = n
	}
}

func (b *builder) nodeDetails() {
	for _, n := range b.g.Nodes {
		if n.Spec == nil {
			n.Reads = b.g.Input
			continue
		}
		path := "nodes." + n.Name
		n.Reads = b.keys(path+".reads", n.Spec.Reads)
		for i, name := range n.Spec.Destinations {
			b.mark(b.target(index(path+".destinations", i), name))
		}
		b.reads = n.Reads
		b.kind(path, n)
		b.policy(path, n)
	}
	b.reads = nil
}

// kind compiles the one kind field that a node must have.
func (b *builder) kind(path string, n *Node) {
	kinds := 0
	if s := n.Spec.Function; s != nil {
		kinds++
		n.Kind = KindFunction
		b.function(path+".function", n, s)
	}
	if s := n.Spec.Expr; s != nil {
		kinds++
		n.Kind = KindExpr
		n.Update = b.assignments(path+".expr.update", s.Update)
		n.Goto = b.program(path+".expr.goto", s.Goto)
	}
	if s := n.Spec.Ask; s != nil {
		kinds++
		n.Kind = KindAsk
		b.ask(path+".ask", n, s)
	}
	if s := n.Spec.Graph; s != nil {
		kinds++
		n.Kind = KindGraph
		b.subgraph(path+".graph", n, s)
	}
	if n.Spec.Remote != nil {
		kinds++
		n.Kind = KindRemote
	}
	switch {
	case kinds == 0:
		b.add(path, ReasonMissing, "node %q does nothing; it needs one of function, expr, ask, graph, remote", n.Name)
	case kinds > 1:
		b.add(path, ReasonConflict, "node %q has several of function, expr, ask, graph, remote; keep one", n.Name)
	}
}

func (b *builder) function(path string, n *Node, s *FunctionSpec) {
	name := s.Name
	if name == "" {
		name = n.Name
	}
	if b.env.HasFunction != nil && !b.env.HasFunction(name) {
		b.add(path, ReasonUnknownFunction, "no function %q is registered", name)
	}
}

func (b *builder) assignments(path string, list []Assignment) []Program {
	programs := make([]Program, len(list))
	seen := make(map[string]bool, len(list))
	for i, a := range list {
		at := path + "." + a.Channel
		if c, ok := b.g.channels[a.Channel]; !ok || !b.g.Channels[c].State {
			b.unknown(at, ReasonUnknownChannel, "channel", a.Channel, b.keyNames)
		} else if seen[a.Channel] {
			b.add(at, ReasonDuplicateName, "channel %q is assigned twice", a.Channel)
		}
		seen[a.Channel] = true
		if a.Expr == "" {
			b.add(at, ReasonMissing, "the expression is empty; to write nothing leave the channel out, to write null say null")
		}
		programs[i] = b.program(at, a.Expr)
	}
	return programs
}

func (b *builder) ask(path string, n *Node, s *AskSpec) {
	if s.Value == "" && s.Message == "" {
		b.add(path, ReasonMissing, "the question is empty; give value, message or both")
	}
	n.When = b.condition(path+".when", s.When)
	n.Value = b.program(path+".value", s.Value)
	n.Message = b.program(path+".message", s.Message)
	n.Goto = b.program(path+".goto", s.Goto)
	n.Update = b.assignments(path+".update", s.Update)
	n.Otherwise = b.assignments(path+".otherwise", s.Otherwise)
	if s.Key != "" {
		n.Key = literal(payload.Quote(s.Key))
	}
	if s.When == "" && len(s.Otherwise) > 0 {
		b.add(path+".otherwise", ReasonConflict, "without when the question is always asked, so otherwise has no use")
	}
	b.expiry(path, s, b.schema(path+".schema", s.Schema))
	b.drift(path+".", s.Drift, s.DriftIgnore)
}

func (b *builder) expiry(path string, s *AskSpec, checkable bool) {
	known := []string{ExpiryFailNode, ExpiryResumeDefault, ExpiryCancelRun}
	if s.TTL < 0 {
		b.add(path+".ttl", ReasonOutOfRange, "ttl is negative (%s); leave it out to wait for ever", s.TTL)
	}
	if s.Expiry != "" && !slices.Contains(known, s.Expiry) {
		b.unknown(path+".expiry", ReasonUnknownValue, "expiry action", s.Expiry, func() []string { return known })
	} else if s.Expiry != "" && s.TTL == 0 {
		b.add(path+".expiry", ReasonMissing, "expiry needs a ttl; without one the question never expires")
	}
	switch {
	case s.Expiry == ExpiryResumeDefault && s.Default == "":
		b.add(path+".default", ReasonMissing, "expiry %s needs a default answer", ExpiryResumeDefault)
	case s.Expiry != ExpiryResumeDefault && s.Default != "":
		b.add(path+".default", ReasonConflict, "default is used by expiry %s only", ExpiryResumeDefault)
	case s.Default == "" || !b.json(path+".default", s.Default):
	case checkable && b.env.CheckValue != nil:
		if err := b.env.CheckValue(s.Schema, s.Default); err != nil {
			b.addError(path+".default", ReasonInvalidDefault, "the default answer misses the schema: %v", err)
		}
	}
}

func (b *builder) subgraph(path string, n *Node, s *SubgraphSpec) {
	known := []string{PersistenceInherit, PersistencePersist, PersistenceDisabled}
	if s.Persistence != "" && !slices.Contains(known, s.Persistence) {
		b.unknown(path+".persistence", ReasonUnknownValue, "persistence", s.Persistence, func() []string { return known })
	}
	if s.Name == "" {
		b.add(path+".name", ReasonMissing, "the subgraph has no name")
		return
	}
	if s.Name == b.spec.Name && (s.Version == "" || s.Version == b.spec.Version) {
		b.add(path+".name", ReasonSubgraphCycle, "graph %q contains itself", s.Name)
		return
	}
	if b.env.Lookup != nil {
		if sub, ok := b.env.Lookup(s.Name, s.Version); ok {
			n.Sub = sub
			return
		}
	}
	if s.Version == "" {
		b.add(path+".name", ReasonUnknownGraph, "unknown graph %q", s.Name)
		return
	}
	b.add(path+".name", ReasonUnknownGraph, "unknown graph %q version %q", s.Name, s.Version)
}

func (b *builder) breakpoints() {
	b.breakpointList("interrupt_before", b.spec.InterruptBefore)
	b.breakpointList("interrupt_after", b.spec.InterruptAfter)
}

func (b *builder) breakpointList(path string, names []string) {
	for i, name := range names {
		if n, ok := b.g.nodes[name]; name != Every && (!ok || n.Spec == nil) {
			b.unknown(index(path, i), ReasonUnknownNode, "node", name, b.namesAnd(Every))
		}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

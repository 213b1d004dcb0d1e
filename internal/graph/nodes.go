package graph

import (
	"maps"
	"slices"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
)

// Actions when an interrupt is not answered in time.
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

// declareNodes makes the nodes, so that edges and nodes can refer to them.
func (b *builder) declareNodes() {
	start := &Node{Name: Start, Kind: KindStart}
	b.graph.Nodes = []*Node{start}
	b.graph.nodes[Start] = start
	for i := range b.spec.Nodes {
		spec := &b.spec.Nodes[i]
		path := "nodes." + spec.Name
		b.checkNodeName(path, spec.Name)
		if _, taken := b.graph.nodes[spec.Name]; taken {
			if spec.Name != Start {
				b.addProblem(path, ReasonDuplicateName, "node %q is declared twice", spec.Name)
			}
			continue
		}
		n := &Node{Name: spec.Name, Index: len(b.graph.Nodes), Spec: spec, Metadata: spec.Metadata}
		b.graph.Nodes = append(b.graph.Nodes, n)
		b.graph.nodes[spec.Name] = n
	}
}

// nodeBuilder compiles nodes.
type nodeBuilder struct {
	expressionCompiler

	spec *Spec
	env  *Env
}

func (b *nodeBuilder) buildNodes() {
	for _, n := range b.graph.Nodes {
		if n.Spec == nil {
			n.Reads = b.graph.InputKeys
			continue
		}
		path := "nodes." + n.Name
		n.Reads = b.resolveKeys(path+".reads", n.Spec.Reads)
		for i, name := range n.Spec.Destinations {
			b.markIncoming(b.resolveTarget(indexPath(path+".destinations", i), name))
		}
		b.visibleKeys = n.Reads
		b.buildKind(path, n)
		b.applyPolicy(path, n)
		if n.RunsInWorker() {
			b.graph.workerNodes = append(b.graph.workerNodes, n)
		}
	}
}

// buildKind compiles the only kind field that a node must have.
func (b *nodeBuilder) buildKind(path string, n *Node) {
	kinds := 0
	if s := n.Spec.Function; s != nil {
		kinds++
		n.Kind = KindFunction
		b.checkFunction(path+".function", n, s)
	}
	if s := n.Spec.Expr; s != nil {
		kinds++
		n.Kind = KindExpr
		n.Update = b.compileAssignments(path+".expr.update", s.Update)
		n.Goto = b.compileExpression(path+".expr.goto", s.Goto)
	}
	if s := n.Spec.Ask; s != nil {
		kinds++
		n.Kind = KindAsk
		b.buildAsk(path+".ask", n, s)
	}
	if s := n.Spec.Graph; s != nil {
		kinds++
		n.Kind = KindGraph
		b.resolveSubgraph(path+".graph", n, s)
	}
	if s := n.Spec.Remote; s != nil {
		kinds++
		n.Kind = KindRemote
		b.checkEndpoint(path+".remote.endpoint", s.Endpoint)
	}
	switch {
	case kinds == 0:
		b.addProblem(path, ReasonMissing, "node %q does nothing; it needs one of function, expr, ask, graph, remote", n.Name)
	case kinds > 1:
		b.addProblem(path, ReasonConflict, "node %q has several of function, expr, ask, graph, remote; keep one", n.Name)
	}
}

func (b *nodeBuilder) checkFunction(path string, n *Node, s *FunctionSpec) {
	name := s.Name
	if name == "" {
		name = n.Name
	}
	if b.env.HasFunction != nil && !b.env.HasFunction(name) {
		b.addProblem(path, ReasonUnknownFunction, "no function %q is registered", name)
	}
}

func (b *nodeBuilder) checkEndpoint(path, endpoint string) {
	if endpoint == "" || b.env.CheckEndpoint == nil {
		return
	}
	if err := b.env.CheckEndpoint(endpoint); err != nil {
		b.addProblem(path, ReasonEndpointRefused, "%v", err)
	}
}

func (b *nodeBuilder) buildAsk(path string, n *Node, s *AskSpec) {
	if s.Value == "" && s.Message == "" {
		b.addProblem(path, ReasonMissing, "the question is empty; give value, message or both")
	}
	n.When = b.compileCondition(path+".when", s.When)
	n.Value = b.compileExpression(path+".value", s.Value)
	n.Message = b.compileExpression(path+".message", s.Message)
	n.Goto = b.compileExpression(path+".goto", s.Goto)
	n.Update = b.compileAssignments(path+".update", s.Update)
	n.Otherwise = b.compileAssignments(path+".otherwise", s.Otherwise)
	n.Assignees = b.compileNames(path+".assignees", &s.Assignees)
	n.TTL = b.compileExpression(path+".ttl", s.TTLExpr)
	n.Default = b.compileExpression(path+".default_expr", s.DefaultExpr)
	if s.People != nil {
		b.buildPeople(path+".people", n, s.People)
	}
	if s.Key != "" {
		n.Key = constantProgram(payload.Quote(s.Key))
	}
	if s.When == "" && len(s.Otherwise) > 0 {
		b.addProblem(path+".otherwise", ReasonConflict, "without when the question is always asked, so otherwise has no use")
	}
	b.checkSteps(path, s)
	if problem := approval.CheckUndo(s.Undo); problem != "" {
		b.addProblem(path+".undo", ReasonOutOfRange, "%s", problem)
	}
	b.checkExpiry(path, s, b.checkSchema(path+".schema", s.Schema, b.env.CheckSchema))
	b.checkDrift(path+".", s.Drift, s.DriftIgnore)
	b.checkSecret(path, s)
}

// checkSecret checks which parts of a question are secret.
func (b *nodeBuilder) checkSecret(path string, s *AskSpec) {
	at := path + ".secret"
	for _, problem := range redact.CheckPointers(s.Secret) {
		where := at
		if problem.Index >= 0 {
			where = indexPath(at, problem.Index)
		}
		b.addProblem(where, ReasonOutOfRange, "%s", problem.Text)
	}
	if len(s.Secret) > 0 && b.env.HasNoKeys {
		b.addProblem(at, ReasonFeatureDisabled,
			"the store of the server is not encrypted, so it keeps no secret parts; start it with --encryption-keys, or leave secret out")
	}
	if s.People != nil && len(s.People.RevealUsers)+len(s.People.RevealGroups) > 0 && len(s.Secret) == 0 {
		b.addProblem(path+".people.reveal", ReasonConflict, "the question has no secret parts, so reveal has no use; name them in secret")
	}
}

func (b *nodeBuilder) checkExpiry(path string, s *AskSpec, checkable bool) {
	known := []string{ExpiryFailNode, ExpiryResumeDefault, ExpiryCancelRun}
	if s.TTL < 0 {
		b.addProblem(path+".ttl", ReasonOutOfRange, "ttl is negative (%s); leave it out to wait for ever", s.TTL)
	}
	if s.TTL != 0 && s.TTLExpr != "" {
		b.addProblem(path+".ttl", ReasonConflict, "ttl is given as a duration and as an expression; say it once")
	}
	if s.Default != "" && s.DefaultExpr != "" {
		b.addProblem(path+".default_expr", ReasonConflict, "the default answer is given as a value and as an expression; say it once")
	}
	if s.Expiry != "" && !slices.Contains(known, s.Expiry) {
		b.addUnknown(path+".expiry", ReasonUnknownValue, "expiry action", s.Expiry, func() []string { return known })
	} else if s.Expiry != "" && s.TTL == 0 && s.TTLExpr == "" {
		b.addProblem(path+".expiry", ReasonMissing, "expiry needs a ttl; without one the question never expires")
	}
	switch {
	case s.Expiry == ExpiryResumeDefault && s.Default == "" && s.DefaultExpr == "":
		b.addProblem(path+".default", ReasonMissing, "expiry %s needs a default answer", ExpiryResumeDefault)
	case s.Expiry != ExpiryResumeDefault && s.DefaultExpr != "":
		b.addProblem(path+".default_expr", ReasonConflict, "default_expr is used by expiry %s only", ExpiryResumeDefault)
	case s.Expiry != ExpiryResumeDefault && s.Default != "":
		b.addProblem(path+".default", ReasonConflict, "default is used by expiry %s only", ExpiryResumeDefault)
	case s.Default == "" || !b.checkJSON(path+".default", s.Default):
	case checkable && b.env.CheckValue != nil:
		if err := b.env.CheckValue(s.Schema, s.Default); err != nil {
			b.addErrorProblem(path+".default", ReasonInvalidDefault, "the default answer misses the schema: %v", err)
		}
	}
}

func (b *nodeBuilder) resolveSubgraph(path string, n *Node, s *SubgraphSpec) {
	known := []string{PersistenceInherit, PersistencePersist, PersistenceDisabled}
	if s.Persistence != "" && !slices.Contains(known, s.Persistence) {
		b.addUnknown(path+".persistence", ReasonUnknownValue, "persistence", s.Persistence, func() []string { return known })
	}
	if s.Name == "" {
		b.addProblem(path+".name", ReasonMissing, "the subgraph has no name")
		return
	}
	if s.Name == b.spec.Name && (s.Version == "" || s.Version == b.spec.Version) {
		b.addProblem(path+".name", ReasonSubgraphCycle, "graph %q contains itself", s.Name)
		return
	}
	if b.env.Lookup != nil {
		if sub, ok := b.env.Lookup(s.Name, s.Version); ok {
			n.Sub = sub
			return
		}
	}
	if s.Version == "" {
		b.addProblem(path+".name", ReasonUnknownGraph, "unknown graph %q", s.Name)
		return
	}
	b.addProblem(path+".name", ReasonUnknownGraph, "unknown graph %q version %q", s.Name, s.Version)
}

func (b *builder) checkBreakpoints() {
	b.checkBreakpointNames("interrupt_before", b.spec.InterruptBefore)
	b.checkBreakpointNames("interrupt_after", b.spec.InterruptAfter)
}

func (b *builder) checkBreakpointNames(path string, names []string) {
	for i, name := range names {
		if n, ok := b.graph.nodes[name]; name != AllNodes && (!ok || n.Spec == nil) {
			b.addUnknown(indexPath(path, i), ReasonUnknownNode, "node", name, b.nodeNamesAnd(AllNodes))
		}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

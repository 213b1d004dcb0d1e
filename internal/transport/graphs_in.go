package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
)

// specIn converts a graph as messages. What a graph may say is checked where
// graphs are compiled; the border looks at sizes and payloads only.
func specIn(b *border, s *graphdv1.GraphSpec) *graph.Spec {
	out := &graph.Spec{
		Name: b.name("spec.name", s.GetName()), Version: b.name("spec.version", s.GetVersion()),
		Description: b.text("spec.description", s.GetDescription()),
		Metadata:    b.labels("spec.metadata", s.GetMetadata()),
		Input:       s.GetInput(), Output: s.GetOutput(), Strict: s.GetStrict(),
		InputSchema:   b.payload("spec.input_schema", s.GetInputSchema()),
		OutputSchema:  b.payload("spec.output_schema", s.GetOutputSchema()),
		ContextSchema: b.payload("spec.context_schema", s.GetContextSchema()),

		InterruptBefore: s.GetInterruptBefore(), InterruptAfter: s.GetInterruptAfter(),
		StepLimit:   b.limit("spec.step_limit", s.GetStepLimit()),
		StepTimeout: b.positive("spec.step_timeout", s.GetStepTimeout()),
		Defaults:    policyIn(b, "spec.defaults", s.GetDefaults()),
		Drift:       string(driftIn(s.GetDrift())), DriftIgnore: s.GetDriftIgnore(),
	}
	for i, c := range s.GetChannels() {
		out.Channels = append(out.Channels, graph.ChannelSpec{
			Name: c.GetName(), Reducer: c.GetReducer(), Function: c.GetReducerName(),
			Default: b.payload(indexed("spec.channels", i)+".default_value", c.GetDefaultValue()),
		})
	}
	for i, n := range s.GetNodes() {
		out.Nodes = append(out.Nodes, nodeIn(b, indexed("spec.nodes", i), n))
	}
	for _, e := range s.GetEdges() {
		out.Edges = append(out.Edges, graph.EdgeSpec{From: e.GetSources(), To: e.GetTarget()})
	}
	for _, br := range s.GetBranches() {
		out.Branches = append(out.Branches, branchIn(br))
	}
	return out
}

func nodeIn(b *border, at string, n *graphdv1.NodeSpec) graph.NodeSpec {
	out := graph.NodeSpec{
		Name: n.GetName(), Description: n.GetDescription(), Metadata: n.GetMetadata(),
		Reads: n.GetReads(), Defer: n.GetDeferred(), Destinations: n.GetDestinations(),
		Policy: policyIn(b, at+".policy", n.GetPolicy()),
	}
	switch kind := n.GetKind().(type) {
	case *graphdv1.NodeSpec_Function:
		out.Function = &graph.FunctionSpec{Name: kind.Function.GetName()}
	case *graphdv1.NodeSpec_Expr:
		out.Expr = &graph.ExprSpec{
			Update: assignmentsIn(kind.Expr.GetUpdate()), Goto: kind.Expr.GetGotoExpr(),
		}
	case *graphdv1.NodeSpec_Ask:
		out.Ask = askIn(b, at+".ask", kind.Ask)
	case *graphdv1.NodeSpec_Graph:
		out.Graph = &graph.SubgraphSpec{
			Name: kind.Graph.GetGraph(), Version: kind.Graph.GetVersion(),
			Persistence: persistenceIn(kind.Graph.GetPersistence()),
		}
	case *graphdv1.NodeSpec_Remote:
		out.Remote = &graph.RemoteSpec{Endpoint: kind.Remote.GetEndpoint(), TLS: kind.Remote.GetTls()}
	}
	return out
}

func askIn(b *border, at string, a *graphdv1.AskSpec) *graph.AskSpec {
	return &graph.AskSpec{
		When: a.GetCondition(), Value: a.GetValue(), Message: a.GetMessage(), Key: a.GetKey(),
		Reason: a.GetReason(), Schema: b.payload(at+".response_schema", a.GetResponseSchema()),
		Update: assignmentsIn(a.GetUpdate()), Otherwise: assignmentsIn(a.GetOtherwise()),
		Goto: a.GetGotoExpr(), Assignees: a.GetAssignees(), TTL: b.positive(at+".ttl", a.GetTtl()),
		Expiry:  string(expiryIn(a.GetExpiryAction())),
		Default: b.payload(at+".default_response", a.GetDefaultResponse()),
		Drift:   string(driftIn(a.GetDrift())), DriftIgnore: a.GetDriftIgnore(),
	}
}

func assignmentsIn(list []*graphdv1.Assignment) []graph.Assignment {
	var out []graph.Assignment
	for _, a := range list {
		out = append(out, graph.Assignment{Channel: a.GetChannel(), Expr: a.GetExpr()})
	}
	return out
}

func branchIn(br *graphdv1.BranchSpec) graph.BranchSpec {
	out := graph.BranchSpec{
		From: br.GetSource(), Name: br.GetName(), Paths: br.GetPaths(), Then: br.GetTargets(),
	}
	switch decision := br.GetDecision().(type) {
	case *graphdv1.BranchSpec_Cases:
		for _, c := range decision.Cases.GetCases() {
			out.Cases = append(out.Cases, graph.CaseSpec{When: c.GetCondition(), To: c.GetTargets()})
		}
	case *graphdv1.BranchSpec_Expr:
		out.Expr = decision.Expr
	case *graphdv1.BranchSpec_Router:
		out.Router = decision.Router
	case *graphdv1.BranchSpec_WorkerRouter:
		out.Router, out.InWorker = decision.WorkerRouter, true
	}
	return out
}

func policyIn(b *border, at string, p *graphdv1.PolicySpec) graph.PolicySpec {
	out := graph.PolicySpec{
		Timeout:      b.positive(at+".timeout", p.GetTimeout()),
		IdleTimeout:  b.positive(at+".idle_timeout", p.GetIdleTimeout()),
		ErrorHandler: p.GetErrorHandler(),
	}
	for i, r := range p.GetRetry() {
		entry := indexed(at+".retry", i)
		out.Retry = append(out.Retry, graph.RetrySpec{
			MaxAttempts:     b.limit(entry+".max_attempts", r.GetMaxAttempts()),
			InitialInterval: b.positive(entry+".initial_interval", r.GetInitialInterval()),
			Backoff:         r.GetBackoff(),
			MaxInterval:     b.positive(entry+".max_interval", r.GetMaxInterval()),
			NoJitter:        r.GetNoJitter(),
			On:              r.GetFailureTypes(),
		})
	}
	return out
}

// Words of SubgraphSpec.Persistence.
const (
	inherit  = "inherit"
	persist  = "persist"
	disabled = "disabled"
)

func persistenceIn(p graphdv1.SubgraphPersistence) string {
	switch p {
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_INHERIT:
		return inherit
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_PERSIST:
		return persist
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_DISABLED:
		return disabled
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_UNSPECIFIED:
		return ""
	}
	return ""
}

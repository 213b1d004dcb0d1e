package wire

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
)

// GraphSpecFromProto converts a graph. The validator checks only sizes and
// payloads; the compiler of graphs checks the rest.
func GraphSpecFromProto(v *Validator, s *graphdv1.GraphSpec) *graph.Spec {
	out := &graph.Spec{
		Name: v.CheckName("spec.name", s.GetName()), Version: v.CheckName("spec.version", s.GetVersion()),
		Description: v.CheckText("spec.description", s.GetDescription()),
		Metadata:    v.CheckLabels("spec.metadata", s.GetMetadata()),
		Input:       s.GetInput(), Output: s.GetOutput(), Strict: s.GetStrict(),
		InputSchema:   v.ConvertPayload("spec.input_schema", s.GetInputSchema()),
		OutputSchema:  v.ConvertPayload("spec.output_schema", s.GetOutputSchema()),
		ContextSchema: v.ConvertPayload("spec.context_schema", s.GetContextSchema()),

		InterruptBefore: s.GetInterruptBefore(), InterruptAfter: s.GetInterruptAfter(),
		StepLimit:   v.ConvertLimit("spec.step_limit", s.GetStepLimit()),
		StepTimeout: v.convertPositiveDuration("spec.step_timeout", s.GetStepTimeout()),
		Defaults:    policySpecFromProto(v, "spec.defaults", s.GetDefaults()),
		Drift:       string(driftFromProto(s.GetDrift())), DriftIgnore: s.GetDriftIgnore(),
	}
	for i, c := range s.GetChannels() {
		out.Channels = append(out.Channels, graph.ChannelSpec{
			Name: c.GetName(), Reducer: c.GetReducer(), Function: c.GetReducerName(),
			Default: v.ConvertPayload(elementPath("spec.channels", i)+".default_value", c.GetDefaultValue()),
		})
	}
	for i, n := range s.GetNodes() {
		out.Nodes = append(out.Nodes, nodeSpecFromProto(v, elementPath("spec.nodes", i), n))
	}
	for _, e := range s.GetEdges() {
		out.Edges = append(out.Edges, graph.EdgeSpec{From: e.GetSources(), To: e.GetTarget()})
	}
	for _, br := range s.GetBranches() {
		out.Branches = append(out.Branches, branchSpecFromProto(br))
	}
	return out
}

func nodeSpecFromProto(v *Validator, at string, n *graphdv1.NodeSpec) graph.NodeSpec {
	out := graph.NodeSpec{
		Name: n.GetName(), Description: n.GetDescription(), Metadata: n.GetMetadata(),
		Reads: n.GetReads(), Defer: n.GetDeferred(), Destinations: n.GetDestinations(),
		Policy: policySpecFromProto(v, at+".policy", n.GetPolicy()),
	}
	switch kind := n.GetKind().(type) {
	case *graphdv1.NodeSpec_Function:
		out.Function = &graph.FunctionSpec{Name: kind.Function.GetName()}
	case *graphdv1.NodeSpec_Expr:
		out.Expr = &graph.ExprSpec{
			Update: channelAssignmentsFromProto(kind.Expr.GetUpdate()), Goto: kind.Expr.GetGotoExpr(),
		}
	case *graphdv1.NodeSpec_Ask:
		out.Ask = askSpecFromProto(v, at+".ask", kind.Ask)
	case *graphdv1.NodeSpec_Graph:
		out.Graph = &graph.SubgraphSpec{
			Name: kind.Graph.GetGraph(), Version: kind.Graph.GetVersion(),
			Persistence: PersistenceFromProto(kind.Graph.GetPersistence()),
		}
	case *graphdv1.NodeSpec_Remote:
		out.Remote = &graph.RemoteSpec{Endpoint: kind.Remote.GetEndpoint(), TLS: kind.Remote.GetTls()}
	}
	return out
}

func askSpecFromProto(v *Validator, at string, a *graphdv1.AskSpec) *graph.AskSpec {
	return &graph.AskSpec{
		When: a.GetCondition(), Value: a.GetValue(), Message: a.GetMessage(), Key: a.GetKey(),
		Reason: a.GetReason(), Schema: v.ConvertPayload(at+".response_schema", a.GetResponseSchema()),
		Update: channelAssignmentsFromProto(a.GetUpdate()), Otherwise: channelAssignmentsFromProto(a.GetOtherwise()),
		Goto: a.GetGotoExpr(), Assignees: graph.NamesSpec{Names: a.GetAssignees(), Expr: a.GetAssigneesExpr()},
		People: peopleSpecFromProto(v, at+".people", a.GetPeople()), TTL: v.convertPositiveDuration(at+".ttl", a.GetTtl()),
		Priority: priorityWord(priorityFromProto(v, at+".priority", a.GetPriority())), Steps: stepSpecsFromProto(v, at+".steps", a.GetSteps()),
		Undo:    undoFromProto(v, at+".undo", a.GetUndo()),
		TTLExpr: a.GetTtlExpr(), DefaultExpr: a.GetDefaultExpr(),
		Expiry:  string(expiryFromProto(a.GetExpiryAction())),
		Default: v.ConvertPayload(at+".default_response", a.GetDefaultResponse()),
		Drift:   string(driftFromProto(a.GetDrift())), DriftIgnore: a.GetDriftIgnore(),
		Secret: a.GetSecret(),
	}
}

func channelAssignmentsFromProto(list []*graphdv1.Assignment) []graph.Assignment {
	var out []graph.Assignment
	for _, a := range list {
		out = append(out, graph.Assignment{Channel: a.GetChannel(), Expr: a.GetExpr()})
	}
	return out
}

func branchSpecFromProto(br *graphdv1.BranchSpec) graph.BranchSpec {
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

func policySpecFromProto(v *Validator, at string, p *graphdv1.PolicySpec) graph.PolicySpec {
	out := graph.PolicySpec{
		Timeout:      v.convertPositiveDuration(at+".timeout", p.GetTimeout()),
		IdleTimeout:  v.convertPositiveDuration(at+".idle_timeout", p.GetIdleTimeout()),
		ErrorHandler: p.GetErrorHandler(),
	}
	for i, r := range p.GetRetry() {
		entry := elementPath(at+".retry", i)
		out.Retry = append(out.Retry, graph.RetrySpec{
			MaxAttempts:     v.ConvertLimit(entry+".max_attempts", r.GetMaxAttempts()),
			InitialInterval: v.convertPositiveDuration(entry+".initial_interval", r.GetInitialInterval()),
			Backoff:         r.GetBackoff(),
			MaxInterval:     v.convertPositiveDuration(entry+".max_interval", r.GetMaxInterval()),
			NoJitter:        r.GetNoJitter(),
			On:              r.GetFailureTypes(),
		})
	}
	return out
}

// Values of SubgraphSpec.Persistence.
const (
	persistenceInherit  = "inherit"
	PersistencePersist  = "persist"
	persistenceDisabled = "disabled"
)

// PersistenceFromProto converts the persistence of a subgraph.
func PersistenceFromProto(p graphdv1.SubgraphPersistence) string {
	switch p {
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_INHERIT:
		return persistenceInherit
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_PERSIST:
		return PersistencePersist
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_DISABLED:
		return persistenceDisabled
	case graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_UNSPECIFIED:
		return ""
	}
	return ""
}

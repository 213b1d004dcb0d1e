package transport

import (
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// graphOut converts a version of a graph; full adds the whole description.
func graphOut(e runtime.GraphEntry, full bool) *graphdv1.Graph {
	out := &graphdv1.Graph{Versions: e.Versions, CreateTime: timeOut(e.Created)}
	if e.Graph == nil {
		return out
	}
	out.Graph, out.Version = e.Graph.Name, e.Graph.Version
	s := e.Graph.Spec
	if s == nil {
		return out
	}
	out.Description, out.Metadata = s.Description, s.Metadata
	out.InputSchema, out.OutputSchema = jsonOut(s.InputSchema), jsonOut(s.OutputSchema)
	out.ContextSchema = jsonOut(s.ContextSchema)
	if full {
		out.Spec = specOut(s)
		out.Spec.Version = e.Graph.Version
	}
	return out
}

func specOut(s *graph.Spec) *graphdv1.GraphSpec {
	out := &graphdv1.GraphSpec{
		Name: s.Name, Version: s.Version, Description: s.Description, Metadata: s.Metadata,
		Input: s.Input, Output: s.Output, Strict: s.Strict,
		InputSchema: jsonOut(s.InputSchema), OutputSchema: jsonOut(s.OutputSchema),
		ContextSchema:   jsonOut(s.ContextSchema),
		InterruptBefore: s.InterruptBefore, InterruptAfter: s.InterruptAfter,
		StepLimit: count(s.StepLimit), StepTimeout: durationOut(s.StepTimeout),
		Defaults: policyOut(s.Defaults), Drift: driftOut(checkpoint.Drift(s.Drift)), DriftIgnore: s.DriftIgnore,
	}
	for _, c := range s.Channels {
		out.Channels = append(out.Channels, &graphdv1.ChannelSpec{
			Name: c.Name, Reducer: c.Reducer, ReducerName: c.Function, DefaultValue: jsonOut(c.Default),
		})
	}
	for i := range s.Nodes {
		out.Nodes = append(out.Nodes, nodeOut(&s.Nodes[i]))
	}
	for _, e := range s.Edges {
		out.Edges = append(out.Edges, &graphdv1.EdgeSpec{Sources: e.From, Target: e.To})
	}
	for i := range s.Branches {
		out.Branches = append(out.Branches, branchOut(&s.Branches[i]))
	}
	return out
}

func nodeOut(n *graph.NodeSpec) *graphdv1.NodeSpec {
	out := &graphdv1.NodeSpec{
		Name: n.Name, Description: n.Description, Metadata: n.Metadata, Reads: n.Reads,
		Deferred: n.Defer, Destinations: n.Destinations, Policy: policyOut(n.Policy),
	}
	switch {
	case n.Function != nil:
		out.Kind = &graphdv1.NodeSpec_Function{Function: &graphdv1.FunctionSpec{Name: n.Function.Name}}
	case n.Expr != nil:
		out.Kind = &graphdv1.NodeSpec_Expr{Expr: &graphdv1.ExprSpec{
			Update: assignmentsOut(n.Expr.Update), GotoExpr: n.Expr.Goto,
		}}
	case n.Ask != nil:
		out.Kind = &graphdv1.NodeSpec_Ask{Ask: askOut(n.Ask)}
	case n.Graph != nil:
		out.Kind = &graphdv1.NodeSpec_Graph{Graph: &graphdv1.SubgraphSpec{
			Graph: n.Graph.Name, Version: n.Graph.Version, Persistence: persistenceOut(n.Graph.Persistence),
		}}
	case n.Remote != nil:
		out.Kind = &graphdv1.NodeSpec_Remote{Remote: &graphdv1.RemoteSpec{
			Endpoint: n.Remote.Endpoint, Tls: n.Remote.TLS,
		}}
	}
	return out
}

func askOut(a *graph.AskSpec) *graphdv1.AskSpec {
	return &graphdv1.AskSpec{
		Condition: a.When, Value: a.Value, Message: a.Message, Key: a.Key, Reason: a.Reason,
		ResponseSchema: jsonOut(a.Schema), Update: assignmentsOut(a.Update),
		Otherwise: assignmentsOut(a.Otherwise), GotoExpr: a.Goto, Assignees: a.Assignees,
		Ttl: durationOut(a.TTL), ExpiryAction: expiryOut(checkpoint.ExpiryAction(a.Expiry)),
		DefaultResponse: jsonOut(a.Default),
		Drift:           driftOut(checkpoint.Drift(a.Drift)), DriftIgnore: a.DriftIgnore,
	}
}

func assignmentsOut(list []graph.Assignment) []*graphdv1.Assignment {
	var out []*graphdv1.Assignment
	for _, a := range list {
		out = append(out, &graphdv1.Assignment{Channel: a.Channel, Expr: a.Expr})
	}
	return out
}

func branchOut(br *graph.BranchSpec) *graphdv1.BranchSpec {
	out := &graphdv1.BranchSpec{Source: br.From, Name: br.Name, Paths: br.Paths, Targets: br.Then}
	switch {
	case br.Expr != "":
		out.Decision = &graphdv1.BranchSpec_Expr{Expr: br.Expr}
	case br.InWorker:
		out.Decision = &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: br.Router}
	case br.Router != "":
		out.Decision = &graphdv1.BranchSpec_Router{Router: br.Router}
	default:
		cases := &graphdv1.Cases{}
		for _, c := range br.Cases {
			cases.Cases = append(cases.Cases, &graphdv1.Case{Condition: c.When, Targets: c.To})
		}
		out.Decision = &graphdv1.BranchSpec_Cases{Cases: cases}
	}
	return out
}

// policyOut converts a policy; one that says nothing stays unset.
func policyOut(p graph.PolicySpec) *graphdv1.PolicySpec {
	if len(p.Retry) == 0 && p.Timeout == 0 && p.IdleTimeout == 0 && p.ErrorHandler == "" {
		return nil
	}
	out := &graphdv1.PolicySpec{
		Timeout: durationOut(p.Timeout), IdleTimeout: durationOut(p.IdleTimeout), ErrorHandler: p.ErrorHandler,
	}
	for _, r := range p.Retry {
		out.Retry = append(out.Retry, &graphdv1.RetrySpec{
			MaxAttempts: count(r.MaxAttempts), InitialInterval: durationOut(r.InitialInterval),
			Backoff: r.Backoff, MaxInterval: durationOut(r.MaxInterval), NoJitter: r.NoJitter,
			FailureTypes: r.On,
		})
	}
	return out
}

func persistenceOut(p string) graphdv1.SubgraphPersistence {
	return graphdv1.SubgraphPersistence(
		enumOut(graphdv1.SubgraphPersistence_value, "SUBGRAPH_PERSISTENCE_", p))
}

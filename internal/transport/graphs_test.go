package transport_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// newFullSpec uses every field that a description has.
func newFullSpec() *graph.Spec {
	retry := []graph.RetrySpec{{
		MaxAttempts: 2, InitialInterval: time.Second, Backoff: 1.5, MaxInterval: time.Minute, NoJitter: true,
		On: []string{"Timeout"},
	}}
	policy := graph.PolicySpec{Retry: retry, Timeout: time.Minute, IdleTimeout: time.Second, ErrorHandler: "h"}
	set := []graph.Assignment{{Channel: "a", Expr: "state.b + 1"}}
	return &graph.Spec{
		Name: "g", Version: "v1", Description: "d", Metadata: map[string]string{"k": "v"},
		Channels: []graph.ChannelSpec{{Name: "a", Reducer: "append", Default: "[9007199254740993]"}},
		Input:    []string{"a"}, Output: []string{"b"}, Strict: true,
		InputSchema: `{"type":"object"}`, OutputSchema: "true", ContextSchema: "false",
		Nodes: []graph.NodeSpec{
			{
				Name: "f", Description: "d", Metadata: map[string]string{"k": "v"}, Reads: []string{"a"}, Defer: true,
				Destinations: []string{"x"}, Policy: policy, Function: &graph.FunctionSpec{Name: "fn"},
			},
			{Name: "e", Expr: &graph.ExprSpec{Update: set, Goto: "'f'"}},
			{Name: "q", Ask: &graph.AskSpec{
				When: "w", Value: "v", Message: "m", Key: "k", Reason: "approval", Schema: `{}`, Update: set,
				Otherwise: set, Goto: "g", Assignees: graph.NamesSpec{Names: []string{"ann"}, Expr: "a"}, TTL: time.Hour,
				Expiry: string(checkpoint.ExpiryResumeDefault), Default: "null",
				People: &graph.PeopleSpec{
					Users: graph.NamesSpec{Names: []string{"ann"}, Expr: "u"}, Groups: graph.NamesSpec{Names: []string{"ops"}, Expr: "g"},
					Approvals: 2, Vetoes: 3, Agree: "c", NotRequester: true, Requester: "r",
				},
			}},
			{Name: "s", Graph: &graph.SubgraphSpec{Name: "g2", Version: "v2", Persistence: "persist"}},
			{Name: "r", Remote: &graph.RemoteSpec{Endpoint: "host:1", TLS: true}},
		},
		Edges: []graph.EdgeSpec{{From: []string{"f", "e"}, To: "q"}},
		Branches: []graph.BranchSpec{
			{From: "q", Name: "n", Cases: []graph.CaseSpec{{When: "c", To: []string{"s", "r"}}, {To: []string{"f"}}}},
			{From: "s", Expr: "x", Paths: map[string]string{"p": "f"}},
			{From: "r", Router: "route", Then: []string{"f"}},
		},
		InterruptBefore: []string{"f"}, InterruptAfter: []string{"*"}, StepLimit: 9, StepTimeout: time.Minute,
		Defaults: policy,
	}
}

// A description is the same after a round trip, field by field.
func TestGraphsSurviveTheWire(t *testing.T) {
	spec := newFullSpec()
	r := &fakeRegistry{entries: []runtime.GraphEntry{{
		Graph:    &graph.Graph{Name: "g", Version: "v1", Spec: spec},
		Versions: []string{"v0", "v1"}, Created: time.Unix(5, 0),
	}}}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry = r })
	got, err := c.GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g"})
	require.NoError(t, err)
	require.Equal(t, []string{"v0", "v1"}, got.GetVersions())
	require.Equal(t, int64(5), got.GetCreateTime().GetSeconds())
	require.JSONEq(t, `{"type":"object"}`, got.GetInputSchema().GetJson())

	put, err := c.PutGraph(t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Spec{Spec: got.GetSpec()}, ValidateOnly: true,
	})
	require.NoError(t, err)
	require.True(t, r.lastPut.ValidateOnly)
	require.Equal(t, spec, r.lastPut.Spec)
	require.True(t, proto.Equal(got, put))

	basic, err := c.GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g", View: graphdv1.GraphView_GRAPH_VIEW_BASIC})
	require.NoError(t, err)
	require.Nil(t, basic.GetSpec())

	_, err = c.PutGraph(t.Context(), &graphdv1.PutGraphRequest{
		Definition: &graphdv1.PutGraphRequest_Document{Document: "name: g"}, DocumentName: "g.yaml",
	})
	require.NoError(t, err)
	require.Equal(t, runtime.PutGraphRequest{Tenant: "default", Document: "name: g", DocumentName: "g.yaml"}, r.lastPut)
}

func TestGraphsArePaged(t *testing.T) {
	r := &fakeRegistry{}
	for i := range 5 {
		r.entries = append(r.entries, runtime.GraphEntry{Graph: &graph.Graph{Name: fmt.Sprint("g", i), Spec: &graph.Spec{}}})
	}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry = r })
	var names []string
	token := ""
	for {
		page, err := c.ListGraphs(t.Context(), &graphdv1.ListGraphsRequest{PageSize: 2, PageToken: token})
		require.NoError(t, err)
		for _, g := range page.GetGraphs() {
			names = append(names, g.GetGraph())
			require.Nil(t, g.GetSpec())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Equal(t, []string{"g0", "g1", "g2", "g3", "g4"}, names)
	require.Len(t, r.entries, 5)
}

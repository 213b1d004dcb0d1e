package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
)

// newPayout returns a graph that asks before it pays.
func newPayout() *graph.Spec {
	return &graph.Spec{
		Name: "payout", Version: "1", Description: "Pays.", Metadata: map[string]string{"team": "finance"},
		Channels: []graph.ChannelSpec{{Name: "amount"}, {Name: "approved", Default: "false"}},
		Nodes: []graph.NodeSpec{
			{Name: "compute", Expr: &graph.ExprSpec{Update: []graph.Assignment{{Channel: "amount", Expr: "amount * 2"}}}},
			{
				Name: "approve",
				Ask: &graph.AskSpec{
					People: &graph.PeopleSpec{Groups: graph.NamesSpec{Names: []string{"board"}}, Approvals: 2},
					When:   "amount > 100", Message: "'Pay?'", Assignees: graph.NamesSpec{Names: []string{"finance"}}, TTL: time.Hour, Expiry: "fail_node",
					Update: []graph.Assignment{{Channel: "approved", Expr: "answer"}},
				},
			},
			{Name: "pay", Remote: &graph.RemoteSpec{}},
		},
		Edges: []graph.EdgeSpec{
			{From: []string{graph.Start}, To: "compute"}, {From: []string{"compute"}, To: "approve"}, {From: []string{"approve"}, To: "pay"},
		},
		InterruptBefore: []string{"pay"},
		StepLimit:       10,
	}
}

// Whatever may pass by a question counts.
func TestRemovedQuestionsAreListed(t *testing.T) {
	all := []string{`the question of node "approve"`, `the breakpoint before "pay"`}
	for name, c := range map[string]struct {
		change func(*graph.Spec)
		want   []string
	}{
		"nothing":             {func(*graph.Spec) {}, nil},
		"words":               {func(s *graph.Spec) { s.Version, s.Description, s.Metadata = "2", "Pays more.", nil }, nil},
		"words of a node":     {func(s *graph.Spec) { s.Nodes[2].Description = "Pays." }, nil},
		"limits":              {func(s *graph.Spec) { s.StepLimit, s.StepTimeout = 20, time.Minute }, nil},
		"attempts":            {func(s *graph.Spec) { s.Nodes[2].Policy.Retry = []graph.RetrySpec{{MaxAttempts: 5}} }, nil},
		"output":              {func(s *graph.Spec) { s.Output = []string{"amount"} }, nil},
		"order of nodes":      {func(s *graph.Spec) { s.Nodes[0], s.Nodes[2] = s.Nodes[2], s.Nodes[0] }, nil},
		"one more breakpoint": {func(s *graph.Spec) { s.InterruptBefore = []string{"approve", "pay"} }, nil},
		"breakpoints all":     {func(s *graph.Spec) { s.InterruptBefore = []string{graph.AllNodes} }, nil},

		"no breakpoint": {func(s *graph.Spec) { s.InterruptBefore = nil }, all},
		"breakpoint elsewhere": {
			func(s *graph.Spec) { s.InterruptBefore, s.InterruptAfter = nil, []string{"pay"} }, all,
		},
		"no question": {func(s *graph.Spec) {
			s.Nodes = s.Nodes[:1:1]
			s.Edges = s.Edges[:1]
		}, all},
		"a node of the same name": {func(s *graph.Spec) { s.Nodes[1].Ask, s.Nodes[1].Expr = nil, &graph.ExprSpec{} }, all},
		"never asked":             {func(s *graph.Spec) { s.Nodes[1].Ask.When = "false" }, all},
		"asked less":              {func(s *graph.Spec) { s.Nodes[1].Ask.When = "amount > 1000" }, all},
		"another text":            {func(s *graph.Spec) { s.Nodes[1].Ask.Message = "'Nothing of importance'" }, all},
		"other people":            {func(s *graph.Spec) { s.Nodes[1].Ask.Assignees.Names = []string{"interns"} }, all},
		"fewer people":            {func(s *graph.Spec) { s.Nodes[1].Ask.People.Approvals = 1 }, all},
		"people of a group more":  {func(s *graph.Spec) { s.Nodes[1].Ask.People.Groups.Names = []string{"board", "interns"} }, all},
		"nobody in particular":    {func(s *graph.Spec) { s.Nodes[1].Ask.People = nil }, all},
		"answered by itself":      {func(s *graph.Spec) { s.Nodes[1].Ask.Expiry, s.Nodes[1].Ask.Default = "resume_default", "true" }, all},
		"answered soon":           {func(s *graph.Spec) { s.Nodes[1].Ask.TTL = time.Second }, all},
		"answer without effect":   {func(s *graph.Spec) { s.Nodes[1].Ask.Update = nil }, all},
		"drift of the question":   {func(s *graph.Spec) { s.Nodes[1].Ask.Drift = graph.DriftAccept }, all},
		"drift of the graph":      {func(s *graph.Spec) { s.Drift = graph.DriftAccept }, all},
		"an edge around it":       {func(s *graph.Spec) { s.Edges = append(s.Edges, graph.EdgeSpec{From: []string{"compute"}, To: "pay"}) }, all},
		"a branch around it":      {func(s *graph.Spec) { s.Branches = []graph.BranchSpec{{From: "compute", Expr: "'pay'"}} }, all},
		"a goto around it":        {func(s *graph.Spec) { s.Nodes[0].Expr.Goto = "'pay'" }, all},
		"another node that pays": {func(s *graph.Spec) {
			s.Nodes = append(s.Nodes, graph.NodeSpec{Name: "pay2", Remote: &graph.RemoteSpec{}})
		}, all},
		"what its condition sees":     {func(s *graph.Spec) { s.Nodes[0].Expr.Update[0].Expr = "0" }, all},
		"a default of the state":      {func(s *graph.Spec) { s.Channels[0].Default = "0" }, all},
		"what a run may set":          {func(s *graph.Spec) { s.Input = []string{"amount"} }, all},
		"a handler of errors":         {func(s *graph.Spec) { s.Nodes[0].Policy.ErrorHandler = "pay" }, all},
		"a default handler":           {func(s *graph.Spec) { s.Defaults.ErrorHandler = "pay" }, all},
		"another endpoint":            {func(s *graph.Spec) { s.Nodes[2].Remote.Endpoint = "host:1" }, all},
		"a node that runs at the end": {func(s *graph.Spec) { s.Nodes[1].Defer = true }, all},
		"one more key of the state":   {func(s *graph.Spec) { s.Channels = append(s.Channels, graph.ChannelSpec{Name: "x"}) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			newer := newPayout()
			c.change(newer)
			require.Equal(t, c.want, graph.ListRemovedQuestions(newPayout(), newer))
		})
	}
}

func TestAttemptsCountBesideAHandlerOfErrors(t *testing.T) {
	older, newer := newPayout(), newPayout()
	older.Nodes[0].Policy.ErrorHandler, newer.Nodes[0].Policy.ErrorHandler = "pay", "pay"
	newer.Nodes[0].Policy.Timeout = time.Nanosecond
	require.Len(t, graph.ListRemovedQuestions(older, newer), 2)
}

func TestAnotherVersionOfAGraphInsideCounts(t *testing.T) {
	older := &graph.Spec{Name: "g", Nodes: []graph.NodeSpec{{Name: "n", Graph: &graph.SubgraphSpec{Name: "inner", Version: "2"}}}}
	newer := &graph.Spec{Name: "g", Nodes: []graph.NodeSpec{{Name: "n", Graph: &graph.SubgraphSpec{Name: "inner", Version: "1"}}}}
	require.Equal(t, []string{`what graph "inner" asks in node "n"`}, graph.ListRemovedQuestions(older, newer))
}

func TestGraphsWithoutQuestionsChangeFreely(t *testing.T) {
	older := newPayout()
	older.Nodes, older.InterruptBefore = older.Nodes[:1], nil
	require.Empty(t, graph.ListQuestions(older))
	require.Nil(t, graph.ListRemovedQuestions(older, newPayout()))
	require.Nil(t, graph.ListRemovedQuestions(nil, newPayout()))
}

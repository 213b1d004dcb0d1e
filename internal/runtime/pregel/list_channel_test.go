package pregel_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func newAppendMachine(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t, &graph.Spec{
		Channels: listChannel, Nodes: newNodes("n"), Edges: newEdges(graph.Start, "n", "n", "n"),
	}, newResults(map[string]string{"n": `{"l":["x","y"]}`}))
	m.applyInput(`{"l":["in"]}`)
	m.runStep()
	return m
}

func (m *machine) storedList() *checkpoint.List {
	for _, c := range m.state.Checkpoint().Channels {
		if c.Name == "l" {
			return c.List
		}
	}
	return nil
}

// An append stores what it adds, however long the list is.
func TestAppendCostsWhatItAdds(t *testing.T) {
	m := newAppendMachine(t)
	first := m.storedList().Segments[0].ID
	for i := range 100 {
		m.runStep()
		if i%10 == 0 {
			m.reloadState()
		}
		l := m.storedList()
		require.Equal(t, 2, l.Appended)
		require.Equal(t, []checkpoint.Segment{{ID: first, Len: len(l.Items)}}, l.Segments)
		require.Len(t, l.Items, 1+2*(i+1))
	}
}

// A list that was not written is not stored again.
func TestUnwrittenListIsNotStored(t *testing.T) {
	m := newAppendMachine(t)
	m.runStep()
	stored := m.findChannel("l").Stored
	m.results["n"] = pregel.Result{}
	m.runStep()
	require.Equal(t, stored, m.findChannel("l").Stored)
	require.Less(t, stored, m.state.Checkpoint().Seq)
}

func (m *machine) findChannel(name string) checkpoint.Channel {
	for _, c := range m.state.Checkpoint().Channels {
		if c.Name == name {
			return c
		}
	}
	return checkpoint.Channel{}
}

// Two branches of a history share what was there, and do not write into each
// other's list.
func TestForkStartsASegment(t *testing.T) {
	m := newAppendMachine(t)
	m.runStep()
	fork := *m.state.Checkpoint()
	m.results["n"] = pregel.Result{Update: `{"l":["old branch"]}`}
	m.runStep()
	old := m.storedList()

	m.state = pregel.LoadState(m.state.Graph(), &fork, true, pregel.Limits{})
	m.results["n"] = pregel.Result{Update: `{"l":["new"]}`}
	m.runStep()
	l := m.storedList()
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"new"`}, l.Items)
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"old branch"`}, old.Items)
	require.Len(t, l.Segments, 2)
	require.Equal(t, checkpoint.Segment{ID: m.state.Checkpoint().Seq, Len: 1}, l.Segments[1])
	require.Equal(t, 1, l.Appended)
	m.runStep()
	require.Len(t, m.storedList().Segments, 2, "from then on the segment grows")
	require.Equal(t, 2, m.storedList().Segments[1].Len)
}

// Forks of forks do not spread a list over ever more segments.
func TestSegmentsAreBounded(t *testing.T) {
	m := newAppendMachine(t)
	for range 40 {
		cp := *m.state.Checkpoint()
		m.state = pregel.LoadState(m.state.Graph(), &cp, true, pregel.Limits{})
		m.runStep()
		l := m.storedList()
		require.LessOrEqual(t, len(l.Segments), 8)
		total := 0
		for _, s := range l.Segments {
			total += s.Len
		}
		require.Equal(t, len(l.Items), total)
	}
}

// What is injected beside a superstep is stored by the next checkpoint.
func TestInjectedElementsAreStored(t *testing.T) {
	m := newAppendMachine(t)
	m.runStep()
	s, err := m.state.InjectWrites([]checkpoint.Write{{Channel: "l", Value: `["cmd"]`}})
	require.NoError(t, err)
	m.state = s
	m.runStep()
	l := m.storedList()
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"cmd"`, `"x"`, `"y"`}, l.Items)
	require.Equal(t, 3, l.Appended)
	require.Equal(t, m.state.Checkpoint().Seq, m.findChannel("l").Stored)
}

// Tasks that look ahead at the same time do not see each other, and leave the
// state as it is.
func TestLookingAheadChangesNothing(t *testing.T) {
	m := newAppendMachine(t)
	m.runStep()
	m.runStep() // there is spare capacity behind the elements now
	before := m.state.Values()
	var wg sync.WaitGroup
	for _, v := range []string{"a", "b", "c"} {
		wg.Go(func() {
			own := []checkpoint.Write{{Channel: "l", Value: payload.JSON(`["` + v + `"]`)}}
			for range 100 {
				s, err := m.state.InjectWrites(own)
				if err != nil || s.Values() != before[:len(before)-2]+payload.JSON(`,"`+v+`"]}`) {
					t.Errorf("%s saw %s, %v", v, s.Values(), err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, before, m.state.Values())
}

// In another namespace everything is stored anew.
func TestMoveToNamespace(t *testing.T) {
	m := newAppendMachine(t)
	m.runStep()
	moved := m.state.MoveToNamespace("sub:2")
	require.Equal(t, m.state.Values(), moved.Values())
	next := moved.CopyToCheckpoint(m.newCheckpointInfo(checkpoint.SourceFork))
	require.Equal(t, "sub:2", next.Namespace())
	for _, c := range next.Checkpoint().Channels {
		if c.Value != "" || c.List != nil {
			require.Equal(t, next.Checkpoint().Seq, c.Stored, c.Name)
		}
		if c.List != nil {
			require.Equal(t, len(c.List.Items), c.List.Appended)
			require.Equal(t, []checkpoint.Segment{{ID: next.Checkpoint().Seq, Len: len(c.List.Items)}}, c.List.Segments)
		}
	}
}

// A deferred join that is released stores that it is; who has arrived is
// stored already.
func TestReleasedJoinStoresItsMarkOnly(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: listChannel,
		Nodes: append(newNodes("x", "y", "more"),
			graph.NodeSpec{Name: "late", Defer: true, Function: &graph.FunctionSpec{}}),
		Edges: append(newEdges(graph.Start, "x", graph.Start, "y", "x", "more"),
			graph.EdgeSpec{From: []string{"x", "y"}, To: "late"}),
	}, nil)
	m.applyInput("{}")
	m.runStep()
	m.runStep()
	require.Equal(t, []string{"more"}, m.nextNodes())
	arrived := m.findChannel("join:x+y:late")
	require.Equal(t, 2, arrived.List.Appended)
	m.runStep()
	require.Equal(t, []string{"late"}, m.nextNodes())
	released := m.findChannel("join:x+y:late")
	require.True(t, released.Flag)
	require.Equal(t, m.state.Checkpoint().Seq, released.Stored)
	require.Zero(t, released.List.Appended)
	require.Equal(t, arrived.List.Segments, released.List.Segments)
}

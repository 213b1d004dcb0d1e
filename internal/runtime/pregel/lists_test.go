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

func appender(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t, &graph.Spec{
		Channels: list, Nodes: nodes("n"), Edges: edges(graph.Start, "n", "n", "n"),
	}, updates(map[string]string{"n": `{"l":["x","y"]}`}))
	m.input(`{"l":["in"]}`)
	m.step()
	return m
}

func (m *machine) list() *checkpoint.List {
	for _, c := range m.s.Checkpoint().Channels {
		if c.Name == "l" {
			return c.List
		}
	}
	return nil
}

// An append stores what it adds, however long the list is.
func TestAppendCostsWhatItAdds(t *testing.T) {
	m := appender(t)
	first := m.list().Segments[0].ID
	for i := range 100 {
		m.step()
		if i%10 == 0 {
			m.reload()
		}
		l := m.list()
		require.Equal(t, 2, l.Fresh)
		require.Equal(t, []checkpoint.Segment{{ID: first, Len: len(l.Items)}}, l.Segments)
		require.Len(t, l.Items, 1+2*(i+1))
	}
}

// A list that was not written is not stored again.
func TestUntouchedListIsNotStored(t *testing.T) {
	m := appender(t)
	m.step()
	stored := m.channel("l").Stored
	m.code["n"] = pregel.Result{}
	m.step()
	require.Equal(t, stored, m.channel("l").Stored)
	require.Less(t, stored, m.s.Checkpoint().Seq)
}

func (m *machine) channel(name string) checkpoint.Channel {
	for _, c := range m.s.Checkpoint().Channels {
		if c.Name == name {
			return c
		}
	}
	return checkpoint.Channel{}
}

// Two branches of a history share what was there, and do not write into each
// other's list.
func TestForkStartsASegment(t *testing.T) {
	m := appender(t)
	m.step()
	fork := *m.s.Checkpoint()
	m.code["n"] = pregel.Result{Update: `{"l":["old branch"]}`}
	m.step()
	old := m.list()

	m.s = pregel.Load(m.s.Graph(), &fork, true, pregel.Limits{})
	m.code["n"] = pregel.Result{Update: `{"l":["new"]}`}
	m.step()
	l := m.list()
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"new"`}, l.Items)
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"old branch"`}, old.Items)
	require.Len(t, l.Segments, 2)
	require.Equal(t, checkpoint.Segment{ID: m.s.Checkpoint().Seq, Len: 1}, l.Segments[1])
	require.Equal(t, 1, l.Fresh)
	m.step()
	require.Len(t, m.list().Segments, 2, "from then on the segment grows")
	require.Equal(t, 2, m.list().Segments[1].Len)
}

// Forks of forks do not spread a list over ever more segments.
func TestSegmentsAreBounded(t *testing.T) {
	m := appender(t)
	for range 40 {
		cp := *m.s.Checkpoint()
		m.s = pregel.Load(m.s.Graph(), &cp, true, pregel.Limits{})
		m.step()
		l := m.list()
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
	m := appender(t)
	m.step()
	s, err := m.s.Inject([]checkpoint.Write{{Channel: "l", Value: `["cmd"]`}})
	require.NoError(t, err)
	m.s = s
	m.step()
	l := m.list()
	require.Equal(t, []payload.JSON{`"in"`, `"x"`, `"y"`, `"cmd"`, `"x"`, `"y"`}, l.Items)
	require.Equal(t, 3, l.Fresh)
	require.Equal(t, m.s.Checkpoint().Seq, m.channel("l").Stored)
}

// Tasks that look ahead at the same time do not see each other, and leave the
// state as it is.
func TestLookingAheadChangesNothing(t *testing.T) {
	m := appender(t)
	m.step()
	m.step() // there is spare room behind the elements now
	before := m.s.Values()
	var wg sync.WaitGroup
	for _, v := range []string{"a", "b", "c"} {
		wg.Go(func() {
			own := []checkpoint.Write{{Channel: "l", Value: payload.JSON(`["` + v + `"]`)}}
			for range 100 {
				s, err := m.s.Inject(own)
				if err != nil || s.Values() != before[:len(before)-2]+payload.JSON(`,"`+v+`"]}`) {
					t.Errorf("%s saw %s, %v", v, s.Values(), err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, before, m.s.Values())
}

// In another namespace everything is stored anew.
func TestMove(t *testing.T) {
	m := appender(t)
	m.step()
	moved := m.s.Move("sub:2")
	require.Equal(t, m.s.Values(), moved.Values())
	next := moved.Restamp(m.stamp(checkpoint.SourceFork))
	require.Equal(t, "sub:2", next.Namespace())
	for _, c := range next.Checkpoint().Channels {
		if c.Value != "" || c.List != nil {
			require.Equal(t, next.Checkpoint().Seq, c.Stored, c.Name)
		}
		if c.List != nil {
			require.Equal(t, len(c.List.Items), c.List.Fresh)
			require.Equal(t, []checkpoint.Segment{{ID: next.Checkpoint().Seq, Len: len(c.List.Items)}}, c.List.Segments)
		}
	}
}

// A deferred join that is released stores that it is; who has arrived is
// stored already.
func TestReleasedJoinStoresItsMarkOnly(t *testing.T) {
	m := newMachine(t, &graph.Spec{
		Channels: list,
		Nodes: append(nodes("x", "y", "more"),
			graph.NodeSpec{Name: "late", Defer: true, Function: &graph.FunctionSpec{}}),
		Edges: append(edges(graph.Start, "x", graph.Start, "y", "x", "more"),
			graph.EdgeSpec{From: []string{"x", "y"}, To: "late"}),
	}, nil)
	m.input("{}")
	m.step()
	m.step()
	require.Equal(t, []string{"more"}, m.next())
	arrived := m.channel("join:x+y:late")
	require.Equal(t, 2, arrived.List.Fresh)
	m.step()
	require.Equal(t, []string{"late"}, m.next())
	released := m.channel("join:x+y:late")
	require.True(t, released.Flag)
	require.Equal(t, m.s.Checkpoint().Seq, released.Stored)
	require.Zero(t, released.List.Fresh)
	require.Equal(t, arrived.List.Segments, released.List.Segments)
}

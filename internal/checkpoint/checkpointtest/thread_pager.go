package checkpointtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// A store that passes over threads comes to the same places as one that lists them.
func threadPagerCases() []testCase {
	return []testCase{
		{"an offset passes over what a list shows", pagerOffsets},
		{"a count agrees with lists", pagerCounts},
		{"an offset into nothing finds nothing", pagerNothing},
		{"threads are found by the form of their ids", pagerForms},
		{"an offset passes over many threads", pagerMany},
	}
}

// newPagedThreads makes threads of some tenants, some with UUIDs, and returns their heads.
func (e *env) newPagedThreads(perTenant int) (heads []*checkpoint.Head) {
	rng := rand.New(rand.NewPCG(5, 6))
	states := []checkpoint.ThreadState{checkpoint.ThreadIdle, checkpoint.ThreadBusy, checkpoint.ThreadInterrupted}
	for _, owner := range []string{tenant.Default, "acme", "acm"} {
		for i := range perTenant {
			id := fmt.Sprintf("t%03d", i)
			if rng.IntN(3) > 0 {
				id = fmt.Sprintf("%08x-1f2e-4d3c-8B7a-%012x", rng.Uint32(), i)
			}
			th := e.newThread(e.qualifyID(owner, id))
			th.head.Created, th.head.Updated = testDay(rng.IntN(9)), testDay(rng.IntN(9))
			th.head.State, th.head.Graph = states[rng.IntN(3)], []string{"", "g0", "g1", "g1"}[rng.IntN(4)]
			th.head.Metadata = map[string]string{"user": fmt.Sprint(rng.IntN(2))}
			if rng.IntN(8) == 0 {
				th.head.Metadata["rare"] = "yes"
			}
			th.applyEdits()
			heads = append(heads, &th.head)
		}
	}
	return heads
}

// listPagerQueries lists queries of each combination of conditions.
func listPagerQueries() (all []checkpoint.ThreadQuery) {
	for _, owner := range []string{tenant.Default, "acme", ""} {
		for _, only := range []bool{false, true} {
			for _, state := range []checkpoint.ThreadState{"", checkpoint.ThreadIdle} {
				for _, graph := range []string{"", "g1"} {
					for _, metadata := range []map[string]string{nil, {"user": "1"}, {"rare": "yes"}, {"rare": "yes", "user": "0"}} {
						all = append(all, checkpoint.ThreadQuery{Tenant: owner, OnlyUUIDs: only, State: state, Graph: graph, Metadata: metadata})
					}
				}
			}
		}
	}
	return all
}

// selectHeads returns the threads that a query selects, in its order.
func selectHeads(q *checkpoint.ThreadQuery, heads []*checkpoint.Head) (out []*checkpoint.Head) {
	for _, h := range heads {
		if q.MatchesThread(h) && tenant.Contains(q.Tenant, h.Thread) {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b *checkpoint.Head) int {
		return cmp.Or(q.PositionOf(b).Time().Compare(q.PositionOf(a).Time()), strings.Compare(a.Thread, b.Thread))
	})
	return out
}

func namesOf(heads []*checkpoint.Head) []string {
	names := []string{}
	for _, h := range heads {
		names = append(names, h.Thread)
	}
	return names
}

func pagerOffsets(e *env) {
	heads := e.newPagedThreads(40)
	for _, q := range listPagerQueries() {
		want := selectHeads(&q, heads)
		require.Equal(e, namesOf(want), e.listThreads(q), "%+v", q)
		for _, n := range []int{1, 2, 7, len(want) - 1, len(want)} {
			if n < 1 || n > len(want) {
				continue
			}
			at, err := e.store.SkipThreads(e.ctx, q, n)
			require.NoError(e, err)
			require.Equal(e, q.PositionOf(want[n-1]), at, "%d of %+v", n, q)
			after := q
			after.Before = at
			require.Equal(e, namesOf(want[n:]), e.listThreads(after), "after %d of %+v", n, q)
			if n < len(want) {
				next, err := e.store.SkipThreads(e.ctx, after, 1)
				require.NoError(e, err)
				require.Equal(e, q.PositionOf(want[n]), next, "an offset begins at the place of the page")
			}
		}
		at, err := e.store.SkipThreads(e.ctx, q, len(want)+1)
		require.NoError(e, err)
		require.Zero(e, at, "%+v", q)
	}
}

func pagerCounts(e *env) {
	heads := e.newPagedThreads(40)
	for _, q := range listPagerQueries() {
		want := selectHeads(&q, heads)
		for _, atMost := range []int{0, 1, len(want) - 1, len(want), len(want) + 1, 1_000_000} {
			if atMost < 0 {
				continue
			}
			n, err := e.store.CountSelectedThreads(e.ctx, q, atMost)
			require.NoError(e, err)
			require.Equal(e, min(atMost, len(want)), n, "at most %d of %+v", atMost, q)
		}
		if len(want) > 2 {
			q.Before = q.PositionOf(want[1])
			n, err := e.store.CountSelectedThreads(e.ctx, q, 1_000_000)
			require.NoError(e, err)
			require.Equal(e, len(want)-2, n, "%+v", q)
		}
	}
}

func pagerNothing(e *env) {
	for _, q := range listPagerQueries() {
		at, err := e.store.SkipThreads(e.ctx, q, 1)
		require.NoError(e, err)
		require.Zero(e, at)
		n, err := e.store.CountSelectedThreads(e.ctx, q, 10)
		require.NoError(e, err)
		require.Zero(e, n)
	}
}

func pagerForms(e *env) {
	const id = "0123abcd-89AB-4cde-8f01-23456789abcd"
	others := []string{
		"t", id[1:], id + "0", "g" + id[1:], strings.Replace(id, "-", "_", 1), strings.Replace(id, "4", "-", 1),
		"--------" + id[8:], strings.ReplaceAll(id, "-", ""), "0" + id[:8] + id[9:], id[:35] + ":",
	}
	for _, other := range others {
		require.False(e, checkpoint.IsUUID(other), other)
	}
	for _, owner := range []string{tenant.Default, "acme", id} {
		for _, name := range append(others, id) {
			th := e.newThread(e.qualifyID(owner, name))
			th.head.Metadata = map[string]string{"all": "yes"}
			th.applyEdits()
		}
		for _, q := range []checkpoint.ThreadQuery{
			{},
			{State: checkpoint.ThreadIdle},
			{Graph: "g"},
			{Metadata: map[string]string{"all": "yes"}},
			{State: checkpoint.ThreadIdle, Metadata: map[string]string{"all": "yes"}},
		} {
			q.Tenant, q.OnlyUUIDs = owner, true
			require.Equal(e, []string{e.qualifyID(owner, id)}, e.listThreads(q))
			n, err := e.store.CountSelectedThreads(e.ctx, q, 100)
			require.NoError(e, err)
			require.Equal(e, 1, n, "%+v", q)
			at, err := e.store.SkipThreads(e.ctx, q, 1)
			require.NoError(e, err)
			require.Equal(e, e.qualifyID(owner, id), at.Thread)
		}
	}
}

// pagerMany has more threads than a store passes over in one read, of which few meet a condition
// besides.
func pagerMany(e *env) {
	const count = 1500
	var heads []*checkpoint.Head
	for i := range count {
		th := e.newThread(fmt.Sprintf("t%04d", i))
		th.head.Created, th.head.Updated = testDay(i%50), testDay(i%50)
		th.head.Metadata = map[string]string{"all": "yes"}
		if i%100 == 0 {
			th.head.State = checkpoint.ThreadFailed
		}
		th.applyEdits()
		heads = append(heads, &th.head)
	}
	for _, q := range []checkpoint.ThreadQuery{
		{},
		{State: checkpoint.ThreadIdle},
		{State: checkpoint.ThreadIdle, Graph: "g"},
		{State: checkpoint.ThreadFailed, Graph: "g"},
		{State: checkpoint.ThreadIdle, Metadata: map[string]string{"all": "yes"}},
		{State: checkpoint.ThreadIdle, Graph: "g", Metadata: map[string]string{"all": "yes"}},
	} {
		q.Tenant = tenant.Default
		want := selectHeads(&q, heads)
		for _, n := range []int{1, len(want) / 2, len(want)} {
			at, err := e.store.SkipThreads(e.ctx, q, n)
			require.NoError(e, err)
			require.Equal(e, q.PositionOf(want[n-1]), at, "%d of %+v", n, q)
		}
		n, err := e.store.CountSelectedThreads(e.ctx, q, 1_000_000)
		require.NoError(e, err)
		require.Equal(e, len(want), n)
	}
}

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

func threadTagCases() []testCase {
	return []testCase{
		{"threads with conditions stand by creation", threadTagOrder},
		{"a thread changes its tags", threadTagChanges},
		{"metadata is any text", threadTagTexts},
		{"lists with conditions agree with the heads after random changes", threadTagRandom},
	}
}

func threadTagOrder(e *env) {
	want := []string{}
	for day := range 4 {
		for i := range 3 {
			th := e.newThread(fmt.Sprintf("t%d%d", day, i))
			th.head.Created, th.head.Updated = testDay(-day), testDay(day)
			th.head.Metadata = map[string]string{"user": "ana"}
			th.applyEdits()
			want = append(want, th.id)
		}
	}
	for _, q := range []checkpoint.ThreadQuery{
		{Graph: "g"},
		{State: checkpoint.ThreadIdle},
		{Metadata: map[string]string{"user": "ana"}},
		{Graph: "g", State: checkpoint.ThreadIdle, Metadata: map[string]string{"user": "ana"}},
	} {
		for _, owner := range []string{"", tenant.Default} {
			for _, size := range []int{1, 2, 5, 50} {
				q.Tenant, q.Limit = owner, size
				require.Equal(e, want, e.listThreadPages(q), "%+v", q)
			}
		}
	}
}

func threadTagChanges(e *env) {
	find := func(q checkpoint.ThreadQuery) []string {
		e.Helper()
		q.Tenant = tenant.Default
		return e.listThreads(q)
	}
	user := func(name string) checkpoint.ThreadQuery {
		return checkpoint.ThreadQuery{Metadata: map[string]string{"user": name}}
	}
	long := strings.Repeat("long ", 100)
	th := e.newThread("t")
	th.head.Metadata = map[string]string{"user": "ana", "long": long}
	th.applyEdits()
	require.Equal(e, []string{"t"}, find(user("ana")))
	require.Equal(e, []string{"t"}, find(checkpoint.ThreadQuery{Metadata: map[string]string{"long": long, "user": "ana"}}))
	require.Empty(e, find(checkpoint.ThreadQuery{Metadata: map[string]string{"long": long + "x"}}))
	th.head.Metadata = map[string]string{"user": "ben"}
	th.head.State, th.head.Graph = checkpoint.ThreadFailed, "other"
	th.applyEdits()
	for _, q := range []checkpoint.ThreadQuery{user("ana"), {Graph: "g"}, {State: checkpoint.ThreadIdle}} {
		require.Empty(e, find(q), "%+v", q)
	}
	for _, q := range []checkpoint.ThreadQuery{user("ben"), {Graph: "other"}, {State: checkpoint.ThreadFailed}} {
		require.Equal(e, []string{"t"}, find(q), "%+v", q)
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	for _, q := range []checkpoint.ThreadQuery{user("ben"), {Graph: "other"}, {State: checkpoint.ThreadFailed}} {
		require.Empty(e, find(q), "%+v", q)
	}
	again := e.newThread("t")
	again.head.Created = testDay(1)
	again.applyEdits()
	require.Equal(e, []string{"t"}, find(checkpoint.ThreadQuery{Graph: "g"}))
	require.Empty(e, find(user("ben")))
}

// threadTagTexts lists threads by values of which some are the beginnings of others.
func threadTagTexts(e *env) {
	texts := []string{"", "a", "a\x00", "a\x00b", "a\x00\x00", "\x00", "a\x01", `"a" & <b>`, "\u2028", "1:a=b", "%d%s", "a\x007fffffffffffffffx\x00\x0000000001"}
	for i, text := range texts {
		th := e.newThread(fmt.Sprintf("t%02d", i))
		th.head.Created, th.head.Metadata = testDay(-i), map[string]string{"user": text, "all": "a\x00b"}
		th.applyEdits()
	}
	for i, text := range texts {
		for _, metadata := range []map[string]string{{"user": text}, {"user": text, "all": "a\x00b"}} {
			q := checkpoint.ThreadQuery{Tenant: tenant.Default, Metadata: metadata, Limit: 2}
			require.Equal(e, []string{fmt.Sprintf("t%02d", i)}, e.listThreadPages(q), "%q", text)
		}
	}
	q := checkpoint.ThreadQuery{Tenant: tenant.Default, Metadata: map[string]string{"all": "a\x00b"}, Limit: 2}
	require.Len(e, e.listThreadPages(q), len(texts))
}

// threadTagRandom makes many changes of some threads, and compares lists with the heads.
func threadTagRandom(e *env) {
	rng := rand.New(rand.NewPCG(3, 4))
	states := []checkpoint.ThreadState{checkpoint.ThreadIdle, checkpoint.ThreadBusy, checkpoint.ThreadInterrupted, checkpoint.ThreadFailed}
	threads := map[string]*threadDriver{}
	for range 300 {
		id := fmt.Sprintf("t%d", rng.IntN(12))
		th := threads[id]
		if th == nil {
			th = e.newThread(id)
			th.head.Created = testDay(rng.IntN(4))
			threads[id] = th
		}
		if th.rev > 0 && rng.IntN(12) == 0 {
			th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
			delete(threads, id)
			continue
		}
		th.head.State, th.head.Graph = states[rng.IntN(4)], fmt.Sprintf("g%d", rng.IntN(2))
		th.head.Metadata = map[string]string{}
		for _, key := range []string{"a", "b"} {
			if rng.IntN(2) == 0 {
				th.head.Metadata[key] = fmt.Sprint(rng.IntN(2))
			}
		}
		th.applyEdits(setUpdated(testDay(rng.IntN(30))))
	}
	for _, q := range []checkpoint.ThreadQuery{
		{Graph: "g0"},
		{Graph: "g1"},
		{State: states[0]},
		{State: states[3]},
		{Metadata: map[string]string{"a": "0"}},
		{Metadata: map[string]string{"a": "0", "b": "1"}},
		{State: states[1], Graph: "g1"},
		{State: states[2], Metadata: map[string]string{"b": "1"}},
		{Graph: "g0", State: states[0], Metadata: map[string]string{"a": "1", "b": "1"}},
	} {
		var heads []*checkpoint.Head
		for _, th := range threads {
			if q.MatchesThread(&th.head) {
				heads = append(heads, &th.head)
			}
		}
		slices.SortFunc(heads, func(a, b *checkpoint.Head) int {
			return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.Thread, b.Thread))
		})
		want := []string{}
		for _, h := range heads {
			want = append(want, h.Thread)
		}
		q.Tenant, q.Limit = tenant.Default, 3
		require.Equal(e, want, e.listThreadPages(q), "%+v", q)
	}
}

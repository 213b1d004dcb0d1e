package checkpointtest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

func tenantCases() []testCase {
	return []testCase{
		{"a list has the threads of its tenant", tenantThreads},
		{"names that begin alike are of different tenants", tenantNames},
		{"pages of a tenant's threads are exact between those of others", tenantThreadPages},
		{"threads of a tenant are filtered", tenantThreadFilters},
		{"a thread moves in the list of its tenant", tenantMoves},
		{"a list has the questions of its tenant", tenantQuestions},
		{"pages of a tenant's questions are exact between those of others", tenantQuestionPages},
		{"a thread of another tenant has no questions", tenantOfThread},
		{"the changes of a tenant can be followed", tenantChanges},
		{"pages of changes are exact over all tenants", tenantChangePages},
		{"a watch misses nothing while other tenants change", tenantConcurrentChanges},
		{"a deletion leaves the same id of other tenants", tenantDeletes},
		{"due threads are those of all tenants", tenantDue},
		{"the threads of a tenant are counted", tenantCountsThreads},
		{"the open questions of a tenant are counted", tenantCountsQuestions},
		{"refused changes count nothing", tenantCountsNothingRefused},
		{"the same graph in two tenants is two graphs", tenantGraphs},
	}
}

// listTenantNames returns the tenants of the cases.
func listTenantNames() []string { return []string{tenant.Default, "acme", "acme2", "b"} }

// qualifyID returns an id of a tenant as stores know it.
func (e *env) qualifyID(name, id string) string {
	e.Helper()
	text, err := tenant.Qualify(name, id)
	require.NoError(e, err)
	return text
}

func tenantThreads(e *env) {
	var all []string
	for i, name := range listTenantNames() {
		require.Empty(e, e.listThreads(checkpoint.ThreadQuery{Tenant: name}))
		for j, id := range []string{"t", "u"} {
			th := e.newThread(e.qualifyID(name, id))
			th.applyEdits(setUpdated(testDay(-i - 10*j)))
		}
	}
	for _, id := range []string{"t", "u"} {
		for _, name := range listTenantNames() {
			all = append(all, e.qualifyID(name, id))
		}
	}
	require.Equal(e, all, e.listThreads(checkpoint.ThreadQuery{}), "no tenant means all, in one order")
	require.Equal(e, all[:3], e.listThreads(checkpoint.ThreadQuery{Limit: 3}))
	for _, name := range listTenantNames() {
		want := []string{e.qualifyID(name, "t"), e.qualifyID(name, "u")}
		require.Equal(e, want, e.listThreads(checkpoint.ThreadQuery{Tenant: name}))
		require.Equal(e, want[:1], e.listThreads(checkpoint.ThreadQuery{Tenant: name, Limit: 1}))
	}
	for _, name := range []string{"none", "acm", "ACME", "t", "acme@t", "acme@", "@"} {
		require.Empty(e, e.listThreads(checkpoint.ThreadQuery{Tenant: name}), name)
		require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name}), name)
		require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name, ByChange: true}), name)
	}
}

func tenantNames(e *env) {
	names := []string{
		tenant.Default, "d", "defaul", "default2", "Default", "a", "A", "a.b", "a:b", "a-b", "a_b", "aa", "0", "-", ".", ":",
		"threads", "inbox", "tenants", strings.Repeat("n", tenant.MaxNameLength),
	}
	for _, name := range names {
		e.newThread(e.qualifyID(name, "a")).putInterrupt("q")
	}
	e.newThread("threads").putInterrupt("q") // an id that is the name of a tenant
	for _, name := range names {
		id := e.qualifyID(name, "a")
		threads, questions := []string{id}, []string{id + "/q"}
		if name == tenant.Default {
			threads, questions = append(threads, "threads"), append(questions, "threads/q")
		}
		require.Equal(e, threads, e.listThreads(checkpoint.ThreadQuery{Tenant: name}))
		require.Equal(e, questions, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name}))
		require.Equal(e, questions, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name, ByChange: true}))
	}
	require.Len(e, e.listThreads(checkpoint.ThreadQuery{}), len(names)+1)
	require.Len(e, e.listInterrupts(checkpoint.InterruptQuery{}), len(names)+1)
	require.Len(e, e.listInterrupts(checkpoint.InterruptQuery{ByChange: true}), len(names)+1)
}

// listThreadPages lists all threads of a query, page by page.
func (e *env) listThreadPages(q checkpoint.ThreadQuery) []string {
	e.Helper()
	got := []string{}
	for {
		heads, err := e.store.Threads(e.ctx, q)
		require.NoError(e, err)
		for i := range heads {
			got = append(got, heads[i].Thread)
		}
		if len(heads) < q.Limit {
			return got
		}
		last := heads[len(heads)-1]
		q.Before = q.PositionOf(&last)
	}
}

func tenantThreadPages(e *env) {
	want := map[string][]string{}
	for day := range 4 {
		for _, name := range listTenantNames() {
			for i := range 3 {
				id := e.qualifyID(name, fmt.Sprintf("t%d%d", day, i))
				e.newThread(id).applyEdits(setUpdated(testDay(-day)))
				want[name] = append(want[name], id)
			}
		}
	}
	all := e.listThreads(checkpoint.ThreadQuery{})
	require.Len(e, all, 4*3*len(listTenantNames()))
	for _, size := range []int{1, 2, 5, 12, 13} {
		for _, name := range listTenantNames() {
			require.Equal(e, want[name], e.listThreadPages(checkpoint.ThreadQuery{Tenant: name, Limit: size}), "pages of %d", size)
		}
		require.Equal(e, all, e.listThreadPages(checkpoint.ThreadQuery{Limit: size}), "pages of %d", size)
	}
	other := checkpoint.ThreadPosition{Updated: testDay(-1), Thread: e.qualifyID("b", "t11")}
	require.Equal(e, want["acme"][6:], e.listThreads(checkpoint.ThreadQuery{Tenant: "acme", Before: other}),
		"after a position of another tenant")
}

func tenantThreadFilters(e *env) {
	for _, name := range listTenantNames() {
		for i, state := range []checkpoint.ThreadState{checkpoint.ThreadIdle, checkpoint.ThreadBusy} {
			th := e.newThread(e.qualifyID(name, fmt.Sprint(i)))
			th.head.State, th.head.Graph = state, e.qualifyID(name, "g")
			th.head.Metadata = map[string]string{"user": fmt.Sprint(i)}
			th.applyEdits()
		}
	}
	for _, name := range listTenantNames() {
		idle, busy := e.qualifyID(name, "0"), e.qualifyID(name, "1")
		for _, c := range []struct {
			q    checkpoint.ThreadQuery
			want []string
		}{
			{checkpoint.ThreadQuery{State: checkpoint.ThreadIdle}, []string{idle}},
			{checkpoint.ThreadQuery{Graph: e.qualifyID(name, "g")}, []string{idle, busy}},
			{checkpoint.ThreadQuery{Graph: "g2"}, []string{}},
			{checkpoint.ThreadQuery{Graph: e.qualifyID("other", "g")}, []string{}},
			{checkpoint.ThreadQuery{Metadata: map[string]string{"user": "1"}}, []string{busy}},
			{checkpoint.ThreadQuery{Metadata: map[string]string{"user": "1"}, State: checkpoint.ThreadIdle}, []string{}},
		} {
			c.q.Tenant = name
			require.Equal(e, c.want, e.listThreads(c.q), "%+v", c.q)
		}
	}
}

func tenantMoves(e *env) {
	a, b, other := e.newThread("acme@a"), e.newThread("acme@b"), e.newThread("a")
	other.applyEdits(setUpdated(testDay(4)))
	for n := range 3 {
		a.applyEdits(setUpdated(testDay(2*n + 1)))
		require.Equal(e, "acme@a", e.listThreads(checkpoint.ThreadQuery{Tenant: "acme"})[0])
		b.applyEdits(setUpdated(testDay(2*n+2)), func(c *checkpoint.Change) { c.Head.State = checkpoint.ThreadBusy })
		require.Equal(e, []string{"acme@b", "acme@a"}, e.listThreads(checkpoint.ThreadQuery{Tenant: "acme"}))
		require.Equal(e, []string{"a"}, e.listThreads(checkpoint.ThreadQuery{Tenant: tenant.Default}))
	}
	require.Equal(e, []string{"acme@b", "acme@a", "a"}, e.listThreads(checkpoint.ThreadQuery{}))
}

func setState(state checkpoint.InterruptState) func(*checkpoint.Interrupt) {
	return func(in *checkpoint.Interrupt) { in.State = state }
}

func tenantQuestions(e *env) {
	for i, name := range listTenantNames() {
		th := e.newThread(e.qualifyID(name, "t"))
		th.putInterrupt("1", setCreated(testDay(i)))
		th.putInterrupt("2", setCreated(testDay(-i)))
		th.putInterrupt("3", setCreated(testDay(20)), setState(checkpoint.InterruptExpired))
		th.putInterrupt("1", setCreated(testDay(i)), setState(checkpoint.InterruptAnswered))
	}
	open := []checkpoint.InterruptState{checkpoint.InterruptOpen}
	closed := []checkpoint.InterruptState{checkpoint.InterruptAnswered, checkpoint.InterruptExpired}
	for i, name := range listTenantNames() {
		id := e.qualifyID(name, "t")
		q1, q2, q3 := id+"/1", id+"/2", id+"/3"
		want := []string{q2, q1, q3}
		if i == 0 {
			want = []string{q1, q2, q3}
		}
		for _, c := range []struct {
			q    checkpoint.InterruptQuery
			want []string
		}{
			{checkpoint.InterruptQuery{}, want},
			{checkpoint.InterruptQuery{Limit: 2}, want[:2]},
			{checkpoint.InterruptQuery{Thread: id}, want},
			{checkpoint.InterruptQuery{States: open}, []string{q2}},
			{checkpoint.InterruptQuery{States: closed}, []string{q1, q3}},
			{checkpoint.InterruptQuery{States: append(open, closed...), Limit: 2}, want[:2]},
			{checkpoint.InterruptQuery{ByChange: true}, []string{q2, q3, q1}},
			{checkpoint.InterruptQuery{ByChange: true, States: closed}, []string{q3, q1}},
			{checkpoint.InterruptQuery{Tags: []string{checkpoint.GraphTag("none")}}, []string{}},
		} {
			c.q.Tenant = name
			require.Equal(e, c.want, e.listInterrupts(c.q), "%+v", c.q)
		}
	}
	var oldest []string
	for i := range listTenantNames() {
		oldest = append(oldest, e.qualifyID(listTenantNames()[len(listTenantNames())-1-i], "t")+"/2")
	}
	require.Equal(e, oldest, e.listInterrupts(checkpoint.InterruptQuery{States: open}), "no tenant means all")
}

func tenantQuestionPages(e *env) {
	want := map[string][]string{}
	for day := range 3 {
		for _, name := range listTenantNames() {
			for i := range 3 {
				th := e.newThread(e.qualifyID(name, fmt.Sprintf("t%d%d", day, i)))
				th.putInterrupt("a", setCreated(testDay(day)))
				th.putInterrupt("b", setCreated(testDay(day)))
				want[name] = append(want[name], th.id+"/a", th.id+"/b")
			}
		}
	}
	all := e.listInterrupts(checkpoint.InterruptQuery{})
	require.Len(e, all, 18*len(listTenantNames()))
	for _, size := range []int{1, 4, 18, 19} {
		for _, name := range listTenantNames() {
			require.Equal(e, want[name], e.listQuestionPages(checkpoint.InterruptQuery{Tenant: name, Limit: size}), "pages of %d", size)
		}
		require.Equal(e, all, e.listQuestionPages(checkpoint.InterruptQuery{Limit: size}), "pages of %d", size)
	}
}

// listQuestionPages lists all interrupts of a query, page by page.
func (e *env) listQuestionPages(q checkpoint.InterruptQuery) []string {
	e.Helper()
	got := []string{}
	for {
		list, err := e.store.Interrupts(e.ctx, q)
		require.NoError(e, err)
		for i := range list {
			got = append(got, list[i].Thread+"/"+list[i].ID)
			q.After = checkpoint.InterruptPosition{
				Created: list[i].Created, Thread: list[i].Thread, ID: list[i].ID, Change: list[i].Change,
			}
		}
		if len(list) < q.Limit {
			return got
		}
	}
}

func tenantOfThread(e *env) {
	e.newThread("t").putInterrupt("q")
	e.newThread("acme@t").putInterrupt("q")
	for _, byChange := range []bool{false, true} {
		q := checkpoint.InterruptQuery{Thread: "acme@t", ByChange: byChange}
		require.Equal(e, []string{"acme@t/q"}, e.listInterrupts(q), "of any tenant")
		q.Tenant = "acme"
		require.Equal(e, []string{"acme@t/q"}, e.listInterrupts(q))
		for _, other := range []string{tenant.Default, "b", "acm"} {
			q.Tenant = other
			require.Empty(e, e.listInterrupts(q), other)
		}
		q.Tenant, q.Thread = "acme", "t"
		require.Empty(e, e.listInterrupts(q))
	}
}

func tenantChanges(e *env) {
	drivers, cursors := map[string]*threadDriver{}, map[string]uint64{}
	for _, name := range listTenantNames() {
		drivers[name] = e.newThread(e.qualifyID(name, "t"))
	}
	follow := func(name string, limit int) []string {
		e.Helper()
		list, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{
			Tenant: name, ByChange: true, Limit: limit, After: checkpoint.InterruptPosition{Change: cursors[name]},
		})
		require.NoError(e, err)
		out := []string{}
		for i := range list {
			require.True(e, tenant.Contains(name, list[i].Thread))
			require.Greater(e, list[i].Change, cursors[name])
			cursors[name] = list[i].Change
			out = append(out, list[i].ID)
		}
		return out
	}
	require.Empty(e, follow("acme", 0))
	for _, id := range []string{"1", "2", "3"} {
		for _, name := range listTenantNames() {
			drivers[name].putInterrupt(id)
		}
	}
	require.Equal(e, []string{"1", "2"}, follow("acme", 2))
	drivers["acme"].putInterrupt("1")
	require.Equal(e, []string{"3", "1"}, follow("acme", 0))
	for i := range 200 { // enough for any clean-up of old entries
		drivers["b"].putInterrupt(fmt.Sprint(i % 3))
	}
	require.Empty(e, follow("acme", 0), "others have changed")
	require.Equal(e, []string{"1", "2", "3"}, follow(tenant.Default, 0))
	drivers["acme"].putInterrupt("4")
	require.Equal(e, []string{"4"}, follow("acme", 0))
	require.Empty(e, follow("acme2", 0)[3:])
	drivers["acme"].applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	require.Empty(e, follow("acme", 0))
	again := e.newThread(e.qualifyID("acme", "u"))
	again.putInterrupt("5")
	require.Equal(e, []string{"5"}, follow("acme", 0), "numbers grow on after the last thread of the tenant was deleted")
	require.Equal(e, []string{"3", "2", "0", "1"}, follow("b", 0))
}

// tenantChangePages follows the changes of all tenants, page by page.
func tenantChangePages(e *env) {
	want := []string{}
	for i := range 5 {
		for _, name := range listTenantNames() {
			th := e.newThread(e.qualifyID(name, fmt.Sprint("t", i)))
			th.putInterrupt("q")
			want = append(want, th.id+"/q")
		}
	}
	for _, size := range []int{1, 3, 20, 21} {
		got := e.listQuestionPages(checkpoint.InterruptQuery{ByChange: true, Limit: size})
		if e.ownClock { // numbers of threads come close to the order in which they were put
			require.ElementsMatch(e, want, got, "pages of %d", size)
		} else {
			require.Equal(e, want, got, "pages of %d", size)
		}
	}
}

//nolint:testifylint // require ends only the test's own goroutine
func tenantConcurrentChanges(e *env) {
	const threads, each = 2, 10
	var stop atomic.Bool
	seen := map[string]int{}
	var cursor uint64
	follow := func() {
		list, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{
			Tenant: "acme", ByChange: true, Limit: 5, After: checkpoint.InterruptPosition{Change: cursor},
		})
		assert.NoError(e, err)
		for i := range list {
			assert.Greater(e, list[i].Change, cursor)
			cursor = list[i].Change
			seen[list[i].Thread+"/"+list[i].ID]++
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			follow()
		}
	})
	runParallel(threads*len(listTenantNames()), func(i int) {
		th := e.newThread(e.qualifyID(listTenantNames()[i%len(listTenantNames())], fmt.Sprint("t", i)))
		for n := range each {
			c := th.newChange()
			c.Interrupts = []checkpoint.Interrupt{newInterrupt(th.id, fmt.Sprint("q", n), "c")}
			r, err := e.store.Apply(e.ctx, c)
			if !assert.NoError(e, err) {
				return
			}
			th.rev = r.Revision
		}
	})
	stop.Store(true)
	wg.Wait()
	for before := -1; before != len(seen); {
		before = len(seen)
		follow()
	}
	require.Len(e, seen, threads*each)
	for id, n := range seen {
		require.Equal(e, 1, n, id)
		require.True(e, strings.HasPrefix(id, "acme@"), id)
	}
}

func tenantDeletes(e *env) {
	drivers := map[string]*threadDriver{}
	for _, name := range listTenantNames() {
		drivers[name] = e.newThread(e.qualifyID(name, "t"))
		drivers[name].applyEdits(fullChange("r"))
		drivers[name].putInterrupt("q")
	}
	left := listTenantNames()
	for _, name := range listTenantNames() {
		drivers[name].applyEdits(func(c *checkpoint.Change) { c.Delete = true })
		left = left[1:]
		require.Empty(e, e.listThreads(checkpoint.ThreadQuery{Tenant: name}))
		require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name}))
		require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{Tenant: name, ByChange: true}))
		for _, other := range left {
			drivers[other].requireStored()
			require.Equal(e, []string{drivers[other].id}, e.listThreads(checkpoint.ThreadQuery{Tenant: other}))
			require.Contains(e, e.listInterrupts(checkpoint.InterruptQuery{Tenant: other}), drivers[other].id+"/q")
		}
		require.Len(e, e.listThreads(checkpoint.ThreadQuery{}), len(left))
	}
	require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{}))
	e.newThread("acme@t").putInterrupt("q2")
	require.Equal(e, []string{"acme@t"}, e.listThreads(checkpoint.ThreadQuery{Tenant: "acme"}), "a tenant comes back")
	require.Equal(e, []string{"acme@t"}, e.listThreads(checkpoint.ThreadQuery{}))
	require.Equal(e, []string{"acme@t/q2"}, e.listInterrupts(checkpoint.InterruptQuery{}))
}

// requireCounts checks the counts of a tenant.
func (e *env) requireCounts(name string, threads, open int) {
	e.Helper()
	for _, atMost := range []int{0, 1, 2, threads, open, 1_000_000} {
		n, err := e.store.CountThreads(e.ctx, name, atMost)
		require.NoError(e, err)
		require.Equal(e, min(threads, atMost), n, "threads of %q, at most %d", name, atMost)
		n, err = e.store.CountOpenInterrupts(e.ctx, name, atMost)
		require.NoError(e, err)
		require.Equal(e, min(open, atMost), n, "open questions of %q, at most %d", name, atMost)
	}
}

func tenantCountsThreads(e *env) {
	var drivers []*threadDriver
	for n, name := range listTenantNames() {
		e.requireCounts(name, 0, 0)
		for i := range 3 + n {
			th := e.newThread(e.qualifyID(name, fmt.Sprint("t", i)))
			th.applyEdits(setUpdated(testDay(i)))
			th.applyEdits(setUpdated(testDay(-i)), func(c *checkpoint.Change) { c.Head.State = checkpoint.ThreadBusy })
			drivers = append(drivers, th)
		}
	}
	for n, name := range listTenantNames() {
		e.requireCounts(name, 3+n, 0)
	}
	for _, name := range []string{"", "none", "acm", "acme@t0", "acme@", "@"} {
		e.requireCounts(name, 0, 0)
	}
	for _, th := range drivers {
		th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	}
	for _, name := range listTenantNames() {
		e.requireCounts(name, 0, 0)
	}
	e.newThread("acme@t0").applyEdits() // made again
	e.requireCounts("acme", 1, 0)
}

func tenantCountsQuestions(e *env) {
	drivers := map[string]*threadDriver{}
	for _, name := range listTenantNames() {
		th := e.newThread(e.qualifyID(name, "t"))
		drivers[name] = th
		for _, id := range []string{"a", "b", "c"} {
			th.putInterrupt(id)
		}
		e.newThread(e.qualifyID(name, "u")).putInterrupt("a")
	}
	for _, name := range listTenantNames() {
		e.requireCounts(name, 2, 4)
	}
	acme := drivers["acme"]
	closed := []checkpoint.InterruptState{
		checkpoint.InterruptAnswered, checkpoint.InterruptConsumed, checkpoint.InterruptExpired, checkpoint.InterruptCancelled, checkpoint.InterruptSuperseded,
	}
	for _, state := range closed {
		acme.putInterrupt("b", func(in *checkpoint.Interrupt) { in.State = state })
		e.requireCounts("acme", 2, 3)
	}
	acme.putInterrupt("a", func(in *checkpoint.Interrupt) { in.Assignees = []string{"ann"} })
	e.requireCounts("acme", 2, 3)
	acme.putInterrupt("b") // it is open again
	e.requireCounts("acme", 2, 4)
	acme.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	e.requireCounts("acme", 1, 1)
	for _, name := range []string{tenant.Default, "acme2", "b"} {
		e.requireCounts(name, 2, 4)
	}
}

func tenantCountsNothingRefused(e *env) {
	th := e.newThread("acme@t")
	th.putInterrupt("q")
	late := th.newChange(func(c *checkpoint.Change) {
		c.Expect = 7
		c.Interrupts = []checkpoint.Interrupt{{ID: "other", Thread: th.id, State: checkpoint.InterruptOpen, Created: testDay(0)}}
	})
	_, err := e.store.Apply(e.ctx, late)
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	_, err = e.store.Apply(e.ctx, e.newThread("acme@t").newChange(func(c *checkpoint.Change) { c.Op = "another" }))
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	_, err = e.store.Apply(e.ctx, e.newThread("acme@u").newChange(func(c *checkpoint.Change) { c.Expect, c.Delete = 1, true }))
	require.ErrorIs(e, err, checkpoint.ErrConflict)
	e.requireCounts("acme", 1, 1)
}

func tenantDue(e *env) {
	want := []string{}
	for i, name := range listTenantNames() {
		id := e.qualifyID(name, "t")
		e.newThread(id).applyEdits(setDue(testDay(i - 10)))
		want = append(want, id)
	}
	due, _ := e.listDue(0)
	require.Equal(e, want, due)
}

func tenantGraphs(e *env) {
	for _, name := range listTenantNames() {
		source := fmt.Sprintf(`{"graph":%q}`, name)
		g := checkpoint.GraphRecord{Name: e.qualifyID(name, "g"), Version: "1", Source: source, Created: testDay(0)}
		require.NoError(e, e.store.PutGraph(e.ctx, g, checkpoint.GraphCondition{}))
	}
	require.NoError(e, e.store.DeleteGraph(e.ctx, "g", "1", checkpoint.GraphCondition{}))
	for _, name := range listTenantNames()[1:] {
		g, err := e.store.GraphRecord(e.ctx, e.qualifyID(name, "g"), "1")
		require.NoError(e, err)
		require.Equal(e, fmt.Sprintf(`{"graph":%q}`, name), g.Source)
	}
	_, err := e.store.GraphRecord(e.ctx, "g", "1")
	require.ErrorIs(e, err, checkpoint.ErrGraphNotFound)
}

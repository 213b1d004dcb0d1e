package checkpointtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func indexCases() []testCase {
	return []testCase{
		{"threads are listed by update time, newest first", indexThreads},
		{"pages of threads are exact under ties", indexThreadPages},
		{"threads are filtered", indexThreadFilters},
		{"metadata is compared as text, whatever its keys are", indexOddMetadata},
		{"a listed head is complete", indexThreadHead},
		{"questions are listed by creation", indexQuestions},
		{"pages of questions are exact under ties", indexQuestionPages},
		{"questions are filtered", indexQuestionFilters},
		{"the changes of questions can be followed", indexChanges},
		{"due threads are listed, longest ago first", indexDue},
		{"the end of a lease is due", indexDueLease},
		{"a thread is due until it is changed", indexDueAgain},
		{"due and later moves are seen at once", indexDueMoves},
	}
}

func setUpdated(at time.Time) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.Head.Updated = at }
}

func (e *env) listThreads(q checkpoint.ThreadQuery) []string {
	e.Helper()
	heads, err := e.store.Threads(e.ctx, q)
	require.NoError(e, err)
	out := []string{}
	for i := range heads {
		out = append(out, heads[i].Thread)
	}
	return out
}

func indexThreads(e *env) {
	require.Empty(e, e.listThreads(checkpoint.ThreadQuery{}))
	a, b, c := e.newThread("a"), e.newThread("b"), e.newThread("c")
	b.applyEdits(setUpdated(testDay(2)))
	a.applyEdits(setUpdated(testDay(1)))
	c.applyEdits(setUpdated(testDay(2).Add(1)))
	require.Equal(e, []string{"c", "b", "a"}, e.listThreads(checkpoint.ThreadQuery{}))
	a.applyEdits(setUpdated(testDay(3)))
	require.Equal(e, []string{"a", "c", "b"}, e.listThreads(checkpoint.ThreadQuery{}))
	require.Equal(e, []string{"a", "c"}, e.listThreads(checkpoint.ThreadQuery{Limit: 2}))
}

func indexThreadPages(e *env) {
	want := []string{}
	for i := range 5 {
		for j := range 5 {
			id := fmt.Sprintf("t%d%d", i, j)
			e.newThread(id).applyEdits(setUpdated(testDay(-i)))
			want = append(want, id)
		}
	}
	for _, size := range []int{1, 2, 3, 7, 25} {
		got := []string{}
		q := checkpoint.ThreadQuery{Limit: size}
		for {
			heads, err := e.store.Threads(e.ctx, q)
			require.NoError(e, err)
			for i := range heads {
				got = append(got, heads[i].Thread)
			}
			if len(heads) < size {
				break
			}
			last := heads[len(heads)-1]
			q.Before = q.PositionOf(&last)
		}
		require.Equal(e, want, got, "pages of %d", size)
	}
}

func indexThreadFilters(e *env) {
	for i, h := range []checkpoint.Head{
		{State: checkpoint.ThreadIdle, Graph: "g1", Metadata: map[string]string{"user": "a", "x": "1"}},
		{State: checkpoint.ThreadBusy, Graph: "g1", Metadata: map[string]string{"user": "a"}},
		{State: checkpoint.ThreadIdle, Graph: "g2", Metadata: map[string]string{"user": "b", "x": ""}},
		{State: checkpoint.ThreadIdle, Graph: "g2"},
	} {
		th := e.newThread(fmt.Sprint(i))
		h.Thread = th.id
		th.head = h
		th.applyEdits()
	}
	for _, c := range []struct {
		q    checkpoint.ThreadQuery
		want []string
	}{
		{checkpoint.ThreadQuery{State: checkpoint.ThreadIdle}, []string{"0", "2", "3"}},
		{checkpoint.ThreadQuery{Graph: "g1"}, []string{"0", "1"}},
		{checkpoint.ThreadQuery{Graph: "g"}, []string{}},
		{checkpoint.ThreadQuery{Metadata: map[string]string{"user": "a"}}, []string{"0", "1"}},
		{checkpoint.ThreadQuery{Metadata: map[string]string{"user": "a", "x": "1"}}, []string{"0"}},
		{checkpoint.ThreadQuery{Metadata: map[string]string{"x": ""}}, []string{"2"}},
		{checkpoint.ThreadQuery{Metadata: map[string]string{"none": "a"}}, []string{}},
		{checkpoint.ThreadQuery{State: checkpoint.ThreadBusy, Graph: "g1", Metadata: map[string]string{"user": "a"}}, []string{"1"}},
		{checkpoint.ThreadQuery{State: checkpoint.ThreadIdle, Limit: 2}, []string{"0", "2"}},
	} {
		require.Equal(e, c.want, e.listThreads(c.q), "%+v", c.q)
	}
}

func indexOddMetadata(e *env) {
	for i, k := range oddNames() {
		th := e.newThread(fmt.Sprint(i))
		th.head.Metadata = map[string]string{k: k}
		th.applyEdits()
	}
	for i, k := range oddNames() {
		got := e.listThreads(checkpoint.ThreadQuery{Metadata: map[string]string{k: k}})
		require.Equal(e, []string{fmt.Sprint(i)}, got, "%q", k)
	}
}

func indexThreadHead(e *env) {
	th := e.newThread("t")
	th.applyEdits(fullChange("r"), setOwner("o", time.Minute))
	h := th.requireStored()
	heads, err := e.store.Threads(e.ctx, checkpoint.ThreadQuery{})
	require.NoError(e, err)
	require.Len(e, heads, 1)
	if e.ownClock {
		h.Now, heads[0].Now = time.Time{}, time.Time{}
	}
	require.Equal(e, h, heads[0])
}

func (e *env) listInterrupts(q checkpoint.InterruptQuery) []string {
	e.Helper()
	list, err := e.store.Interrupts(e.ctx, q)
	require.NoError(e, err)
	out := []string{}
	for i := range list {
		out = append(out, list[i].Thread+"/"+list[i].ID)
	}
	return out
}

// putInterrupt puts an interrupt, edited.
func (t *threadDriver) putInterrupt(id string, edits ...func(*checkpoint.Interrupt)) {
	t.Helper()
	in := newInterrupt(t.id, id, "c")
	for _, edit := range edits {
		edit(&in)
	}
	t.applyEdits(func(c *checkpoint.Change) { c.Interrupts = []checkpoint.Interrupt{in} })
}

func setCreated(at time.Time) func(*checkpoint.Interrupt) {
	return func(in *checkpoint.Interrupt) { in.Created = at }
}

func indexQuestions(e *env) {
	a, b := e.newThread("a"), e.newThread("b")
	b.putInterrupt("1", setCreated(testDay(2)))
	a.putInterrupt("2", setCreated(testDay(2).Add(1)))
	b.putInterrupt("3", setCreated(testDay(1)))
	a.putInterrupt("1", setCreated(testDay(2)))
	want := []string{"b/3", "a/1", "b/1", "a/2"}
	require.Equal(e, want, e.listInterrupts(checkpoint.InterruptQuery{}))
	b.putInterrupt("3", setCreated(testDay(1)), func(in *checkpoint.Interrupt) { in.State = checkpoint.InterruptAnswered })
	require.Equal(e, want, e.listInterrupts(checkpoint.InterruptQuery{}), "an answer does not move a question")
	require.Equal(e, want[:2], e.listInterrupts(checkpoint.InterruptQuery{Limit: 2}))
}

func indexQuestionPages(e *env) {
	want := []string{}
	for i := range 3 {
		for j := range 3 {
			th := e.newThread(fmt.Sprintf("t%d%d", i, j))
			for k := range 3 {
				id := fmt.Sprintf("q%d", k)
				th.putInterrupt(id, setCreated(testDay(i)))
				want = append(want, th.id+"/"+id)
			}
		}
	}
	for _, size := range []int{1, 2, 4, 5, 27} {
		got := e.readPages(checkpoint.InterruptQuery{Limit: size})
		require.Equal(e, want, got, "pages of %d", size)
	}
}

func indexQuestionFilters(e *env) {
	a, b := e.newThread("a"), e.newThread("b")
	a.putInterrupt("1", func(in *checkpoint.Interrupt) { in.Run, in.Assignees = "r1", []string{"ann", `b"ob\`} })
	a.putInterrupt("2", func(in *checkpoint.Interrupt) { in.Graph, in.State = "g2", checkpoint.InterruptAnswered })
	a.putInterrupt("3", func(in *checkpoint.Interrupt) { in.Node, in.State = "other", checkpoint.InterruptExpired })
	b.putInterrupt("4", func(in *checkpoint.Interrupt) { in.Reason, in.Assignees = "input", []string{"ann"} })
	states := func(s ...checkpoint.InterruptState) checkpoint.InterruptQuery {
		return checkpoint.InterruptQuery{States: s}
	}
	for _, c := range []struct {
		q    checkpoint.InterruptQuery
		want []string
	}{
		{checkpoint.InterruptQuery{Thread: "a"}, []string{"a/1", "a/2", "a/3"}},
		{checkpoint.InterruptQuery{Thread: "none"}, []string{}},
		{checkpoint.InterruptQuery{Run: "r1"}, []string{"a/1"}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.GraphTag("g2")}}, []string{"a/2"}},
		{checkpoint.InterruptQuery{Node: "other"}, []string{"a/3"}},
		{checkpoint.InterruptQuery{Reason: "input"}, []string{"b/4"}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("ann")}}, []string{"a/1", "b/4"}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag(`b"ob\`)}}, []string{"a/1"}},
		{checkpoint.InterruptQuery{AnyTag: []string{checkpoint.UserTag("an")}}, []string{}},
		{states(checkpoint.InterruptOpen), []string{"a/1", "b/4"}},
		{states(checkpoint.InterruptAnswered, checkpoint.InterruptExpired), []string{"a/2", "a/3"}},
		{states(checkpoint.InterruptSuperseded), []string{}},
		{checkpoint.InterruptQuery{Thread: "a", Tags: []string{checkpoint.GraphTag("g")}, States: []checkpoint.InterruptState{checkpoint.InterruptOpen}}, []string{"a/1"}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("ann")}, Limit: 1}, []string{"a/1"}},
	} {
		require.Equal(e, c.want, e.listInterrupts(c.q), "%+v", c.q)
		c.q.ByChange = true
		require.Equal(e, c.want, e.listInterrupts(c.q), "by change: %+v", c.q)
	}
}

func indexChanges(e *env) {
	a, b := e.newThread("a"), e.newThread("b")
	a.putInterrupt("1")
	b.putInterrupt("2")
	a.putInterrupt("3")
	var cursor uint64
	latest := func() uint64 {
		n, err := e.store.LatestChange(e.ctx)
		require.NoError(e, err)
		return n
	}
	follow := func(limit int) []string {
		list, err := e.store.Interrupts(e.ctx, checkpoint.InterruptQuery{
			ByChange: true, Limit: limit, After: checkpoint.InterruptPosition{Change: cursor},
		})
		require.NoError(e, err)
		out := []string{}
		for i := range list {
			require.Greater(e, list[i].Change, cursor)
			require.LessOrEqual(e, list[i].Change, latest())
			cursor = list[i].Change
			out = append(out, list[i].ID)
		}
		return out
	}
	require.Equal(e, []string{"1", "2"}, follow(2))
	a.putInterrupt("1")
	require.Equal(e, []string{"3", "1"}, follow(0), "a question stands where its last change is")
	require.Empty(e, follow(0))
	a.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	require.Empty(e, follow(0))
	cursor = latest()
	b.putInterrupt("4")
	require.Equal(e, []string{"4"}, follow(0), "numbers grow on after a deletion")
	for i := range 200 { // enough for any clean-up of old entries
		b.putInterrupt(fmt.Sprint("x", i%3))
	}
	require.Equal(e, []string{"x2", "x0", "x1"}, follow(0))
}

func (e *env) listDue(limit int) ([]string, time.Time) {
	e.Helper()
	threads, next, err := e.store.Due(e.ctx, limit)
	require.NoError(e, err)
	return threads, next
}

func setDue(at time.Time) func(*checkpoint.Change) {
	return func(c *checkpoint.Change) { c.Head.Due = at }
}

// futureTime is an instant that is well after the store's present.
func (e *env) futureTime() time.Time {
	if e.ownClock {
		return time.Now().Add(time.Hour).Round(0).UTC()
	}
	return e.clock.currentTime().Add(time.Hour)
}

func indexDue(e *env) {
	threads, next := e.listDue(0)
	require.Empty(e, threads)
	require.Zero(e, next)

	future := e.futureTime()
	e.newThread("never").applyEdits()
	e.newThread("later").applyEdits(setDue(future.Add(time.Hour)))
	e.newThread("soon").applyEdits(setDue(future))
	e.newThread("b").applyEdits(setDue(testDay(-2)))
	e.newThread("a").applyEdits(setDue(testDay(-3)))
	e.newThread("c").applyEdits(setDue(testDay(-1)))
	threads, next = e.listDue(0)
	require.Equal(e, []string{"a", "b", "c"}, threads)
	require.Equal(e, future, next)
	threads, next = e.listDue(2)
	require.Equal(e, []string{"a", "b"}, threads)
	require.Equal(e, testDay(-1), next, "the next one that is not listed is due already")
	threads, next = e.listDue(3)
	require.Len(e, threads, 3)
	require.Equal(e, future, next)
}

func indexDueLease(e *env) {
	th := e.newThread("t")
	r := th.applyEdits(setOwner("o", time.Minute), setDue(e.futureTime()))
	threads, next := e.listDue(0)
	require.Empty(e, threads)
	require.Equal(e, r.LeaseExpires, next)
	r = th.applyEdits(setOwner("o", 2*time.Minute))
	threads, next = e.listDue(0)
	require.Empty(e, threads)
	require.Equal(e, r.LeaseExpires, next, "renewed")
	th.applyEdits(setOwner("o", 20*time.Millisecond))
	e.advanceTime(25 * time.Millisecond) // a sixteenth of the lease later at most
	threads, _ = e.listDue(0)
	require.Equal(e, []string{"t"}, threads)
	th.applyEdits(setOwner("", 0), setDue(time.Time{}))
	threads, next = e.listDue(0)
	require.Empty(e, threads)
	require.Zero(e, next)
}

func indexDueAgain(e *env) {
	th := e.newThread("t")
	th.applyEdits(setDue(testDay(-1)))
	for range 3 {
		threads, _ := e.listDue(0)
		require.Equal(e, []string{"t"}, threads, "looking does not change it")
	}
	th.applyEdits()
	threads, _ := e.listDue(0)
	require.Equal(e, []string{"t"}, threads)
	th.applyEdits(setDue(time.Time{}))
	threads, next := e.listDue(0)
	require.Empty(e, threads)
	require.Zero(e, next)
}

func indexDueMoves(e *env) {
	th, other := e.newThread("t"), e.newThread("u")
	future := e.futureTime()
	other.applyEdits(setDue(future.Add(30 * time.Minute)))
	for _, at := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour, time.Second, time.Minute, time.Hour, time.Second} {
		th.applyEdits(setDue(future.Add(at)))
		_, next := e.listDue(0)
		require.Equal(e, future.Add(min(at, 30*time.Minute)), next)
	}
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	_, next := e.listDue(0)
	require.Equal(e, future.Add(30*time.Minute), next)
	th = e.newThread("t")
	th.applyEdits(setDue(testDay(-1)))
	threads, _ := e.listDue(0)
	require.Equal(e, []string{"t"}, threads)
}

package checkpointtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

func tagCases() []testCase {
	return []testCase{
		{"questions are listed and counted by tag", tagLists},
		{"a question changes its tags", tagChanges},
		{"pages by tag are exact under ties", tagPages},
		{"questions are listed by when they are due", tagDue},
		{"a tag has any text", tagTexts},
		{"a question has many tags", tagMany},
		{"a union of many tags is merged", tagUnions},
		{"tags agree with the records after random changes", tagRandom},
	}
}

// setAudience sets who may answer.
func setAudience(users, groups []string) func(*checkpoint.Interrupt) {
	return func(in *checkpoint.Interrupt) { in.Policy = &approval.Policy{Users: users, Groups: groups} }
}

func setAnswered(in *checkpoint.Interrupt) { in.State = checkpoint.InterruptAnswered }

func openStates() []checkpoint.InterruptState {
	return []checkpoint.InterruptState{checkpoint.InterruptOpen}
}

func (e *env) countTags(tags ...string) []int {
	e.Helper()
	counts, err := e.store.CountTags(e.ctx, tenant.Default, tags)
	require.NoError(e, err)
	return counts
}

func tagLists(e *env) {
	a, b, other := e.newThread("a"), e.newThread("b"), e.newThread("acme@a")
	a.putInterrupt("1", setAudience([]string{"ana", "ben"}, nil))
	a.putInterrupt("2", setAudience([]string{"ana"}, []string{"leads"}), setCreated(testDay(-1)))
	b.putInterrupt("3", func(in *checkpoint.Interrupt) {
		in.Graph, in.Assignees, in.Priority = "g2", []string{"ben"}, approval.Urgent
	})
	b.putInterrupt("4", setAudience([]string{"ana"}, nil), setAnswered)
	other.putInterrupt("5", setAudience([]string{"ana"}, nil))
	ana, ben, leads := checkpoint.UserTag("ana"), checkpoint.UserTag("ben"), checkpoint.GroupTag("leads")
	graph := checkpoint.GraphTag(newInterrupt("a", "1", "c").Graph)
	for _, c := range []struct {
		q    checkpoint.InterruptQuery
		want []string
	}{
		{checkpoint.InterruptQuery{Tags: []string{ana}}, []string{"a/2", "a/1"}},
		{checkpoint.InterruptQuery{Tags: []string{ben}}, []string{"a/1", "b/3"}},
		{checkpoint.InterruptQuery{Tags: []string{ana, ben}}, []string{"a/1"}},
		{checkpoint.InterruptQuery{Tags: []string{ben, checkpoint.GraphTag("g2")}}, []string{"b/3"}},
		{checkpoint.InterruptQuery{Tags: []string{ana, checkpoint.GraphTag("g2")}}, []string{}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.PriorityTag(approval.Urgent)}}, []string{"b/3"}},
		{checkpoint.InterruptQuery{Tags: []string{checkpoint.UserTag("an")}}, []string{}},
		{checkpoint.InterruptQuery{Tags: []string{"ana"}}, []string{}},
		{checkpoint.InterruptQuery{AnyTag: []string{ana, leads}}, []string{"a/2", "a/1"}},
		{checkpoint.InterruptQuery{AnyTag: []string{leads, ben}}, []string{"a/2", "a/1", "b/3"}},
		{checkpoint.InterruptQuery{AnyTag: []string{leads, ben}, Tags: []string{graph}}, []string{"a/2", "a/1"}},
		{checkpoint.InterruptQuery{AnyTag: []string{leads, ben}, Node: "none"}, []string{}},
		{checkpoint.InterruptQuery{Tags: []string{ana}, Limit: 1}, []string{"a/2"}},
		{checkpoint.InterruptQuery{Tags: []string{ana}, Thread: "a"}, []string{"a/2", "a/1"}},
		{checkpoint.InterruptQuery{Tags: []string{ana}, Thread: "b"}, []string{}},
	} {
		c.q.Tenant, c.q.States = tenant.Default, openStates()
		require.Equal(e, c.want, e.listInterrupts(c.q), "%+v", c.q)
	}
	require.Equal(e, []string{"a/1", "a/2"}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ana}, ByChange: true, Tenant: tenant.Default}))
	require.ElementsMatch(e, []string{"a/2", "a/1", "acme@a/5"}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ana}}), "of all tenants")
	require.Equal(e, []string{"acme@a/5"}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ana}, Tenant: "acme"}))
	require.Equal(e, []int{2, 2, 1, 0, 1, 3}, e.countTags(ana, ben, leads, "none", checkpoint.GraphTag("g2"), checkpoint.OpenTag))
	require.Empty(e, e.countTags())
}

func tagChanges(e *env) {
	th := e.newThread("a")
	ana, ben, claim := checkpoint.UserTag("ana"), checkpoint.UserTag("ben"), checkpoint.ClaimTag("ben")
	created := setCreated(testDay(1))
	th.putInterrupt("1", setAudience([]string{"ana"}, nil))
	th.putInterrupt("1", setAudience([]string{"ben"}, nil), func(in *checkpoint.Interrupt) { in.ClaimedBy = "ben" })
	require.Equal(e, []int{0, 1, 1}, e.countTags(ana, ben, claim))
	require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ana}}))
	require.Equal(e, []string{"a/1"}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{claim}}))
	th.putInterrupt("1", setAudience([]string{"ben"}, nil), created)
	require.Equal(e, []int{1, 0}, e.countTags(ben, claim), "of another time of creation")
	require.Equal(e, []string{"a/1"}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ben}}))
	th.putInterrupt("1", setAudience([]string{"ben"}, nil), created, setAnswered)
	require.Equal(e, []int{0}, e.countTags(ben))
	th.putInterrupt("1", setAudience([]string{"ben"}, nil), created)
	th.putInterrupt("2", setAudience([]string{"ben", "ana"}, nil), setAnswered)
	require.Equal(e, []int{1}, e.countTags(ben), "open again")
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	require.Equal(e, []int{0, 0, 0}, e.countTags(ben, checkpoint.GraphTag("g"), checkpoint.OpenTag))
	require.Empty(e, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{ben}}))
}

// readPages reads all pages of a query.
func (e *env) readPages(q checkpoint.InterruptQuery) []string {
	e.Helper()
	got := []string{}
	for {
		list, err := e.store.Interrupts(e.ctx, q)
		require.NoError(e, err)
		for i := range list {
			got = append(got, list[i].Thread+"/"+list[i].ID)
		}
		if len(list) < q.Limit {
			return got
		}
		q.After = q.PositionOf(&list[len(list)-1])
	}
}

func tagPages(e *env) {
	want := []string{}
	for i := range 3 {
		for j := range 3 {
			th := e.newThread(fmt.Sprintf("t%d%d", i, j))
			for k := range 3 {
				id := fmt.Sprintf("q%d", k)
				audience := setAudience([]string{"ana"}, []string{"leads"})
				if k == 1 {
					audience = setAudience(nil, []string{"leads"})
				}
				th.putInterrupt(id, setCreated(testDay(i)), audience, func(in *checkpoint.Interrupt) { in.Expires = testDay(10 + i) })
				want = append(want, th.id+"/"+id)
			}
		}
	}
	for _, size := range []int{1, 2, 4, 5, 28} {
		for _, q := range []checkpoint.InterruptQuery{
			{Tags: []string{checkpoint.GroupTag("leads")}},
			{AnyTag: []string{checkpoint.GroupTag("leads"), checkpoint.UserTag("ana")}},
			{ByDue: true},
			{ByDue: true, Tags: []string{checkpoint.GroupTag("leads")}},
			{ByDue: true, AnyTag: []string{checkpoint.UserTag("ana"), checkpoint.GroupTag("leads")}},
		} {
			q.Limit, q.Tenant, q.States = size, tenant.Default, openStates()
			require.Equal(e, want, e.readPages(q), "%+v", q)
		}
	}
}

func tagDue(e *env) {
	th := e.newThread("a")
	expires := func(day int) func(*checkpoint.Interrupt) {
		return func(in *checkpoint.Interrupt) { in.Expires = testDay(day) }
	}
	ana := setAudience([]string{"ana"}, nil)
	th.putInterrupt("late", expires(9))
	th.putInterrupt("soon", expires(3), ana)
	th.putInterrupt("never", ana)
	th.putInterrupt("answered", expires(2), setAnswered)
	th.putInterrupt("step", func(in *checkpoint.Interrupt) {
		in.Created, in.Steps = testDay(0), []approval.Step{{After: 4 * 24 * time.Hour}}
	}, ana)
	q := checkpoint.InterruptQuery{ByDue: true, Tenant: tenant.Default, States: openStates()}
	require.Equal(e, []string{"a/soon", "a/step", "a/late"}, e.listInterrupts(q))
	q.DueBefore = testDay(9)
	require.Equal(e, []string{"a/soon", "a/step"}, e.listInterrupts(q), "before, not at")
	q.DueBefore, q.Tags = time.Time{}, []string{checkpoint.UserTag("ana")}
	require.Equal(e, []string{"a/soon", "a/step"}, e.listInterrupts(q))
	th.putInterrupt("soon", expires(8), ana)
	require.Equal(e, []string{"a/step", "a/soon"}, e.listInterrupts(q), "after it was extended")
	th.putInterrupt("soon", ana)
	require.Equal(e, []string{"a/step"}, e.listInterrupts(q), "after the time was taken away")
}

func tagTexts(e *env) {
	th := e.newThread("a")
	names := append(oddNames(), "ana\x00", "ana\x00\x01", "ana", strings.Repeat("é", 128), "a:b", "1:2")
	for i, name := range names {
		th.putInterrupt(fmt.Sprint(i), setAudience([]string{name}, nil))
	}
	for i, name := range names {
		tag := checkpoint.UserTag(name)
		require.Equal(e, []string{fmt.Sprintf("a/%d", i)}, e.listInterrupts(checkpoint.InterruptQuery{States: openStates(), Tags: []string{tag}}), "%q", name)
		require.Equal(e, []int{1}, e.countTags(tag), "%q", name)
	}
}

func tagMany(e *env) {
	const names = 5000
	th := e.newThread("a")
	ask := func(in *checkpoint.Interrupt) {
		in.Expires = testDay(9)
		for i := range names {
			in.Assignees = append(in.Assignees, fmt.Sprint("user", i))
		}
	}
	th.putInterrupt("1", ask)
	require.Equal(e, []int{1, 1}, e.countTags(checkpoint.UserTag("user0"), checkpoint.UserTag("user4999")))
	th.putInterrupt("1", ask, setCreated(testDay(2)))
	require.Equal(e, []int{1}, e.countTags(checkpoint.UserTag("user4999")))
	th.putInterrupt("1", ask, setAnswered)
	require.Equal(e, []int{0, 0}, e.countTags(checkpoint.UserTag("user0"), checkpoint.UserTag("user4999")))
	th.putInterrupt("1", ask)
	th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
	require.Equal(e, []int{0}, e.countTags(checkpoint.UserTag("user4999")))
}

func tagUnions(e *env) {
	th := e.newThread("a")
	want, union := []string{}, []string{}
	for i := range 200 {
		group := fmt.Sprint("g", i)
		union = append(union, checkpoint.GroupTag(group))
		if i%33 == 7 {
			th.putInterrupt(fmt.Sprintf("%03d", i), setAudience(nil, []string{group, "g199"}), setCreated(testDay(1)))
			want = append(want, fmt.Sprintf("a/%03d", i))
		}
	}
	for _, size := range []int{1, 4, 100} {
		q := checkpoint.InterruptQuery{Tenant: tenant.Default, States: openStates(), AnyTag: union, Limit: size}
		require.Equal(e, want, e.readPages(q))
		q.Tags = []string{checkpoint.GroupTag("g199")}
		require.Equal(e, want, e.readPages(q), "beside the rarest tag")
		q.Tags = []string{checkpoint.GraphTag("g")}
		q.AnyTag = union[:8]
		require.Equal(e, want[:1], e.readPages(q), "the union is the rarest")
	}
}

// tagModel has the questions of a random history, and what a store should find.
type tagModel map[string]checkpoint.Interrupt // by thread/id

func (m tagModel) selectInterrupts(q *checkpoint.InterruptQuery) []string {
	var found []checkpoint.Interrupt
	for _, in := range m {
		if q.MatchesInterrupt(&in) {
			found = append(found, in)
		}
	}
	slices.SortFunc(found, func(a, b checkpoint.Interrupt) int {
		x, y := q.PositionOf(&a), q.PositionOf(&b)
		return cmp.Or(x.Created.Compare(y.Created), x.Due.Compare(y.Due), strings.Compare(x.Thread, y.Thread), strings.Compare(x.ID, y.ID))
	})
	out := []string{}
	for i := range found {
		out = append(out, found[i].Thread+"/"+found[i].ID)
	}
	return out
}

// tagRandom makes many changes of some questions, and compares every list and count with those of
// the records.
func tagRandom(e *env) {
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"ana", "ben", "cy", "dora"}
	pick := func() (some []string) {
		for _, name := range names {
			if rng.IntN(3) == 0 {
				some = append(some, name)
			}
		}
		return some
	}
	model, threads := tagModel{}, map[string]*threadDriver{}
	for range 220 { // some 2,000 questions, whose tags make 10,000 operations
		thread := fmt.Sprintf("t%d", rng.IntN(5))
		th := threads[thread]
		if th == nil {
			th = e.newThread(thread)
			threads[thread] = th
		}
		if th.rev > 0 && rng.IntN(40) == 0 {
			th.applyEdits(func(c *checkpoint.Change) { c.Delete = true })
			delete(threads, thread)
			for key := range model {
				if strings.HasPrefix(key, thread+"/") {
					delete(model, key)
				}
			}
			continue
		}
		var list []checkpoint.Interrupt
		for i := range 1 + rng.IntN(18) {
			in := newInterrupt(thread, fmt.Sprint(i*3+rng.IntN(3)), "c")
			in.Created = testDay(rng.IntN(3))
			in.Policy = &approval.Policy{Users: pick(), Groups: pick()}
			in.Priority = approval.Priority(rng.IntN(3))
			if rng.IntN(2) == 0 {
				in.Expires = testDay(5 + rng.IntN(5))
			}
			if rng.IntN(3) == 0 {
				in.ClaimedBy = names[rng.IntN(len(names))]
			}
			if rng.IntN(3) == 0 {
				in.State = checkpoint.InterruptConsumed
			}
			list = append(list, in)
			model[thread+"/"+in.ID] = in
		}
		th.applyEdits(func(c *checkpoint.Change) { c.Interrupts = list })
	}
	var tags []string
	for _, name := range names {
		tags = append(tags, checkpoint.UserTag(name), checkpoint.GroupTag(name), checkpoint.ClaimTag(name))
	}
	tags = append(tags, checkpoint.GraphTag("g"), checkpoint.PriorityTag(approval.Low), checkpoint.PriorityTag(approval.High))
	for i, tag := range tags {
		other := tags[rng.IntN(len(tags))]
		for _, q := range []checkpoint.InterruptQuery{
			{Tags: []string{tag}},
			{Tags: []string{tag, other}},
			{AnyTag: []string{tag, other}},
			{AnyTag: []string{tag, other}, Tags: []string{tags[(i+1)%len(tags)]}},
			{ByDue: true, Tags: []string{tag}},
			{ByDue: true, DueBefore: testDay(7), AnyTag: []string{tag, other}},
			{ByDue: true},
		} {
			q.Tenant, q.States = tenant.Default, openStates()
			require.Equal(e, model.selectInterrupts(&q), e.listInterrupts(q), "%+v", q)
		}
		require.Equal(e, []int{len(model.selectInterrupts(&checkpoint.InterruptQuery{States: openStates(), Tags: []string{tag}}))}, e.countTags(tag), tag)
	}
}

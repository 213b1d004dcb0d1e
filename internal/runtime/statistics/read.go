package statistics

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// ReadQuestions returns what became of questions. It holds the lock for one series at a time.
func (c *Counter) ReadQuestions(q runtime.StatisticsQuery) runtime.QuestionStatistics {
	now := slotNumber(c.now())
	found := c.listSeries(q.Tenant, now)
	if q.ShowsGraph != nil {
		found.restrict(q.ShowsGraph)
	}
	all := newSums(now, q.Interval)
	out := runtime.QuestionStatistics{CountsSince: c.since, Begin: all.begin(), Interval: q.Interval, IsPartial: found.isPartial}
	for _, s := range found.whole {
		c.addSeries(all, s)
	}
	groups := map[string]*sums{}
	for _, g := range found.groups {
		if groups[g.group] == nil {
			groups[g.group] = all.newEmpty()
		}
		c.addSeries(groups[g.group], g.series)
	}
	out.All = all.toSeries()
	for group, s := range groups {
		if series := s.toSeries(); series.Total != (runtime.QuestionCounts{}) {
			out.Groups = append(out.Groups, runtime.GroupSeries{Group: group, QuestionSeries: series})
		}
	}
	slices.SortFunc(out.Groups, func(x, y runtime.GroupSeries) int { return cmp.Compare(x.Group, y.Group) })
	if found.others != nil {
		others := all.newEmpty()
		c.addSeries(others, found.others)
		if series := others.toSeries(); series.Total != (runtime.QuestionCounts{}) {
			out.Others = &series
		}
	}
	return out
}

// seriesList has the series of a tenant.
type seriesList struct {
	whole     []*series // that have each question once
	graphs    []graphSeries
	groups    []groupSeries
	others    *series // nil = none
	isPartial bool    // whole lacks questions
	// lacksSome reports that some questions are in no series of their graph.
	lacksSome bool
}

type graphSeries struct {
	graph  string
	series *series
}

type groupSeries struct {
	pair

	series *series
}

// restrict leaves the series of the graphs that are shown.
func (l *seriesList) restrict(shows func(graph string) bool) {
	shown := map[string]bool{}
	isShown := func(graph string) bool {
		if _, isKnown := shown[graph]; !isKnown {
			shown[graph] = shows(graph)
		}
		return shown[graph]
	}
	l.whole, l.others, l.isPartial = nil, nil, l.isPartial || l.lacksSome
	for _, g := range l.graphs {
		if isShown(g.graph) {
			l.whole = append(l.whole, g.series)
		}
	}
	l.groups = slices.DeleteFunc(l.groups, func(g groupSeries) bool { return !isShown(g.graph) })
}

// listSeries lists the series of a tenant.
func (c *Counter) listSeries(owner string, now int64) seriesList {
	c.mu.Lock()
	defer c.mu.Unlock()
	isRecent := func(slot int64) bool { return slot > 0 && slot > now-keptSlots }
	t := c.tenants[owner]
	if t == nil {
		return seriesList{isPartial: isRecent(c.overflow)}
	}
	l := seriesList{whole: []*series{&t.all}, others: &t.others, lacksSome: isRecent(t.overflow) || !t.others.isIdle(now)}
	for name, s := range t.graphs {
		l.graphs = append(l.graphs, graphSeries{name, s})
	}
	for p, s := range t.pairs {
		l.groups = append(l.groups, groupSeries{p, s})
	}
	return l
}

// addSeries adds a series to sums.
func (c *Counter) addSeries(to *sums, s *series) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to.addSeries(s)
}

// ReadAnswers returns how the questions of a node of a tenant's graph were answered.
func (c *Counter) ReadAnswers(owner, graph, name string) runtime.AnswerStatistics {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tenants[owner]
	if t == nil {
		return runtime.AnswerStatistics{CountsSince: c.tenantsSince}
	}
	if a := t.nodes[node{graph, name}]; a != nil {
		return a.toStatistics()
	}
	return runtime.AnswerStatistics{CountsSince: t.nodesSince}
}

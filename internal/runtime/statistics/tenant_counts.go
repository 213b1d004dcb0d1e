package statistics

import (
	"maps"
	"strings"
	"time"
)

// pair is a graph with a group that it asks, "" = none.
type pair struct {
	graph, group string
}

// tenantCounts are the counts of one tenant. The names are as clients know them.
type tenantCounts struct {
	all    series
	graphs map[string]*series
	pairs  map[pair]*series
	others series // pairs beyond the limit
	nodes  map[node]*answers

	nodesSince time.Time // since when no node was dropped
	overflow   int64     // slot in which a graph had no place last, 0 = never
}

// ownRows is the number of series that a tenant has without graphs.
const ownRows = 2

// rowCount returns the number of series and answers.
func (t *tenantCounts) rowCount() int { return ownRows + len(t.graphs) + len(t.pairs) + len(t.nodes) }

// findTenant returns the counts of a tenant, nil when there are too many.
func (c *Counter) findTenant(name string, now int64) *tenantCounts {
	t := c.tenants[name]
	switch {
	case t != nil:
	case c.hasPlace(now, func() int { return 0 }):
		t = &tenantCounts{
			graphs: map[string]*series{}, pairs: map[pair]*series{}, nodes: map[node]*answers{}, nodesSince: c.tenantsSince,
		}
		c.tenants[strings.Clone(name)] = t
		c.rows += ownRows
	default:
		c.overflow = now
	}
	return t
}

// findGraph returns the series of a graph, nil when there are too many.
func (c *Counter) findGraph(t *tenantCounts, name string, now int64) *series {
	s := t.graphs[name]
	switch {
	case s != nil:
	case c.hasPlace(now, func() int { return len(t.graphs) }):
		s = &series{}
		t.graphs[strings.Clone(name)] = s
		c.rows++
	default:
		t.overflow = now
	}
	return s
}

// findPair returns the series of a graph and a group, that of all others when there are too
// many.
func (c *Counter) findPair(t *tenantCounts, p pair, now int64) *series {
	s := t.pairs[p]
	switch {
	case s != nil:
	case c.hasPlace(now, func() int { return len(t.pairs) }):
		s = &series{}
		t.pairs[pair{strings.Clone(p.graph), strings.Clone(p.group)}] = s
		c.rows++
	default:
		return &t.others
	}
	return s
}

// findAnswers returns the answers of a node. Beyond the limit it takes the place of the node
// that has had none for longest; nil when the tenant has no place for one.
func (c *Counter) findAnswers(t *tenantCounts, n node, now int64) *answers {
	if a := t.nodes[n]; a != nil {
		return a
	}
	if !c.hasPlace(now, func() int { return len(t.nodes) }) && !c.dropOldestNode(t) {
		return nil
	}
	a := &answers{since: t.nodesSince}
	t.nodes[node{strings.Clone(n.graph), strings.Clone(n.name)}] = a
	c.rows++
	return a
}

// dropOldestNode drops the node that has had no answer for longest. It reports whether there
// was one.
func (c *Counter) dropOldestNode(t *tenantCounts) bool {
	var oldest node
	var of *answers
	for n, a := range t.nodes {
		if of == nil || a.last < of.last {
			oldest, of = n, a
		}
	}
	if of == nil {
		return false
	}
	delete(t.nodes, oldest)
	c.rows--
	t.nodesSince = c.now()
	return true
}

// hasPlace reports whether a tenant that has so many of one kind may have one more. It drops
// what is idle where that may make place.
func (c *Counter) hasPlace(now int64, count func() int) bool {
	isFull := func() bool { return count() >= c.limit || c.rows >= tenantShares*c.limit }
	if isFull() && c.swept < now {
		c.swept = now
		c.dropIdle(now)
	}
	return !isFull()
}

// dropIdle drops series in which nothing happened for a day, and tenants without others.
func (c *Counter) dropIdle(now int64) {
	c.rows = 0
	for name, t := range c.tenants {
		maps.DeleteFunc(t.graphs, func(_ string, s *series) bool { return s.isIdle(now) })
		maps.DeleteFunc(t.pairs, func(_ pair, s *series) bool { return s.isIdle(now) })
		if t.all.isIdle(now) {
			delete(c.tenants, name)
			c.tenantsSince = c.now()
			continue
		}
		c.rows += t.rowCount()
	}
}

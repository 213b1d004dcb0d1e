package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// interruptRecord is an interrupt of a thread. Its record is replaced as a whole, so
// that lists over all threads need no thread's lock.
type interruptRecord struct {
	record    atomic.Pointer[checkpoint.Interrupt]
	isDeleted atomic.Bool
}

// interruptIndex orders the questions of each tenant by their last change. Changes have
// numbers that grow over all tenants.
type interruptIndex struct {
	mu         sync.Mutex
	lastChange uint64
	tenants    map[string]*tenantInterrupts // of those that have questions
}

// tenantInterrupts has the questions of a tenant. Changing or deleting a question leaves
// its old entry behind; entries are cleaned up when most of them are old.
type tenantInterrupts struct {
	entries   []indexEntry // by change
	liveCount int
	openCount int // of them, those that are open
	byTag     map[string]map[*interruptRecord]struct{}
}

type indexEntry struct {
	change    uint64
	interrupt *interruptRecord
}

func (e indexEntry) isStale() bool {
	return e.interrupt.isDeleted.Load() || e.interrupt.record.Load().Change != e.change
}

// putInterrupts numbers and publishes interrupts. Numbers are given under the lock that
// readers take, so a reader never sees a number before a smaller one.
func (ii *interruptIndex) putInterrupts(t *thread, c *checkpoint.Change) {
	ii.mu.Lock()
	defer ii.mu.Unlock()
	own := ii.findOrAddTenant(c.Thread)
	for i := range c.Interrupts {
		in := c.Interrupts[i]
		q := t.findOrAddInterrupt(&in)
		in.Revision = 1
		if old := q.record.Load(); old != nil {
			in.Revision = old.Revision + 1
			own.countOpen(old, -1)
			own.removeTags(q, old)
		} else {
			own.liveCount++
		}
		own.countOpen(&in, 1)
		ii.lastChange++
		in.Change = ii.lastChange
		q.record.Store(&in)
		own.addTags(q, &in)
		own.entries = append(own.entries, indexEntry{change: in.Change, interrupt: q})
	}
	own.compactEntries()
}

// findOrAddTenant returns the questions of the tenant of a thread.
func (ii *interruptIndex) findOrAddTenant(thread string) *tenantInterrupts {
	owner, _ := tenant.Split(thread)
	if ii.tenants == nil {
		ii.tenants = map[string]*tenantInterrupts{}
	}
	if ii.tenants[owner] == nil {
		ii.tenants[owner] = &tenantInterrupts{}
	}
	return ii.tenants[owner]
}

func (t *thread) findOrAddInterrupt(in *checkpoint.Interrupt) *interruptRecord {
	q := t.interrupts[in.ID]
	if q != nil {
		return q
	}
	if t.interrupts == nil {
		t.interrupts = map[string]*interruptRecord{}
		t.interruptsByCheckpoint = map[string][]*interruptRecord{}
	}
	q = &interruptRecord{}
	t.interrupts[in.ID] = q
	t.interruptsByCheckpoint[in.Checkpoint] = append(t.interruptsByCheckpoint[in.Checkpoint], q)
	return q
}

// deleteInterrupts removes the interrupts of a deleted thread.
func (ii *interruptIndex) deleteInterrupts(thread string, questions map[string]*interruptRecord) {
	if len(questions) == 0 {
		return
	}
	ii.mu.Lock()
	defer ii.mu.Unlock()
	owner, _ := tenant.Split(thread)
	own := ii.tenants[owner]
	for _, q := range questions {
		q.isDeleted.Store(true)
		own.liveCount--
		own.countOpen(q.record.Load(), -1)
		own.removeTags(q, q.record.Load())
	}
	if own.liveCount == 0 {
		delete(ii.tenants, owner)
		return
	}
	own.compactEntries()
}

// countOpen adds n to the number of open questions if one is open.
func (ti *tenantInterrupts) countOpen(in *checkpoint.Interrupt, n int) {
	if in.State == checkpoint.InterruptOpen {
		ti.openCount += n
	}
}

func (ti *tenantInterrupts) addTags(q *interruptRecord, in *checkpoint.Interrupt) {
	for _, tag := range in.Tags() {
		if ti.byTag[tag] == nil {
			if ti.byTag == nil {
				ti.byTag = map[string]map[*interruptRecord]struct{}{}
			}
			ti.byTag[tag] = map[*interruptRecord]struct{}{}
		}
		ti.byTag[tag][q] = struct{}{}
	}
}

func (ti *tenantInterrupts) removeTags(q *interruptRecord, in *checkpoint.Interrupt) {
	for _, tag := range in.Tags() {
		delete(ti.byTag[tag], q)
		if len(ti.byTag[tag]) == 0 {
			delete(ti.byTag, tag)
		}
	}
}

// CountThreads returns how many threads a tenant has, or atMost if it has more.
func (s *Store) CountThreads(ctx context.Context, owner string, atMost int) (n int, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		n += len(sh.tenants[owner])
		sh.mu.RUnlock()
	}
	return min(n, atMost), nil
}

// CountOpenInterrupts returns how many interrupts of a tenant are open, or atMost if more
// are.
func (s *Store) CountOpenInterrupts(ctx context.Context, owner string, atMost int) (n int, err error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	s.interrupts.mu.Lock()
	defer s.interrupts.mu.Unlock()
	if own := s.interrupts.tenants[owner]; own != nil {
		n = own.openCount
	}
	return min(n, atMost), nil
}

// CountTags returns how many open interrupts of a tenant have each of some tags.
func (s *Store) CountTags(ctx context.Context, owner string, tags []string) ([]int, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.interrupts.mu.Lock()
	defer s.interrupts.mu.Unlock()
	counts := make([]int, len(tags))
	if own := s.interrupts.tenants[owner]; own != nil {
		for i, tag := range tags {
			if counts[i] = len(own.byTag[tag]); tag == checkpoint.OpenTag {
				counts[i] = own.openCount
			}
		}
	}
	return counts, nil
}

func (ti *tenantInterrupts) compactEntries() {
	if len(ti.entries) > 64 && len(ti.entries) > 2*ti.liveCount {
		ti.entries = slices.DeleteFunc(ti.entries, indexEntry.isStale)
	}
}

// LatestChange returns the number of the last change of any interrupt.
func (s *Store) LatestChange(ctx context.Context) (uint64, error) {
	if err := s.checkOpen(ctx); err != nil {
		return 0, err
	}
	s.interrupts.mu.Lock()
	defer s.interrupts.mu.Unlock()
	return s.interrupts.lastChange, nil
}

// Interrupts lists interrupts over all threads.
func (s *Store) Interrupts(
	ctx context.Context, q checkpoint.InterruptQuery,
) ([]checkpoint.Interrupt, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	var out []checkpoint.Interrupt
	switch {
	case q.Thread == "":
		out = s.interrupts.findInterrupts(&q)
	case tenant.Contains(q.Tenant, q.Thread):
		out = s.findThreadInterrupts(&q)
	}
	if !q.ByChange {
		slices.SortFunc(out, func(a, b checkpoint.Interrupt) int {
			return q.ComparePositions(q.PositionOf(&a), q.PositionOf(&b))
		})
	}
	return cutAtLimit(out, q.Limit, (*checkpoint.Interrupt).Size), nil
}

// findThreadInterrupts returns the matching interrupts of a thread, by change.
func (s *Store) findThreadInterrupts(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	t := s.lockThread(q.Thread)
	if t == nil {
		return nil
	}
	defer t.mu.Unlock()
	var out []checkpoint.Interrupt
	for _, question := range t.interrupts {
		in := question.record.Load()
		if !q.MatchesInterrupt(in) || !q.IsAfterCursor(in) {
			continue
		}
		out = append(out, *in)
	}
	if q.ByChange {
		slices.SortFunc(out, compareChanges)
	}
	return out
}

// findInterrupts returns the matching interrupts, by change.
func (ii *interruptIndex) findInterrupts(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	ii.mu.Lock()
	defer ii.mu.Unlock()
	if q.Tenant != "" {
		if own := ii.tenants[q.Tenant]; own != nil {
			return own.findInterrupts(q)
		}
		return nil
	}
	var out []checkpoint.Interrupt
	for _, own := range ii.tenants {
		out = append(out, own.findInterrupts(q)...)
	}
	slices.SortFunc(out, compareChanges)
	return out
}

func compareChanges(a, b checkpoint.Interrupt) int { return cmp.Compare(a.Change, b.Change) }

// findInterrupts returns the matching interrupts of the tenant, by change.
func (ti *tenantInterrupts) findInterrupts(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	if q.UsesTags() && len(q.Tags)+len(q.AnyTag) > 0 {
		return ti.findTagged(q)
	}
	from := 0
	if q.ByChange {
		from, _ = slices.BinarySearchFunc(ti.entries, q.After.Change+1, func(e indexEntry, change uint64) int {
			return cmp.Compare(e.change, change)
		})
	}
	var out []checkpoint.Interrupt
	for _, e := range ti.entries[from:] {
		if e.isStale() {
			continue
		}
		in := e.interrupt.record.Load()
		if !q.MatchesInterrupt(in) || !q.IsAfterCursor(in) {
			continue
		}
		out = append(out, *in)
		if q.ByChange && len(out) == q.Limit {
			break
		}
	}
	return out
}

// findTagged returns the matching interrupts of those that have the rarest of the tags, or one
// of AnyTag.
func (ti *tenantInterrupts) findTagged(q *checkpoint.InterruptQuery) []checkpoint.Interrupt {
	tags := q.AnyTag
	if len(q.Tags) > 0 {
		tags = []string{slices.MinFunc(q.Tags, func(a, b string) int { return cmp.Compare(len(ti.byTag[a]), len(ti.byTag[b])) })}
	}
	var out []checkpoint.Interrupt
	seen := map[*interruptRecord]struct{}{}
	for _, tag := range tags {
		for record := range ti.byTag[tag] {
			in := record.record.Load()
			_, again := seen[record]
			seen[record] = struct{}{}
			if !again && q.MatchesInterrupt(in) && q.IsAfterCursor(in) {
				out = append(out, *in)
			}
		}
	}
	return out
}

// cutAtLimit ends a list where a limit does.
func cutAtLimit[T any](list []T, limit int, size func(*T) int) []T {
	portion := checkpoint.Portion{Limit: limit}
	for i := range list {
		if portion.Full() {
			return list[:i:i]
		}
		portion.Take(size(&list[i]))
	}
	return list
}

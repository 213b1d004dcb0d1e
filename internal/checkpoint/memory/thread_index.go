package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// threadIndex has the threads of each tenant in the order of their creation, newest first: by
// state, by graph, by both, by each label, and all of them. It is locked after a thread.
type threadIndex struct {
	mu      sync.RWMutex
	tenants map[string]map[threadKey]*placeList
}

// threadKey is what the threads of a list have in common.
type threadKey struct {
	checkpoint.ThreadCondition

	graph string // besides the state, "" = any
}

// stateKeys lists the keys of a thread that have its state.
func stateKeys(h *checkpoint.Head) []threadKey {
	state := threadKey{ThreadCondition: checkpoint.ThreadCondition{Kind: checkpoint.ConditionState, Value: string(h.State)}}
	if h.Graph == "" {
		return []threadKey{state}
	}
	both := state
	both.graph = h.Graph
	return []threadKey{state, both}
}

// listKeys lists the keys of a thread.
func listKeys(h *checkpoint.Head) []threadKey {
	keys := append(stateKeys(h), threadKey{})
	if h.Graph != "" {
		keys = append(keys, threadKey{ThreadCondition: checkpoint.ThreadCondition{Kind: checkpoint.ConditionGraph, Value: h.Graph}})
	}
	for _, tag := range h.LabelTags() {
		keys = append(keys, threadKey{ThreadCondition: checkpoint.ThreadCondition{Kind: checkpoint.ConditionLabel, Value: tag}})
	}
	return keys
}

// queryKeys lists the keys of a query, all of which its threads have.
func queryKeys(q *checkpoint.ThreadQuery) (keys []threadKey) {
	if !q.HasConditions() {
		return []threadKey{{}}
	}
	for _, c := range q.Conditions() {
		if c.Kind == checkpoint.ConditionGraph && q.State != "" {
			continue // it is found with the state
		}
		k := threadKey{ThreadCondition: c}
		if c.Kind == checkpoint.ConditionState {
			k.graph = q.Graph
		}
		keys = append(keys, k)
	}
	return keys
}

// changedKeys returns the keys that a thread has no longer, and those that it has now.
func changedKeys(old, next *checkpoint.Head) (gone, added []threadKey) {
	isChange := old.Revision > 0 && next.Revision > 0
	switch {
	case isChange && old.Graph == next.Graph && old.Created.Equal(next.Created) && maps.Equal(old.Metadata, next.Metadata):
		if old.State == next.State {
			return nil, nil
		}
		return stateKeys(old), stateKeys(next)
	case old.Revision > 0:
		gone = listKeys(old)
	}
	if next.Revision > 0 {
		added = listKeys(next)
	}
	return gone, added
}

// moveThread puts a thread, which is locked, where its next head belongs. A head without a
// revision is none.
func (x *threadIndex) moveThread(t *thread, id string, old, next *checkpoint.Head) {
	gone, added := changedKeys(old, next)
	if len(gone)+len(added) == 0 {
		return
	}
	owner, name := tenant.Split(id)
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, k := range gone {
		x.removePlace(owner, k, threadPlace{created: old.Created, id: id})
	}
	for _, k := range added {
		x.addPlace(owner, k, threadPlace{created: next.Created, id: id, thread: t, isUUID: checkpoint.IsUUID(name)})
	}
}

func (x *threadIndex) addPlace(owner string, k threadKey, p threadPlace) {
	if x.tenants == nil {
		x.tenants = map[string]map[threadKey]*placeList{}
	}
	if x.tenants[owner] == nil {
		x.tenants[owner] = map[threadKey]*placeList{}
	}
	if x.tenants[owner][k] == nil {
		x.tenants[owner][k] = &placeList{}
	}
	x.tenants[owner][k].add(p)
}

func (x *threadIndex) removePlace(owner string, k threadKey, p threadPlace) {
	list := x.tenants[owner][k]
	if list == nil || !list.remove(p) || list.count > 0 {
		return
	}
	delete(x.tenants[owner], k)
	if len(x.tenants[owner]) == 0 {
		delete(x.tenants, owner)
	}
}

// findList returns the shortest list that has all threads of a query, nil = there are none, and
// whether it may have others.
func (x *threadIndex) findList(q *checkpoint.ThreadQuery) (list *placeList, hasOthers bool) {
	keys := queryKeys(q)
	for _, k := range keys {
		one := x.tenants[q.Tenant][k]
		if one == nil {
			return nil, false
		}
		if list == nil || one.count < list.count {
			list = one
		}
	}
	return list, len(keys) > 1
}

// readPlaces returns the places of a query after one, at most so many, those of threads that the
// query selects by their ids. It may not select all of these.
func (x *threadIndex) readPlaces(q *checkpoint.ThreadQuery, after checkpoint.ThreadPosition, most int) (places []threadPlace) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list, _ := x.findList(q)
	if list == nil {
		return nil
	}
	list.visit(after, func(chunk []threadPlace) bool {
		for i := range chunk {
			if len(places) == most {
				return false
			}
			if !q.OnlyUUIDs || chunk[i].isUUID {
				places = append(places, chunk[i])
			}
		}
		return true
	})
	return places
}

// skipPlaces passes over the first n places of a query. It returns how many there were and the
// last of n; ok is false when one list does not tell which threads the query selects.
func (x *threadIndex) skipPlaces(q *checkpoint.ThreadQuery, n int) (passed int, last threadPlace, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	list, hasOthers := x.findList(q)
	if list == nil || hasOthers {
		return 0, last, !hasOthers
	}
	list.visit(q.Before, func(chunk []threadPlace) bool {
		if !q.OnlyUUIDs && passed+len(chunk) < n {
			passed += len(chunk)
			return true
		}
		for i := range chunk {
			if passed == n {
				return false
			}
			if !q.OnlyUUIDs || chunk[i].isUUID {
				passed++
				last = chunk[i]
			}
		}
		return true
	})
	return passed, last, true
}

// threadPlace is a thread at its place in a list.
type threadPlace struct {
	created time.Time
	id      string
	thread  *thread
	isUUID  bool
}

func (p *threadPlace) position() checkpoint.ThreadPosition {
	return checkpoint.ThreadPosition{Created: p.created, Thread: p.id}
}

func comparePlaces(a, b threadPlace) int {
	return cmp.Or(b.created.Compare(a.created), strings.Compare(a.id, b.id))
}

// placeList is places in order, in chunks, so that none costs more to put in or to pass over when
// there are many.
type placeList struct {
	chunks [][]threadPlace // none is empty
	count  int
}

// maxChunk is the number of places in a chunk, at most.
const maxChunk = 128

// findChunk returns the index of the first chunk that ends at a place or behind it.
func (l *placeList) findChunk(p threadPlace) int {
	at, _ := slices.BinarySearchFunc(l.chunks, p, func(chunk []threadPlace, p threadPlace) int { return comparePlaces(chunk[len(chunk)-1], p) })
	return at
}

func (l *placeList) add(p threadPlace) {
	l.count++
	if len(l.chunks) == 0 {
		l.chunks = [][]threadPlace{{p}}
		return
	}
	c := min(l.findChunk(p), len(l.chunks)-1)
	at, _ := slices.BinarySearchFunc(l.chunks[c], p, comparePlaces)
	l.chunks[c] = slices.Insert(l.chunks[c], at, p)
	if full := l.chunks[c]; len(full) > maxChunk {
		half := len(full) / 2
		l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(full[half:]))
		l.chunks[c] = slices.Clone(full[:half])
	}
}

// remove reports whether there was such a place.
func (l *placeList) remove(p threadPlace) bool {
	c := l.findChunk(p)
	if c == len(l.chunks) {
		return false
	}
	at, has := slices.BinarySearchFunc(l.chunks[c], p, comparePlaces)
	if !has {
		return false
	}
	l.count--
	l.chunks[c] = slices.Delete(l.chunks[c], at, at+1)
	if len(l.chunks[c]) == 0 {
		l.chunks = slices.Delete(l.chunks, c, c+1)
	}
	return true
}

// visit calls take for the chunks after a position, the first from there on, until it returns
// false.
func (l *placeList) visit(after checkpoint.ThreadPosition, take func(chunk []threadPlace) bool) {
	c, from := 0, 0
	if after != (checkpoint.ThreadPosition{}) {
		p := threadPlace{created: after.Created, id: after.Thread}
		if c = l.findChunk(p); c < len(l.chunks) {
			at, has := slices.BinarySearchFunc(l.chunks[c], p, comparePlaces)
			if from = at; has {
				from++
			}
		}
	}
	for ; c < len(l.chunks); c++ {
		if !take(l.chunks[c][from:]) {
			return
		}
		from = 0
	}
}

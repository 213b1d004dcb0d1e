package index

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
)

// Bounds of the reads that pass over threads. Redis serves others between two of them.
const (
	passedPerPartition = 4096
	passedPerRead      = 16_384
	// maxDensity is how many times as many threads as are passed over may be read of another condition.
	// If it has more, they are looked up one by one.
	maxDensity = 4
	// lookupsPerCommand is how many members a command looks up.
	lookupsPerCommand = 512
)

// SkipThreads returns the place of the last of the first n threads that a query selects, zero when
// there are fewer.
func (x *Reader) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (at checkpoint.ThreadPosition, err error) {
	_, place, err := x.passThreads(ctx, &q, n)
	if err != nil || place == "" {
		return at, err
	}
	time, thread, _ := layout.ParseThreadPlace(place)
	if q.HasConditions() {
		return checkpoint.ThreadPosition{Created: time, Thread: thread}, nil
	}
	return checkpoint.ThreadPosition{Updated: time, Thread: thread}, nil
}

// CountSelectedThreads returns how many threads a query selects, or atMost if it selects more.
// Redis counts those of one condition without reading them.
func (x *Reader) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	conditions := q.Conditions()
	isWhole := q.Tenant != "" && !q.OnlyUUIDs && q.Before == (checkpoint.ThreadPosition{})
	switch {
	case isWhole && len(conditions) == 0:
		return x.CountThreads(ctx, q.Tenant, atMost)
	case isWhole && len(conditions) == 1:
		counts, err := x.countForms(ctx, layout.TenantKey(layout.KeyThreadTags, q.Tenant), "",
			[][]string{layout.ConditionForms(x.database.Box, conditions[0])})
		if err != nil {
			return 0, err
		}
		return min(counts[0], atMost), nil
	}
	n, _, err := x.passThreads(ctx, &q, atMost)
	return n, err
}

// passThreads passes over the first n threads that a query selects. It returns how many there
// were, and of n the place of the last, as the lists have it.
func (x *Reader) passThreads(ctx context.Context, q *checkpoint.ThreadQuery, n int) (passed int, last string, err error) {
	w, err := x.newThreadWalk(ctx, q)
	if err != nil {
		return 0, "", err
	}
	for from := placeAfter(q); passed < n; {
		page, err := w.readPage(ctx, from, n-passed)
		if err != nil {
			return 0, "", err
		}
		if left := n - passed; len(page.places) >= left {
			slices.Sort(page.places)
			return n, page.places[left-1], x.database.CheckMark(ctx)
		}
		passed += len(page.places)
		if from = page.until; from == "" {
			break
		}
	}
	return passed, "", x.database.CheckMark(ctx)
}

// threadWalk passes over the threads of a query in their order, a page after the other.
type threadWalk struct {
	reader *Reader
	query  *checkpoint.ThreadQuery
	key    string   // of the list
	chosen []string // what members begin with whose places are read
	others []otherCondition
}

// otherCondition is a condition that is compared.
type otherCondition struct {
	prefixes []string // what members begin with that meet it
	count    int      // how many do
	how      comparison
}

// comparison is how a condition is compared.
type comparison int

const (
	byLookup    comparison = iota // each place is looked up
	byRead                        // the members in the same range are read
	byExclusion                   // so are those that do not meet it
)

// placePage is the places of threads up to one, in any order.
type placePage struct {
	places []string
	until  string // "" = everything
}

// newThreadWalk chooses which condition of a query is read, and how the others are compared.
func (x *Reader) newThreadWalk(ctx context.Context, q *checkpoint.ThreadQuery) (*threadWalk, error) {
	w := &threadWalk{reader: x, query: q, key: layout.KeyThreads, chosen: []string{""}}
	conditions := q.Conditions()
	if len(conditions) == 0 {
		return w, nil
	}
	w.key = layout.KeyThreadTags
	for _, c := range conditions {
		w.others = append(w.others, otherCondition{prefixes: x.prefixesOf(c)})
	}
	if len(conditions) > 1 && q.Tenant != "" {
		if err := w.countOthers(ctx, conditions); err != nil {
			return nil, err
		}
	}
	at := 0
	for i, o := range w.others {
		if chosen := w.others[at]; o.how != byExclusion && (chosen.how == byExclusion || o.count < chosen.count) {
			at = i
		}
	}
	chosen := w.others[at]
	w.chosen, w.others = chosen.prefixes, slices.Delete(w.others, at, at+1)
	for i := range w.others {
		if o := &w.others[i]; o.how == byRead && o.count > maxDensity*chosen.count {
			o.how = byLookup
		}
	}
	return w, nil
}

// prefixesOf returns what the members begin with that meet a condition.
func (x *Reader) prefixesOf(c checkpoint.ThreadCondition) []string {
	forms := layout.ConditionForms(x.database.Box, c)
	for i := range forms {
		forms[i] += "\x00"
	}
	return forms
}

// countOthers counts how many threads meet each condition. If most have a state, those that have
// another one are fewer to read.
func (w *threadWalk) countOthers(ctx context.Context, conditions []checkpoint.ThreadCondition) error {
	otherStates := otherCondition{how: byExclusion}
	for _, state := range checkpoint.ThreadStates() {
		if state != w.query.State {
			c := checkpoint.ThreadCondition{Kind: checkpoint.ConditionState, Value: string(state)}
			otherStates.prefixes = append(otherStates.prefixes, w.reader.prefixesOf(c)...)
		}
	}
	forms := make([][]string, 0, len(w.others)+1)
	for _, o := range append(slices.Clone(w.others), otherStates) {
		tags := make([]string, len(o.prefixes))
		for i, prefix := range o.prefixes {
			tags[i] = prefix[:len(prefix)-1]
		}
		forms = append(forms, tags)
	}
	counts, err := w.reader.countForms(ctx, layout.TenantKey(w.key, w.query.Tenant), "", forms)
	if err != nil {
		return err
	}
	otherStates.count = counts[len(w.others)]
	for i := range w.others {
		w.others[i].count, w.others[i].how = counts[i], byRead
		if conditions[i].Kind == checkpoint.ConditionState && otherStates.count < counts[i] {
			w.others[i] = otherStates
		}
	}
	return nil
}

// readPage reads the places of threads after one. About so many are wanted.
func (w *threadWalk) readPage(ctx context.Context, from string, wanted int) (page placePage, err error) {
	_, err = w.reader.readTenants(ctx, w.query.Tenant, 0, func(owners []string) (indexPage, error) {
		next, err := w.readOwners(ctx, owners, from, wanted)
		page = joinPlaces(page, next)
		return indexPage{}, err
	})
	return page, err
}

// joinPlaces joins pages that begin at the same place.
func joinPlaces(a, b placePage) placePage {
	joined := placePage{places: append(a.places, b.places...), until: a.until}
	if joined.until == "" || b.until != "" && b.until < joined.until {
		joined.until = b.until
	}
	if joined.until != "" {
		joined.places = slices.DeleteFunc(joined.places, func(place string) bool { return place > joined.until })
	}
	return joined
}

// readOwners reads a page of some tenants.
func (w *threadWalk) readOwners(ctx context.Context, owners []string, from string, wanted int) (page placePage, err error) {
	keys := w.listKeys(owners)
	size := w.sizeRead(len(keys)*len(w.chosen), wanted)
	var reads []script.Range
	for _, key := range keys {
		for _, prefix := range w.chosen {
			reads = append(reads, newPlaceRange(key, prefix, from, "", size))
		}
	}
	lists, err := w.reader.runner.ReadRanges(ctx, reads)
	if err != nil {
		return page, err
	}
	for i, list := range lists {
		if len(list) == size {
			if last := list[size-1][len(w.chosen[i%len(w.chosen)]):]; page.until == "" || last < page.until {
				page.until = last
			}
		}
	}
	found := make([]keyPlaces, len(keys))
	for i, key := range keys {
		found[i].key = key
		for k, prefix := range w.chosen {
			found[i].places = append(found[i].places, w.cutPlaces(lists[i*len(w.chosen)+k], len(prefix), page.until)...)
		}
		slices.Sort(found[i].places)
	}
	for _, o := range w.others {
		if err := w.keepOther(ctx, found, from, o); err != nil {
			return page, err
		}
	}
	for i := range found {
		page.places = append(page.places, found[i].places...)
	}
	return page, nil
}

// keyPlaces is places of the list of a key, in order.
type keyPlaces struct {
	key    string
	places []string
}

// listKeys returns the keys of a list of some tenants in all partitions.
func (w *threadWalk) listKeys(owners []string) (keys []string) {
	for _, owner := range owners {
		for _, p := range w.reader.keys.AllPartitions() {
			keys = append(keys, w.reader.keys.PartitionKey(p, layout.TenantKey(w.key, owner)))
		}
	}
	return keys
}

// sizeRead returns how many members each of some reads takes.
func (w *threadWalk) sizeRead(reads, wanted int) int {
	return max(16, min(w.reader.shareOfPage(wanted), passedPerPartition, passedPerRead/max(1, reads)))
}

// newPlaceRange returns the range of members that begin with a prefix, whose places are after one,
// "" = from the start, and up to another, "" = to the end.
func newPlaceRange(key, prefix, from, until string, limit int) script.Range {
	r := script.Range{Key: key, Begin: "[" + prefix, End: "+", Limit: limit}
	switch {
	case from != "":
		r.Begin = "(" + prefix + from
	case prefix == "":
		r.Begin = "-"
	}
	switch {
	case until != "":
		r.End = "[" + prefix + until
	case prefix != "":
		r.End = "(" + prefix[:len(prefix)-1] + "\x01"
	}
	return r
}

// cutPlaces returns the places of members up to one, those of threads that the query selects by
// their ids.
func (w *threadWalk) cutPlaces(members []string, prefix int, until string) []string {
	places := members[:0]
	for _, member := range members {
		place := member[prefix:]
		if until != "" && place > until {
			break
		}
		if thread, _, ok := layout.ParseMember(place); ok && w.query.MatchesID(thread) {
			places = append(places, place)
		}
	}
	return places
}

// keepOther keeps the places that meet another condition.
func (w *threadWalk) keepOther(ctx context.Context, found []keyPlaces, from string, o otherCondition) error {
	if o.how == byLookup {
		return w.keepLookedUp(ctx, found, o.prefixes)
	}
	common, err := w.readCommon(ctx, found, from, o.prefixes)
	if err != nil {
		return err
	}
	for i := range found {
		if o.how == byExclusion {
			common[i] = cutOut(found[i].places, common[i])
		}
		found[i].places = common[i]
	}
	return nil
}

// cutOut returns the places that are not among others. Both are in order.
func cutOut(places, others []string) []string {
	if len(others) == 0 {
		return places
	}
	return slices.DeleteFunc(places, func(place string) bool {
		_, has := slices.BinarySearch(others, place)
		return has
	})
}

// readCommon returns the places that members with other prefixes have as well, of each key in order.
func (w *threadWalk) readCommon(ctx context.Context, found []keyPlaces, from string, prefixes []string) ([][]string, error) {
	common := make([][]string, len(found))
	var reads []script.Range
	var of, prefix []int // each read is of this key, and has a prefix of this length
	for i, f := range found {
		for _, p := range prefixes {
			if len(f.places) > 0 {
				reads = append(reads, newPlaceRange(f.key, p, from, f.places[len(f.places)-1], passedPerPartition))
				of, prefix = append(of, i), append(prefix, len(p))
			}
		}
	}
	for len(reads) > 0 {
		lists, err := w.reader.runner.ReadRanges(ctx, reads)
		if err != nil {
			return nil, err
		}
		left := 0
		for r, list := range lists {
			common[of[r]] = append(common[of[r]], keepCommon(found[of[r]].places, list, prefix[r])...)
			if len(list) == passedPerPartition { // it goes on
				reads[left], of[left], prefix[left] = reads[r], of[r], prefix[r]
				reads[left].Begin = "(" + list[len(list)-1]
				left++
			}
		}
		reads, of, prefix = reads[:left], of[:left], prefix[:left]
	}
	for i := range common {
		slices.Sort(common[i])
	}
	return common, nil
}

// keepCommon returns those of some places that members have behind a prefix. Both are in order.
func keepCommon(places, members []string, prefix int) (kept []string) {
	if len(members) == 0 {
		return nil
	}
	at, _ := slices.BinarySearch(places, members[0][prefix:])
	for _, place := range places[at:] {
		for len(members) > 0 && members[0][prefix:] < place {
			members = members[1:]
		}
		if len(members) == 0 {
			break
		}
		if members[0][prefix:] == place {
			kept = append(kept, place)
		}
	}
	return kept
}

// keepLookedUp keeps the places with which another condition has members.
func (w *threadWalk) keepLookedUp(ctx context.Context, found []keyPlaces, prefixes []string) error {
	var lookups []script.Lookup
	for _, f := range found {
		for chunk := range slices.Chunk(f.places, lookupsPerCommand) {
			for _, prefix := range prefixes {
				l := script.Lookup{Key: f.key, Members: make([]string, len(chunk))}
				for i, place := range chunk {
					l.Members[i] = prefix + place
				}
				lookups = append(lookups, l)
			}
		}
	}
	has, err := w.reader.runner.HasMembers(ctx, lookups)
	if err != nil {
		return err
	}
	for i := range found {
		var kept []string
		for chunk := range slices.Chunk(found[i].places, lookupsPerCommand) {
			of := has[:len(prefixes)]
			has = has[len(prefixes):]
			for k, place := range chunk {
				if slices.ContainsFunc(of, func(list []bool) bool { return list[k] }) {
					kept = append(kept, place)
				}
			}
		}
		found[i].places = kept
	}
	return nil
}

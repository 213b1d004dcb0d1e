package checkpoint

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
)

// A store keeps the threads of each tenant in the order in which they were created by their graph,
// their state and each value of their metadata, so that a list by these costs what it shows.

// ThreadCondition is a condition of a ThreadQuery that an index finds.
type ThreadCondition struct {
	Kind  ThreadConditionKind
	Value string // of ConditionLabel: the tag
}

// ThreadConditionKind is what a condition is on.
type ThreadConditionKind string

// The kinds of conditions.
const (
	ConditionState ThreadConditionKind = "s"
	ConditionGraph ThreadConditionKind = "g"
	ConditionLabel ThreadConditionKind = "m"
)

// maxPlainLabel is the length up to which a tag has a key and a value as they are.
const maxPlainLabel = 128

// LabelTag is the tag of threads whose metadata has a value under a key. Of a long value it is a
// digest.
func LabelTag(key, value string) string {
	tag := strconv.Itoa(len(key)) + ":" + key + "=" + value
	if len(tag) <= maxPlainLabel {
		return tag
	}
	sum := sha256.Sum256([]byte(tag))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// LabelTags returns the tags of the metadata of a thread, sorted.
func (h *Head) LabelTags() []string { return labelTags(h.Metadata) }

func labelTags(metadata map[string]string) []string {
	if len(metadata) == 0 {
		return nil
	}
	tags := make([]string, 0, len(metadata))
	for key, value := range metadata {
		tags = append(tags, LabelTag(key, value))
	}
	slices.Sort(tags)
	return tags
}

// Conditions returns the conditions of a query, that which the fewest threads are likely to meet
// first. Without one, threads are listed by the time of their last change.
func (q *ThreadQuery) Conditions() []ThreadCondition {
	all := make([]ThreadCondition, 0, len(q.Metadata)+2)
	for _, tag := range labelTags(q.Metadata) {
		all = append(all, ThreadCondition{ConditionLabel, tag})
	}
	if q.State != "" {
		all = append(all, ThreadCondition{ConditionState, string(q.State)})
	}
	if q.Graph != "" {
		all = append(all, ThreadCondition{ConditionGraph, q.Graph})
	}
	return all
}

// HasConditions reports whether a query has conditions.
func (q *ThreadQuery) HasConditions() bool {
	return q.State != "" || q.Graph != "" || len(q.Metadata) > 0
}

// MatchesThread reports whether a thread meets the conditions of a query.
func (q *ThreadQuery) MatchesThread(h *Head) bool {
	if !q.MatchesID(h.Thread) {
		return false
	}
	if q.State != "" && q.State != h.State || q.Graph != "" && q.Graph != h.Graph {
		return false
	}
	for key, value := range q.Metadata {
		if got, has := h.Metadata[key]; !has || got != value {
			return false
		}
	}
	return true
}

// PositionOf returns where a thread stands in the order of a query.
func (q *ThreadQuery) PositionOf(h *Head) ThreadPosition {
	if q.HasConditions() {
		return ThreadPosition{Created: h.Created, Thread: h.Thread}
	}
	return ThreadPosition{Updated: h.Updated, Thread: h.Thread}
}

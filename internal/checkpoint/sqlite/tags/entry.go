// Package tags writes the tags of open interrupts, and counts them. It writes the labels of
// threads.
package tags

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/layout"
)

// AnyDue is the tag of each open interrupt with a due time.
const AnyDue = ""

// Entry is what the table of tags has of an interrupt: a row for each tag.
type Entry struct {
	Created int64
	Due     *int64   `json:",omitempty"` // nil = never
	Tags    []string // as they are stored
}

// NewEntry returns the entry of an interrupt, nil = it has no tags.
func NewEntry(box *seal.Box, in *checkpoint.Interrupt) *Entry {
	tags := in.Tags()
	if len(tags) == 0 {
		return nil
	}
	e := &Entry{Created: layout.ToUnixNanos(in.Created), Tags: make([]string, 0, len(tags)+1)}
	for _, tag := range tags {
		e.Tags = append(e.Tags, box.TagForm(tag))
	}
	if due := in.DueTime(); !due.IsZero() {
		at := layout.ToUnixNanos(due)
		e.Due, e.Tags = &at, append(e.Tags, AnyDue)
	}
	return e
}

// CountRows returns how many rows are written for the entry: each tag, and its count.
func (e *Entry) CountRows() int {
	if e == nil {
		return 0
	}
	return 2 * len(e.Tags)
}

// countedTags returns the tags of which one is counted with the entry.
func (e *Entry) countedTags() []string { return append(slices.Clone(e.Tags), checkpoint.OpenTag) }

// Text returns the entry as the row of the interrupt has it, nil = NULL.
func (e *Entry) Text() any {
	if e == nil {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil // can't be: it has numbers and texts
	}
	return string(text)
}

// parseEntry is the inverse of Text.
func parseEntry(text string) (*Entry, error) {
	var e Entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return nil, fmt.Errorf("%w: its tags can't be read: %w", checkpoint.ErrCorrupt, err)
	}
	return &e, nil
}

// hasSameRows reports whether two entries have the same rows.
func (e *Entry) hasSameRows(other *Entry) bool {
	if e == nil || other == nil {
		return e == other
	}
	isSameDue := e.Due == nil && other.Due == nil || e.Due != nil && other.Due != nil && *e.Due == *other.Due
	return e.Created == other.Created && isSameDue && slices.Equal(e.Tags, other.Tags)
}

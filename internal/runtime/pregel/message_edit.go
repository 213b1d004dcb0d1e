package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// mergeMessages merges by id. Plain additions at the end are stored as such.
// Any other change stores the list anew. A missing id is made from the
// position of the write, so that the same write gets the same id.
func (c channelEdit) mergeMessages(write int, v payload.JSON) error {
	old := c.listItems()
	newID := func(n int) string { return messageID(c.idSeed, c.spec.Name, write, n) }
	if c.appendMessages(old, v, newID) {
		return nil
	}
	if c.messageIndex != nil {
		*c.messageIndex = nil // unknown until the list is read again
	}
	merged, err := payload.MergeMessages(old, v, newID)
	if err != nil {
		return c.errorf("%v", err)
	}
	if len(merged) >= len(old) && slices.Equal(merged[:len(old)], old) {
		c.appendItems(merged[len(old):])
		return nil
	}
	c.rewriteList(merged)
	return nil
}

// minIndexedMessages is the length from which a list of messages gets an index.
const minIndexedMessages = 16

// appendMessages appends messages without reading the present messages, and reports
// whether that was sufficient. A look-ahead, or a list without numbers, leaves the index
// as it is, because the index belongs to the states that follow.
func (c channelEdit) appendMessages(old []payload.JSON, v payload.JSON, newID func(n int) string) bool {
	if c.messageIndex == nil || len(old) < minIndexedMessages {
		return false
	}
	if *c.messageIndex == nil && c.seq != 0 {
		*c.messageIndex = payload.IndexMessages(old)
	}
	if *c.messageIndex == nil {
		return false
	}
	index := *c.messageIndex
	added, note, ok := index.PlanAppend(v, newID)
	if !ok {
		return false
	}
	c.appendItems(added)
	if c.seq == 0 {
		*c.messageIndex = nil
		return true
	}
	note()
	*c.messageIndex = index // also where the list was stored anew
	return true
}

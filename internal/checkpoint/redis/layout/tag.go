package layout

import (
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// The list of tags has a member for each tag of an open interrupt: the letter of an order, the
// tag, a zero byte, and the member of the interrupt in that order. An interrupt with a due
// time has a second one for each, and one for the empty tag.
const (
	TagByCreated = "c"
	TagByDue     = "d"
)

// AnyDue is the tag of each open interrupt with a due time.
const AnyDue = ""

// EncodeTags returns the tags of an interrupt as apply.lua has them: the due time as it begins a
// member, "" = never, then each tag, all behind their lengths. An interrupt without tags has "".
func EncodeTags(box *seal.Box, in *checkpoint.Interrupt) string {
	tags := in.Tags()
	if len(tags) == 0 {
		return ""
	}
	var b strings.Builder
	due := ""
	if at := in.DueTime(); !at.IsZero() {
		due = formatSortable(at)
	}
	b.WriteString(AddLength(due))
	for _, tag := range tags {
		b.WriteString(AddLength(box.TagForm(tag)))
	}
	return b.String()
}

// CutRecord returns the record in the stored text of an interrupt, behind its numbers and tags. It
// returns "" for a text of another form.
func CutRecord(text string) string {
	numbers := strings.SplitN(text, " ", 4)
	if len(numbers) < 4 {
		return ""
	}
	record := numbers[3]
	_, size, hasTags := strings.Cut(numbers[2], ":")
	if !hasTags {
		return record
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > len(record) {
		return ""
	}
	return record[n:]
}

// TagMembers returns the members that an interrupt has in the list of tags.
func TagMembers(box *seal.Box, in *checkpoint.Interrupt) (members []string) {
	created, due := InterruptMember(in), ""
	if at := in.DueTime(); !at.IsZero() {
		due = formatSortable(at) + created[16:]
		members = append(members, TagByDue+AnyDue+"\x00"+due)
	}
	for _, tag := range in.Tags() {
		form := box.TagForm(tag)
		members = append(members, TagByCreated+form+"\x00"+created)
		if due != "" {
			members = append(members, TagByDue+form+"\x00"+due)
		}
	}
	return members
}

// The list of tags of threads has a member for the graph, the state and each label of a thread: the
// kind of the condition, its value, a zero byte, and the place of the thread in the order of
// creation, newest first.

// EncodeThreadTags returns the tags of a thread as apply.lua has them: when the thread was created,
// as it begins a place, then each tag but that of its state behind its length.
func EncodeThreadTags(box *seal.Box, h *checkpoint.Head) string {
	b := make([]byte, 0, 64)
	b = append(b, formatNewestFirst(h.Created)...)
	add := func(kind checkpoint.ThreadConditionKind, value string) {
		b = strconv.AppendInt(b, int64(len(kind)+len(value)), 10)
		b = append(append(append(b, ':'), kind...), value...)
	}
	add(checkpoint.ConditionGraph, h.Graph)
	for _, tag := range h.LabelTags() {
		add(checkpoint.ConditionLabel, box.TagForm(tag))
	}
	return string(b)
}

// ThreadTagMembers returns the members that a thread has in the list of tags of threads.
func ThreadTagMembers(box *seal.Box, h *checkpoint.Head) []string {
	place := "\x00" + CreatedMember(h)
	members := []string{
		string(checkpoint.ConditionGraph) + h.Graph + place, string(checkpoint.ConditionState) + string(h.State) + place,
	}
	for _, tag := range h.LabelTags() {
		members = append(members, string(checkpoint.ConditionLabel)+box.TagForm(tag)+place)
	}
	return members
}

// ConditionForms returns the stored tags of a condition on threads.
func ConditionForms(box *seal.Box, c checkpoint.ThreadCondition) (forms []string) {
	if c.Kind != checkpoint.ConditionLabel {
		return []string{string(c.Kind) + c.Value}
	}
	for _, form := range box.TagForms(c.Value) {
		forms = append(forms, string(c.Kind)+form)
	}
	return forms
}

// CreatedMember returns the place of a thread in the order of creation, newest first.
func CreatedMember(h *checkpoint.Head) string {
	return ThreadPosition(h.Created, h.Thread) + "\x00" + memberSuffix(h.Thread)
}

// TagRange is a range of members of a tag, in the form of ZRANGEBYLEX.
type TagRange struct{ Begin, End string }

// NewTagRange returns the range of a stored tag in an order, after a position of that order, ""
// = the start, and before a due time, zero = the end.
func NewTagRange(order, form, after string, before time.Time) TagRange {
	prefix := order + form + "\x00"
	r := TagRange{Begin: "[" + prefix, End: "(" + order + form + "\x01"}
	if after != "" {
		r.Begin = "(" + prefix + after
	}
	if !before.IsZero() {
		r.End = "(" + prefix + formatSortable(before)
	}
	return r
}

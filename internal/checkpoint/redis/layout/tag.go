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

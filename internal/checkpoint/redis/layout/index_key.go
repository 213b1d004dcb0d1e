package layout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Members of the ordered indexes. They sort as bytes, since a score, a
// floating-point number, can't hold nanoseconds.

// ToUnixNanos returns nanoseconds since 1970. The zero time is the least number. A time
// that does not fit becomes the nearest time that fits.
func ToUnixNanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return math.MinInt64
	case t.Year() < 1678:
		return math.MinInt64 + 1
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// FromUnixNanos is the inverse of ToUnixNanos.
func FromUnixNanos(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func sortableTime(t time.Time) uint64 { return uint64(ToUnixNanos(t)) ^ 1<<63 }

// memberSuffix returns the end of a member: the length of the thread's id, by which
// ParseMember splits the member.
func memberSuffix(thread string) string { return fmt.Sprintf("\x00%08x", len(thread)) }

const memberSuffixLen = 9

// ThreadMember returns the member of a thread in the list of threads, which sorts newest
// first, then by id.
func ThreadMember(h *checkpoint.Head) string {
	return ThreadPosition(h.Updated, h.Thread) + "\x00" + string(h.State) + "\x00" + h.Graph + memberSuffix(h.Thread)
}

// ThreadPosition returns the position of a thread in a list of threads by a time, newest first.
func ThreadPosition(at time.Time, thread string) string { return formatNewestFirst(at) + thread }

// formatNewestFirst returns an instant as 16 digits that sort against the order of instants.
func formatNewestFirst(t time.Time) string { return fmt.Sprintf("%016x", ^sortableTime(t)) }

// ParseThreadPlace splits the place of a thread in a list of threads: a member of the list, or
// what follows the tag in the list of tags.
func ParseThreadPlace(place string) (at time.Time, thread string, ok bool) {
	thread, _, ok = ParseMember(place)
	if !ok {
		return at, "", false
	}
	n, err := strconv.ParseUint(place[:16], 16, 64)
	return FromUnixNanos(int64(^n ^ 1<<63)), thread, err == nil
}

// ParseThreadMember splits a member of the list of threads.
func ParseThreadMember(member string) (thread, state, graph string, ok bool) {
	thread, rest, ok := ParseMember(member)
	if !ok {
		return "", "", "", false
	}
	state, graph, ok = strings.Cut(rest, "\x00")
	return thread, state, graph, ok
}

// InterruptMember returns the member of an interrupt in the lists of interrupts, which sort
// oldest first, then by thread and id.
func InterruptMember(in *checkpoint.Interrupt) string {
	return InterruptPosition(in.Created, in.Thread, in.ID) + memberSuffix(in.Thread)
}

// MemberAt returns the member of an interrupt at a place of one of the orders.
func MemberAt(p checkpoint.InterruptPosition) string {
	return InterruptPosition(p.Time(), p.Thread, p.ID) + memberSuffix(p.Thread)
}

// InterruptPosition returns the position of an interrupt in the lists of interrupts.
func InterruptPosition(created time.Time, thread, id string) string {
	return formatSortable(created) + thread + "\x00" + id
}

// formatSortable returns an instant as 16 digits that sort as instants do.
func formatSortable(t time.Time) string { return fmt.Sprintf("%016x", sortableTime(t)) }

// ParseMember splits a member that consists of 16 digits, a thread, further text, and the
// suffix of memberSuffix. It returns the thread and the further text.
func ParseMember(member string) (thread, rest string, ok bool) {
	if len(member) < 16+1+memberSuffixLen {
		return "", "", false
	}
	n, err := strconv.ParseUint(member[len(member)-memberSuffixLen+1:], 16, 32)
	body := member[16 : len(member)-memberSuffixLen]
	if err != nil || uint64(len(body)) <= n || body[n] != 0 {
		return "", "", false
	}
	return body[:n], body[n+1:], true
}

// FormatDue returns an instant as the list of due threads has it, "" = never.
func FormatDue(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%019d", max(0, ToUnixNanos(t)))
}

// DueLen is the number of bytes of an instant in the list of due threads.
const DueLen = 19

// ParseDueMember splits a member of the list of due threads.
func ParseDueMember(member string) (at time.Time, thread string, ok bool) {
	if len(member) < DueLen {
		return time.Time{}, "", false
	}
	n, err := strconv.ParseInt(member[:DueLen], 10, 64)
	return time.Unix(0, n).UTC(), member[DueLen:], err == nil
}

// AddLength returns a text behind its length, so that no such text is the beginning of
// another.
func AddLength(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// CutLength splits a member after its first part, which AddLength has written.
func CutLength(member string) (first, rest string) {
	length, text, _ := strings.Cut(member, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(text) {
		return "", member
	}
	return text[:n], text[n:]
}

// CheckpointMember returns the member of a checkpoint in the thread's list of checkpoints.
func CheckpointMember(cp *checkpoint.Checkpoint) string {
	return AddLength(checkpoint.NodePath(cp.Namespace)) + AddLength(cp.Namespace) + cp.ID
}

// ParseCheckpointMember returns the id in a member of the list of checkpoints.
func ParseCheckpointMember(member string) (id string, ok bool) {
	for range 2 {
		length, rest, _ := strings.Cut(member, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(rest) {
			return "", false
		}
		member = rest[n:]
	}
	return member, member != ""
}

// ValueField returns the field of a value of a channel, by the checkpoint that wrote it.
func ValueField(seq uint64, channel string) string {
	return "v" + strconv.FormatUint(seq, 10) + ":" + channel
}

// ItemField returns the field of an element of a list.
func ItemField(segment uint64, index int, channel string) string {
	return "i" + strconv.FormatUint(segment, 10) + ":" + strconv.Itoa(index) + ":" + channel
}

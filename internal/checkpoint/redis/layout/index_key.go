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

// ToUnixNanos is nanoseconds since 1970. No time is the least number; a time that
// does not fit is as far away as one can be.
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

// memberSuffix ends a member: the length of the thread's id, by which it is taken apart.
func memberSuffix(thread string) string { return fmt.Sprintf("\x00%08x", len(thread)) }

const memberSuffixLen = 9

// ThreadMember is a thread in the list of threads: newest first, then by id.
func ThreadMember(h *checkpoint.Head) string {
	return ThreadPosition(h.Updated, h.Thread) + "\x00" + string(h.State) + "\x00" + h.Graph + memberSuffix(h.Thread)
}

// ThreadPosition is where a thread stands in the list of threads.
func ThreadPosition(updated time.Time, thread string) string {
	return fmt.Sprintf("%016x%s", ^sortableTime(updated), thread)
}

// ParseThreadMember takes a member of the list of threads apart.
func ParseThreadMember(member string) (thread, state, graph string, ok bool) {
	thread, rest, ok := ParseMember(member)
	if !ok {
		return "", "", "", false
	}
	state, graph, ok = strings.Cut(rest, "\x00")
	return thread, state, graph, ok
}

// InterruptMember is an interrupt in the lists of interrupts: oldest first, then
// by thread and id.
func InterruptMember(in *checkpoint.Interrupt) string {
	return InterruptPosition(in.Created, in.Thread, in.ID) + memberSuffix(in.Thread)
}

// InterruptPosition is where an interrupt stands in the lists of interrupts.
func InterruptPosition(created time.Time, thread, id string) string {
	return fmt.Sprintf("%016x%s\x00%s", sortableTime(created), thread, id)
}

// ParseMember takes a member apart that consists of 16 digits, a thread, what
// follows it, and a tail.
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

// FormatDue is an instant in the list of what is due, "" = never.
func FormatDue(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%019d", max(0, ToUnixNanos(t)))
}

// DueLen is how many bytes the instant in the list of what is due has.
const DueLen = 19

// ParseDueMember takes a member of the list of what is due apart.
func ParseDueMember(member string) (at time.Time, thread string, ok bool) {
	if len(member) < DueLen {
		return time.Time{}, "", false
	}
	n, err := strconv.ParseInt(member[:DueLen], 10, 64)
	return time.Unix(0, n).UTC(), member[DueLen:], err == nil
}

// AddLength writes a text with its length before it: no such text begins another.
func AddLength(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// CutLength takes the first part off a member.
func CutLength(member string) (first, rest string) {
	length, text, _ := strings.Cut(member, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(text) {
		return "", member
	}
	return text[:n], text[n:]
}

// CheckpointMember is a checkpoint in a thread's list of them.
func CheckpointMember(cp *checkpoint.Checkpoint) string {
	return AddLength(checkpoint.NodePath(cp.Namespace)) + AddLength(cp.Namespace) + cp.ID
}

// ParseCheckpointMember reads the id in such a member.
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

// ValueField is where a value of a channel is kept, by the checkpoint that wrote it.
func ValueField(seq uint64, channel string) string {
	return "v" + strconv.FormatUint(seq, 10) + ":" + channel
}

// ItemField is where an element of a list is kept.
func ItemField(segment uint64, index int, channel string) string {
	return "i" + strconv.FormatUint(segment, 10) + ":" + strconv.Itoa(index) + ":" + channel
}

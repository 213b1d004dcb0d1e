package redis

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

// toUnixNanos is nanoseconds since 1970. No time is the least number; a time that
// does not fit is as far away as one can be.
func toUnixNanos(t time.Time) int64 {
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

// fromUnixNanos is the inverse of nanos.
func fromUnixNanos(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func sortableTime(t time.Time) uint64 { return uint64(toUnixNanos(t)) ^ 1<<63 }

// memberSuffix ends a member: the length of the thread's id, by which it is taken apart.
func memberSuffix(thread string) string { return fmt.Sprintf("\x00%08x", len(thread)) }

const memberSuffixLen = 9

// threadMember is a thread in the list of threads: newest first, then by id.
func threadMember(h *checkpoint.Head) string {
	return threadPosition(h.Updated, h.Thread) + "\x00" + string(h.State) + "\x00" + h.Graph + memberSuffix(h.Thread)
}

func threadPosition(updated time.Time, thread string) string {
	return fmt.Sprintf("%016x%s", ^sortableTime(updated), thread)
}

// parseThreadMember takes a member of the list of threads apart.
func parseThreadMember(member string) (thread, state, graph string, ok bool) {
	thread, rest, ok := parseMember(member)
	if !ok {
		return "", "", "", false
	}
	state, graph, ok = strings.Cut(rest, "\x00")
	return thread, state, graph, ok
}

// interruptMember is an interrupt in the lists of interrupts: oldest first, then
// by thread and id.
func interruptMember(in *checkpoint.Interrupt) string {
	return interruptPosition(in.Created, in.Thread, in.ID) + memberSuffix(in.Thread)
}

func interruptPosition(created time.Time, thread, id string) string {
	return fmt.Sprintf("%016x%s\x00%s", sortableTime(created), thread, id)
}

// parseMember takes a member apart that consists of 16 digits, a thread, what
// follows it, and a tail.
func parseMember(member string) (thread, rest string, ok bool) {
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

// formatDue is an instant in the list of what is due, "" = never.
func formatDue(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%019d", max(0, toUnixNanos(t)))
}

const dueLen = 19

func parseDueMember(member string) (at time.Time, thread string, ok bool) {
	if len(member) < dueLen {
		return time.Time{}, "", false
	}
	n, err := strconv.ParseInt(member[:dueLen], 10, 64)
	return time.Unix(0, n).UTC(), member[dueLen:], err == nil
}

// addLength writes a text with its length before it: no such text begins another.
func addLength(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// cutLength takes the first part off a member.
func cutLength(member string) (first, rest string) {
	length, text, _ := strings.Cut(member, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(text) {
		return "", member
	}
	return text[:n], text[n:]
}

// checkpointMember is a checkpoint in a thread's list of them.
func checkpointMember(cp *checkpoint.Checkpoint) string {
	return addLength(checkpoint.NodePath(cp.Namespace)) + addLength(cp.Namespace) + cp.ID
}

// parseCheckpointMember reads the id in such a member.
func parseCheckpointMember(member string) (id string, ok bool) {
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

func valueField(seq uint64, channel string) string {
	return "v" + strconv.FormatUint(seq, 10) + ":" + channel
}

func itemField(segment uint64, index int, channel string) string {
	return "i" + strconv.FormatUint(segment, 10) + ":" + strconv.Itoa(index) + ":" + channel
}

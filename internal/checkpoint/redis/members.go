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

// nanos is nanoseconds since 1970. No time is the least number; a time that
// does not fit is as far away as one can be.
func nanos(t time.Time) int64 {
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

// instant is the inverse of nanos.
func instant(n int64) time.Time {
	if n == math.MinInt64 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func sortable(t time.Time) uint64 { return uint64(nanos(t)) ^ 1<<63 }

// tail ends a member: the length of the thread's id, by which it is taken apart.
func tail(thread string) string { return fmt.Sprintf("\x00%08x", len(thread)) }

const tailLen = 9

// threadMember is a thread in the list of threads: newest first, then by id.
func threadMember(h *checkpoint.Head) string {
	return threadPlace(h.Updated, h.Thread) + "\x00" + string(h.State) + "\x00" + h.Graph + tail(h.Thread)
}

func threadPlace(updated time.Time, thread string) string {
	return fmt.Sprintf("%016x%s", ^sortable(updated), thread)
}

// parseThread takes a member of the list of threads apart.
func parseThread(member string) (thread, state, graph string, ok bool) {
	thread, rest, ok := parseMember(member)
	if !ok {
		return "", "", "", false
	}
	state, graph, ok = strings.Cut(rest, "\x00")
	return thread, state, graph, ok
}

// questionMember is a question in the lists of questions: oldest first, then
// by thread and id.
func questionMember(in *checkpoint.Interrupt) string {
	return questionPlace(in.Created, in.Thread, in.ID) + tail(in.Thread)
}

func questionPlace(created time.Time, thread, id string) string {
	return fmt.Sprintf("%016x%s\x00%s", sortable(created), thread, id)
}

// parseMember takes a member apart that consists of 16 digits, a thread, what
// follows it, and a tail.
func parseMember(member string) (thread, rest string, ok bool) {
	if len(member) < 16+1+tailLen {
		return "", "", false
	}
	n, err := strconv.ParseUint(member[len(member)-tailLen+1:], 16, 32)
	body := member[16 : len(member)-tailLen]
	if err != nil || uint64(len(body)) <= n || body[n] != 0 {
		return "", "", false
	}
	return body[:n], body[n+1:], true
}

// dueAt is an instant in the list of what is due, "" = never.
func dueAt(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%019d", max(0, nanos(t)))
}

const dueLen = 19

func parseDue(member string) (at time.Time, thread string, ok bool) {
	if len(member) < dueLen {
		return time.Time{}, "", false
	}
	n, err := strconv.ParseInt(member[:dueLen], 10, 64)
	return time.Unix(0, n).UTC(), member[dueLen:], err == nil
}

// sized writes a text with its length before it: no such text begins another.
func sized(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// unsized takes the first part off a member.
func unsized(member string) (first, rest string) {
	length, text, _ := strings.Cut(member, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(text) {
		return "", member
	}
	return text[:n], text[n:]
}

// checkpointMember is a checkpoint in a thread's list of them.
func checkpointMember(cp *checkpoint.Checkpoint) string {
	return sized(checkpoint.NodePath(cp.Namespace)) + sized(cp.Namespace) + cp.ID
}

// parseCheckpoint reads the id in such a member.
func parseCheckpoint(member string) (id string, ok bool) {
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

package output

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// FormatInteger formats any integer.
func FormatInteger[T int32 | uint32 | uint64 | int](n T) string { return fmt.Sprint(n) }

// FormatTime formats a time of the server in the reader's time zone.
func FormatTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("2006-01-02 15:04:05")
}

// FormatAge formats the time since an event.
func FormatAge(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return "-"
	}
	switch d := now.Sub(t.AsTime()); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// RunStateName returns the state of a run for people.
func RunStateName(s graphdv1.RunState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "RUN_STATE_"))
}

// ThreadStateName returns the state of a thread for people.
func ThreadStateName(s graphdv1.ThreadState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "THREAD_STATE_"))
}

// sourceName returns the source of a checkpoint for people.
func sourceName(s graphdv1.CheckpointSource) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "CHECKPOINT_SOURCE_"))
}

// OrDash returns text, a dash for an empty text.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// InterruptStateName returns the state of a question for people.
func InterruptStateName(q *graphdv1.Interrupt) string {
	if q.GetDismissed() {
		return "dismissed"
	}
	return strings.ToLower(strings.TrimPrefix(q.GetState().String(), "INTERRUPT_STATE_"))
}

// FormatLabels formats labels as KEY=VALUE, sorted by key.
func FormatLabels(all map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		words = append(words, key+"="+all[key])
	}
	return OrDash(strings.Join(words, " "))
}

// FormatCount formats a number with a comma before each three digits.
func FormatCount(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

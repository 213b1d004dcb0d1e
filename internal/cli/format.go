package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// formatInteger prints any integer.
func formatInteger[T int32 | uint32 | uint64 | int](n T) string { return fmt.Sprint(n) }

// formatTime shows a time of the server as the reader's clock has it.
func formatTime(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Local().Format("2006-01-02 15:04:05")
}

// formatAge shows how long ago something happened.
func formatAge(t *timestamppb.Timestamp, now time.Time) string {
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

// runStateName returns the state of a run as people read it.
func runStateName(s graphdv1.RunState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "RUN_STATE_"))
}

// threadStateName shows the state of a thread.
func threadStateName(s graphdv1.ThreadState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "THREAD_STATE_"))
}

// sourceName shows what made a checkpoint.
func sourceName(s graphdv1.CheckpointSource) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "CHECKPOINT_SOURCE_"))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// interruptStateName shows how far a question has come.
func interruptStateName(q *graphdv1.Interrupt) string {
	if q.GetDismissed() {
		return "dismissed"
	}
	return strings.ToLower(strings.TrimPrefix(q.GetState().String(), "INTERRUPT_STATE_"))
}

// formatLabels shows labels as KEY=VALUE, by key.
func formatLabels(all map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		words = append(words, key+"="+all[key])
	}
	return orDash(strings.Join(words, " "))
}

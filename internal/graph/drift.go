package graph

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// What happens when a replayed node asks something else than was answered.
const (
	DriftFail     = "fail"
	DriftAskAgain = "ask_again"
	DriftAccept   = "accept"
)

// MostDriftIgnore bounds how many parts of a question may differ.
const MostDriftIgnore = 100

// Drifts lists what may be chosen.
func Drifts() []string { return []string{DriftAccept, DriftAskAgain, DriftFail} }

// NotIgnorable says why text names no part of a question that may differ, ""
// if it does.
func NotIgnorable(text string) string {
	switch {
	case text == payload.PartMessage, text == payload.PartSchema, text == payload.PartValue, payload.IsPointer(text):
		return ""
	case len(text) > 0 && text[0] == '/':
		return "~ stands for itself as ~0 in a JSON pointer, and / as ~1"
	}
	return `must be a JSON pointer into the value, like "/asked_at", or one of message, schema, value`
}

// drift checks what a graph or a question says about replays that ask
// something else.
func (b *builder) drift(path, drift string, ignore []string) {
	if drift != "" && !slices.Contains(Drifts(), drift) {
		b.unknown(path+"drift", ReasonUnknownValue, "drift", drift, Drifts)
	}
	at := path + "drift_ignore"
	if len(ignore) > MostDriftIgnore {
		b.add(at, ReasonOutOfRange, "has %d entries; at most %d are allowed", len(ignore), MostDriftIgnore)
		return
	}
	for i, part := range ignore {
		if problem := NotIgnorable(part); problem != "" {
			b.add(index(at, i), ReasonUnknownValue, "%q %s", part, problem)
		}
	}
}

package graph

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Reactions to a replayed node that asks something else than was answered.
const (
	DriftFail     = "fail"
	DriftAskAgain = "ask_again"
	DriftAccept   = "accept"
)

// MaxDriftIgnore bounds how many parts of an interrupt may differ.
const MaxDriftIgnore = 100

// Drifts lists the reactions to choose from.
func Drifts() []string { return []string{DriftAccept, DriftAskAgain, DriftFail} }

// IgnoreProblem says why text names no part of an interrupt that may differ, "" if it
// does.
func IgnoreProblem(text string) string {
	switch {
	case text == payload.PartMessage, text == payload.PartSchema, text == payload.PartValue, payload.IsPointer(text):
		return ""
	case len(text) > 0 && text[0] == '/':
		return "~ stands for itself as ~0 in a JSON pointer, and / as ~1"
	}
	return `must be a JSON pointer into the value, like "/asked_at", or one of message, schema, value`
}

// checkDrift checks the drift of a graph or an interrupt.
func (p *problemList) checkDrift(path, drift string, ignore []string) {
	if drift != "" && !slices.Contains(Drifts(), drift) {
		p.addUnknown(path+"drift", ReasonUnknownValue, "drift", drift, Drifts)
	}
	at := path + "drift_ignore"
	if len(ignore) > MaxDriftIgnore {
		p.addProblem(at, ReasonOutOfRange, "has %d entries; at most %d are allowed", len(ignore), MaxDriftIgnore)
		return
	}
	for i, part := range ignore {
		if problem := IgnoreProblem(part); problem != "" {
			p.addProblem(indexPath(at, i), ReasonUnknownValue, "%q %s", part, problem)
		}
	}
}

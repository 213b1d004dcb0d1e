package pregel

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Settle fills in what the question leaves to its graph or to its reason.
func (a *Ask) Settle(spec *graph.Spec) {
	if spec != nil {
		a.Drift = cmp.Or(a.Drift, checkpoint.Drift(spec.Drift))
		a.DriftIgnore = union(spec.DriftIgnore, a.DriftIgnore)
	}
	a.Drift = cmp.Or(a.Drift, usualDrift(a.Reason))
}

// usualDrift is what holds for a question when the program says nothing: a
// consent must not be asked for again and again until it is given.
func usualDrift(reason string) checkpoint.Drift {
	switch reason {
	case "approval", "tool_call":
		return checkpoint.DriftFail
	}
	return checkpoint.DriftAskAgain
}

func union(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	all := slices.Clip(a)
	for _, one := range b {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Fits reports whether what was shown to the person who answered is what the
// attempt asks. The question is settled.
func (a *Answer) Fits(now *Ask) bool {
	if q := a.Asked; q != nil && q.Message == now.Message && q.Value == now.Value && q.Schema == now.Schema &&
		slices.Equal(q.DriftIgnore, now.DriftIgnore) {
		return true
	}
	return a.Seen == now.Seen()
}

// Shown is what a person sees of the question, without the parts that may
// differ, as one object.
func (a *Ask) Shown() payload.JSON { return payload.Shown(a.Message, a.Value, a.Schema, a.DriftIgnore) }

// Seen is the digest of what the question shows.
func (a *Ask) Seen() string { return payload.Seen(a.Shown()) }

// SeenOf is the digest of a stored question. Records of earlier versions have
// none; it follows from the question.
func SeenOf(q *checkpoint.Interrupt) string {
	if q.Seen != "" {
		return q.Seen
	}
	return payload.Seen(payload.Shown(q.Message, q.Value, q.Schema, q.DriftIgnore))
}

// mostDifferences bounds how many are named.
const mostDifferences = 10

// Differences names what differs between a stored question and what is asked
// now: JSON pointers into the value, or the name of a part.
func Differences(q *checkpoint.Interrupt, now *Ask) []string {
	before := payload.Shown(q.Message, q.Value, q.Schema, now.DriftIgnore)
	found := payload.Differences(before, now.Shown(), mostDifferences)
	for i, pointer := range found {
		found[i] = inValue(pointer)
	}
	if len(found) == 0 {
		return []string{"drift_ignore"}
	}
	return found
}

// inValue names a place of what is shown as drift_ignore would.
func inValue(pointer string) string {
	for _, part := range []string{payload.PartMessage, payload.PartSchema} {
		if pointer == "/"+part || len(pointer) > len(part)+1 && pointer[:len(part)+2] == "/"+part+"/" {
			return part
		}
	}
	const value = "/" + payload.PartValue
	if pointer == value {
		return payload.PartValue
	}
	return pointer[len(value):]
}

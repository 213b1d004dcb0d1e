package pregel

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// SetDriftDefaults sets the drift fields that the ask leaves to its graph, or to its
// reason and policy.
func (a *Ask) SetDriftDefaults(spec *graph.Spec) {
	if spec != nil {
		a.Drift = cmp.Or(a.Drift, checkpoint.Drift(spec.Drift))
		a.DriftIgnore = mergeNames(spec.DriftIgnore, a.DriftIgnore)
	}
	a.Drift = cmp.Or(a.Drift, a.defaultDrift())
}

// defaultDrift returns the reaction for an interrupt whose program sets none. A
// consent must not be asked for again and again until it is given.
func (a *Ask) defaultDrift() checkpoint.Drift {
	if a.Reason == "approval" || a.Reason == "tool_call" || a.Policy != nil {
		return checkpoint.DriftFail
	}
	return checkpoint.DriftAskAgain
}

func mergeNames(a, b []string) []string {
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

// Matches reports whether the attempt asks the question that was shown to the person who
// answered. SetDriftDefaults was called on the Ask.
func (a *Answer) Matches(now *Ask) bool {
	if a.Asked != nil && !a.Asked.Policy.Accepts(now.Policy) || a.HiddenDigest != now.HiddenDigest(a.InterruptID) {
		return false
	}
	if q := a.Asked; q != nil && q.Message == now.Message && q.Value == now.Value && q.Schema == now.Schema &&
		slices.Equal(q.DriftIgnore, now.DriftIgnore) {
		return true
	}
	return a.ShownDigest == now.ShownDigest()
}

// ShownParts returns the shown parts of the interrupt, without the parts that
// may differ, as one object.
func (a *Ask) ShownParts() payload.JSON {
	return payload.ShownParts(a.Message, a.Value, a.Schema, a.DriftIgnore)
}

// ShownDigest returns the digest of the shown parts.
func (a *Ask) ShownDigest() string { return payload.ShownDigest(a.ShownParts()) }

// maxDifferences is the largest number of differences that are named.
const maxDifferences = 10

// Differences returns the differences between a stored interrupt and the
// present Ask: JSON pointers into the value, or the name of a part.
func Differences(q *checkpoint.Interrupt, now *Ask) []string {
	before := payload.ShownParts(q.Message, q.Value, q.Schema, now.DriftIgnore)
	found := payload.Differences(before, now.ShownParts(), maxDifferences)
	for i, pointer := range found {
		found[i] = partName(pointer)
	}
	found = append(found, hiddenDifferences(q, now)...)
	if len(found) == 0 {
		return []string{"drift_ignore"}
	}
	return slices.Compact(found) // of a schema that differs in several places the name is given once
}

// hiddenDifferences returns the pointers to secret parts that differ.
func hiddenDifferences(q *checkpoint.Interrupt, now *Ask) (pointers []string) {
	if q.HiddenDigest() == now.HiddenDigest(q.ID) || !slices.Equal(q.Secret, now.Secret) || slices.Contains(now.DriftIgnore, payload.PartValue) {
		return nil
	}
	before, err := q.Hidden.Value.Restore(q.Value)
	if err != nil {
		return slices.Clone(q.Secret)
	}
	after, err := now.Hidden.Value.Restore(now.Value)
	if err != nil {
		return slices.Clone(q.Secret)
	}
	for _, pointer := range now.DriftIgnore {
		before, after = payload.RemoveAt(before, pointer), payload.RemoveAt(after, pointer)
	}
	for _, pointer := range q.Secret {
		if payload.NormalText(payload.ValueAt(before, pointer)) != payload.NormalText(payload.ValueAt(after, pointer)) {
			pointers = append(pointers, pointer)
		}
	}
	return pointers
}

// partName converts a pointer into the shown parts to the name that drift_ignore
// uses.
func partName(pointer string) string {
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

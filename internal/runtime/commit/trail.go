package commit

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/trail"
)

// RecordTrails appends to the trails of the interrupts of a change what the change does to
// them. All changes of interrupts come by here before they are stored, so no state is stored
// without its entry. A run that goes on with interrupts of the change calls it before, so
// that it has them as they are stored.
func (t *Tx) RecordTrails() {
	for i := range t.Interrupts {
		q := &t.Interrupts[i]
		if q.Policy == nil && q.Trail.IsEmpty() {
			continue
		}
		if earlier := findLast(t.Interrupts[:i], q.ID); earlier != nil && len(earlier.Trail.Records) > len(q.Trail.Records) {
			q.Trail = earlier.Trail
		}
		q.RecordTrail(t.Now)
	}
}

// findLast returns the last interrupt of a list that has an id and keeps a trail.
func findLast(list []checkpoint.Interrupt, id string) *checkpoint.Interrupt {
	for i := len(list) - 1; i >= 0; i-- {
		if q := &list[i]; !q.Trail.IsEmpty() && q.ID == id {
			return q
		}
	}
	return nil
}

// asEventsHave returns interrupts as events have them. The trail and the secret parts are in the
// record of each.
func asEventsHave(list []checkpoint.Interrupt) []checkpoint.Interrupt {
	for i := range list {
		if list[i].Trail.IsEmpty() && !list[i].HidesParts() {
			continue
		}
		shown := make([]checkpoint.Interrupt, len(list))
		copy(shown, list)
		for j := range shown {
			shown[j].Trail = trail.Log{}
			shown[j].HideParts()
		}
		return shown
	}
	return list
}

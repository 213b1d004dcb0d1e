package runtime

import "maps"

// MaxLabels is how many labels a thread, a run or an assistant has at most. Requests add fewer at a
// time.
const MaxLabels = 128

// ChangeLabels returns labels after a change: with those of set, and without those of drop. With
// replaces all go that set lacks. The error is INVALID_FIELD for the field of a request that adds too
// many.
func ChangeLabels(field string, labels, set map[string]string, drop []string, replaces bool) (map[string]string, error) {
	changed := make(map[string]string, len(labels)+len(set))
	if !replaces {
		maps.Copy(changed, labels)
	}
	maps.Copy(changed, set)
	for _, key := range drop {
		delete(changed, key)
	}
	if n := len(changed); n > MaxLabels && n > len(labels) {
		return nil, Errorf(ReasonInvalidField, "there would be %d labels, and at most %d are kept; remove some", n, MaxLabels).
			With("field", field).WithViolation(field, "would make %d labels; at most %d are kept", n, MaxLabels)
	}
	return changed, nil
}

package runtime

import "maps"

// ChangeLabels returns labels after a change: with those of set, and without those of drop. With
// replaces all go that set lacks.
func ChangeLabels(labels, set map[string]string, drop []string, replaces bool) map[string]string {
	changed := make(map[string]string, len(labels)+len(set))
	if !replaces {
		maps.Copy(changed, labels)
	}
	maps.Copy(changed, set)
	for _, key := range drop {
		delete(changed, key)
	}
	return changed
}

package runtime

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/redact"
)

// HideViolations returns violations without what they may repeat of secret parts: the description, and
// the names of fields inside of a secret part. secret are the pointers of the question. The given
// violations are not changed.
func HideViolations(list []Violation, secret []string) []Violation {
	if len(secret) == 0 {
		return list
	}
	shown := slices.Clone(list)
	for i := range shown {
		v := &shown[i]
		if !redact.Overlaps(secret, v.Field) {
			continue
		}
		if !repeatsNothing(v.Description) {
			v.Description = "does not fit the schema; why is not shown, because it is secret, or has secret parts"
		}
		for _, pointer := range secret {
			if strings.HasPrefix(v.Field, pointer+"/") {
				v.Field = pointer
			}
		}
	}
	return slices.Compact(shown)
}

// repeatsNothing reports whether a description names kinds of JSON at most.
func repeatsNothing(description string) bool {
	got, isKind := strings.CutPrefix(description, "got ")
	if !isKind {
		return description == "is missing" || description == "is not allowed here"
	}
	got, _, isKind = strings.Cut(got, ", want ")
	return isKind && slices.Contains([]string{"null", "boolean", "number", "integer", "string", "array", "object"}, got)
}

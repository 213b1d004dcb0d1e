package form

import (
	"net/url"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// reader reads the parts of one schema.
type reader struct {
	root       string
	hasDialect bool // the root names another version of JSON Schema
	references int  // that were followed
	referred   int  // bytes that references have added
	scanned    int  // bytes that were read to follow references
	parsed     int  // bytes of schemas that were read, those in others once more
	targets    map[string]string
}

// Bounds of what is read of schemas that refer to themselves, or often to a large part, or have
// many levels.
const (
	maxReferences    = 200
	maxReferredBytes = 256 << 10
	maxScannedBytes  = 2 << 20
	maxParsedBytes   = 2 << 20 // besides a multiple of the root
)

// resolveReference returns the schema that another one refers to, where that is all it says. It
// returns other schemas as they are, and those that refer to what is not in the root.
func (r *reader) resolveReference(schema string) string {
	for {
		pointer, ok := readReference(jsontext.MembersByKey(schema))
		if !ok || r.references == maxReferences || strings.Contains(r.root, `"$id"`) {
			return schema
		}
		r.references++
		target := r.findTarget(pointer)
		r.referred += len(target)
		if r.referred > maxReferredBytes || jsontext.SplitObject(target) == nil {
			return schema
		}
		schema = target
	}
}

// findTarget returns the part of the root that a pointer names, "" = none, or too much was read.
func (r *reader) findTarget(pointer string) string {
	target, isKnown := r.targets[pointer]
	if isKnown || r.referred > maxReferredBytes || r.scanned > maxScannedBytes {
		return target
	}
	r.scanned += len(r.root)
	target = jsontext.ValueAtPointer(r.root, pointer)
	r.targets[pointer] = target
	return target
}

// readReference returns the JSON pointer of a reference, and false where a schema has more
// than that and descriptions.
func readReference(parts map[string]string) (pointer string, ok bool) {
	text, _ := jsontext.UnquoteString(parts["$ref"])
	pointer, ok = strings.CutPrefix(text, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return "", false
	}
	delete(parts, "$ref")
	if hasConstraints(parts) {
		return "", false
	}
	pointer, err := url.PathUnescape(pointer)
	return pointer, err == nil
}

// isWhole reports whether a part of the root means the same alone.
func (r *reader) isWhole(part string) bool {
	refers := strings.Contains(part, `"$ref"`) || strings.Contains(part, `"$dynamicRef"`)
	return !refers && !r.hasDialect
}

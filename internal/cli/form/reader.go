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
}

// maxReferences bounds what is read of schemas that refer to themselves.
const maxReferences = 200

// resolve returns the schema that another one refers to, where that is all it says. It returns
// other schemas as they are, and those that refer to what is not in the root.
func (r *reader) resolve(schema string) string {
	for {
		pointer, ok := readReference(jsontext.MembersByKey(schema))
		if !ok || r.references == maxReferences || strings.Contains(r.root, `"$id"`) {
			return schema
		}
		r.references++
		target := jsontext.ValueAtPointer(r.root, pointer)
		if jsontext.SplitObject(target) == nil {
			return schema
		}
		schema = target
	}
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

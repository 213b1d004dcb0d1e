package file

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	lineOf    = regexp.MustCompile(`^line (\d+): `)
	unknown   = regexp.MustCompile(`^field (.+) not found in type (.+)$`)
	wrongType = regexp.MustCompile(`(?s)^(cannot unmarshal .*) into (\S+)$`)
)

// describeErrors makes an *Error of each error that the YAML package has for a text.
func describeErrors(name string, text []byte, into Document, err error) error {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = wrong.Errors
	}
	var all []error
	for _, problem := range texts {
		e := &Error{File: name, Is: problem}
		if m := lineOf.FindStringSubmatch(problem); m != nil {
			e.Line, _ = strconv.Atoi(m[1]) // too many digits leave 0
			e.Is = strings.TrimPrefix(problem, m[0])
		}
		if m := unknown.FindStringSubmatch(e.Is); m != nil {
			e.Field, e.Is, e.Want = m[1], "is an unknown field", describeFields(reflect.TypeOf(into), m[2])
		} else if m := wrongType.FindStringSubmatch(e.Is); m != nil {
			e.Field, e.Is, e.Want = findField(text, e.Line, m[1]), "has the wrong type", describeType(m[2])
			if e.Field == "" {
				e.Is = "a value has the wrong type"
			}
		}
		all = append(all, e)
	}
	return errors.Join(all...)
}

// describeFields lists the fields of a type, by its name, that is somewhere in a document.
func describeFields(document reflect.Type, name string) string {
	fields := listFields(document, name, map[reflect.Type]bool{})
	if len(fields) == 0 {
		return "a field that the documentation names"
	}
	return "one of " + strings.Join(fields, ", ")
}

// listFields looks for a type by its name in a type that was not looked at before, and
// returns the names of its fields in YAML.
func listFields(in reflect.Type, name string, seen map[reflect.Type]bool) []string {
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return listFields(in.Elem(), name, seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[in] {
		return nil
	}
	seen[in] = true
	var own []string
	for field := range in.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if field.IsExported() && key != "" && key != "-" {
			own = append(own, key)
		}
	}
	if in.String() == name {
		return own
	}
	for field := range in.Fields() {
		if fields := listFields(field.Type, name, seen); fields != nil {
			return fields
		}
	}
	return nil
}

// findField returns the path of the only value in a line that the YAML package describes
// with these words, which have its kind and its beginning; "" for several.
func findField(text []byte, line int, words string) string {
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil {
		return ""
	}
	var found []string
	var visit func(n *yaml.Node, path []any)
	visit = func(n *yaml.Node, path []any) {
		if n.Line == line && describeNode(n) == words && len(path) > 0 {
			found = append(found, formatPath(path))
		}
		for i, child := range n.Content {
			switch n.Kind {
			case yaml.MappingNode:
				if i%2 == 1 {
					visit(child, append(slices.Clip(path), n.Content[i-1].Value))
				}
			case yaml.SequenceNode:
				visit(child, append(slices.Clip(path), i))
			default:
				visit(child, path)
			}
		}
	}
	visit(&root, nil)
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// describeNode returns the words that the YAML package has for a value of a wrong type.
func describeNode(n *yaml.Node) string {
	words := "cannot unmarshal " + n.ShortTag()
	switch {
	case n.Kind == yaml.MappingNode, n.Kind == yaml.SequenceNode:
	case len(n.Value) > 10:
		words += fmt.Sprintf(" `%s...`", n.Value[:7])
	default:
		words += " `" + n.Value + "`"
	}
	return words
}

// describeType returns the name that a user knows for a type of Go.
func describeType(name string) string {
	switch {
	case name == "string":
		return "a text"
	case name == "bool":
		return "true or false"
	case name == "time.Time":
		return "a time like 2026-01-31T12:00:00Z"
	case name == "time.Duration":
		return "a duration like 30s"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.Contains(name, "."):
		return "a mapping"
	}
	return name
}

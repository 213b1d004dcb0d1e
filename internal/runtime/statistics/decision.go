package statistics

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Limits of what is read of an answer, in bytes.
const (
	maxSchemaBytes   = 64 << 10
	maxAnswerBytes   = 64 << 10
	maxDecisionBytes = 64
)

// listDecisionNames lists the members that are decisions before all others.
func listDecisionNames() []string {
	return []string{"decision", "action", "type", "approved", "approve", "answer", "ok"}
}

// findDecision returns which of the values that a schema lists an answer has: the whole answer,
// or one required member of it; "" for none. Free text is no decision.
func findDecision(schema, answer payload.JSON) payload.JSON {
	if schema == "" || len(schema) > maxSchemaBytes || len(answer) > maxAnswerBytes {
		return ""
	}
	value := answer
	if !listsValues(schema, schema) {
		name := findDecisionMember(schema)
		if name == "" {
			return ""
		}
		value, _ = payload.Lookup(answer, name)
	}
	value = payload.Trim(value)
	switch payload.KindOf(value) {
	case payload.String, payload.Bool, payload.Number:
		if len(value) <= maxDecisionBytes {
			return value
		}
	case payload.None, payload.NullKind, payload.ObjectKind, payload.ArrayKind:
	}
	return ""
}

// findDecisionMember returns the required member whose values a schema lists: the first one
// with a name of listDecisionNames, or the only one; "" for none.
func findDecisionMember(schema payload.JSON) string {
	properties, _ := payload.Lookup(schema, "properties")
	required, _ := payload.Lookup(schema, "required")
	names, err := payload.Elements(required)
	if err != nil {
		return ""
	}
	var choices []string
	_ = payload.EachField(properties, func(name string, of payload.JSON) bool { // no properties, no choices
		if isRequired := slices.ContainsFunc(names, func(n payload.JSON) bool {
			text, _ := payload.Unquote(n)
			return text == name
		}); isRequired && listsValues(of, schema) {
			choices = append(choices, name)
		}
		return true
	})
	known := listDecisionNames()
	if at := slices.IndexFunc(choices, func(name string) bool { return slices.Contains(known, name) }); at >= 0 {
		return choices[at]
	}
	if len(choices) == 1 {
		return choices[0]
	}
	return ""
}

// listsValues reports whether a schema inside of another one lists its values, or is that of
// yes and no.
func listsValues(schema, root payload.JSON) bool {
	if ref, ok := payload.Lookup(schema, "$ref"); ok {
		if text, _ := payload.Unquote(ref); strings.HasPrefix(text, "#/") {
			schema = payload.ValueAt(root, text[1:])
		}
	}
	for _, word := range []string{"enum", "const"} {
		if _, ok := payload.Lookup(schema, word); ok {
			return true
		}
	}
	if kind, _ := payload.Lookup(schema, "type"); kind == `"boolean"` {
		return true
	}
	cases, ok := payload.Lookup(schema, "oneOf")
	list, err := payload.Elements(cases)
	return ok && err == nil && !slices.ContainsFunc(list, func(c payload.JSON) bool {
		_, isConstant := payload.Lookup(c, "const")
		return !isConstant
	})
}

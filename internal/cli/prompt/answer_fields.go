package prompt

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// answerFields are the fields of an answer. A field that is an object is followed by its own
// fields.
type answerFields struct {
	form form.Form
	list []answerField
	own  int // fields that the form knows; those after it were added
}

// answerField is a field of an answer, or of an object in it.
type answerField struct {
	form.Field

	path    string // "args.amount"
	pointer string // "/args/amount"
	parent  int    // the object that it is in, topLevel = the answer
	// value is JSON, "" = none. That of an object has only what none of its fields has.
	value         string
	isByParts     bool // it is an object that is asked for by its own fields
	isConditional bool // it is there only while a condition adds it
	isMissing     bool // the schema demands it because of other fields
	isSettled     bool // the person is not asked for it
}

const (
	topLevel = -1
	// maxNesting is the number of objects in each other that are asked for by their fields.
	maxNesting = 3
	// maxParts bounds the fields for which the objects among them are asked for by their fields.
	maxParts = 500
)

func newAnswerFields(f form.Form) *answerFields {
	a := &answerFields{form: f}
	a.addFields(f, topLevel, 0)
	a.own = len(a.list)
	return a
}

// addFields adds the fields of an object that is inside of some others.
func (a *answerFields) addFields(f form.Form, parent, nesting int) {
	for _, field := range f.Fields() {
		a.addField(field, parent, nesting)
	}
	for _, field := range f.AddedFields() {
		i := a.addField(field, parent, nesting)
		a.list[i].isConditional = true
	}
}

func (a *answerFields) addField(field form.Field, parent, nesting int) int {
	added := answerField{Field: field, path: field.Name, parent: parent}
	added.pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field.Name)
	if parent != topLevel {
		added.path, added.pointer = a.list[parent].path+"."+field.Name, a.list[parent].pointer+added.pointer
		if value, ok := jsontext.MembersByKey(a.list[parent].Default)[field.Name]; ok {
			added.Default = value
		}
	}
	added.isByParts = field.IsNested() && nesting < maxNesting && len(a.list) < maxParts
	a.list = append(a.list, added)
	i := len(a.list) - 1
	if added.isByParts {
		a.addFields(field.Form, i, nesting+1)
	}
	return i
}

// addUnknownField adds a field that only the answer has, or the schema demands.
func (a *answerFields) addUnknownField(name string, parent int) int {
	field := a.formOf(parent).FieldNamed(name)
	field.IsRequired = false // it is while the schema says so
	i := a.addField(field, parent, maxNesting)
	if parent != topLevel {
		rest := jsontext.SplitObject(a.list[parent].value)
		if at := slices.IndexFunc(rest, hasKey(name)); at >= 0 {
			a.list[i].value = rest[at].Value
			a.list[parent].value = jsontext.JoinObject(slices.Delete(rest, at, at+1))
		}
	}
	return i
}

// restartFields forgets the fields that were added, and what the fields demand of each other.
func (a *answerFields) restartFields() {
	a.list = a.list[:a.own]
	isAsked := false
	for i := range a.list {
		a.list[i].isMissing = false
	}
	for i := range a.list {
		isAsked = isAsked || a.isAsked(i)
	}
	if !isAsked { // values rule each other out
		for i := range a.list {
			a.setValue(i, "")
		}
	}
}

// formOf returns the form of an object, or of the answer.
func (a *answerFields) formOf(parent int) form.Form {
	if parent == topLevel {
		return a.form
	}
	return a.list[parent].Form
}

// formAt returns the form of a field, as far as the values of others say more of it.
func (a *answerFields) formAt(i int) form.Form {
	field := &a.list[i]
	if field.IsAny() {
		if given, ok := a.formOf(field.parent).FormGiven(field.Name, a.valuesIn(field.parent)); ok {
			return given
		}
	}
	return field.Form
}

func (a *answerFields) valuesIn(parent int) form.Values {
	values := form.Values{}
	for _, field := range a.list {
		if field.parent == parent && field.value != "" && !field.isByParts {
			values[field.Name] = jsontext.CompactText(field.value)
		}
	}
	return values
}

// isOffered reports whether a field may be in the answer.
func (a *answerFields) isOffered(i int) bool {
	field := &a.list[i]
	if up := field.parent; up != topLevel && (!a.isOffered(up) || !a.isFilledIn(up)) {
		return false
	}
	f, values := a.formOf(field.parent), a.valuesIn(field.parent)
	return !f.IsRefused(field.Name, values) && (!field.isConditional || f.IsAdded(field.Name, values))
}

// isAsked reports whether a person is asked for a field.
func (a *answerFields) isAsked(i int) bool {
	field := &a.list[i]
	isOpened := field.isByParts && a.isRequired(i) // its own fields are asked for at once
	return !field.isSettled && !isOpened && a.isOffered(i)
}

func (a *answerFields) isRequired(i int) bool {
	field := &a.list[i]
	if field.IsRequired || field.isMissing {
		return true
	}
	return a.formOf(field.parent).IsDemanded(field.Name, a.valuesIn(field.parent))
}

// isFilledIn reports whether an object is in the answer, though it may be empty.
func (a *answerFields) isFilledIn(i int) bool { return a.list[i].value != "" || a.isRequired(i) }

// currentValue returns what an empty line means for a field, "" = nothing.
func (a *answerFields) currentValue(i int) string {
	switch field := &a.list[i]; {
	case field.value == "":
		return jsontext.CompactText(field.Default)
	case field.isByParts:
		return a.joinObject(i)
	default:
		return field.value
	}
}

// setValue sets the value of a field, JSON; "" leaves it out. The fields of an object take
// theirs from it, and keep what they have when it is left out.
func (a *answerFields) setValue(i int, value string) {
	if !a.list[i].isByParts || value == "" {
		a.list[i].value = value
		return
	}
	for j := range a.list {
		if a.list[j].parent == i {
			a.setValue(j, "")
		}
	}
	var rest []jsontext.Member
	for _, m := range jsontext.SplitObject(value) {
		j := a.indexOf(m.Key, i)
		if j < 0 || a.list[j].isByParts && jsontext.SplitObject(m.Value) == nil {
			rest = append(rest, m)
			continue
		}
		a.setValue(j, m.Value)
	}
	a.list[i].value = jsontext.JoinObject(rest)
}

// indexOf returns the index of a field of an object, -1 if there is none of the name.
func (a *answerFields) indexOf(name string, parent int) int {
	return slices.IndexFunc(a.list, func(field answerField) bool {
		return field.parent == parent && field.Name == name
	})
}

// joinObject returns the object that the fields make; that of topLevel is the answer.
func (a *answerFields) joinObject(parent int) string {
	var list []jsontext.Member
	for i, field := range a.list {
		if field.parent != parent || !a.isOffered(i) {
			continue
		}
		value := jsontext.CompactText(field.value)
		if field.isByParts && a.isFilledIn(i) {
			value = a.joinObject(i)
		}
		if value != "" {
			list = append(list, jsontext.Member{Key: field.Name, Value: value})
		}
	}
	if parent != topLevel {
		for _, m := range jsontext.SplitObject(a.list[parent].value) {
			if !slices.ContainsFunc(list, hasKey(m.Key)) {
				list = append(list, jsontext.Member{Key: m.Key, Value: jsontext.CompactText(m.Value)})
			}
		}
	}
	return jsontext.JoinObject(list)
}

func hasKey(name string) func(jsontext.Member) bool {
	return func(m jsontext.Member) bool { return m.Key == name }
}

// findPlace returns the fields that the place of a violation, a JSON pointer, is about. It
// adds a field that is not there yet. There is none for the answer as a whole.
func (a *answerFields) findPlace(pointer string) []int {
	at := topLevel
	for _, token := range strings.Split(pointer, "/")[1:] {
		name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		i := a.indexOf(name, at)
		if i < 0 {
			i = a.addUnknownField(name, at)
		}
		at = i
		if !a.list[at].isByParts {
			break
		}
	}
	if at == topLevel {
		return nil
	}
	a.list[at].isMissing = a.list[at].isMissing || a.list[at].value == ""
	return a.listAsked(at)
}

// listAsked returns a field, or the fields of an object whose fields are asked for at once.
func (a *answerFields) listAsked(i int) []int {
	if a.isAsked(i) {
		return []int{i}
	}
	var which []int
	for j := range a.list {
		if a.list[j].parent == i {
			which = append(which, a.listAsked(j)...)
		}
	}
	return which
}

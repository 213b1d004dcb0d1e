package linkpage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/visible"
)

// kind says how an input looks.
type kind string

// The kinds of inputs.
const (
	kindRadio    kind = "radio"
	kindSelect   kind = "select"
	kindLine     kind = "line"
	kindText     kind = "text"
	kindNumber   kind = "number"
	kindList     kind = "list"     // a value on each line
	kindJSON     kind = "json"     // JSON
	kindAny      kind = "any"      // JSON or a text
	kindConstant kind = "constant" // one value, which is sent as it is
	kindGroup    kind = "group"    // an object
)

// Bounds of a form.
const (
	maxDepth  = 3   // of objects that have inputs of their own
	maxInputs = 200 // of a form; a schema with more is answered as JSON
	maxRadios = 6   // of an input; more choices are a list

	maxSchemaBytes = 192 << 10 // of a schema that is read; a larger one is answered as JSON
	maxOptions     = 10_000    // of a form
)

// input is a field of a form and what was typed into it.
type input struct {
	Name        string // of the control
	Label       string
	Description string
	Hint        string // which values fit
	Kind        kind
	Options     []option
	Inputs      []*input // of a group
	Typed       string
	Problem     string
	IsRequired  bool
	IsWhole     bool // it is the whole answer
	IsInteger   bool
	IsSecret    bool // not everybody sees its value

	initial  string // what the page begins with
	field    form.Field
	isNeeded bool // it and all groups around it are required
}

// option is one choice of an input.
type option struct {
	Name, ID  string // of the control
	Value     string // the index of the choice, "" = no answer
	Label     string
	Tone      string // "yes" or "no" for words that agree or refuse
	IsChosen  bool
	IsNeeded  bool
	Described string // ids of the texts that describe the input
}

// ProblemID returns the id of the text of the problem.
func (in *input) ProblemID() string { return in.Name + "-problem" }

// HintID returns the id of the description.
func (in *input) HintID() string { return in.Name + "-hint" }

// Described returns the ids of the texts that describe the input, for aria-describedby.
func (in *input) Described() string {
	var ids []string
	if in.Problem != "" {
		ids = append(ids, in.ProblemID())
	}
	if in.Description != "" || in.Hint != "" {
		ids = append(ids, in.HintID())
	}
	return strings.Join(ids, " ")
}

// buildForm makes the inputs of the answer to a schema, filled in with the defaults and,
// before them, with a preset answer.
func buildForm(schema, preset string) *input {
	var root *input
	whole := form.Field{Name: "Your answer", IsRequired: true}
	if len(schema) <= maxSchemaBytes {
		whole.Form = form.ParseSchema(schema)
	}
	switch inputs, options := maxInputs, maxOptions; {
	case len(schema) > maxSchemaBytes:
	case isWithin(&whole, maxDepth, &inputs, &options):
		root = newInput("v", whole, nil, preset, maxDepth)
	case len(whole.Choices()) == 0:
		root = newInput("v", whole, nil, preset, -1)
	}
	if root == nil {
		root = newInput("v", form.Field{Name: whole.Name, IsRequired: true}, nil, preset, -1)
		root.Hint = "JSON or text, as the schema of the question says; graphd inbox show -o json has it"
	}
	root.IsWhole = true
	return root
}

// markSecret marks the inputs of secret parts, which pointers lead to. at is the place of the input.
func (in *input) markSecret(at string, pointers []string) {
	in.IsSecret = in.Kind != kindGroup && redact.Overlaps(pointers, at)
	if in.IsSecret && in.Kind == kindText {
		in.Kind = kindLine // only a line can be typed unseen
	}
	for _, inner := range in.Inputs {
		inner.markSecret(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(inner.field.Name), pointers)
	}
}

// forgetSecrets takes what was typed out of the inputs of secret parts, so that no page repeats it.
func (in *input) forgetSecrets() {
	if in.IsSecret {
		in.Problem, _, _ = strings.Cut(in.Problem, ": ")
	}
	switch {
	case !in.IsSecret:
	case in.Kind == kindRadio, in.Kind == kindSelect:
		in.chooseOption("")
	default:
		in.Typed = ""
	}
	for _, inner := range in.Inputs {
		inner.forgetSecrets()
	}
}

// isWithin reports whether a form has at most some inputs and options, which it counts down.
func isWithin(field *form.Field, depth int, inputs, options *int) bool {
	*inputs--
	*options -= len(field.Choices())
	if *inputs < 0 || *options < 0 {
		return false
	}
	if kindOf(field, depth) != kindGroup {
		return true
	}
	if len(field.Fields()) > *inputs {
		return false
	}
	for _, inner := range append(field.Fields(), field.AddedFields()...) {
		if !isWithin(&inner, depth-1, inputs, options) {
			return false
		}
	}
	return true
}

// newInput makes an input. At depth 0 an object is typed as JSON.
func newInput(name string, field form.Field, parent *input, preset string, depth int) *input {
	in := &input{
		Name: name, Label: visible.Line(field.Name), Description: visible.Lines(field.Description), IsRequired: field.IsRequired,
		field: field, isNeeded: field.IsRequired && (parent == nil || parent.isNeeded),
	}
	if title, ok := jsontext.UnquoteString(jsontext.MembersByKey(field.Schema)["title"]); ok && title != "" && parent != nil {
		in.Label = visible.Line(title)
	}
	in.Kind = kindOf(&field, depth)
	if in.Kind == kindRadio && !in.isNeeded { // a radio can't be taken back, and browsers demand it
		in.Kind = kindSelect
	}
	switch in.Kind {
	case kindGroup:
		given := jsontext.MembersByKey(preset)
		for i, inner := range append(field.Fields(), field.AddedFields()...) {
			in.Inputs = append(in.Inputs, newInput(name+"."+strconv.Itoa(i), inner, in, given[inner.Name], depth-1))
		}
	case kindNumber, kindList, kindJSON:
		in.Hint = visible.Line(describeInput(in))
	default:
	}
	in.IsInteger = field.IsInteger()
	initial := preset
	if initial == "" {
		initial = field.Default
	}
	in.fillIn(initial)
	in.keepInitial(initial)
	in.initial = in.Typed
	return in
}

// keepInitial shows a value as JSON where its text would be read as another one.
func (in *input) keepInitial(value string) {
	switch in.Kind {
	case kindLine:
		if strings.ContainsAny(in.Typed, "\r\n") {
			in.Kind = kindText
		}
	case kindAny, kindList:
		read, isThere := in.readValue()
		if value != "" && (in.Problem != "" || !isThere || jsontext.CompactText(read) != jsontext.CompactText(value)) {
			in.Typed = value
		}
		in.Problem = ""
	default:
	}
}

// kindOf returns how a field is typed.
func kindOf(field *form.Field, depth int) kind {
	f := &field.Form
	switch {
	case f.IsConstant() && field.IsRequired:
		return kindConstant
	case f.HasChoices() && field.IsRequired && len(f.Choices()) <= maxRadios:
		return kindRadio
	case f.HasChoices():
		return kindSelect
	case f.IsText() && isShort(f.Schema):
		return kindLine
	case f.IsText():
		return kindText
	case f.IsNumber():
		return kindNumber
	case f.IsWordList():
		return kindList
	case f.IsNested() && depth > 0:
		return kindGroup
	case f.DescribeInput() == "JSON or text":
		return kindAny
	}
	return kindJSON
}

// shortText is the length up to which a text has one line.
const shortText = 120

func isShort(schema string) bool {
	parts := jsontext.MembersByKey(schema)
	most, err := strconv.Atoi(parts["maxLength"])
	return err == nil && most <= shortText || parts["format"] != "" || parts["pattern"] != ""
}

func describeInput(in *input) string {
	if in.Kind == kindList {
		if words := in.field.ListElement().DescribeInput(); words != "text" {
			return "one on each line: " + words
		}
		return "one on each line"
	}
	return in.field.DescribeInput()
}

// fillIn shows a value of the field, as JSON; "" = none.
func (in *input) fillIn(value string) {
	chosen := ""
	switch in.Kind {
	case kindRadio, kindSelect:
		for i, choice := range in.field.Choices() {
			if value != "" && jsontext.CompactText(value) == choice {
				chosen = strconv.Itoa(i)
			}
		}
		in.chooseOption(chosen)
		return
	case kindLine, kindText, kindAny:
		if text, ok := jsontext.UnquoteString(value); ok {
			value = text
		}
	case kindList:
		value = listLines(value)
	default:
	}
	in.Typed = value
}

// listLines shows the values of a JSON list, one on each line.
func listLines(list string) string {
	values := jsontext.SplitArray(list)
	for i, value := range values {
		if text, ok := jsontext.UnquoteString(value); ok && !strings.ContainsAny(text, "\r\n") {
			values[i] = text
		}
	}
	return strings.Join(values, "\n")
}

// toneOf returns the tone of a choice, as the page for browsers has it.
func toneOf(label string) string {
	switch strings.ToLower(label) {
	case "approve", "approved", "yes", "accept", "accepted", "allow", "allowed", "ok", "confirm", "confirmed", "agree", "continue", "go", "true":
		return "yes"
	case "reject", "rejected", "no", "deny", "denied", "decline", "declined", "cancel", "cancelled", "refuse", "refused", "stop", "abort", "false":
		return "no"
	}
	return ""
}

// chooseOption makes the options, with one of them chosen.
func (in *input) chooseOption(value string) {
	in.Typed, in.Options = value, nil
	if in.Kind == kindSelect {
		in.Options = append(in.Options, option{Label: "–", IsChosen: value == ""})
	}
	for i, label := range labelChoices(&in.field) {
		index := strconv.Itoa(i)
		in.Options = append(in.Options, option{
			Name: in.Name, ID: in.Name + "-" + index, Value: index, Label: label, Tone: toneOf(label), IsChosen: value == index,
			IsNeeded: in.isNeeded,
		})
	}
}

// labelChoices returns how choices are shown: texts without quotes, unless another choice looks
// the same then.
func labelChoices(field *form.Field) []string {
	if field.IsYesNo() {
		return []string{"Yes", "No"}
	}
	labels, shown := slices.Clone(field.Choices()), map[string]int{}
	for i, choice := range labels {
		if text, ok := jsontext.UnquoteString(choice); ok {
			labels[i] = text
		}
		labels[i] = visible.Line(labels[i])
		shown[labels[i]]++
	}
	for i, choice := range field.Choices() {
		if text := labels[i]; shown[text] > 1 || strings.TrimSpace(text) == "" {
			labels[i] = visible.JSON(choice)
		}
	}
	return labels
}

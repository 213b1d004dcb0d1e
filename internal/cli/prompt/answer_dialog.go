package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// answerDialog asks for the fields of one answer.
type answerDialog struct {
	*Prompter

	form   form.Form
	fields []form.Field
	values []string // JSON of each field, "" = none
	// isMissing are fields that the schema demands because of other fields.
	isMissing []bool
	drafts    map[int]string // of the editor, which were refused
	// isTyped is set while every value was typed as it is sent.
	isTyped bool
}

func newAnswerDialog(p *Prompter, f form.Form) *answerDialog {
	d := &answerDialog{Prompter: p, form: f, drafts: make(map[int]string), isTyped: true}
	for _, field := range f.Fields() {
		d.addField(field)
	}
	return d
}

func (d *answerDialog) addField(field form.Field) {
	d.fields, d.values, d.isMissing = append(d.fields, field), append(d.values, ""), append(d.isMissing, false)
}

// askFields asks for the fields until they make an answer that fits the schema, and shows it
// before it returns it. Errors: ErrNoAnswer, and those of the output.
func (d *answerDialog) askFields(ctx context.Context) (string, error) {
	if len(d.fields) > 1 {
		d.PrintLine("  %s", d.Colorize(output.Dim, "field by field; :help tells what else may be typed"))
	}
	which := d.allFields()
	for {
		answer, err := d.askEach(ctx, which)
		if err != nil {
			return "", err
		}
		if answer != "" { // typed as a whole
			wrong := d.findViolations(ctx, d.form, answer)
			if len(wrong) == 0 {
				return answer, nil
			}
			d.printViolations(wrong)
			which = d.allFields()
			continue
		}
		answer = d.joinFields()
		if which = d.askAgain(d.findViolations(ctx, d.form, answer)); len(which) > 0 {
			continue
		}
		if len(d.fields) == 1 && d.isTyped {
			return answer, nil
		}
		yes, err := d.confirmFields(ctx, answer)
		if err != nil {
			return "", err
		}
		if yes {
			return answer, nil
		}
		which = d.allFields()
	}
}

// confirmFields shows an answer field by field, and asks whether to send it.
func (d *answerDialog) confirmFields(ctx context.Context, answer string) (bool, error) {
	widest, isEmpty := 0, true
	for i, field := range d.fields {
		if d.values[i] != "" {
			widest, isEmpty = max(widest, len(field.Name)), false
		}
	}
	if isEmpty {
		return d.confirmSending(ctx, answer)
	}
	d.PrintLine("  your answer")
	for i, field := range d.fields {
		if d.values[i] != "" {
			d.printField(field, d.values[i], widest)
		}
	}
	return d.confirm(ctx, "  send it? [y/n] ")
}

// printField prints the value of a field: a text as it was typed, with a bar before each of
// several lines, and any other value as JSON.
func (d *answerDialog) printField(field form.Field, value string, widest int) {
	text := jsontext.CompactText(value)
	if plain, ok := jsontext.UnquoteString(value); ok && plain != "" && (field.IsText() || field.HasChoices()) {
		text = plain
	}
	name := "    " + field.Name + strings.Repeat(" ", widest-len(field.Name))
	if !strings.Contains(text, "\n") {
		d.PrintLine("%s  %s", name, text)
		return
	}
	d.PrintLine("%s", strings.TrimRight(name, " "))
	for line := range strings.Lines(text) {
		d.PrintLine("      | %s", strings.TrimRight(line, "\r\n"))
	}
}

// allFields returns all fields, to be asked for from the first one on. What they demand of each
// other is found out anew, and which fields that adds.
func (d *answerDialog) allFields() []int {
	own := len(d.form.Fields())
	d.fields, d.values, d.isMissing = d.fields[:own], d.values[:own], d.isMissing[:own]
	clear(d.isMissing)
	all := make([]int, len(d.fields))
	for i := range all {
		all[i] = i
	}
	return all
}

// joinFields returns the answer that the fields make.
func (d *answerDialog) joinFields() string {
	var list []jsontext.Member
	for i, field := range d.fields {
		if d.values[i] != "" {
			list = append(list, jsontext.Member{Key: field.Name, Value: jsontext.CompactText(d.values[i])})
		}
	}
	return jsontext.JoinObject(list)
}

// askAgain prints what is wrong with an answer, and returns the fields to ask for again: those
// that are wrong or, where it is none of them, all.
func (d *answerDialog) askAgain(wrong []runtime.Violation) []int {
	var which []int
	d.printViolations(wrong)
	for _, v := range wrong {
		path := strings.Split(v.Field, "/")
		if len(path) < 2 {
			return d.allFields()
		}
		name := strings.ReplaceAll(strings.ReplaceAll(path[1], "~1", "/"), "~0", "~")
		i := slices.IndexFunc(d.fields, func(f form.Field) bool { return f.Name == name })
		if i < 0 {
			added := d.form.FieldNamed(name)
			added.IsRequired = false // it is while the schema says so
			d.addField(added)
			i = len(d.fields) - 1
		}
		d.isMissing[i] = d.isMissing[i] || d.values[i] == ""
		if !slices.Contains(which, i) {
			which = append(which, i)
		}
	}
	return which
}

// Commands that may be typed in place of the value of a field.
const (
	backCommand = ":back"
	skipCommand = ":skip"
	doneCommand = ":done"
	jsonCommand = ":json"
	helpCommand = ":help"
	quitCommand = ":quit"
	editCommand = ":edit"
)

const helpText = `  an empty line keeps what is in brackets, or leaves an optional field out
  :edit   write the answer or the field in your editor ($VISUAL or $EDITOR)
  :quit   leave the question open
  of an answer with fields:
  :back   the field before
  :skip   leave the field out
  :done   leave further optional fields as they are
  :json   type the whole answer as JSON
  a text that begins with a colon is typed as JSON: ":like this"`

// askEach asks for some fields in turn. It returns the whole answer when the person typed that.
func (d *answerDialog) askEach(ctx context.Context, which []int) (whole string, err error) {
	isDone := false
	for at := 0; at < len(which); {
		i := which[at]
		if isDone && (d.values[i] != "" || !d.isRequired(i)) {
			at++
			continue
		}
		line, err := d.promptLine(ctx, d.describeField(i))
		if err != nil {
			return "", err
		}
		switch line {
		case backCommand:
			isDone = false
			if at == 0 { // the field before is none of those that were wrong
				which = d.allFields()
				at = min(i, len(which))
			}
			at = max(0, at-1)
		case doneCommand:
			isDone, d.isTyped = true, false
		case jsonCommand:
			return d.askWhole(ctx)
		case quitCommand:
			return "", ErrNoAnswer
		case editCommand:
			if err := d.editField(ctx, i); err != nil {
				d.PrintLine("  %v", err)
			} else {
				at++
			}
		case helpCommand:
			d.printLines(helpText)
		default:
			if at == 0 && d.isWholeAnswer(i, line) {
				return line, nil
			}
			if err := d.takeField(ctx, i, line); err != nil {
				d.PrintLine("  %v", err)
			} else {
				at++
			}
		}
	}
	return "", nil
}

func (d *answerDialog) isRequired(i int) bool {
	if d.fields[i].IsRequired || d.isMissing[i] {
		return true
	}
	for other, value := range d.values {
		if value != "" && d.form.IsDemanded(d.fields[i].Name, d.fields[other].Name, value) {
			return true
		}
	}
	return false
}

// currentValue returns what an empty line means for a field, "" = nothing.
func (d *answerDialog) currentValue(i int) string {
	if d.values[i] != "" {
		return d.values[i]
	}
	return jsontext.CompactText(d.fields[i].Default)
}

func (d *answerDialog) describeField(i int) string {
	field := d.fields[i]
	if field.Description != "" {
		d.PrintLine("  %s", d.Colorize(output.Dim, field.Description))
	}
	name := "  " + field.Name
	if !d.isRequired(i) {
		name += ", optional"
	}
	current := d.currentValue(i)
	if text, ok := jsontext.UnquoteString(current); ok && text != "" {
		first, further, _ := strings.Cut(text, "\n")
		if current = first; further != "" {
			current += " …"
		}
	}
	return describePrompt(name, field.Form, current)
}

// editField lets the person write a field in an editor: a text as it is, any other value as
// JSON.
func (d *answerDialog) editField(ctx context.Context, i int) error {
	current := d.currentValue(i)
	if text, ok := jsontext.UnquoteString(current); ok {
		current = text
	} else {
		current = string(jsontext.IndentText([]byte(current)))
	}
	if draft, ok := d.drafts[i]; ok {
		current = draft
	}
	text, err := d.editDraft(ctx, current)
	if err != nil {
		return err
	}
	d.drafts[i] = text // it is not lost when it is refused
	value := ""
	if text != "" {
		if value, err = parseEdited(d.fields[i].Form, text); err != nil {
			return err
		}
	}
	if err := d.storeField(ctx, i, value); err != nil {
		return err
	}
	delete(d.drafts, i)
	d.isTyped = false
	return nil
}

// takeField takes what was typed for a field. The error says what would be right; the field
// is as before then.
func (d *answerDialog) takeField(ctx context.Context, i int, line string) error {
	field := d.fields[i]
	value := ""
	switch {
	case line == "":
		value, d.isTyped = d.currentValue(i), false
	case line == skipCommand:
		d.isTyped = false
	case strings.HasPrefix(line, ":"):
		return unknownCommandError(line)
	default:
		var err error
		if value, err = field.ParseInput(line); err != nil {
			return err
		}
		_, isText := jsontext.UnquoteString(value)
		d.isTyped = d.isTyped && (!isText || field.HasChoices() || line == value)
	}
	return d.storeField(ctx, i, value)
}

// storeField checks the value of a field and keeps it; "" leaves the field out.
func (d *answerDialog) storeField(ctx context.Context, i int, value string) error {
	field := d.fields[i]
	if value == "" && d.isRequired(i) {
		return fmt.Errorf("%s is required", field.Name)
	}
	if value != "" {
		for _, v := range d.findViolations(ctx, field.Form, value) {
			return fmt.Errorf("%s", strings.TrimSpace(strings.TrimPrefix(v.Field, "/")+" "+v.Description))
		}
	}
	d.values[i] = value
	return nil
}

// isWholeAnswer reports whether a line is the whole answer and no value of the field.
func (d *answerDialog) isWholeAnswer(i int, line string) bool {
	return strings.HasPrefix(line, "{") && jsontext.CheckValue(line) == nil && !d.fields[i].IsObject()
}

// askWhole asks for the whole answer as JSON.
func (d *answerDialog) askWhole(ctx context.Context) (string, error) {
	for {
		line, err := d.promptLine(ctx, "  answer (JSON, like "+d.form.ExampleText()+")> ")
		if err != nil {
			return "", err
		}
		if line == quitCommand {
			return "", ErrNoAnswer
		}
		if err := jsontext.CheckValue(line); err != nil {
			d.PrintLine("  not JSON: %v", err)
			continue
		}
		return line, nil
	}
}

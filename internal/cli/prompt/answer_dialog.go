package prompt

import (
	"context"
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
	*answerFields

	drafts map[int]string // of the editor, which were refused
	former map[int]string // values that fields had before the answer that is checked next
	// isTyped is set while every value was typed as it is sent.
	isTyped bool
}

func newAnswerDialog(p *Prompter, f form.Form) *answerDialog {
	return &answerDialog{
		Prompter: p, answerFields: newAnswerFields(f), drafts: make(map[int]string), former: make(map[int]string), isTyped: true,
	}
}

// askFields asks for the fields until they make an answer that fits the schema, and shows it
// before it returns it. Errors: ErrNoAnswer, and those of the output.
func (d *answerDialog) askFields(ctx context.Context) (string, error) {
	if len(d.list) > 1 {
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
		answer = d.joinObject(topLevel)
		if which = d.askAgain(d.findViolations(ctx, d.form, answer)); len(which) > 0 {
			continue
		}
		if d.isTyped && len(d.form.Fields()) == 1 && len(d.listRows()) == 1 {
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

// allFields returns all fields, to be asked for from the first one on. What they demand of each
// other is found out anew, and which fields that adds.
func (d *answerDialog) allFields() []int {
	d.restartFields()
	all := make([]int, len(d.list))
	for i := range all {
		all[i] = i
	}
	return all
}

// askAgain prints what is wrong with an answer, and returns the fields to ask for again: those
// that are wrong or, where it is none of them, all.
func (d *answerDialog) askAgain(wrong []runtime.Violation) []int {
	defer clear(d.former)
	var which []int
	d.printViolations(wrong)
	for _, v := range wrong {
		found := d.findPlace(v.Field)
		if len(found) == 0 {
			return d.allFields()
		}
		for _, i := range found {
			if !slices.Contains(which, i) {
				which = append(which, i)
				d.restoreFormer(i)
			}
		}
	}
	return which
}

// restoreFormer gives a field the value that it had before a refused one, with which the
// editor begins.
func (d *answerDialog) restoreFormer(i int) {
	refused := d.list[i].value
	if value, ok := d.former[i]; ok && refused != "" {
		d.drafts[i] = refused
		if text, ok := jsontext.UnquoteString(refused); ok {
			d.drafts[i] = text
		}
		d.setValue(i, value)
	}
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
  :done   an empty line for each further optional field
  :json   type the whole answer as JSON
  a text that begins with a colon is typed as JSON: ":like this"`

// askEach asks for some fields in turn. It returns the whole answer when the person typed that.
func (d *answerDialog) askEach(ctx context.Context, which []int) (whole string, err error) {
	isDone := false
	for at := 0; at < len(which); {
		i := which[at]
		if !d.isAsked(i) || isDone && d.isLeft(ctx, i) {
			at++
			continue
		}
		line, err := d.promptField(ctx, i)
		if err != nil {
			return "", err
		}
		switch line {
		case backCommand:
			isDone = false
			which, at = d.stepBack(which, at)
		case doneCommand:
			isDone, d.isTyped = true, false
			if d.isRequired(i) && d.list[i].value == "" {
				d.PrintLine("  %v", d.missingError(i))
			}
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
			if d.askedBefore(which, at) < 0 && d.isWholeAnswer(i, line) {
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

// isLeft reports whether :done passes a field, and takes its default as an empty line does. A required
// field without a value is asked for, and one whose default is wrong.
func (d *answerDialog) isLeft(ctx context.Context, i int) bool {
	if d.list[i].value != "" {
		return true
	}
	if d.isRequired(i) {
		return false
	}
	err := d.takeField(ctx, i, "")
	if err != nil {
		d.PrintLine("  %v", err)
	}
	return err == nil
}

// stepBack returns the fields to ask for, and the place of the one before.
func (d *answerDialog) stepBack(which []int, at int) ([]int, int) {
	if before := d.askedBefore(which, at); before >= 0 {
		return which, before
	}
	i := which[at] // the field before is none of those that were wrong
	all := d.allFields()
	before := d.askedBefore(all, min(i, len(all)))
	if before < 0 {
		d.PrintLine("  this is the first field")
	}
	return all, max(0, before)
}

// askedBefore returns the place of the field that was asked for before another one, -1 for the
// first one.
func (d *answerDialog) askedBefore(which []int, at int) int {
	for at--; at >= 0 && !d.isAsked(which[at]); at-- {
	}
	return at
}

// isWholeAnswer reports whether a line is the whole answer and no value of the field.
func (d *answerDialog) isWholeAnswer(i int, line string) bool {
	return strings.HasPrefix(line, "{") && jsontext.CheckValue(line) == nil && !d.list[i].IsObject()
}

// askWhole asks for the whole answer as JSON.
func (d *answerDialog) askWhole(ctx context.Context) (string, error) {
	ask := d.promptLine
	if d.hasSecret() {
		ask = d.promptHidden
	}
	for {
		line, err := ask(ctx, "  answer (JSON, like "+d.form.ExampleText()+")> ")
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

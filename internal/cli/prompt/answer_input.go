package prompt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/visible"
)

// describeField prints what a field is, and returns the prompt for it.
func (d *answerDialog) describeField(i int) string {
	field := &d.list[i]
	if up := field.parent; up == i-1 && up != topLevel && !d.isAsked(up) {
		d.printDescription(up)
	}
	d.printDescription(i)
	if field.isByParts {
		return d.describeObject(i)
	}
	name := "  " + field.path
	if !d.isRequired(i) {
		name += ", optional"
	}
	current := d.currentValue(i)
	if d.isSecret(i) {
		if name += ", secret"; current != "" {
			current = secretText
		}
	}
	if text, ok := jsontext.UnquoteString(current); ok && text != "" {
		first, further, _ := strings.Cut(text, "\n")
		if current = first; further != "" {
			current += " …"
		}
	}
	return describePrompt(name, d.formAt(i), current)
}

func (d *answerDialog) printDescription(i int) {
	if text := d.list[i].Description; text != "" {
		d.PrintWrapped(output.Dim, "  "+text)
	}
}

// describeObject asks whether to fill in an object.
func (d *answerDialog) describeObject(i int) string {
	field := &d.list[i]
	text, current := "  "+field.path+", optional: fill it in (yes or no)", d.currentValue(i)
	if field.value != "" {
		current = "yes"
	}
	if current != "" {
		text += " [" + visible.Brief(current, maxShownValue) + "]"
	}
	return text + "> "
}

// editField lets the person write a field in an editor: a text as it is, any other value as
// JSON. A secret is not written to a file, nor is a field that has one.
func (d *answerDialog) editField(ctx context.Context, i int) error {
	if redact.Overlaps(d.secret, d.list[i].pointer) {
		return errSecretInEditor
	}
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
		if value, err = parseEdited(d.formAt(i), text); err != nil {
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

func (d *answerDialog) missingError(i int) error {
	return fmt.Errorf("%s is required", d.list[i].path)
}

// takeField takes what was typed for a field. The error says what would be right; the field
// is as before then.
func (d *answerDialog) takeField(ctx context.Context, i int, line string) error {
	field := &d.list[i]
	value := ""
	switch {
	case line == "":
		value, d.isTyped = d.currentValue(i), false
	case line == skipCommand:
		d.isTyped = false
	case strings.HasPrefix(line, ":"):
		return unknownCommandError(line)
	case field.isByParts && d.takeYesNo(i, line):
		return nil
	default:
		text, isLiteral, err := parseTyped(d.formAt(i), line)
		if err != nil && field.isByParts {
			return errNoObject
		}
		if err != nil && d.isSecret(i) {
			return errSecretInput
		}
		if err != nil {
			return err
		}
		value, d.isTyped = text, d.isTyped && isLiteral
	}
	return d.storeField(ctx, i, value)
}

var errNoObject = errors.New("want yes or no, or an object as JSON")

// takeYesNo takes a yes or a no for an object: with a yes its fields are asked for, and have
// what they had. It returns false for any other line.
func (d *answerDialog) takeYesNo(i int, line string) bool {
	switch strings.ToLower(line) {
	case "y", "yes":
		if d.list[i].value == "" {
			d.list[i].value = "{}"
		}
	case "n", "no":
		d.list[i].value = ""
	default:
		return false
	}
	return true
}

// storeField checks the value of a field and keeps it; "" leaves the field out.
func (d *answerDialog) storeField(ctx context.Context, i int, value string) error {
	field := &d.list[i]
	if value == "" && d.isRequired(i) {
		return d.missingError(i)
	}
	if value != "" {
		if field.isByParts && jsontext.SplitObject(value) == nil {
			return errNoObject
		}
		wrong := d.findViolations(ctx, d.formAt(i), value)
		if d.isSecret(i) {
			wrong = runtime.HideViolations(wrong, []string{""})
		}
		for _, v := range wrong {
			return fmt.Errorf("%s", strings.TrimSpace(strings.TrimPrefix(v.Field, "/")+" "+v.Description))
		}
	}
	if _, ok := d.former[i]; !ok && !field.isByParts {
		d.former[i] = field.value
	}
	d.setValue(i, value)
	return nil
}

package prompt

import (
	"context"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// answerRow is one value of an answer, as it is shown before it is sent.
type answerRow struct {
	path, value string
	form        form.Form
	isSecret    bool
}

// listRows returns the values of an answer in their order. An object has a row only for what
// none of its fields has, or where it is empty.
func (d *answerDialog) listRows() []answerRow {
	var rows []answerRow
	for i, field := range d.list {
		switch {
		case !d.isOffered(i):
		case field.isByParts:
			if d.isFilledIn(i) && d.joinObject(i) == "{}" {
				rows = append(rows, answerRow{path: field.path, value: "{}"})
			}
			for _, m := range jsontext.SplitObject(field.value) {
				rows = append(rows, answerRow{path: field.path + "." + m.Key, value: m.Value, isSecret: d.isSecret(i)})
			}
		case field.value != "":
			rows = append(rows, answerRow{field.path, field.value, field.Form, d.isSecret(i)})
		}
	}
	return rows
}

// confirmFields shows an answer field by field, and asks whether to send it.
func (d *answerDialog) confirmFields(ctx context.Context, answer string) (bool, error) {
	rows, widest := d.listRows(), 0
	for _, row := range rows {
		widest = max(widest, len(row.path))
	}
	if len(rows) == 0 {
		return d.confirmSending(ctx, answer)
	}
	d.PrintLine("  your answer")
	for _, row := range rows {
		d.printRow(row, widest)
	}
	return d.confirmShown(ctx)
}

// printRow prints the value of a field: a text as it was typed, with a bar before each of
// several lines, and any other value as JSON.
func (d *answerDialog) printRow(row answerRow, widest int) {
	text := jsontext.CompactText(row.value)
	isWord := row.form.IsText() || row.form.HasChoices()
	if plain, ok := jsontext.UnquoteString(row.value); ok && plain != "" && isWord {
		text = plain
	}
	if row.isSecret {
		text = secretText
	}
	name := "    " + row.path + strings.Repeat(" ", widest-len(row.path))
	if !strings.Contains(text, "\n") {
		d.PrintLine("%s  %s", name, text)
		return
	}
	d.PrintLine("%s", strings.TrimRight(name, " "))
	for line := range strings.Lines(text) {
		d.PrintLine("      | %s", strings.TrimRight(line, "\r\n"))
	}
}

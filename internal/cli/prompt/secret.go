package prompt

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// secretText stands for a secret part of an answer.
const secretText = "(secret)"

var (
	errSecretInEditor = errors.New("a secret is not written to a file; type it here")
	errSecretInput    = errors.New("that is no value of the field; what was typed is not shown, because it is secret")
)

// isSecret reports whether a field of the answer is secret, or has secret parts that are not asked for
// one by one.
func (d *answerDialog) isSecret(i int) bool {
	at, isByParts := d.list[i].pointer, d.list[i].isByParts
	return slices.ContainsFunc(d.secret, func(secret string) bool {
		return at == secret || strings.HasPrefix(at, secret+"/") || !isByParts && strings.HasPrefix(secret, at+"/")
	})
}

// hasSecret reports whether the answer may have a secret part.
func (d *answerDialog) hasSecret() bool {
	for i := range d.list {
		if d.isSecret(i) {
			return true
		}
	}
	return d.mayHaveSecret(d.form)
}

// mayHaveSecret reports whether an answer of a form may have a secret part. The pointers are for
// what the question shows as well.
func (p *Prompter) mayHaveSecret(f form.Form) bool {
	return slices.ContainsFunc(p.secret, func(pointer string) bool { return p.leadsIntoAnswer(f, pointer) })
}

// leadsIntoAnswer reports whether a pointer may lead to a part of an answer. A pointer that leads to
// a part of the question is not for an object that has no such field.
func (p *Prompter) leadsIntoAnswer(f form.Form, pointer string) bool {
	if pointer == "" {
		return true
	}
	name, _, _ := strings.Cut(pointer[1:], "/")
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	isNamed := func(field form.Field) bool { return field.Name == name }
	switch fields := f.Fields(); {
	case len(fields) > 0:
		return slices.ContainsFunc(slices.Concat(fields, f.AddedFields()), isNamed) || jsontext.ValueAtPointer(p.value, pointer) == ""
	case f.IsText(), f.IsNumber():
		return false
	case f.HasChoices():
		return slices.ContainsFunc(f.Choices(), func(choice string) bool { return jsontext.ValueAtPointer(choice, pointer) != "" })
	case !f.IsObject(): // a list
		_, err := strconv.Atoi(name)
		return err == nil
	}
	return true // the form does not say what the answer is
}

// promptField reads a line for a field, unseen where it is secret and the terminal can do that.
func (d *answerDialog) promptField(ctx context.Context, i int) (string, error) {
	prompt := d.describeField(i)
	if d.isSecret(i) {
		return d.promptHidden(ctx, prompt)
	}
	return d.promptLine(ctx, prompt)
}

// promptHidden reads a line after a prompt without showing what is typed, where the terminal
// can do that and the line was not typed already.
func (p *Prompter) promptHidden(ctx context.Context, prompt string) (string, error) {
	if p.readHidden == nil || p.in.Buffered() > 0 {
		return p.promptLine(ctx, prompt)
	}
	p.PrintPrompt(prompt)
	if err := p.WriteError(); err != nil {
		return "", err
	}
	line, err := p.readHidden(ctx)
	p.PrintLine("")
	if err != nil {
		return "", ErrNoAnswer
	}
	return strings.TrimSpace(line), nil
}

// hideViolations returns what is wrong with an answer without its secret parts.
func (p *Prompter) hideViolations(wrong []runtime.Violation) []runtime.Violation {
	return runtime.HideViolations(wrong, p.secret)
}

// showAnswer returns an answer as it is confirmed on one line.
func (p *Prompter) showAnswer(answer string) string {
	if len(p.secret) == 0 {
		return answer
	}
	shown, _, err := redact.Hide(payload.JSON(answer), p.secret)
	if err != nil {
		return secretText
	}
	return strings.ReplaceAll(string(shown), string(redact.Marker), secretText)
}

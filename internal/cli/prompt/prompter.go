package prompt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/visible"
)

// ErrNoAnswer means that the person left without an answer.
var ErrNoAnswer = errors.New("no answer was given")

// Prompter asks at a terminal, line by line.
type Prompter struct {
	*output.Printer

	in      *bufio.Reader
	edit    func(ctx context.Context, text string) (string, error) // nil = there is no editor
	schemas *schema.Checker

	readHidden func(ctx context.Context) (string, error) // nil = what is typed is always shown
	secret     []string                                  // pointers to secret parts of the question and its answer
	value      string                                    // JSON that the question shows, "" = none

	at, count int // which of several questions is asked, from 1 on, and how many are; 0 = one alone
}

// NewPrompter makes a prompter that prints with p and reads what a person types.
func NewPrompter(p *output.Printer, from output.IO) *Prompter {
	return &Prompter{Printer: p, in: bufio.NewReader(from.In), edit: from.Edit, readHidden: from.ReadHidden, schemas: schema.New(schema.Limits{})}
}

// AskOneOf is AskInterrupt for one of several questions whose answers are sent together. at is
// from 1 on. Errors: those of ReadAnswer.
func (p *Prompter) AskOneOf(ctx context.Context, q *graphdv1.Interrupt, at, count int) (string, error) {
	if count > 1 {
		p.at, p.count = at, count
		defer func() { p.at, p.count = 0, 0 }()
		p.PrintLine("question %d of %d", at, count)
	}
	return p.AskInterrupt(ctx, q)
}

// AskInterrupt shows a question and asks for its answer. Errors: those of ReadAnswer.
func (p *Prompter) AskInterrupt(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.PrintInterrupt(q)
	return p.ReadAnswerTo(ctx, q)
}

// ReadAnswerTo asks for the answer to a question that was shown. The fields of a decision
// about the call of a tool begin with the arguments of the call. Errors: those of ReadAnswer.
func (p *Prompter) ReadAnswerTo(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.secret, p.value = q.GetSecret(), q.GetValue().GetJson()
	defer func() { p.secret, p.value = nil, "" }()
	f := form.ParseSchema(q.GetResponseSchema().GetJson())
	call, ok := form.ParseToolCall(q)
	if !ok || len(f.Fields()) == 0 {
		return p.ReadAnswer(ctx, f)
	}
	d := newAnswerDialog(p, f)
	d.startWithCall(call)
	return d.askFields(ctx)
}

// ReadAnswer asks until there is an answer that fits the form, field by field where the
// answer is an object. Errors: ErrNoAnswer, and those of the output.
func (p *Prompter) ReadAnswer(ctx context.Context, f form.Form) (string, error) {
	if fields := f.Fields(); len(fields) > 0 {
		return newAnswerDialog(p, f).askFields(ctx)
	}
	return p.readValue(ctx, f)
}

// readValue asks for an answer that is one value.
func (p *Prompter) readValue(ctx context.Context, f form.Form) (string, error) {
	draft, ask, isSecret := "", p.promptLine, p.mayHaveSecret(f)
	if isSecret {
		ask = p.promptHidden
	}
	for {
		line, err := ask(ctx, describePrompt("answer", f, ""))
		if err != nil {
			return "", err
		}
		text, isLiteral := "", false
		switch {
		case line == "":
			continue
		case line == quitCommand:
			return "", ErrNoAnswer
		case line == helpCommand:
			p.printLines(helpText)
			continue
		case line == editCommand && isSecret:
			err = errSecretInEditor
		case line == editCommand:
			if draft, err = p.editDraft(ctx, draft); err == nil {
				text, err = parseEdited(f, draft)
			}
		case strings.HasPrefix(line, ":"):
			err = unknownCommandError(line)
		default:
			if text, isLiteral, err = parseTyped(f, line); err != nil && isSecret {
				err = errSecretInput
			}
		}
		if err != nil {
			p.PrintLine("  %v", err)
			continue
		}
		if isSent, err := p.checkAndConfirm(ctx, f, text, isLiteral); isSent || err != nil {
			return text, err
		}
	}
}

// parseTyped turns a line into JSON. A line that is not the JSON of its value, such as a bare
// text, is no literal.
func parseTyped(f form.Form, line string) (text string, isLiteral bool, err error) {
	text, err = f.ParseInput(line)
	_, isText := jsontext.UnquoteString(text)
	isList := strings.HasPrefix(text, "[")
	return text, !isText && !isList || line == text || f.HasChoices(), err
}

// checkAndConfirm tells whether to send an answer: it fits the schema, and is a literal or
// confirmed.
func (p *Prompter) checkAndConfirm(ctx context.Context, f form.Form, answer string, isLiteral bool) (bool, error) {
	if wrong := p.findViolations(ctx, f, answer); len(wrong) > 0 {
		p.printViolations(wrong)
		return false, nil
	}
	if isLiteral {
		return true, nil
	}
	return p.confirmSending(ctx, answer)
}

// confirmSending shows an answer on one line and asks whether to send it.
func (p *Prompter) confirmSending(ctx context.Context, answer string) (bool, error) {
	shown := p.showAnswer(answer)
	switch {
	case p.at < p.count:
		return p.askConfirmation(ctx, "  keep "+shown+"? [y/n] ")
	case p.count > 1:
		return p.askConfirmation(ctx, fmt.Sprintf("  send all %d, and %s for this one? [y/n] ", p.count, shown))
	}
	return p.askConfirmation(ctx, "  send "+shown+"? [y/n] ")
}

// confirmShown asks whether to send an answer that was shown, or to keep it until the others
// are there.
func (p *Prompter) confirmShown(ctx context.Context) (bool, error) {
	switch {
	case p.at < p.count:
		return p.askConfirmation(ctx, "  keep it? [y/n] ")
	case p.count > 1:
		return p.askConfirmation(ctx, fmt.Sprintf("  send all %d? [y/n] ", p.count))
	}
	return p.askConfirmation(ctx, "  send it? [y/n] ")
}

// askConfirmation asks until there is a yes or a no: the rest of a text that was pasted is neither.
func (p *Prompter) askConfirmation(ctx context.Context, question string) (bool, error) {
	for {
		line, err := p.promptLine(ctx, question)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(line) {
		case "y", "yes":
			return true, nil
		case "n", "no", backCommand:
			return false, nil
		case quitCommand:
			return false, ErrNoAnswer
		}
		p.PrintLine("  y, n or :quit")
	}
}

// editDraft has the person change a text in an editor.
func (p *Prompter) editDraft(ctx context.Context, draft string) (string, error) {
	if p.edit == nil {
		return draft, errors.New("there is no editor here")
	}
	text, err := p.edit(ctx, draft)
	if err != nil {
		return draft, err
	}
	return strings.TrimRight(text, "\n"), nil
}

// parseEdited turns a text of the editor into JSON. A text stays as it is, with its quotes.
func parseEdited(f form.Form, text string) (string, error) {
	if f.IsText() {
		return jsontext.QuoteString(text), nil
	}
	return f.ParseInput(text)
}

func unknownCommandError(line string) error {
	return fmt.Errorf("there is no %s here; see :help, and type a text as %s", line, jsontext.QuoteString(line))
}

func (p *Prompter) printLines(text string) {
	for line := range strings.Lines(text) {
		p.PrintLine("%s", strings.TrimSuffix(line, "\n"))
	}
}

// promptLine reads a line after a prompt.
func (p *Prompter) promptLine(ctx context.Context, prompt string) (string, error) {
	p.PrintPrompt(prompt)
	if err := p.WriteError(); err != nil {
		return "", err
	}
	return p.readLine(ctx)
}

// describePrompt returns a prompt that says what may be typed. current is what an empty line
// keeps, "" = nothing.
func describePrompt(name string, f form.Form, current string) string {
	text := name + " (" + f.DescribeInput() + ")"
	if current != "" {
		text += " [" + visible.Brief(current, maxShownValue) + "]"
	}
	return text + "> "
}

// maxShownValue is the length to which a prompt shows what an empty line keeps.
const maxShownValue = 60

// findViolations checks an answer against the schema of its form. It finds nothing where
// only the server can tell.
func (p *Prompter) findViolations(ctx context.Context, f form.Form, answer string) []runtime.Violation {
	if f.Schema == "" {
		return nil
	}
	found, err := p.schemas.Check(ctx, payload.JSON(f.Schema), payload.JSON(answer))
	if err != nil {
		return nil
	}
	return found
}

func (p *Prompter) printViolations(wrong []runtime.Violation) {
	for _, v := range p.hideViolations(wrong) {
		p.PrintLine("  %s", strings.TrimSpace(strings.TrimPrefix(v.Field, "/")+" "+v.Description))
	}
}

// Confirm asks for a yes or a no; an empty line is a no. Errors: ErrNoAnswer, and those of
// the output.
func (p *Prompter) Confirm(ctx context.Context, question string) (bool, error) {
	line, err := p.promptLine(ctx, question+" [y/N] ")
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// readLine reads one line. A read of a terminal can't be cancelled, so the reading
// goroutine is left behind when ctx ends, and ends with the process.
func (p *Prompter) readLine(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := p.in.ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		line := strings.TrimSpace(r.line)
		if r.err != nil && (line == "" || !errors.Is(r.err, io.EOF)) {
			p.PrintLine("")
			return "", ErrNoAnswer
		}
		return line, nil
	case <-ctx.Done():
		p.PrintLine("")
		return "", ErrNoAnswer
	}
}

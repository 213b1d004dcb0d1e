package prompt

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
)

// ErrNoAnswer means that the person left without an answer.
var ErrNoAnswer = errors.New("no answer was given")

// Prompter asks at a terminal, line by line.
type Prompter struct {
	*output.Printer

	in      *bufio.Reader
	edit    func(ctx context.Context, text string) (string, error) // nil = there is no editor
	schemas *schema.Checker
}

// NewPrompter makes a prompter that prints with p and reads what a person types.
func NewPrompter(p *output.Printer, from output.IO) *Prompter {
	return &Prompter{Printer: p, in: bufio.NewReader(from.In), edit: from.Edit, schemas: schema.New(schema.Limits{})}
}

// AskInterrupt shows a question and asks for its answer. Errors: those of ReadAnswer.
func (p *Prompter) AskInterrupt(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.PrintInterrupt(q)
	return p.ReadAnswer(ctx, form.ParseSchema(q.GetResponseSchema().GetJson()))
}

// ReadAnswer asks until there is an answer that fits the form, field by field where the
// answer is an object. Errors: ErrNoAnswer, and those of the output.
func (p *Prompter) ReadAnswer(ctx context.Context, f form.Form) (string, error) {
	if fields := f.Fields(); len(fields) > 0 {
		return newAnswerDialog(p, f).askFields(ctx)
	}
	for {
		line, err := p.promptLine(ctx, describePrompt("answer", f, ""))
		if err != nil {
			return "", err
		}
		text, err := f.ParseInput(line)
		if line == "" {
			continue
		}
		if err != nil {
			p.PrintLine("  %v", err)
			continue
		}
		if wrong := p.findViolations(ctx, f, text); len(wrong) > 0 {
			p.printViolations(wrong)
			continue
		}
		if isJSON := line == text; isJSON || !f.IsAny() {
			return text, nil
		}
		// It may have been meant as JSON.
		yes, err := p.confirm(ctx, "answer with the text "+text+"? [Y/n] ", true)
		if err != nil {
			return "", err
		}
		if yes {
			return text, nil
		}
	}
}

// promptLine reads a line after a prompt.
func (p *Prompter) promptLine(ctx context.Context, prompt string) (string, error) {
	p.PrintText("%s", p.Colorize(output.Bold, prompt))
	if err := p.WriteError(); err != nil {
		return "", err
	}
	return p.readLine(ctx)
}

// describePrompt returns a prompt that says what may be typed. current is what an empty line
// keeps, "" = nothing.
func describePrompt(name string, f form.Form, current string) string {
	text := name
	if input := f.DescribeInput(); input != "" {
		text += " (" + input + ")"
	}
	if current != "" {
		text += " [" + current + "]"
	}
	return text + "> "
}

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
	for _, v := range wrong {
		p.PrintLine("  %s", strings.TrimSpace(strings.TrimPrefix(v.Field, "/")+" "+v.Description))
	}
}

// Confirm asks for a yes or a no; an empty line is a no. Errors: ErrNoAnswer, and those of
// the output.
func (p *Prompter) Confirm(ctx context.Context, question string) (bool, error) {
	return p.confirm(ctx, question+" [y/N] ", false)
}

func (p *Prompter) confirm(ctx context.Context, question string, empty bool) (bool, error) {
	line, err := p.promptLine(ctx, question)
	if line == "" {
		return empty && err == nil, err
	}
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

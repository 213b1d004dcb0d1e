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
)

// ErrNoAnswer means that the person left without an answer.
var ErrNoAnswer = errors.New("no answer was given")

// Prompter asks at a terminal, line by line.
type Prompter struct {
	*output.Printer

	in *bufio.Reader
}

// NewPrompter makes a prompter that prints with p and reads from in.
func NewPrompter(p *output.Printer, in io.Reader) *Prompter {
	return &Prompter{Printer: p, in: bufio.NewReader(in)}
}

// AskInterrupt shows a question and reads lines until a line is JSON or a choice.
// Errors: those of ReadAnswer.
func (p *Prompter) AskInterrupt(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.PrintInterrupt(q)
	return p.ReadAnswer(ctx, form.ParseSchema(q.GetResponseSchema().GetJson()))
}

// ReadAnswer reads lines until a line is JSON or a choice of the form. Errors:
// ErrNoAnswer, and those of the output.
func (p *Prompter) ReadAnswer(ctx context.Context, f form.Form) (string, error) {
	for {
		if err := p.WriteError(); err != nil {
			return "", err
		}
		p.PrintText("%s", p.Colorize(output.Bold, f.PromptText()))
		if err := p.WriteError(); err != nil {
			return "", err
		}
		line, err := p.readLine(ctx)
		if err != nil {
			return "", err
		}
		if line == "" {
			continue
		}
		text, err := f.CompleteAnswer(line)
		if err == nil {
			return text, nil
		}
		p.PrintLine("  not JSON: %v", err)
	}
}

// Confirm asks for a yes or a no; an empty line is a no. Errors: ErrNoAnswer, and those of
// the output.
func (p *Prompter) Confirm(ctx context.Context, question string) (bool, error) {
	p.PrintText("%s", p.Colorize(output.Bold, question+" [y/N] "))
	if err := p.WriteError(); err != nil {
		return false, err
	}
	line, err := p.readLine(ctx)
	return line == "y" || line == "Y" || line == "yes", err
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

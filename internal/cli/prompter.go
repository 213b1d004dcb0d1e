package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// errNoAnswer says that the person went away without an answer.
var errNoAnswer = errors.New("no answer was given")

// prompter asks at a terminal, line by line.
type prompter struct {
	*printer

	in *bufio.Reader
}

// newPrompter makes a prompter that prints with p and reads from in.
func newPrompter(p *printer, in io.Reader) *prompter {
	return &prompter{printer: p, in: bufio.NewReader(in)}
}

// askInterrupt shows a question and reads lines until one is JSON or a choice.
func (p *prompter) askInterrupt(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.printInterrupt(q)
	return p.readAnswer(ctx, parseForm(q.GetResponseSchema().GetJson()))
}

func (p *prompter) readAnswer(ctx context.Context, f answerForm) (string, error) {
	for {
		if err := p.writeError(); err != nil {
			return "", err
		}
		p.printText("%s", p.colorize(bold, f.promptText()))
		if err := p.writeError(); err != nil {
			return "", err
		}
		line, err := p.readLine(ctx)
		if err != nil {
			return "", err
		}
		if line == "" {
			continue
		}
		text, err := f.completeAnswer(line)
		if err == nil {
			return text, nil
		}
		p.printLine("  not JSON: %v", err)
	}
}

// readLine reads one line. A terminal can't be told to stop reading, so the
// reading goroutine is left behind when ctx ends; the process ends with it.
func (p *prompter) readLine(ctx context.Context) (string, error) {
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
			p.printLine("")
			return "", errNoAnswer
		}
		return line, nil
	case <-ctx.Done():
		p.printLine("")
		return "", errNoAnswer
	}
}

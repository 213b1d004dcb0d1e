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

// prompt asks at a terminal, line by line.
type prompt struct {
	*page

	in *bufio.Reader
}

func (s *Session) prompt() *prompt {
	return &prompt{page: s.page(), in: bufio.NewReader(s.In)}
}

// answer shows a question and reads lines until one is JSON or a choice.
func (p *prompt) answer(ctx context.Context, q *graphdv1.Interrupt) (string, error) {
	p.question(q)
	return p.read(ctx, formOf(q.GetResponseSchema().GetJson()))
}

func (p *prompt) read(ctx context.Context, f form) (string, error) {
	for {
		if p.err != nil {
			return "", p.err
		}
		if p.print("%s", p.paint(bold, f.ask())); p.err != nil {
			return "", p.err
		}
		line, err := p.lineOf(ctx)
		if err != nil {
			return "", err
		}
		if line == "" {
			continue
		}
		text, err := f.complete(line)
		if err == nil {
			return text, nil
		}
		p.line("  not JSON: %v", err)
	}
}

// lineOf reads one line. A terminal can't be told to stop reading, so the
// reading goroutine is left behind when ctx ends; the process ends with it.
func (p *prompt) lineOf(ctx context.Context) (string, error) {
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
			p.line("")
			return "", errNoAnswer
		}
		return line, nil
	case <-ctx.Done():
		p.line("")
		return "", errNoAnswer
	}
}

// unanswered ends a command whose question is still open.
func (s *Session) unanswered(err error, thread string, questions []*graphdv1.Interrupt) error {
	if !errors.Is(err, errNoAnswer) {
		return err
	}
	p := s.page()
	s.howToAnswer(p, thread, questions)
	if p.err != nil {
		return p.err
	}
	return &EndedError{Code: ExitWaiting}
}

package main

import (
	"context"
	"os"

	"golang.org/x/term"
)

// readHiddenLine reads a line from the terminal without showing what is typed. The terminal shows what
// is typed again when ctx ends.
func readHiddenLine(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type result struct {
		line []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		return string(r.line), r.err
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", context.Cause(ctx)
	}
}

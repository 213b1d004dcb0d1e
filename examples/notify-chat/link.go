package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// linker makes links with the command graphd, which reads GRAPHD_SERVER and GRAPHD_TOKEN: a key
// with the role linker.
type linker struct{ program string }

// makeLink makes a link by which a person answers a question.
func (l *linker) makeLink(ctx context.Context, thread, question, person string) (string, error) {
	cmd := exec.CommandContext(ctx, l.program, "inbox", "link", "--interrupt="+question, "--for="+person, "--", thread) //nolint:gosec // the operator names the program
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("no link: %s", strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

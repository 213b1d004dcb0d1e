package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
)

// editor runs the editor of the person.
type editor struct {
	// isRunning is set while the editor has the terminal, whose Ctrl-C is for the editor.
	isRunning atomic.Bool
}

// editText lets the person change a text in the editor of $VISUAL or $EDITOR. The text is in a
// file that only the person can read, and that is removed afterwards.
func (e *editor) editText(ctx context.Context, text string) (string, error) {
	command := os.Getenv("VISUAL")
	if command == "" {
		command = os.Getenv("EDITOR")
	}
	if command == "" {
		return "", errors.New("$VISUAL and $EDITOR name no editor; leave with :quit, and type for example: export EDITOR=nano")
	}
	dir, err := os.MkdirTemp("", "graphd-edit-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "answer.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	// The variable may have options, as in "code --wait".
	run := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", command+` "$1"`, "sh", path) //nolint:gosec // the person's own editor
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	e.isRunning.Store(true)
	defer e.isRunning.Store(false)
	if err := run.Run(); err != nil {
		return "", fmt.Errorf("the editor %s: %w", command, err)
	}
	changed, err := os.ReadFile(path) //nolint:gosec // the file made above
	return string(changed), err
}

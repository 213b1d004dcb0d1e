package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// editText lets the person change a text in the editor of $VISUAL or $EDITOR. The text is in a
// file that only the person can read, which is gone afterwards.
func editText(ctx context.Context, text string) (string, error) {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return "", errors.New("$VISUAL and $EDITOR name no editor")
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
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path) //nolint:gosec // the person's own editor
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return "", fmt.Errorf("the editor %s: %w", editor, err)
	}
	changed, err := os.ReadFile(path) //nolint:gosec // the file made above
	return string(changed), err
}

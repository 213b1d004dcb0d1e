package main

import (
	"bufio"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// startGraphd starts a graphd that ends with the test, and returns its address.
func startGraphd(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	out, err := cmd.StderrPipe()
	if err == nil {
		cmd.Stdout = cmd.Stderr
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	serving := regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() { // the pipe must not fill
				}
			}()
			return m[1]
		}
	}
	t.Fatal("graphd does not serve")
	return ""
}

// isExit reports whether a command has ended with a code.
func isExit(err error, exit **exec.ExitError, code int) bool {
	return errors.As(err, exit) && (*exit).ExitCode() == code
}

// createKey makes a key of a role, and returns its token.
func createKey(t *testing.T, program, file, role string) string {
	t.Helper()
	token, err := exec.CommandContext(t.Context(), program, "keys", "create", "--file", file, "--name", role, "--role", role).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

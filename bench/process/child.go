package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Child is a program that is spoken to in lines: a limit or a peer. It ends
// when its input does.
type Child struct {
	process *process
	in      io.WriteCloser
	out     *bufio.Reader
}

// StartChild starts a program.
func StartChild(ctx context.Context, dir, name string, arguments ...string) (*Child, error) {
	command := exec.Command(name, arguments...) //nolint:gosec,noctx // the caller names it; start ends it with ctx
	command.Dir, command.Stderr = dir, os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // unlike StdoutPipe it may be read after the end
	if err != nil {
		return nil, err
	}
	command.Stdout = write
	c := &Child{in: in, out: bufio.NewReaderSize(read, 64<<10)}
	c.process, err = start(ctx, command)
	return c, errors.Join(err, write.Close())
}

// Say sends a value as a line of JSON.
func (c *Child) Say(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// Line reads a line.
func (c *Child) Line() (string, error) {
	text, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s says nothing more: %w", c.process.command.Path, err)
	}
	return strings.TrimSpace(text), nil
}

// Hear reads a line of JSON.
func (c *Child) Hear(v any) error {
	text, err := c.Line()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}

// Stop ends the program.
func (c *Child) Stop() {
	if c != nil {
		_ = c.in.Close()
		c.process.stop()
	}
}

// Kill ends the program at once.
func (c *Child) Kill() { c.process.kill() }

package main

import (
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// program is one call of graphd.
type program struct {
	output.IO

	isErrTerminal bool // a person reads Err
	getenv        func(string) string
	environ       func() []string // returns all variables as NAME=VALUE; may be nil
	invocation    []string        // the command line to call it again
	version       string

	openBrowser func(url string) error // nil = there is none
	demoLinger  time.Duration          // how long the page of a demo can show the end

	configHome string // folder of the user's configurations; "" = unknown

	connection   connection
	outputFormat string // -o
}

func (p *program) envOr(name, fallback string) string {
	if v := p.getenv(name); v != "" {
		return v
	}
	return fallback
}

// newInvocation returns the command line that calls graphd again for the same
// server.
func (p *program) newInvocation() shell.Invocation {
	return shell.Invocation{Program: p.invocation, ServerFlags: p.connection.listFlags()}
}

// newOutput returns the output of a command, or a usage error for -o.
func (p *program) newOutput() (output.Output, error) {
	format, err := output.ParseFormat(p.outputFormat)
	return output.Output{IO: p.IO, Format: format}, err
}

// withSession makes the client side of a command and closes it after do.
func (p *program) withSession(do func(s *cli.Session) error) error {
	out, err := p.newOutput()
	if err != nil {
		return err
	}
	exposed, err := p.connection.combineSources()
	if err != nil {
		return err
	}
	for _, path := range exposed {
		out.PrintNote("warning: %s has a token, and other users may read it: chmod 600 %s", path, shell.QuoteCommand(path))
	}
	c, err := client.DialServer(p.connection.server, p.connection.Security)
	if err != nil {
		return err
	}
	s := &cli.Session{Client: c, Output: out, Invocation: p.newInvocation()}
	return errors.Join(do(s), c.Close())
}

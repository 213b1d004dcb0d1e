package main

import (
	"errors"
	"slices"

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

	serverAddress string // --server
	security      callSecurity
	outputFormat  string // -o
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
	s := shell.Invocation{Program: p.invocation}
	if p.serverAddress != p.envOr("GRAPHD_SERVER", client.DefaultServer) {
		s.ServerFlags = []string{"--server", p.serverAddress}
	}
	switch own, env := p.security.Flags(), p.security.readEnvironment().Flags(); {
	case slices.Equal(own, env):
	case len(own) == 0:
		s.ServerFlags = append(s.ServerFlags, "--tls=false")
	default:
		s.ServerFlags = append(s.ServerFlags, own...)
	}
	return s
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
	if err := p.security.combineSources(); err != nil {
		return err
	}
	c, err := client.DialServer(p.serverAddress, p.security.Security)
	if err != nil {
		return err
	}
	s := &cli.Session{Client: c, Output: out, Invocation: p.newInvocation()}
	return errors.Join(do(s), c.Close())
}

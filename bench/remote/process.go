package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/graphd-dev/graphd/bench/process"
)

// server is a graphd on the memory store.
type server struct {
	address string
	command *exec.Cmd
}

// startServer returns when graphd serves.
func startServer(ctx context.Context, binary string) (*server, error) {
	address, err := process.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{address: address}
	s.command = exec.CommandContext(ctx, binary, "serve", "--store", "memory", "--listen", address, "--log-level", "error") //nolint:gosec // the caller names it
	s.command.Stdout, s.command.Stderr = os.Stderr, os.Stderr
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("graphd does not serve: %w", err)
	}
	return s, nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	return errors.Join(err, conn.Close())
}

func (s *server) stop() {
	_ = s.command.Process.Signal(os.Interrupt)
	_ = s.command.Wait()
}

// script is a process that ends when its input does. It writes a line
// when it is ready.
type script struct {
	first   string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// errAbsent reports that a requirement of a script is not installed.
var errAbsent = errors.New("not installed")

// absentCode is the exit code of a script that lacks a requirement.
const absentCode = 3

func startScript(ctx context.Context, program string, args ...string) (*script, error) {
	p := &script{command: exec.CommandContext(ctx, program, args...)} //nolint:gosec // the caller names it
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if p.first, err = p.line(); err == nil {
		return p, nil
	}
	p.stop()
	if p.command.ProcessState.ExitCode() == absentCode {
		return nil, fmt.Errorf("%w for %s", errAbsent, program)
	}
	return nil, fmt.Errorf("%s %s ended at once: %s", program, strings.Join(args, " "), p.command.ProcessState)
}

func (p *script) line() (string, error) {
	text, err := p.out.ReadString('\n')
	return strings.TrimSpace(text), err
}

// once has the script do its work one time. It measures itself.
func (p *script) once(context.Context) (time.Duration, error) {
	if _, err := io.WriteString(p.in, "run\n"); err != nil {
		return 0, err
	}
	text, err := p.line()
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(text, 64)
	return time.Duration(seconds * float64(time.Second)), err
}

func (p *script) stop() {
	_ = p.in.Close()
	_ = p.command.Wait()
}

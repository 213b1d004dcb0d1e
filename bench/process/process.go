// Package process starts the servers and peers that are measured, each as a
// process of its own on a free port of the loopback, and ends them.
package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// patience is how long a process may take to start or to end on a busy machine.
const patience = 30 * time.Second

// process is a process that was started here.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
}

func start(ctx context.Context, command *exec.Cmd) (*process, error) {
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	p := &process{command: command, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait()
	}()
	context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	return p, nil
}

// stop asks the process to end, and kills it when it does not.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// kill ends the process at once.
func (p *process) kill() {
	if p != nil {
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// until asks again and again until something is so, the process has ended, or
// patience has.
func (p *process) until(ctx context.Context, so func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := so(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended at once (%s)", p.command.Path, p.command.ProcessState)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Ports below those that the kernel gives to connections, and to listeners that name none: one that is
// free stays free until it is used.
const firstPort, lastPort = 10_000, 32_000

// FreeAddress returns an address on which no process listens.
func FreeAddress(ctx context.Context) (string, error) {
	var refused error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err == nil {
			return address, l.Close()
		}
		refused = err
	}
	return "", refused
}

// errors of servers belong to the person who looks on.
func loud(command *exec.Cmd) *exec.Cmd {
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command
}

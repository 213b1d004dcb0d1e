package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
)

// run runs a graph in this process: a graph is the same there and in a worker.
func run(t *testing.T, product string) (*graphd.Engine, *client.Outcome) {
	t.Helper()
	e, err := graphd.Open(t.Context(), graphd.Memory(), newOrders())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	o, err := e.Invoke(t.Context(), client.Run{Graph: "orders", Thread: "t", Input: Order{Product: product}})
	if err != nil {
		t.Fatal(err)
	}
	return e, o
}

func TestOrders(t *testing.T) {
	for answer, want := range map[bool]string{true: "approved charged", false: "declined"} {
		e, o := run(t, "tea")
		if !o.Waits() {
			t.Fatal(o.Run)
		}
		o, err := e.Resume(t.Context(), "t", client.AnswerTo(o.Questions[0], answer))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Output[Order](o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got.Log, " ") != want || strings.HasPrefix(got.Receipt, "receipt ") != answer {
			t.Fatalf("%v: %+v", answer, got)
		}
	}
}

// The commands of the documentation.
func TestTheProgramServesAServer(t *testing.T) {
	graphdPath := os.Getenv("GRAPHD_BIN")
	if graphdPath == "" {
		t.Fatal("GRAPHD_BIN names no graphd: make examples sets it")
	}
	folder := t.TempDir()
	binary := filepath.Join(folder, "worker-go")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as graphd was built, with which it shares packages
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	e, err := graphd.Open(t.Context(), graphd.Memory())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.WithoutCancel(t.Context())) })
	address := serve(t, e)
	w := exec.CommandContext(t.Context(), binary, "--server", address)
	w.Cancel = func() error { return w.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	w.Stderr = &said
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Process.Kill(); _ = w.Wait() })
	command := func(code int, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), graphdPath, append(args, "--server", address)...)
		out, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != code {
			t.Fatalf("%v ends with %d: %s\n%s", args, c.ProcessState.ExitCode(), out, said.String())
		}
		return string(out)
	}
	for end := time.Now().Add(time.Minute); ; {
		if strings.Contains(command(0, "graph", "list"), "orders") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the worker does not come: " + said.String())
		}
	}
	command(3, "run", "orders", "--thread", "order-1", "--input", `{"product": "tea"}`)
	if out := command(0, "resume", "order-1", "--value", "true"); !strings.Contains(out, "receipt ") {
		t.Fatal(out)
	}
	if err := w.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Fatal(err, said.String())
	}
}

func serve(t *testing.T, e *graphd.Engine) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = e.Serve(l) }()
	return l.Addr().String()
}

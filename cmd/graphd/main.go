// Command graphd serves stateful graphs over gRPC and is the client of such a
// server. This package parses commands and turns signals into a drain. internal/cli
// implements the client commands, and internal/server wires a server.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	os.Exit(runProgram())
}

func runProgram() int {
	edit := &editor{}
	ctx, stop := withSignals(context.Background(), edit)
	defer stop()
	configHome, err := os.UserConfigDir()
	if err != nil {
		configHome = "" // only commands with contexts need it
	}
	p := &program{
		IO: output.IO{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
			IsTerminal: isTerminal(os.Stdin) && isTerminal(os.Stdout),
			HasColor:   isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
			Columns:    countColumns(os.Stdout),
			Edit:       edit.editText,
			ReadHidden: readHiddenLine,
		},
		isErrTerminal: isTerminal(os.Stderr),
		getenv:        os.Getenv,
		environ:       os.Environ,
		openBrowser:   openBrowser,
		demoLinger:    demoLinger,
		configHome:    configHome,
		invocation:    currentInvocation(),
		version:       buildVersion(version, debug.ReadBuildInfo),
	}
	return p.executeCommand(ctx, os.Args[1:])
}

// withSignals returns a context that the first SIGINT or SIGTERM ends. The second
// signal ends the process at once. A SIGINT while an editor runs is for the editor.
func withSignals(parent context.Context, edit *editor) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := 0
		for s := range signals {
			if s == os.Interrupt && edit.isRunning.Load() {
				continue
			}
			if received++; received > 1 {
				os.Exit(exit.CodeError)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// countColumns returns the width of a terminal, 0 for a file that is none.
func countColumns(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

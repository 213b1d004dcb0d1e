// Command demo plays the refund review of `graphd demo` on a server that keeps
// everything in memory. A clone shows it after half the compilation of graphd, because
// the stores of Redis and SQLite, collectors and token issuers are not linked.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	refundreview "github.com/graphd-dev/graphd/examples/refund-review"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// commandLine runs the demo from a clone.
const commandLine = "go run ./cmd/demo"

func main() {
	os.Exit(runProgram())
}

func runProgram() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	isOutTerminal := term.IsTerminal(int(os.Stdout.Fd()))
	return executeCommand(ctx, output.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		IsTerminal: isOutTerminal && term.IsTerminal(int(os.Stdin.Fd())),
		HasColor:   isOutTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}, os.Args[1:])
}

// executeCommand runs the command line and returns the exit code.
func executeCommand(ctx context.Context, streams output.IO, args []string) int {
	o, err := parseFlags(streams.Out, args)
	if errors.Is(err, flag.ErrHelp) {
		return exit.CodeDone
	}
	if err == nil {
		err = runDemo(ctx, streams, o)
	}
	report.PrintError(streams.Err, err, output.Text, "", newInvocation())
	return exit.CodeOf(err)
}

func newInvocation() shell.Invocation {
	return shell.Invocation{Program: strings.Fields(commandLine)}
}

// parseFlags returns the parts of the demo, or writes the help. Errors: flag.ErrHelp,
// *exit.UsageError, and that of a graph file.
func parseFlags(help io.Writer, args []string) (o cli.DemoOptions, err error) {
	f := flag.NewFlagSet(commandLine, flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error says it
	graph := f.String("graph", "", "a graph file in place of the built-in one")
	f.StringVar(&o.Answer, "answer", "", "the answer to the question: JSON, @FILE or -")
	f.StringVar(&o.Request, "request", cli.DemoRequest, "what the customer writes")
	f.StringVar(&o.User, "user", cli.DemoUser, "who the customer is: any JSON")
	err = f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(help)
		f.Usage()
		return o, err
	}
	if err != nil {
		return o, exit.Usagef("%v", err).WithHint("see `%s --help`", commandLine)
	}
	if f.NArg() > 0 {
		return o, exit.Usagef("unexpected argument %q", f.Arg(0)).WithHint("quote JSON with single quotes, and give it as --answer JSON")
	}
	f.Visit(func(given *flag.Flag) {
		if given.Name != "answer" {
			o.ResumeArgs = append(o.ResumeArgs, "--"+given.Name, given.Value.String())
		}
	})
	o.Thread, o.StoresNothing = "demo-"+strings.ToLower(rand.Text()[:8]), true
	o.Name, o.Document = refundreview.File, refundreview.Document
	if *graph != "" {
		text, err := os.ReadFile(*graph)
		if err != nil {
			return o, err
		}
		o.Name, o.Document = *graph, string(text)
	}
	return o, nil
}

// drainTimeout is how long a node may run after the end of the demo.
const drainTimeout = 5 * time.Second

// runDemo runs the demo against a server of this process.
func runDemo(ctx context.Context, streams output.IO, o cli.DemoOptions) (err error) {
	life := context.WithoutCancel(ctx)
	s, err := startServer(life)
	if err != nil {
		return err
	}
	defer func() {
		limit, cancel := context.WithTimeout(life, drainTimeout)
		defer cancel()
		err = errors.Join(err, s.drain(limit))
	}()
	if err := output.WriteLine(streams.Out, "server %s  store memory", s.address()); err != nil {
		return err
	}
	c, err := client.DialServer(s.address(), client.Security{})
	if err != nil {
		return err
	}
	session := &cli.Session{Client: c, Output: output.Output{IO: streams, Format: output.Text}, Invocation: newInvocation()}
	return errors.Join(session.RunDemo(ctx, o), c.Close())
}

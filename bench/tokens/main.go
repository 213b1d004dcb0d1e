// Command tokens measures how the pieces of a message reach many clients that watch: a node in a
// graphd of its own process sends them at a rate, and watchers in another process count what they get.
//
// It fails when something is broken, never because something is slow.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the program begins here
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/tokens:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

type options struct {
	rates    string
	watchers int
	long     time.Duration
	watch    string // address of a server whose thread is watched
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("tokens", flag.ContinueOnError)
	flags.StringVar(&o.rates, "rates", "100,1000,10000", "pieces a second, with commas between")
	flags.IntVar(&o.watchers, "watchers", 100, "clients that watch the thread")
	flags.DurationVar(&o.long, "for", 3*time.Second, "how long a node sends")
	flags.StringVar(&o.watch, "watch", "", "watch threads of the graphd at this address, and nothing else; this program starts itself so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.watchers < 1 || o.long <= 0 {
		return errors.New("-watchers and -for must be more than 0")
	}
	if o.watch != "" {
		return o.watchThreads(ctx, os.Stdin, os.Stdout)
	}
	return o.bench(ctx, os.Stdout)
}

// speech is what a node says, and how fast.
type speech struct {
	Pieces int `json:"pieces"`
	Rate   int `json:"rate"` // a second
}

// bench serves graphd and runs a node at each rate.
func (o *options) bench(ctx context.Context, out io.Writer) error {
	engine, err := graphd.Open(ctx, graphd.Memory(), graph.New("talks").State(speech{}).
		Node("talk", graph.Typed(talk)).Chain(graph.Start, "talk", graph.End))
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close(context.WithoutCancel(ctx)) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = engine.Serve(listener) }() // until the engine is closed
	w, err := o.startWatchers(ctx, listener.Addr().String())
	if err != nil {
		return err
	}
	defer w.stop()
	fmt.Fprintf(out, "%d watchers, pieces of %d bytes, %s each\n\n", o.watchers, len(piece), o.long)
	fmt.Fprintln(out, "| pieces a second | arrived | told as missing | messages for each piece | pieces that arrived a second |\n|---|---|---|---|---|")
	for rate := range strings.SplitSeq(o.rates, ",") {
		var s speech
		if _, err := fmt.Sscan(rate, &s.Rate); err != nil || s.Rate < 1 {
			return fmt.Errorf("-rates: %q is no number of pieces a second", rate)
		}
		s.Pieces = int(float64(s.Rate) * o.long.Seconds())
		if err := o.measure(ctx, out, engine, w, s); err != nil {
			return err
		}
	}
	return nil
}

// measure has a node talk on a thread that all watch, and writes a row.
func (o *options) measure(ctx context.Context, out io.Writer, engine *graphd.Engine, w *watchers, s speech) error {
	thread := fmt.Sprintf("rate-%d", s.Rate)
	if _, err := engine.Threads().CreateThread(ctx, &graphdv1.CreateThreadRequest{ThreadId: thread}); err != nil {
		return err
	}
	if err := w.begin(thread); err != nil {
		return err
	}
	began := time.Now()
	outcome, err := engine.Invoke(ctx, client.Run{Graph: "talks", Thread: thread, Input: s})
	if err == nil {
		err = outcome.Err()
	}
	if err != nil {
		return err
	}
	got, err := w.end()
	if err != nil {
		return err
	}
	all := s.Pieces * o.watchers
	if got.Pieces+got.Missing != all {
		return fmt.Errorf("of %d pieces %d arrived and %d were told as missing", all, got.Pieces, got.Missing)
	}
	_, err = fmt.Fprintf(out, "| %d | %.2f %% | %d | %.3f | %.0f |\n", s.Rate, 100*float64(got.Pieces)/float64(all), got.Missing,
		float64(got.Messages)/float64(all), float64(got.Pieces)/time.Since(began).Seconds())
	return err
}

// piece is a piece of a message as the SDKs send it.
const piece = `{"message":{"type":"AIMessageChunk","id":"run-1","content":"word ","tool_calls":[],"tool_call_chunks":[],` +
	`"additional_kwargs":{},"response_metadata":{}},"metadata":{"langgraph_node":"talk","langgraph_step":1,"ls_model_name":"none"}}`

// talk sends pieces at a rate: as many as are due, each millisecond.
func talk(ctx context.Context, s speech) (any, error) {
	began, tick := time.Now(), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for sent := 0; sent < s.Pieces; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		for due := min(s.Pieces, int(time.Since(began).Seconds()*float64(s.Rate))); sent < due; sent++ {
			if err := graph.EmitMessage(ctx, json.RawMessage(piece)); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// watchers is the process of the watchers.
type watchers struct {
	command *exec.Cmd
	threads io.WriteCloser
	counts  *json.Decoder
}

func (o *options) startWatchers(ctx context.Context, address string) (*watchers, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &watchers{command: exec.CommandContext(ctx, own, "-watch", address, "-watchers", fmt.Sprint(o.watchers))} //nolint:gosec // it is this program
	w.command.Stderr = os.Stderr
	if w.threads, err = w.command.StdinPipe(); err != nil {
		return nil, err
	}
	counts, err := w.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.counts = json.NewDecoder(counts)
	return w, w.command.Start()
}

// begin returns when all watch a thread.
func (w *watchers) begin(thread string) error {
	if _, err := fmt.Fprintln(w.threads, thread); err != nil {
		return err
	}
	var ready bool
	return w.counts.Decode(&ready)
}

// end returns what all watchers got until the run ended.
func (w *watchers) end() (c count, err error) {
	err = w.counts.Decode(&c)
	return c, err
}

func (w *watchers) stop() {
	_ = w.threads.Close()
	_ = w.command.Wait()
}

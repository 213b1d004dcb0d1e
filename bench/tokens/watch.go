package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// count is what watchers got.
type count struct{ Pieces, Messages, Missing int }

func (c *count) add(o count) {
	c.Pieces += o.Pieces
	c.Messages += o.Messages
	c.Missing += o.Missing
}

// watchThreads watches the threads whose names it reads, one after the other. It writes true when all
// watch, and what they got when the run has ended.
func (o *options) watchThreads(ctx context.Context, names io.Reader, results io.Writer) error {
	lines, out := bufio.NewScanner(names), json.NewEncoder(results)
	for lines.Scan() {
		if err := o.watchThread(ctx, lines.Text(), out); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (o *options) watchThread(ctx context.Context, thread string, out *json.Encoder) (err error) {
	ctx, stop := context.WithCancel(ctx)
	streams := make([]watch, o.watchers)
	defer func() {
		stop()
		for _, s := range streams {
			err = errors.Join(err, s.close())
		}
	}()
	for i := range streams {
		if streams[i], err = openWatch(ctx, o.watch, thread); err != nil {
			return err
		}
	}
	if err := out.Encode(true); err != nil {
		return err
	}
	counts, errs := make([]count, len(streams)), make([]error, len(streams))
	var all sync.WaitGroup
	for i := range streams {
		all.Go(func() { errs[i] = counts[i].countEvents(streams[i].events) })
	}
	all.Wait()
	var sum count
	for _, c := range counts {
		sum.add(c)
	}
	return errors.Join(errors.Join(errs...), out.Encode(sum))
}

// countEvents counts the pieces of a stream until its run has ended.
func (c *count) countEvents(events grpc.ServerStreamingClient[graphdv1.Event]) error {
	for {
		e, err := events.Recv()
		if err != nil {
			return err
		}
		if m := e.GetMessage(); m != nil {
			c.Messages++
			c.Pieces += strings.Count(m.GetValue().GetJson(), "word ")
		}
		c.Missing += int(e.GetGap().GetMissing())
		if e.GetRunState().GetState() == graphdv1.RunState_RUN_STATE_SUCCEEDED {
			return nil
		}
	}
}

// watch is a stream of a thread's events, on a connection of its own.
type watch struct {
	conn   *grpc.ClientConn
	events grpc.ServerStreamingClient[graphdv1.Event]
}

// openWatch returns when the stream is open.
func openWatch(ctx context.Context, address, thread string) (w watch, err error) {
	if w.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return w, err
	}
	w.events, err = graphdv1.NewGraphServiceClient(w.conn).Watch(ctx, &graphdv1.WatchRequest{ThreadId: thread, Follow: true})
	if err == nil {
		_, err = w.events.Recv()
	}
	return w, err
}

func (w *watch) close() error {
	if w.conn == nil {
		return nil
	}
	return w.conn.Close()
}

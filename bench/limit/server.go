package limit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/wire"
	"github.com/graphd-dev/graphd/bench/workload"
)

// server plays scripts.
type server struct {
	calls  map[string]Script
	store  store
	number atomic.Int64
	body   []byte
	// events are the messages of scripts that encode, by call.
	events map[string][]proto.Message
	gate   gate
}

// Serve reads a Config from in, serves it on a free port, writes HOST:PORT to
// out and ends when in does.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	var c Config
	if err := decoder.Decode(&c); err != nil {
		return fmt.Errorf("limit: config: %w", err)
	}
	store, err := open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer func() { _ = store.close() }()
	s := &server{calls: c.Calls, store: store, body: bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}
	if s.events, err = decode(c.Calls); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec{}), grpc.UnknownServiceHandler(s.play))
	go func() {
		_, _ = io.Copy(io.Discard, in)
		g.Stop()
	}()
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	return g.Serve(l)
}

// play answers any call of the service.
func (s *server) play(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request wire.Frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	name := strings.TrimPrefix(method, Service)
	switch name {
	case commitsCall:
		return s.loop(stream, request.Bytes)
	case workload.Create:
		return stream.SendMsg([]byte{})
	case workload.Go:
		s.gate.open()
		return stream.SendMsg([]byte{})
	}
	script, ok := s.calls[name]
	if !ok {
		return fmt.Errorf("limit: no call %q", method)
	}
	if script.Gate {
		return s.held(stream, script, s.events[name])
	}
	return s.run(stream, script)
}

// held sends one message, waits for the gate and sends the others.
func (s *server) held(stream grpc.ServerStream, script Script, events []proto.Message) error {
	gate := s.gate.wait()
	for i := range script.Messages {
		var message any = script.Messages[i]
		if events != nil {
			message = events[i]
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
		if i == 0 {
			select {
			case <-gate:
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
		}
	}
	return nil
}

func (s *server) run(stream grpc.ServerStream, script Script) error {
	thread, sent := s.thread(), 0
	for i := range max(script.Commits, 1) {
		if i < script.Commits {
			if err := s.store.commit(stream.Context(), thread, i, s.body[:script.Bytes]); err != nil {
				return err
			}
		}
		for until := len(script.Messages) * (i + 1) / max(script.Commits, 1); sent < until; sent++ {
			if err := stream.SendMsg(script.Messages[sent]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *server) thread() string { return strconv.FormatInt(s.number.Add(1), 36) }

// commitsCall is the method that only makes commits.
const commitsCall = "commits"

// Commits asks for bare commits, without gRPC between them.
type Commits struct {
	// Lanes is the number of lanes, each of which makes its commits in turn.
	// PerThread is the number of commits of one thread.
	Lanes     int `json:"lanes"`
	PerThread int `json:"per_thread"`
	// Bytes of each.
	Bytes int `json:"bytes"`
	// For is how long.
	For time.Duration `json:"for"`
}

// Rate asks a server for bare commits and returns how many a second it made.
func Rate(ctx context.Context, c *wire.Client, o Commits) (float64, error) {
	request, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	answer, err := c.Call(ctx, 0, Service+commitsCall, request)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(answer), 64)
}

func (s *server) loop(stream grpc.ServerStream, request []byte) error {
	var o Commits
	if err := json.Unmarshal(request, &o); err != nil {
		return err
	}
	var (
		total  atomic.Int64
		lanes  sync.WaitGroup
		broken = make([]error, o.Lanes)
		began  = time.Now()
	)
	for lane := range o.Lanes {
		lanes.Go(func() {
			for broken[lane] == nil && time.Since(began) < o.For {
				broken[lane] = s.one(stream.Context(), o, &total)
			}
		})
	}
	lanes.Wait()
	took := time.Since(began).Seconds()
	for _, err := range broken {
		if err != nil {
			return err
		}
	}
	return stream.SendMsg([]byte(strconv.FormatFloat(float64(total.Load())/took, 'f', -1, 64)))
}

// one makes the commits of one thread.
func (s *server) one(ctx context.Context, o Commits, total *atomic.Int64) error {
	thread := s.thread()
	for i := range o.PerThread {
		if err := s.store.commit(ctx, thread, i, s.body[:o.Bytes]); err != nil {
			return err
		}
	}
	total.Add(int64(o.PerThread))
	return nil
}

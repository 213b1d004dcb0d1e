package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// peer is one connection of a server to a hostile endpoint.
type peer struct {
	net.Conn
	*http2.Framer

	mu sync.Mutex // of what is written
}

// tricks is what a hostile endpoint does: with a connection that was accepted, and
// with a task. What is nil is done as it should be.
type tricks struct {
	accept func(c net.Conn) (over bool)
	begin  func(p *peer)
	answer func(p *peer, stream uint32)
	serves func(p *peer, stream uint32)
}

// serveTricks serves a hostile endpoint until ctx ends, and returns its address.
func serveTricks(ctx context.Context, with tricks) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = c.Close() })
			go with.talk(c)
		}
	}()
	return l.Addr().String(), nil
}

func (t tricks) talk(c net.Conn) {
	if t.accept != nil && t.accept(c) {
		return
	}
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	p := &peer{Conn: c, Framer: http2.NewFramer(c, c)}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = p.WriteSettings()
	if t.begin != nil {
		go t.begin(p)
	}
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.once(p.WriteSettingsAck)
			}
		case *http2.MetaHeadersFrame:
			path := f.PseudoValue("path")
			switch {
			case strings.HasSuffix(path, "/ExecuteTask") && t.answer != nil:
				go t.answer(p, f.StreamID)
			case strings.HasSuffix(path, "/ExecuteTask"):
			case strings.HasSuffix(path, "/Describe") && t.serves != nil:
				go t.serves(p, f.StreamID)
			default:
				p.end(f.StreamID, "grpc-status", "12")
			}
		}
	}
}

// fields encodes headers.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: true})
	}
	return b.Bytes()
}

// head begins an answer.
func (p *peer) head(stream uint32, more ...string) {
	p.headers(stream, false, fields(append([]string{":status", "200", "content-type", "application/grpc"}, more...)...))
}

// end ends a call that was not answered otherwise.
func (p *peer) end(stream uint32, more ...string) {
	p.headers(stream, true, fields(append([]string{":status", "200", "content-type", "application/grpc"}, more...)...))
}

// headers writes a block of headers in as many frames as it takes.
func (p *peer) headers(stream uint32, last bool, block []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := block[:min(len(block), 16<<10)]
	block = block[len(first):]
	err := p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: last, EndHeaders: len(block) == 0})
	for len(block) > 0 && err == nil {
		part := block[:min(len(block), 16<<10)]
		block = block[len(part):]
		err = p.WriteContinuation(stream, len(block) == 0, part)
	}
}

// data writes bytes of an answer, with no regard to what the other side takes.
func (p *peer) data(stream uint32, text []byte) (ok bool) {
	for len(text) > 0 {
		part := text[:min(len(text), 16<<10)]
		text = text[len(part):]
		p.mu.Lock()
		err := p.WriteData(stream, false, part)
		p.mu.Unlock()
		if err != nil {
			return false
		}
	}
	return true
}

// framed is a message with what gRPC puts before it.
func framed(packed byte, text []byte) []byte {
	out := make([]byte, 5, 5+len(text))
	out[0] = packed
	binary.BigEndian.PutUint32(out[1:], uint32(len(text)))
	return append(out, text...)
}

func message(m proto.Message) []byte {
	text, _ := proto.Marshal(m)
	return framed(0, text)
}

func result(c *graphdv1.TaskCompleted) []byte {
	return message(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: c},
	}}})
}

func emit(durable bool, text string, times int) []byte {
	var items []*graphdv1.EmitItem
	for range times {
		items = append(items, &graphdv1.EmitItem{
			Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "n", Value: value(text), Durable: durable,
		})
	}
	return message(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: items}}})
}

// once writes a frame, apart from what others write.
func (p *peer) once(write func() error) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return write() == nil
}

// forever writes the same frame until it fails.
func (p *peer) forever(write func() error) {
	for p.once(write) {
		continue
	}
}

// gzipped is a message of many zeros.
var gzipped = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	zeros := make([]byte, 1<<20)
	for range 256 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return framed(1, b.Bytes())
})

// answering is an endpoint that answers a task with these messages.
func answering(messages ...[]byte) tricks {
	return tricks{answer: func(p *peer, stream uint32) {
		p.head(stream)
		for _, m := range messages {
			p.data(stream, m)
		}
	}}
}

// always is an endpoint that answers a task with the same message again and again.
func always(m []byte) tricks {
	return tricks{answer: func(p *peer, stream uint32) {
		p.head(stream)
		for p.data(stream, m) {
			continue
		}
	}}
}

// allTricks are the endpoints by what they do.
func allTricks() map[string]map[string]tricks {
	large := strings.Repeat("x", 1000<<10)
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	return map[string]map[string]tricks{
		"endpoints that do not answer": {
			"nothing":      {accept: func(net.Conn) bool { return true }},
			"never":        {},
			"never serves": {serves: func(*peer, uint32) {}},
			"byte by byte": {answer: func(p *peer, stream uint32) {
				p.head(stream)
				for _, b := range result(&graphdv1.TaskCompleted{Update: value(`{"x":1}`)}) {
					<-time.NewTimer(time.Millisecond).C
					p.data(stream, []byte{b})
				}
			}},
			"byte by byte from the start": {accept: func(c net.Conn) bool {
				for _, b := range []byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00") {
					<-time.NewTimer(100 * time.Millisecond).C
					_, _ = c.Write([]byte{b})
				}
				return false
			}},
			"half an answer": {answer: func(p *peer, stream uint32) {
				p.head(stream)
				p.data(stream, framed(0, make([]byte, 8<<20))[:7<<20])
			}},
		},
		"endpoints that close": {
			"closes":                {accept: func(c net.Conn) bool { _ = c.Close(); return true }},
			"closes after settings": {begin: func(p *peer) { _ = p.Close() }},
			"closes at a task":      {answer: func(p *peer, _ uint32) { _ = p.Close() }},
			"closes in the middle": {answer: func(p *peer, stream uint32) {
				p.head(stream)
				p.data(stream, result(&graphdv1.TaskCompleted{})[:3])
				_ = p.Close()
			}},
			"goes away": {begin: func(p *peer) {
				p.once(func() error { return p.WriteGoAway(0, http2.ErrCodeNo, nil) })
				_ = p.Close()
			}},
			"goes away at a task": {answer: func(p *peer, _ uint32) {
				p.once(func() error { return p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")) })
				_ = p.Close()
			}},
			"resets": {answer: func(p *peer, stream uint32) {
				p.once(func() error { return p.WriteRSTStream(stream, http2.ErrCodeRefusedStream) })
			}},
			"goes away for ever": {begin: func(p *peer) {
				p.forever(func() error { return p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil) })
			}},
		},
		"endpoints that flood": {
			"settings": {begin: func(p *peer) { p.forever(func() error { return p.WriteSettings() }) }},
			"pings":    {begin: func(p *peer) { p.forever(func() error { return p.WritePing(false, [8]byte{}) }) }},
			"windows":  {begin: func(p *peer) { p.forever(func() error { return p.WriteWindowUpdate(0, 1) }) }},
			"headers": {answer: func(p *peer, stream uint32) {
				block := fields("x", strings.Repeat("y", 1000))
				p.once(func() error {
					return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields(":status", "200")})
				})
				p.forever(func() error { return p.WriteContinuation(stream, false, block) })
			}},
			"nothing": {answer: func(p *peer, stream uint32) {
				p.head(stream)
				p.forever(func() error { return p.WriteData(stream, false, nil) })
			}},
			"alive":    always(message(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Alive{}})),
			"updates":  always(framed(0, nil)),
			"tokens":   always(emit(false, `"`+large+`"`, 1)),
			"durables": always(emit(true, `"`+large+`"`, 1)),
			"small":    always(emit(false, `1`, 10)),
		},
		"endpoints that answer much": {
			"larger than any": answering(framed(0, make([]byte, 9<<20))),
			"most":            answering(result(&graphdv1.TaskCompleted{Update: value(`{"x":"` + strings.Repeat("x", 4190<<10) + `"}`)})),
			"gzip": {answer: func(p *peer, stream uint32) {
				p.head(stream, "grpc-encoding", "gzip")
				p.data(stream, gzipped())
			}},
			"empty parts": answering(framed(0, emptyTargets())),
			"headers": {answer: func(p *peer, stream uint32) {
				var more []string
				for i := range 15 {
					more = append(more, fmt.Sprint("x", i), strings.Repeat("y", 1<<20))
				}
				p.head(stream, more...)
				p.end(stream, "grpc-status", "2")
			}},
			"details": {answer: func(p *peer, stream uint32) {
				p.end(stream, "grpc-status", "2", "grpc-message", "m", "grpc-status-details-bin", strings.Repeat("QUFB", 2<<20))
			}},
			"message": {answer: func(p *peer, stream uint32) {
				p.end(stream, "grpc-status", "2", "grpc-message", strings.Repeat("%1b[31m%0a%ff%00", 1000))
			}},
			"manifest": {serves: func(p *peer, stream uint32) {
				p.head(stream)
				p.data(stream, message(&graphdv1.WorkerManifest{Nodes: manyNodes(60_000)}))
			}},
		},
		"endpoints that answer oddly": {
			"deep":     answering(result(&graphdv1.TaskCompleted{Update: value(deep)})),
			"repeated": answering(result(&graphdv1.TaskCompleted{Update: value(`{"x":{"a":1,"a":2}}`)})),
			"numbers":  answering(result(&graphdv1.TaskCompleted{Update: value(`{"x":NaN}`)})),
			"sends": answering(result(&graphdv1.TaskCompleted{GotoTargets: repeat(5000, func(int) *graphdv1.Goto {
				return &graphdv1.Goto{Target: &graphdv1.Goto_Send{Send: &graphdv1.Send{Node: "n", Input: value("1")}}}
			})})),
			"unknown channels": answering(result(&graphdv1.TaskCompleted{Writes: repeat(5000, func(i int) *graphdv1.ChannelWrite {
				return &graphdv1.ChannelWrite{Channel: fmt.Sprint("c", i, large[:200]), Value: value("1")}
			})})),
			"a channel of a megabyte": answering(result(&graphdv1.TaskCompleted{Writes: []*graphdv1.ChannelWrite{
				{Channel: large, Value: value("1")},
			}})),
			"another task": answering(message(&graphdv1.TaskUpdate{
				LeaseToken: []byte("of another task"), Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
					Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{}},
				}},
			})),
			"rubbish": answering(framed(0, bytes.Repeat([]byte{0xff}, 1000))),
		},
	}
}

func repeat[T any](n int, item func(i int) T) []T {
	items := make([]T, n)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

func manyNodes(n int) []*graphdv1.ServedNode {
	return repeat(n, func(i int) *graphdv1.ServedNode {
		return &graphdv1.ServedNode{Graph: "g", Node: fmt.Sprint(i, strings.Repeat("n", 100))}
	})
}

// emptyTargets is a result of many empty parts, two bytes each.
func emptyTargets() []byte {
	m := &graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{GotoTargets: repeat(4_000_000, func(int) *graphdv1.Goto {
			return emptyTarget
		})}},
	}}}
	text, _ := proto.Marshal(m)
	return text
}

var emptyTarget = &graphdv1.Goto{}

// endpoints are the inputs with hostile endpoints: those of a kind at the same time.
func endpoints() []input {
	var all []input
	for name, kind := range allTricks() {
		all = append(all, input{name, func(ctx context.Context, a *attack) { a.tryAll(ctx, kind) }})
	}
	return append(all, input{"many endpoints", manyEndpoints})
}

func (a *attack) tryAll(ctx context.Context, kind map[string]tricks) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var names []string
	for name := range kind {
		names = append(names, name)
	}
	a.flood(ctx, len(names), func(i int) {
		address, err := serveTricks(ctx, kind[names[i]])
		if err != nil {
			a.heard("Listen", err)
			return
		}
		a.runAt(ctx, "trick-"+strings.ReplaceAll(names[i], " ", "-"), address, 10*a.scale)
	})
}

// runAt runs a node of an endpoint many times at once.
func (a *attack) runAt(ctx context.Context, name, address string, times int) {
	graph := fmt.Sprintf("channels: { x: {} }\nnodes:\n  n: { remote: { endpoint: '%s' }, timeout: 2s }\nedges: [START -> n -> END]\n", address)
	if !a.need(ctx, name, graph) {
		return
	}
	a.flood(ctx, times, func(i int) {
		thread := fmt.Sprint(name, "-", i)
		_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			Graph: name, ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: value("{}")},
		}})
		a.heard("StartRun", err)
		_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread, Wait: durationpb.New(30 * time.Second)})
		a.heard("WaitRun", err)
		a.remove(context.WithoutCancel(ctx), thread)
	})
	_, err := a.client.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: name, Force: true})
	a.heard("DeleteGraph", err)
}

// manyEndpoints are many more endpoints than there are connections to them.
func manyEndpoints(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.flood(ctx, a.many(500, 1000), func(i int) {
		address, err := serveTricks(ctx, answering(result(&graphdv1.TaskCompleted{Update: value(`{"x":1}`)})))
		if err != nil {
			a.heard("Listen", err)
			return
		}
		a.runAt(ctx, fmt.Sprint("one-of-many-", i), address, 1)
	})
}

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
	"github.com/graphd-dev/graphd/tests/harness"
)

// endpointConn is one connection of a server to a hostile endpoint.
type endpointConn struct {
	net.Conn
	*http2.Framer

	mu sync.Mutex // of what is written
}

// hostileEndpoint is what a hostile endpoint does: with a connection that was
// accepted, and with a task. What is nil is done as it should be.
type hostileEndpoint struct {
	onAccept   func(c net.Conn) (over bool)
	onBegin    func(p *endpointConn)
	onTask     func(p *endpointConn, stream uint32)
	onDescribe func(p *endpointConn, stream uint32)
}

// serveEndpoint serves a hostile endpoint until ctx ends, and returns its address.
func serveEndpoint(ctx context.Context, with hostileEndpoint) (string, error) {
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
			go with.handleConn(c)
		}
	}()
	return l.Addr().String(), nil
}

func (t hostileEndpoint) handleConn(c net.Conn) {
	if t.onAccept != nil && t.onAccept(c) {
		return
	}
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	p := &endpointConn{Conn: c, Framer: http2.NewFramer(c, c)}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = p.WriteSettings()
	if t.onBegin != nil {
		go t.onBegin(p)
	}
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				p.writeOnce(p.WriteSettingsAck)
			}
		case *http2.MetaHeadersFrame:
			path := f.PseudoValue("path")
			switch {
			case strings.HasSuffix(path, "/ExecuteTask") && t.onTask != nil:
				go t.onTask(p, f.StreamID)
			case strings.HasSuffix(path, "/ExecuteTask"):
			case strings.HasSuffix(path, "/Describe") && t.onDescribe != nil:
				go t.onDescribe(p, f.StreamID)
			default:
				p.endCall(f.StreamID, "grpc-status", "12")
			}
		}
	}
}

// encodeHeaders encodes headers.
func encodeHeaders(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: true})
	}
	return b.Bytes()
}

// sendHead begins an answer.
func (p *endpointConn) sendHead(stream uint32, more ...string) {
	p.writeHeaders(stream, false, encodeHeaders(append([]string{":status", "200", "content-type", "application/grpc"}, more...)...))
}

// endCall ends a call that was not answered otherwise.
func (p *endpointConn) endCall(stream uint32, more ...string) {
	p.writeHeaders(stream, true, encodeHeaders(append([]string{":status", "200", "content-type", "application/grpc"}, more...)...))
}

// writeHeaders writes a block of headers in as many frames as it takes.
func (p *endpointConn) writeHeaders(stream uint32, last bool, block []byte) {
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

// writeData writes bytes of an answer, with no regard to what the other side takes.
func (p *endpointConn) writeData(stream uint32, text []byte) (ok bool) {
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

// frameMessage is a message with what gRPC puts before it.
func frameMessage(packed byte, text []byte) []byte {
	out := make([]byte, 5, 5+len(text))
	out[0] = packed
	binary.BigEndian.PutUint32(out[1:], uint32(len(text)))
	return append(out, text...)
}

func encodeMessage(m proto.Message) []byte {
	text, _ := proto.Marshal(m)
	return frameMessage(0, text)
}

func encodeResult(c *graphdv1.TaskCompleted) []byte {
	return encodeMessage(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
		Outcome: &graphdv1.TaskResult_Completed{Completed: c},
	}}})
}

func encodeEmit(durable bool, text string, times int) []byte {
	var items []*graphdv1.EmitItem
	for range times {
		items = append(items, &graphdv1.EmitItem{
			Channel: graphdv1.Channel_CHANNEL_CUSTOM, Name: "n", Value: harness.NewPayload(text), Durable: durable,
		})
	}
	return encodeMessage(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Emit{Emit: &graphdv1.Emit{Items: items}}})
}

// writeOnce writes a frame, apart from what others write.
func (p *endpointConn) writeOnce(write func() error) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return write() == nil
}

// repeatWrite writes the same frame until it fails.
func (p *endpointConn) repeatWrite(write func() error) {
	for p.writeOnce(write) {
		continue
	}
}

// gzipBomb is a message of many zeros.
var gzipBomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	zeros := make([]byte, 1<<20)
	for range 256 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return frameMessage(1, b.Bytes())
})

// answerWith is an endpoint that answers a task with these messages.
func answerWith(messages ...[]byte) hostileEndpoint {
	return hostileEndpoint{onTask: func(p *endpointConn, stream uint32) {
		p.sendHead(stream)
		for _, m := range messages {
			p.writeData(stream, m)
		}
	}}
}

// answerForever is an endpoint that answers a task with the same message again and again.
func answerForever(m []byte) hostileEndpoint {
	return hostileEndpoint{onTask: func(p *endpointConn, stream uint32) {
		p.sendHead(stream)
		for p.writeData(stream, m) {
			continue
		}
	}}
}

// hostileEndpoints are the endpoints by what they do.
func hostileEndpoints() map[string]map[string]hostileEndpoint {
	large := strings.Repeat("x", 1000<<10)
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	return map[string]map[string]hostileEndpoint{
		"endpoints that do not answer": {
			"nothing":      {onAccept: func(net.Conn) bool { return true }},
			"never":        {},
			"never serves": {onDescribe: func(*endpointConn, uint32) {}},
			"byte by byte": {onTask: func(p *endpointConn, stream uint32) {
				p.sendHead(stream)
				for _, b := range encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(`{"x":1}`)}) {
					<-time.NewTimer(time.Millisecond).C
					p.writeData(stream, []byte{b})
				}
			}},
			"byte by byte from the start": {onAccept: func(c net.Conn) bool {
				for _, b := range []byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00") {
					<-time.NewTimer(100 * time.Millisecond).C
					_, _ = c.Write([]byte{b})
				}
				return false
			}},
			"half an answer": {onTask: func(p *endpointConn, stream uint32) {
				p.sendHead(stream)
				p.writeData(stream, frameMessage(0, make([]byte, 8<<20))[:7<<20])
			}},
		},
		"endpoints that close": {
			"closes":                {onAccept: func(c net.Conn) bool { _ = c.Close(); return true }},
			"closes after settings": {onBegin: func(p *endpointConn) { _ = p.Close() }},
			"closes at a task":      {onTask: func(p *endpointConn, _ uint32) { _ = p.Close() }},
			"closes in the middle": {onTask: func(p *endpointConn, stream uint32) {
				p.sendHead(stream)
				p.writeData(stream, encodeResult(&graphdv1.TaskCompleted{})[:3])
				_ = p.Close()
			}},
			"goes away": {onBegin: func(p *endpointConn) {
				p.writeOnce(func() error { return p.WriteGoAway(0, http2.ErrCodeNo, nil) })
				_ = p.Close()
			}},
			"goes away at a task": {onTask: func(p *endpointConn, _ uint32) {
				p.writeOnce(func() error { return p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")) })
				_ = p.Close()
			}},
			"resets": {onTask: func(p *endpointConn, stream uint32) {
				p.writeOnce(func() error { return p.WriteRSTStream(stream, http2.ErrCodeRefusedStream) })
			}},
			"goes away for ever": {onBegin: func(p *endpointConn) {
				p.repeatWrite(func() error { return p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil) })
			}},
		},
		"endpoints that flood": {
			"settings": {onBegin: func(p *endpointConn) { p.repeatWrite(func() error { return p.WriteSettings() }) }},
			"pings":    {onBegin: func(p *endpointConn) { p.repeatWrite(func() error { return p.WritePing(false, [8]byte{}) }) }},
			"windows":  {onBegin: func(p *endpointConn) { p.repeatWrite(func() error { return p.WriteWindowUpdate(0, 1) }) }},
			"headers": {onTask: func(p *endpointConn, stream uint32) {
				block := encodeHeaders("x", strings.Repeat("y", 1000))
				p.writeOnce(func() error {
					return p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encodeHeaders(":status", "200")})
				})
				p.repeatWrite(func() error { return p.WriteContinuation(stream, false, block) })
			}},
			"nothing": {onTask: func(p *endpointConn, stream uint32) {
				p.sendHead(stream)
				p.repeatWrite(func() error { return p.WriteData(stream, false, nil) })
			}},
			"alive":    answerForever(encodeMessage(&graphdv1.TaskUpdate{Kind: &graphdv1.TaskUpdate_Alive{}})),
			"updates":  answerForever(frameMessage(0, nil)),
			"tokens":   answerForever(encodeEmit(false, `"`+large+`"`, 1)),
			"durables": answerForever(encodeEmit(true, `"`+large+`"`, 1)),
			"small":    answerForever(encodeEmit(false, `1`, 10)),
		},
		"endpoints that answer much": {
			"larger than any": answerWith(frameMessage(0, make([]byte, 9<<20))),
			"most":            answerWith(encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(`{"x":"` + strings.Repeat("x", 4190<<10) + `"}`)})),
			"gzip": {onTask: func(p *endpointConn, stream uint32) {
				p.sendHead(stream, "grpc-encoding", "gzip")
				p.writeData(stream, gzipBomb())
			}},
			"empty parts": answerWith(frameMessage(0, emptyTargets())),
			"headers": {onTask: func(p *endpointConn, stream uint32) {
				var more []string
				for i := range 15 {
					more = append(more, fmt.Sprint("x", i), strings.Repeat("y", 1<<20))
				}
				p.sendHead(stream, more...)
				p.endCall(stream, "grpc-status", "2")
			}},
			"details": {onTask: func(p *endpointConn, stream uint32) {
				p.endCall(stream, "grpc-status", "2", "grpc-message", "m", "grpc-status-details-bin", strings.Repeat("QUFB", 2<<20))
			}},
			"message": {onTask: func(p *endpointConn, stream uint32) {
				p.endCall(stream, "grpc-status", "2", "grpc-message", strings.Repeat("%1b[31m%0a%ff%00", 1000))
			}},
			"manifest": {onDescribe: func(p *endpointConn, stream uint32) {
				p.sendHead(stream)
				p.writeData(stream, encodeMessage(&graphdv1.WorkerManifest{Nodes: manyNodes(60_000)}))
			}},
		},
		"endpoints that answer oddly": {
			"deep":     answerWith(encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(deep)})),
			"repeated": answerWith(encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(`{"x":{"a":1,"a":2}}`)})),
			"numbers":  answerWith(encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(`{"x":NaN}`)})),
			"sends": answerWith(encodeResult(&graphdv1.TaskCompleted{GotoTargets: makeItems(5000, func(int) *graphdv1.Goto {
				return &graphdv1.Goto{Target: &graphdv1.Goto_Send{Send: &graphdv1.Send{Node: "n", Input: harness.NewPayload("1")}}}
			})})),
			"unknown channels": answerWith(encodeResult(&graphdv1.TaskCompleted{Writes: makeItems(5000, func(i int) *graphdv1.ChannelWrite {
				return &graphdv1.ChannelWrite{Channel: fmt.Sprint("c", i, large[:200]), Value: harness.NewPayload("1")}
			})})),
			"a channel of a megabyte": answerWith(encodeResult(&graphdv1.TaskCompleted{Writes: []*graphdv1.ChannelWrite{
				{Channel: large, Value: harness.NewPayload("1")},
			}})),
			"another task": answerWith(encodeMessage(&graphdv1.TaskUpdate{
				LeaseToken: []byte("of another task"), Kind: &graphdv1.TaskUpdate_Result{Result: &graphdv1.TaskResult{
					Outcome: &graphdv1.TaskResult_Completed{Completed: &graphdv1.TaskCompleted{}},
				}},
			})),
			"rubbish": answerWith(frameMessage(0, bytes.Repeat([]byte{0xff}, 1000))),
		},
	}
}

func makeItems[T any](n int, item func(i int) T) []T {
	items := make([]T, n)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

func manyNodes(n int) []*graphdv1.ServedNode {
	return makeItems(n, func(i int) *graphdv1.ServedNode {
		return &graphdv1.ServedNode{Graph: "g", Node: fmt.Sprint(i, strings.Repeat("n", 100))}
	})
}

// emptyTargets is a result of many empty parts.
func emptyTargets() []byte {
	targets := repeatPart(&graphdv1.TaskCompleted{GotoTargets: []*graphdv1.Goto{{}}})
	return wrapPart(&graphdv1.TaskUpdate{}, "result", wrapPart(&graphdv1.TaskResult{}, "completed", targets))
}

// endpointInputs are the inputs with hostile endpoints: those of a kind at the same time.
func endpointInputs() []input {
	var all []input
	for name, kind := range hostileEndpoints() {
		all = append(all, input{name, func(ctx context.Context, a *attack) { a.runOnEndpoints(ctx, kind) }})
	}
	return append(all, input{"many endpoints", manyEndpoints})
}

func (a *attack) runOnEndpoints(ctx context.Context, kind map[string]hostileEndpoint) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var names []string
	for name := range kind {
		names = append(names, name)
	}
	a.runConcurrently(ctx, len(names), func(i int) {
		address, err := serveEndpoint(ctx, kind[names[i]])
		if err != nil {
			a.recordAnswer("Listen", err)
			return
		}
		a.runOnEndpoint(ctx, "trick-"+strings.ReplaceAll(names[i], " ", "-"), address, a.scaleCount(4, 30))
	})
}

// runOnEndpoint runs a node of an endpoint many times at once.
func (a *attack) runOnEndpoint(ctx context.Context, name, address string, times int) {
	graph := fmt.Sprintf("channels: { x: {} }\nnodes:\n  n: { remote: { endpoint: '%s' }, timeout: 2s }\nedges: [START -> n -> END]\n", address)
	if !a.requireGraph(ctx, name, graph) {
		return
	}
	a.runConcurrently(ctx, times, func(i int) {
		thread := fmt.Sprint(name, "-", i)
		_, err := a.client.StartRun(ctx, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			Graph: name, ThreadId: thread, CreateThread: true, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload("{}")},
		}})
		a.recordAnswer("StartRun", err)
		_, err = a.client.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: thread, Wait: durationpb.New(30 * time.Second)})
		a.recordAnswer("WaitRun", err)
		a.deleteThread(context.WithoutCancel(ctx), thread)
	})
	_, err := a.client.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: name, Force: true})
	a.recordAnswer("DeleteGraph", err)
}

// manyEndpoints are many more endpoints than there are connections to them.
func manyEndpoints(ctx context.Context, a *attack) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.runConcurrently(ctx, a.scaleCount(500, 1000), func(i int) {
		address, err := serveEndpoint(ctx, answerWith(encodeResult(&graphdv1.TaskCompleted{Update: harness.NewPayload(`{"x":1}`)})))
		if err != nil {
			a.recordAnswer("Listen", err)
			return
		}
		a.runOnEndpoint(ctx, fmt.Sprint("one-of-many-", i), address, 1)
	})
}

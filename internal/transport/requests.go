package transport

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// requests counts the bytes that clients have sent of calls that are not done.
// Where there are too many, requests that arrive slowly are cancelled, those
// first that hold much for long; what is whole and being served stays, and large
// requests that come on top of it are refused. The last quarter is for small
// ones.
type requests struct {
	most     int64         // bytes of all together, 0 = any number
	calls    int           // open at the same time, 0 = any number
	patience time.Duration // for a request to arrive
	log      *zap.Logger
	streams  map[string]bool // full names of the methods that take many messages

	mu       sync.Mutex
	open     int
	held     int64                 // bytes of all calls
	pending  int64                 // bytes of those that arrive
	arriving map[*request]struct{} // requests that are not whole
	clock    *time.Timer           // looks for those that are too slow; nil = none arrives
}

func newRequests(o Options) *requests {
	return &requests{
		most: int64(o.MaxIncoming), calls: o.MaxOpenCalls, patience: o.RequestPatience, log: o.Log,
		arriving: make(map[*request]struct{}),
	}
}

// learnMethods takes in which methods take many messages.
func (q *requests) learnMethods(services map[string]grpc.ServiceInfo) {
	q.streams = make(map[string]bool)
	for name, service := range services {
		for _, method := range service.Methods {
			q.streams["/"+name+"/"+method.Name] = method.IsClientStream
		}
	}
}

// fewCalls is how many calls a connection may have of the last quarter.
const fewCalls = 64

// request is what a client has sent of one call.
type request struct {
	of     *requests
	on     *inbound
	id     uint32
	cancel context.CancelFunc // of the call
	stream bool               // messages follow one another

	held   int64     // bytes; guarded by requests.mu, as is what follows
	since  time.Time // when it began to arrive
	taken  int64     // of a stream: bytes of the message that is served
	served bool      // of a stream: a message is
	over   bool
}

type requestKey struct{}

// requestOf is what the client of a call has sent, nil when it is not counted.
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// begin takes in a call whose headers have come. gRPC has read nothing beyond
// them.
func (q *requests) begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	from := inboundOf(ctx)
	if from == nil {
		return ctx, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls > 0 && (q.open >= q.calls || q.open >= q.calls-q.calls/4 && len(from.calls) >= fewCalls) {
		return ctx, render(codes.ResourceExhausted, tooManyRequests("calls", "max-open-calls", int64(q.calls)), nil)
	}
	r := &request{of: q, on: from, id: from.newest, stream: q.streams[info.FullMethodName], since: time.Now()}
	ctx, r.cancel = context.WithCancel(context.WithValue(ctx, requestKey{}, r))
	q.open++
	from.calls[r.id] = r
	if !r.stream && !from.ended {
		q.wait(r)
	}
	context.AfterFunc(ctx, contain.Func(r.end, func(*contain.PanicError) {}))
	return ctx, nil
}

func tooManyRequests(what, limit string, most int64) *runtime.Error {
	return runtime.Errorf(ReasonTooManyRequests, "the server holds as many %s as it may, %d; try again", what, most).
		Beyond(limit, most, 0)
}

// wait counts a request among those that arrive. The caller holds mu.
func (q *requests) wait(r *request) {
	if _, there := q.arriving[r]; there {
		return
	}
	q.arriving[r] = struct{}{}
	q.pending += r.held
	if q.clock == nil {
		q.clock = time.AfterFunc(q.patience/4, contain.Func(q.look, contain.Log(q.log, "looking for slow requests panicked")))
	}
}

// settleRequest counts a request no longer among those that arrive. The caller holds mu.
func (q *requests) settleRequest(r *request) {
	if _, there := q.arriving[r]; there {
		delete(q.arriving, r)
		q.pending -= r.held
	}
}

// countBytes counts bytes of a request. The caller holds mu.
func (q *requests) countBytes(r *request, n int64) {
	if r.over {
		return
	}
	r.held += n
	q.held += n
	if _, there := q.arriving[r]; there {
		q.pending += n
	}
}

// take counts bytes that a client sends.
func (r *request) take(n int64) {
	q := r.of
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.over {
		return
	}
	if r.stream && !r.served && r.held == 0 {
		r.since = time.Now()
		q.wait(r)
	}
	q.countBytes(r, n)
	if q.most > 0 && q.held > q.most {
		q.cancelLargest()
	}
}

// whole notes that the client has sent all.
func (r *request) whole() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if !r.stream {
		r.of.settleRequest(r)
	}
}

// charge counts what a message takes in memory beyond its bytes on the wire, and
// refuses it when there is no room.
func (r *request) charge(wire, memory int) error {
	if r == nil {
		return nil
	}
	q := r.of
	q.mu.Lock()
	defer q.mu.Unlock()
	counted := min(int64(wire), r.held) // less than wire for one that was compressed
	q.countBytes(r, max(int64(memory)-counted, 0))
	if r.stream {
		q.settleRequest(r)
		r.served, r.taken = true, min(int64(max(memory, wire))+messageHeader, r.held)
	}
	if q.most == 0 {
		return nil
	}
	if q.held > q.most {
		q.cancelLargest()
	}
	served := q.held - q.pending
	if _, there := q.arriving[r]; there {
		served += r.held
	}
	if served > q.most || r.held > share && served > q.most-q.most/4 {
		return tooManyRequests("bytes of requests", "max-incoming", q.most)
	}
	return nil
}

// messageHeader is what gRPC puts before each message.
const messageHeader = 5

// answered notes that a call begins to answer: of its one message nothing is
// held any more.
func (r *request) answered() {
	if r == nil || r.stream {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.countBytes(r, -r.held)
}

// done notes that a message of a stream has been served: the next one may arrive.
func (r *request) done() {
	if r == nil {
		return
	}
	q := r.of
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.served {
		return
	}
	q.countBytes(r, -r.taken)
	if r.served, r.taken = false, 0; r.held > 0 && !r.over {
		r.since = time.Now()
		q.wait(r)
	}
}

// end forgets a call that is over.
func (r *request) end() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.forgetRequest(r)
	r.of.open--
	delete(r.on.calls, r.id)
}

// forgetRequest counts nothing of a call any more. The caller holds mu.
func (q *requests) forgetRequest(r *request) {
	if r.over {
		return
	}
	q.settleRequest(r)
	q.countBytes(r, -r.held)
	r.over = true
}

// cancelLargest cancels requests that arrive, until an eighth of what may be held is free:
// those first whose bytes, times their age, are the most. Who sends in one go is
// done before his turn comes. The caller holds mu.
func (q *requests) cancelLargest() {
	type load struct {
		request *request
		weight  float64
	}
	now := time.Now()
	loads := make([]load, 0, len(q.arriving))
	for r := range q.arriving {
		if r.held > 0 {
			loads = append(loads, load{r, float64(r.held) * now.Sub(r.since).Seconds()})
		}
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(b.weight, a.weight) })
	shed := 0
	for _, l := range loads {
		if q.held <= q.most-q.most/8 {
			break
		}
		q.forgetRequest(l.request)
		l.request.cancel()
		shed++
	}
	if shed > 0 {
		q.log.Warn("requests cancelled: they arrive slowly, and the server holds too much of them",
			zap.Int("calls", shed), zap.Int64("bytes", q.most), peerOf(loads[0].request))
	}
}

// look cancels requests that have not arrived in time, and comes back while
// others arrive.
func (q *requests) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clock = nil
	limit := time.Now().Add(-q.patience)
	late := 0
	var one *request
	for r := range q.arriving {
		if r.since.Before(limit) {
			q.forgetRequest(r)
			r.cancel()
			late, one = late+1, r
		}
	}
	if late > 0 {
		q.log.Warn("requests cancelled: they did not arrive in time", zap.Int("calls", late),
			zap.Duration("timeout", q.patience), peerOf(one))
	}
	if len(q.arriving) > 0 {
		q.clock = time.AfterFunc(q.patience/4, contain.Func(q.look, contain.Log(q.log, "looking for slow requests panicked")))
	}
}

func peerOf(r *request) zap.Field {
	return zap.String("peer.address", r.on.RemoteAddr().String())
}

// inboundOf is the connection of a call, nil when it is not watched.
func inboundOf(ctx context.Context) *inbound {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	addr, ok := p.Addr.(*remoteAddr)
	if !ok {
		return nil
	}
	return addr.conn.inbound
}

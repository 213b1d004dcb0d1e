package flow

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
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// RequestTracker counts the bytes of calls that are not done. Beyond the limit it
// cancels requests that arrive slowly, first those with many bytes for a long time.
// It serves complete requests, and refuses further large requests. The last quarter of
// the limit is for small requests, and the last eighth for those that arrive. Large
// requests that are complete and not refused yet exceed their part for a moment, so an
// eighth of the limit serves small requests whatever the large ones hold.
type RequestTracker struct {
	maxBytes       int64         // bytes of all together, 0 = any number
	maxCalls       int           // open at the same time, 0 = any number
	arrivalTimeout time.Duration // for a request to arrive
	log            *zap.Logger
	streamMethods  map[string]bool // full names of the methods that take many messages

	mu            sync.Mutex
	openCalls     int
	heldBytes     int64                        // bytes of all calls
	arrivingBytes int64                        // bytes of arriving requests
	smallBytes    int64                        // bytes of small requests that are served
	arriving      map[*TrackedRequest]struct{} // requests that are not whole
	lateTimer     *time.Timer                  // cancels requests that are too slow; nil = none arrives
}

// RequestLimits bound the requests of all clients.
type RequestLimits struct {
	MaxBytes       int           // of all requests together, 0 = any number
	MaxCalls       int           // open at the same time, 0 = any number
	ArrivalTimeout time.Duration // for a request to arrive
}

// NewRequestTracker makes a RequestTracker.
func NewRequestTracker(limits RequestLimits, log *zap.Logger) *RequestTracker {
	return &RequestTracker{
		maxBytes: int64(limits.MaxBytes), maxCalls: limits.MaxCalls, arrivalTimeout: limits.ArrivalTimeout, log: log,
		arriving: make(map[*TrackedRequest]struct{}),
	}
}

// RegisterMethods records which methods take a stream of messages.
func (rt *RequestTracker) RegisterMethods(services map[string]grpc.ServiceInfo) {
	rt.streamMethods = make(map[string]bool)
	for name, service := range services {
		for _, method := range service.Methods {
			rt.streamMethods["/"+name+"/"+method.Name] = method.IsClientStream
		}
	}
}

// smallConnectionCalls is the number of calls that a connection may have in the
// last quarter of the limit.
const smallConnectionCalls = 64

// TrackedRequest counts the bytes that a client has sent of one call.
type TrackedRequest struct {
	tracker  *RequestTracker
	conn     *inboundConn       // nil = the request came over no connection of gRPC, and is whole
	id       uint32             // in conn
	cancel   context.CancelFunc // of the call, which arrives
	isStream bool               // several messages may follow

	heldBytes     int64     // guarded by RequestTracker.mu, as are the fields below
	arrivingSince time.Time // when it began to arrive
	messageBytes  int64     // of a stream: bytes of the message that is served
	smallBytes    int64     // bytes of the message that is served, if it is small
	isServed      bool      // of a stream: the server handles a message
	isOver        bool
}

type requestKey struct{}

// TrackedRequestOf returns the tracked request of a call, nil when it is not
// counted.
func TrackedRequestOf(ctx context.Context) *TrackedRequest {
	r, _ := ctx.Value(requestKey{}).(*TrackedRequest)
	return r
}

// BeginCall registers a call whose headers have arrived. gRPC has read nothing
// beyond them.
func (rt *RequestTracker) BeginCall(ctx context.Context, info *tap.Info) (context.Context, error) {
	from := inboundOf(ctx)
	if from == nil {
		return ctx, nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.checkOpenCalls(len(from.requestsByStream)); err != nil {
		return ctx, err
	}
	r := &TrackedRequest{tracker: rt, conn: from, id: from.newestStream, isStream: rt.streamMethods[info.FullMethodName], arrivingSince: time.Now()}
	ctx, r.cancel = context.WithCancel(context.WithValue(ctx, requestKey{}, r))
	rt.openCalls++
	from.requestsByStream[r.id] = r
	if !r.isStream && !from.isNewestEnded {
		rt.addArriving(r)
	}
	context.AfterFunc(ctx, contain.Func(r.endCall, func(*contain.PanicError) {}))
	return ctx, nil
}

// checkOpenCalls refuses a further call of a connection that has so many. The error is a status. The
// caller holds mu.
func (rt *RequestTracker) checkOpenCalls(ofConnection int) error {
	isFull := rt.openCalls >= rt.maxCalls || rt.openCalls >= rt.maxCalls-rt.maxCalls/4 && ofConnection >= smallConnectionCalls
	if rt.maxCalls == 0 || !isFull {
		return nil
	}
	return reason.BuildStatus(codes.ResourceExhausted, tooManyRequestsError("calls", "max-open-calls", int64(rt.maxCalls)), nil)
}

// BeginWholeCall registers a call without a connection of gRPC, whose request of size bytes is whole.
// Its client has ofConnection other calls. end must be called when the call is over. The error is a
// status.
func (rt *RequestTracker) BeginWholeCall(ctx context.Context, size, ofConnection int) (tracked context.Context, end func(), err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.checkOpenCalls(ofConnection); err != nil {
		return ctx, nil, err
	}
	r := &TrackedRequest{tracker: rt, arrivingSince: time.Now()}
	rt.openCalls++
	rt.addBytes(r, int64(size))
	return context.WithValue(ctx, requestKey{}, r), r.endCall, nil
}

func tooManyRequestsError(what, limit string, most int64) *runtime.Error {
	return runtime.Errorf(reason.TooManyRequests, "the server holds as many %s as it may, %d; try again", what, most).
		WithLimit(limit, most, 0)
}

// addArriving counts a request among those that arrive. The caller holds mu.
func (rt *RequestTracker) addArriving(r *TrackedRequest) {
	if _, there := rt.arriving[r]; there {
		return
	}
	rt.arriving[r] = struct{}{}
	rt.arrivingBytes += r.heldBytes
	if rt.lateTimer == nil {
		rt.lateTimer = time.AfterFunc(rt.arrivalTimeout/4, contain.Func(rt.cancelLate, contain.LogPanic(rt.log, "looking for slow requests panicked")))
	}
}

// removeArriving removes a request from those that arrive. The caller holds mu.
func (rt *RequestTracker) removeArriving(r *TrackedRequest) {
	if _, there := rt.arriving[r]; there {
		delete(rt.arriving, r)
		rt.arrivingBytes -= r.heldBytes
	}
}

// addBytes counts bytes of a request. The caller holds mu.
func (rt *RequestTracker) addBytes(r *TrackedRequest, n int64) {
	if r.isOver {
		return
	}
	r.heldBytes += n
	rt.heldBytes += n
	if _, there := rt.arriving[r]; there {
		rt.arrivingBytes += n
	}
}

// countReceived counts bytes that a client sends.
func (r *TrackedRequest) countReceived(n int64) {
	q := r.tracker
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.isOver {
		return
	}
	if r.isStream && !r.isServed && r.heldBytes == 0 {
		r.arrivingSince = time.Now()
		q.addArriving(r)
	}
	q.addBytes(r, n)
	if q.maxBytes > 0 && q.heldBytes > q.maxBytes {
		q.cancelLargest()
	}
}

// markComplete records that the client has sent the whole request.
func (r *TrackedRequest) markComplete() {
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	if !r.isStream {
		r.tracker.removeArriving(r)
	}
}

// countDecoded counts the memory that a message takes beyond its bytes on the wire,
// and refuses the message beyond the limit.
func (r *TrackedRequest) countDecoded(wire, memory int) error {
	if r == nil {
		return nil
	}
	q := r.tracker
	q.mu.Lock()
	defer q.mu.Unlock()
	counted := min(int64(wire), r.heldBytes) // less than wire for a compressed message
	more := max(int64(memory)-counted, 0)
	served := q.heldBytes - q.arrivingBytes + more
	if _, there := q.arriving[r]; there {
		served += r.heldBytes
	}
	if !q.hasRoom(r.heldBytes+more, served) {
		return tooManyRequestsError("bytes of requests", "max-incoming", q.maxBytes)
	}
	q.addBytes(r, more)
	q.setSmallBytes(r, r.heldBytes)
	if r.isStream {
		q.removeArriving(r)
		r.isServed, r.messageBytes = true, min(int64(max(memory, wire))+messageHeaderSize, r.heldBytes)
	}
	if q.maxBytes > 0 && q.heldBytes > q.maxBytes {
		q.cancelLargest()
	}
	return nil
}

// hasRoom reports whether a request of size bytes may be served, with which all that are
// complete hold served bytes. The caller holds mu.
func (rt *RequestTracker) hasRoom(size, served int64) bool {
	switch {
	case rt.maxBytes == 0:
		return true
	case size > smallConnectionBytes:
		return served <= rt.maxBytes-rt.maxBytes/4
	default:
		return served <= rt.maxBytes-rt.maxBytes/8 || rt.smallBytes+size <= rt.maxBytes/8
	}
}

// setSmallBytes counts the bytes of a served request among those of small ones, unless it
// is large. The caller holds mu.
func (rt *RequestTracker) setSmallBytes(r *TrackedRequest, n int64) {
	if n > smallConnectionBytes || r.isOver {
		n = 0
	}
	rt.smallBytes += n - r.smallBytes
	r.smallBytes = n
}

// messageHeaderSize is the size of the header that gRPC puts before each message.
const messageHeaderSize = 5

// ReleaseAnswered releases the bytes of a unary request when its call begins to
// answer.
func (r *TrackedRequest) ReleaseAnswered() {
	if r == nil || r.isStream {
		return
	}
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	r.tracker.setSmallBytes(r, 0)
	r.tracker.addBytes(r, -r.heldBytes)
}

// ReleaseMessage releases a served message of a stream, so that the next message
// may arrive.
func (r *TrackedRequest) ReleaseMessage() {
	if r == nil {
		return
	}
	q := r.tracker
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.isServed {
		return
	}
	q.setSmallBytes(r, 0)
	q.addBytes(r, -r.messageBytes)
	if r.isServed, r.messageBytes = false, 0; r.heldBytes > 0 && !r.isOver {
		r.arrivingSince = time.Now()
		q.addArriving(r)
	}
}

// endCall stops counting a call that is over.
func (r *TrackedRequest) endCall() {
	r.tracker.mu.Lock()
	defer r.tracker.mu.Unlock()
	r.tracker.dropRequest(r)
	r.tracker.openCalls--
	if r.conn != nil {
		delete(r.conn.requestsByStream, r.id)
	}
}

// dropRequest stops counting a call. The caller holds mu.
func (rt *RequestTracker) dropRequest(r *TrackedRequest) {
	if r.isOver {
		return
	}
	rt.removeArriving(r)
	rt.setSmallBytes(r, 0)
	rt.addBytes(r, -r.heldBytes)
	r.isOver = true
}

// cancelLargest cancels arriving requests until an eighth of the limit is free, or
// they hold at most an eighth. It begins with the largest product of bytes and age.
// Requests that hold few bytes or have just begun come last. The caller holds mu.
func (rt *RequestTracker) cancelLargest() {
	type load struct {
		request *TrackedRequest
		weight  float64
	}
	now := time.Now()
	loads := make([]load, 0, len(rt.arriving))
	for r := range rt.arriving {
		if r.heldBytes > 0 {
			loads = append(loads, load{r, float64(r.heldBytes) * now.Sub(r.arrivingSince).Seconds()})
		}
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Compare(b.weight, a.weight) })
	shed := 0
	for _, l := range loads {
		if rt.heldBytes <= rt.maxBytes-rt.maxBytes/8 || rt.arrivingBytes <= rt.maxBytes/8 {
			break
		}
		rt.dropRequest(l.request)
		l.request.cancel()
		shed++
	}
	if shed > 0 {
		rt.log.Warn("requests cancelled: they arrive slowly, and the server holds too much of them",
			zap.Int("calls", shed), zap.Int64("bytes", rt.maxBytes), peerOf(loads[0].request))
	}
}

// cancelLate cancels requests that have not arrived in time, and sets its timer
// again while others arrive.
func (rt *RequestTracker) cancelLate() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.lateTimer = nil
	limit := time.Now().Add(-rt.arrivalTimeout)
	late := 0
	var one *TrackedRequest
	for r := range rt.arriving {
		if r.arrivingSince.Before(limit) {
			rt.dropRequest(r)
			r.cancel()
			late, one = late+1, r
		}
	}
	if late > 0 {
		rt.log.Warn("requests cancelled: they did not arrive in time", zap.Int("calls", late),
			zap.Duration("timeout", rt.arrivalTimeout), peerOf(one))
	}
	if len(rt.arriving) > 0 {
		rt.lateTimer = time.AfterFunc(rt.arrivalTimeout/4, contain.Func(rt.cancelLate, contain.LogPanic(rt.log, "looking for slow requests panicked")))
	}
}

func peerOf(r *TrackedRequest) zap.Field {
	return zap.String("peer.address", r.conn.RemoteAddr().String())
}

// inboundOf returns the connection of a call, nil when it is not watched.
func inboundOf(ctx context.Context) *inboundConn {
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

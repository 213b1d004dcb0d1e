package audit

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// Options make a Log. Zero fields mean their defaults.
type Options struct {
	Server     string           // name of the host and version of graphd, for the records of start and stop
	QueueBytes int64            // of the records that wait for one sink; default 8 MiB
	Now        func() time.Time // time of the store; nil = time.Now
	Logger     *zap.Logger      // nil = nothing is logged
	Metrics    Metrics          // nil = nothing is counted
}

// DefaultQueueBytes is the default of Options.QueueBytes.
const DefaultQueueBytes = 8 << 20

// NamedSink is a sink with its name for logs and metrics.
type NamedSink struct {
	Name string
	Sink Sink
}

// Log hands records to sinks. Its methods may be called at the same time, and don't
// wait for sinks.
type Log struct {
	queues []*queue
	server string
	now    func() time.Time

	mu       sync.Mutex
	second   int64 // of the clock, to which admitted belongs
	admitted int   // calls with wrong credentials in that second
}

// maxUnauthenticated is the number of calls with wrong credentials that have a record
// of their own each second. More are in the record of a gap: callers that have shown
// nothing must not fill the sinks.
const maxUnauthenticated = 50

// codeUnauthenticated is the code of calls with wrong credentials.
const codeUnauthenticated = "UNAUTHENTICATED"

// NewLog makes a Log and writes the record of its start. Close ends it, not ctx.
func NewLog(ctx context.Context, sinks []NamedSink, o Options) *Log {
	o.QueueBytes = cmp.Or(o.QueueBytes, DefaultQueueBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	l := &Log{server: o.Server, now: o.Now}
	for _, s := range sinks {
		q := newQueue(s.Name, s.Sink, o)
		q.startWriting(ctx)
		l.queues = append(l.queues, q)
	}
	l.addRecord(&Record{Kind: KindStart, Server: o.Server})
	return l
}

// RecordCall records a call. The caller must not change the lists of the record later.
func (l *Log) RecordCall(r Record) {
	r.Kind = KindCall
	if r.Code == codeUnauthenticated && !l.admitUnauthenticated() {
		for _, q := range l.queues {
			q.dropUnauthenticated()
		}
		return
	}
	r.limitSize()
	l.addRecord(&r)
}

// admitUnauthenticated reports whether another call with wrong credentials is recorded.
func (l *Log) admitUnauthenticated() bool {
	second := time.Now().Unix()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.second != second {
		l.second, l.admitted = second, 0
	}
	l.admitted++
	return l.admitted <= maxUnauthenticated
}

func (l *Log) addRecord(r *Record) {
	r.Time = l.now().UTC()
	for _, q := range l.queues {
		q.addRecord(r)
	}
}

// Close writes the record of the end, and all that waits. What is not written when ctx
// ends is lost.
func (l *Log) Close(ctx context.Context) {
	l.addRecord(&Record{Kind: KindStop, Server: l.server})
	var all sync.WaitGroup
	for _, q := range l.queues {
		all.Go(contain.Func(func() { q.closeQueue(ctx) }, contain.LogPanic(q.log, "ending the audit panicked")))
	}
	all.Wait()
}

// noMetrics counts nothing.
type noMetrics struct{}

// CountAuditRecord does nothing.
func (noMetrics) CountAuditRecord(string, Outcome) {}

// CountLostAuditRecords does nothing.
func (noMetrics) CountLostAuditRecords(string, int) {}

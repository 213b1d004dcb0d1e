package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/attempt"
	"github.com/graphd-dev/graphd/internal/worker/inbox"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// stage is the stage of a task between its request and its result.
type stage int

const (
	stageQueued   stage = iota
	stageWithheld       // a worker of an earlier server may have it: kept until that worker comes back, or its lease ends
	stageOffered        // on its way to a worker, without a sign of life
	stageStarted
	stageOver
)

// job is a task from its request by the run until its result is there. The fields
// after result are guarded by the
// dispatcher's mu.
type job struct {
	ctx    context.Context //nolint:containedctx // the job is the call, seen from the workers
	task   *runtime.Task
	key    string
	route  queue.Route
	result chan pregel.Result // buffered for one result
	events *inbox.EventQueue
	calls  *attempt.GraphCalls
	// memos are the memos of this attempt. They have a lock of their own.
	memos *attempt.Memos
	// notifying waits for the notices to the run that no worker can take the
	// task.
	notifying sync.WaitGroup

	stage          stage
	order          uint64
	lease          lease.Lease
	token          string   // of the lease, "" for none
	session        *Session // nil while no worker has it, or its stream is broken
	detachedWorker string   // the worker that may have it though its stream is broken
	holderServer   string   // the other server to which its worker is attached
	leaseTimer     *time.Timer
	leaseEnd       time.Time // of the lease, or of the time that it is withheld
	deliveries     int
	losses         int
	hasLostWorker  bool // the previous worker was lost, and the run does not know
	nacks          int
	needsAllValues bool                  // a worker lacked values that it should have kept
	refusedBy      map[*Session]struct{} // sessions that have refused it for now
	isReported     bool                  // the run was notified that no worker can take it
	isStranded     bool                  // no worker here can take it
	pendingCalls   int                   // graphs that it waits for
	isOnEndpoint   bool                  // runs on an endpoint
	answeredLease  string                // the lease whose result was answered with this task
	isInCallAnswer bool                  // it was sent in the answer to a call, which no stream orders
	isStopping     bool                  // is being stopped: no other worker gets it
	stopReason     string                // why
	stopDeadline   time.Time             // until then its result is of use
}

func newJob(ctx context.Context, t *runtime.Task, budget *inbox.EventBudget, log *zap.Logger) *job {
	return &job{
		ctx: ctx, task: t, key: lease.KeyOf(t), route: queue.RouteOf(t), result: make(chan pregel.Result, 1), memos: &attempt.Memos{},
		events: inbox.NewEventQueue(t.Effects, budget, log), calls: attempt.NewGraphCalls(ctx, t.Host, log),
	}
}

// Route returns the route of the task, which its worker must serve.
func (j *job) Route() queue.Route { return j.route }

// Order returns the age of the task among all tasks.
func (j *job) Order() uint64 { return j.order }

// IsRefused reports whether a worker has refused the task a moment ago. mu is held.
func (j *job) IsRefused() bool { return len(j.refusedBy) > 0 }

// taskFields returns the log fields of a task.
func (j *job) taskFields() []zap.Field {
	return []zap.Field{
		zap.String("thread", j.task.Thread), zap.String("run", j.task.Run), zap.String("task", j.task.ID),
		zap.String("graph", j.route.Graph), zap.String("node", j.route.Node),
	}
}

// deliveryFields returns the log fields of a task and of the worker that has
// it. mu is held.
func (j *job) deliveryFields() []zap.Field {
	f := j.taskFields()
	if j.session != nil {
		f = append(f, zap.String("worker", j.session.profile.Hello.Worker))
	}
	return f
}

// newAssignment returns the message to the worker. mu is held.
func (j *job) newAssignment(ttl time.Duration) message.Assignment {
	a := message.Assignment{Token: j.token, LeaseTTL: ttl, Delivery: j.deliveries, Task: j.task, Memos: j.memos.ListMemos()}
	if j.session != nil && !j.needsAllValues {
		a.Kept = j.session.kept
	}
	if deadline, ok := j.ctx.Deadline(); ok {
		a.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	return a
}

// renewLease prolongs the lease of the task. mu is held.
func (j *job) renewLease(ttl time.Duration) {
	if j.leaseTimer != nil {
		j.leaseEnd = time.Now().Add(ttl)
		j.leaseTimer.Reset(ttl)
	}
}

// isRenewed reports whether the lease was prolonged after its timer had fired: the timer
// fires again. mu is held.
func (j *job) isRenewed() bool { return time.Now().Before(j.leaseEnd) }

// beginPendingCall records that the task waits for a graph that it calls. Meanwhile
// it takes no slot of its worker. mu is held.
func (j *job) beginPendingCall() {
	if j.pendingCalls++; j.pendingCalls == 1 && j.session != nil {
		j.session.capacity.blockedJobs++
	}
}

// endPendingCall records that a call of the task has ended. mu is held.
func (j *job) endPendingCall() {
	if j.pendingCalls--; j.pendingCalls == 0 && j.session != nil {
		j.session.capacity.blockedJobs--
	}
}

// sortedByAge lists tasks, the oldest first.
func sortedByAge(jobs map[string]*job) []*job {
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return int(a.order) - int(b.order) })
}

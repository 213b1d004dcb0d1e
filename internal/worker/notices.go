package worker

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// notice is what the run of a task is to be told. Methods that expect mu to be held
// return notices; the caller that took mu sends them when it is released.
type notice struct {
	job    *job
	why    string // for the log of the run; "" = the run was notified before, or another server serves it
	notify func(runtime.Host)
}

// sendNotices tells the runs, each on a goroutine of its own. No lock is held.
func sendNotices(log *zap.Logger, list []notice) {
	for _, n := range list {
		if n.why != "" {
			log.Info("no worker can take a task", append(n.job.taskFields(), zap.String("reason", n.why))...)
		}
		go contain.Func(func() {
			defer n.job.notifying.Done()
			if n.job.task.Host != nil {
				n.notify(n.job.task.Host)
			}
		}, contain.LogPanic(log, "telling the run of a task panicked"))()
	}
}

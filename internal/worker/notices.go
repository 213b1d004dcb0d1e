package worker

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// notice is a notification for the run of a task. Methods that expect mu to be held
// return notices. The caller that took mu sends them after it has released mu.
type notice struct {
	job    *job
	why    string // for the log of the run; "" = the run was notified earlier, or another server serves it
	notify func(runtime.Host)
}

// sendNotices sends notices to the runs, each on a goroutine of its own. No
// lock is held.
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

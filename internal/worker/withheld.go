package worker

import (
	"iter"
	"maps"
	"slices"
)

// withheldJobs are the tasks that an earlier server may have handed out, by run.
type withheldJobs map[runKey]map[*job]struct{}

// runKey names a run.
type runKey struct{ thread, run string }

func runKeyOf(j *job) runKey { return runKey{thread: j.task.Thread, run: j.task.Run} }

// addJob adds a task.
func (w withheldJobs) addJob(j *job) {
	run := runKeyOf(j)
	if w[run] == nil {
		w[run] = make(map[*job]struct{}, 1)
	}
	w[run][j] = struct{}{}
}

// removeJob removes a task.
func (w withheldJobs) removeJob(j *job) {
	run := runKeyOf(j)
	delete(w[run], j)
	if len(w[run]) == 0 {
		delete(w, run)
	}
}

// jobsOfRun lists the tasks of the run of a task, the oldest first.
func (w withheldJobs) jobsOfRun(j *job) []*job {
	return slices.SortedFunc(maps.Keys(w[runKeyOf(j)]), func(a, b *job) int { return int(a.order) - int(b.order) })
}

// allJobs iterates over the tasks of all runs.
func (w withheldJobs) allJobs() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for _, jobs := range w {
			for j := range jobs {
				if !yield(j) {
					return
				}
			}
		}
	}
}

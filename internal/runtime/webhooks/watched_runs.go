package webhooks

import (
	"slices"
	"sync"
)

// watchedRuns are the runs for which this server has kept webhooks: it need not wait for the next
// look when they stop here. The zero value has none.
type watchedRuns struct {
	mu    sync.Mutex
	hooks map[watchedRun][]string // their threads
}

type watchedRun struct{ thread, run string }

// maxWatched bounds how many runs are watched. A further one replaces another, which the next look
// finds: those whose webhooks another server calls are never removed here.
const maxWatched = 10_000

func (w *watchedRuns) add(thread, run, hook string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hooks == nil {
		w.hooks = make(map[watchedRun][]string)
	}
	key := watchedRun{thread, run}
	if slices.Contains(w.hooks[key], hook) {
		return
	}
	if len(w.hooks) >= maxWatched && w.hooks[key] == nil {
		for other := range w.hooks {
			delete(w.hooks, other)
			break
		}
	}
	w.hooks[key] = append(w.hooks[key], hook)
}

func (w *watchedRuns) has(thread, run string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.hooks[watchedRun{thread, run}]) > 0
}

func (w *watchedRuns) list(thread, run string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hooks[watchedRun{thread, run}])
}

func (w *watchedRuns) remove(thread, run, hook string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := watchedRun{thread, run}
	left := slices.DeleteFunc(slices.Clone(w.hooks[key]), func(h string) bool { return h == hook })
	if len(left) == 0 {
		delete(w.hooks, key)
		return
	}
	w.hooks[key] = left
}

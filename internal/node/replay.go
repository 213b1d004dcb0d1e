package node

import (
	"strconv"
	"strings"
	"sync"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// place is where a question or a memo stands in a function: the index-th
// question without a key of a scope, or the index-th use of a key.
type place struct {
	scope string
	key   string
	index int
}

func (p place) String() string {
	text := "number " + strconv.Itoa(p.index+1)
	if p.key != "" {
		text += " of key " + strconv.Quote(p.key)
	}
	if p.scope != "" {
		text += " in scope " + strconv.Quote(p.scope)
	}
	return text
}

// replay matches what a function does with what it did before.
type replay struct {
	mu      sync.Mutex
	spec    *graph.Spec // what the graph says of questions
	journal pregel.Journal
	passed  map[place]bool
	left    int                        // journal entries that have not come up yet
	next    map[place]int              // by scope and key: the next index
	asks    []pregel.Ask               // raised by this attempt
	again   map[place]bool             // of those: where something else was answered
	used    []pregel.Use               // answers used for something else than was shown
	differs *api.NonDeterministicError // the first difference
}

func (r *replay) begin(t *runtime.Task) {
	r.journal = t.Journal
	if t.Graph != nil {
		r.spec = t.Graph.Spec
	}
	if t.Router == "" {
		r.left = len(t.Journal.Answers) + len(t.Journal.Memos)
	}
}

// muted reports whether the function is still doing what it did before.
func (r *replay) muted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left > 0
}

func (r *replay) take(scope, key string) place {
	if r.next == nil {
		r.next = make(map[place]int, 2)
	}
	p := place{scope: scope, key: key}
	i := r.next[p]
	r.next[p] = i + 1
	p.index = i
	return p
}

func (r *replay) pass(p place) {
	if r.passed == nil {
		r.passed = make(map[place]bool, r.left)
	}
	if !r.passed[p] {
		r.passed[p] = true
		r.left--
	}
}

func (r *replay) answer(p place) *pregel.Answer {
	for i := range r.journal.Answers {
		if a := &r.journal.Answers[i]; a.Scope == p.scope && a.Key == p.key && a.Index == p.index {
			return a
		}
	}
	return nil
}

func (r *replay) record(p place) (payload.JSON, bool) {
	for i := range r.journal.Memos {
		if m := &r.journal.Memos[i]; m.Scope == p.scope && m.Key == p.key && m.Index == p.index {
			return m.Value, true
		}
	}
	return "", false
}

// ask returns the answer of a question, or raises it.
func (r *replay) ask(a pregel.Ask) (payload.JSON, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.differs != nil {
		return "", r.differs
	}
	p := r.take(a.Scope, a.Key)
	a.Index = p.index
	if _, memo := r.record(p); memo {
		r.differs = &api.NonDeterministicError{Before: "memo " + p.String(), Now: "question " + p.String()}
		return "", r.differs
	}
	known := r.answer(p)
	if known == nil {
		r.asks = append(r.asks, a)
		return "", waiting(&a)
	}
	r.pass(p)
	if !r.fits(known, &a) {
		if r.again == nil {
			r.again = make(map[place]bool, 1)
		}
		r.again[p] = true
		r.asks = append(r.asks, a)
		return "", waiting(&a)
	}
	switch {
	case known.Dismissed:
		return "", &api.DismissedError{Question: "question " + p.String(), Note: known.Reason}
	case known.Expired:
		return "", &api.ExpiredError{Question: "question " + p.String()}
	}
	return known.Value, nil
}

// fits reports whether an answer may be used for a question: it was given to
// this question, or the program accepts that it was another one.
func (r *replay) fits(known *pregel.Answer, a *pregel.Ask) bool {
	a.Settle(r.spec)
	if known.Fits(a) {
		return true
	}
	if a.Drift != checkpoint.DriftAccept {
		return false
	}
	r.used = append(r.used, pregel.Use{Scope: a.Scope, Key: a.Key, Index: a.Index, Seen: a.Seen(), Asked: a})
	return true
}

// memo returns the record of the next use of a key, "" when there is none. It
// refuses to go on in a scope that waits for an answer.
func (r *replay) memo(scope, key string) (payload.JSON, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.differs != nil {
		return "", 0, r.differs
	}
	p := r.take(scope, key)
	if r.answer(p) != nil {
		r.differs = &api.NonDeterministicError{Before: "question " + p.String(), Now: "memo " + p.String()}
		return "", 0, r.differs
	}
	value, ok := r.record(p)
	if ok {
		r.pass(p)
		return value, p.index, nil
	}
	for i := range r.asks {
		if r.asks[i].Scope == scope {
			return "", 0, waiting(&r.asks[i])
		}
	}
	return "", p.index, nil
}

func waiting(a *pregel.Ask) error {
	return &api.Interrupted{Scope: a.Scope, Key: a.Key, Index: a.Index}
}

// end says what the attempt came to: the questions it raised, one of the
// entries that it did not come past, if there are any, or a difference.
func (r *replay) end() (asks []pregel.Ask, unused string, differs error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.differs == nil && r.left > 0 && len(r.asks) > 0 {
		r.differs = r.moved()
	}
	if r.differs != nil {
		return nil, "", r.differs
	}
	return r.asks, r.unused(), nil
}

// moved finds an answer that was not asked for in a scope that asked something
// else: its question has another position now, or another key. One key more
// or less is what keys are for.
func (r *replay) moved() *api.NonDeterministicError {
	for i := range r.journal.Answers {
		a := &r.journal.Answers[i]
		p := place{a.Scope, a.Key, a.Index}
		if r.passed[p] || foreign(a.Scope) {
			continue
		}
		for k := range r.asks {
			now := &r.asks[k]
			if r.again[place{now.Scope, now.Key, now.Index}] {
				continue // it stands where it stood; what comes behind it is still to come
			}
			if now.Scope == a.Scope && (a.Key == "" || now.Key == "") {
				return &api.NonDeterministicError{
					Before: "question " + p.String(),
					Now:    "question " + place{now.Scope, now.Key, now.Index}.String(),
				}
			}
		}
	}
	return nil
}

func (r *replay) unused() string {
	if r.left <= 0 {
		return ""
	}
	for i := range r.journal.Answers {
		a := &r.journal.Answers[i]
		if p := (place{a.Scope, a.Key, a.Index}); !r.passed[p] && !foreign(a.Scope) {
			return "question " + p.String()
		}
	}
	for i := range r.journal.Memos {
		m := &r.journal.Memos[i]
		if p := (place{m.Scope, m.Key, m.Index}); !r.passed[p] && !foreign(m.Scope) {
			return "memo " + p.String()
		}
	}
	return ""
}

// foreign reports whether an entry belongs to a conditional edge of the node.
func foreign(scope string) bool { return strings.HasPrefix(scope, routerScope) }

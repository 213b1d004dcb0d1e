package function

import (
	"strconv"
	"strings"
	"sync"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// journalKey is the position of an interrupt or a memo in a function: the index-th
// interrupt without a key of a scope, or the index-th use of a key.
type journalKey struct {
	scope string
	key   string
	index int
}

// String returns the position as messages to developers of nodes name it.
func (j journalKey) String() string {
	text := "number " + strconv.Itoa(j.index+1)
	if j.key != "" {
		text += " of key " + strconv.Quote(j.key)
	}
	if j.scope != "" {
		text += " in scope " + strconv.Quote(j.scope)
	}
	return text
}

// Replay matches the calls of a function with those of its earlier attempts.
type Replay struct {
	mu             sync.Mutex
	spec           *graph.Spec // has the drift policies of the graph
	namesAll       bool        // also answers to the question that was shown are named
	journal        pregel.Journal
	matched        map[journalKey]bool
	unmatchedCount int                        // journal entries that the function has not used yet
	nextIndexes    map[journalKey]int         // by scope and key: the next index
	asks           []pregel.Ask               // raised by this attempt
	askedAgain     map[journalKey]bool        // those whose earlier answer was given to another question
	usedAnswers    []pregel.UsedAnswer        // answers to name in the result
	difference     *api.NonDeterministicError // the first difference
}

// NewReplay makes a Replay of the answers and memos of earlier attempts.
func NewReplay(journal pregel.Journal, spec *graph.Spec) *Replay {
	return &Replay{journal: journal, spec: spec, unmatchedCount: len(journal.Answers) + len(journal.Memos)}
}

// load sets the answers and memos of earlier attempts. Those of a router do not count as unused.
func (r *Replay) load(t *Task, namesAll bool) {
	r.journal, r.spec, r.namesAll = t.Journal, t.Spec, namesAll
	if t.Router == "" {
		r.unmatchedCount = len(t.Journal.Answers) + len(t.Journal.Memos)
	}
}

// UsedAnswers returns the answers to name in the result.
func (r *Replay) UsedAnswers() []pregel.UsedAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.usedAnswers
}

// isReplaying reports whether the function still repeats its earlier calls.
func (r *Replay) isReplaying() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unmatchedCount > 0
}

// nextKey returns the position of the next call with a key in a scope, and counts the
// call.
func (r *Replay) nextKey(scope, key string) journalKey {
	if r.nextIndexes == nil {
		r.nextIndexes = make(map[journalKey]int, 2)
	}
	p := journalKey{scope: scope, key: key}
	i := r.nextIndexes[p]
	r.nextIndexes[p] = i + 1
	p.index = i
	return p
}

// markMatched records that the function has used the journal entry at a position.
func (r *Replay) markMatched(p journalKey) {
	if r.matched == nil {
		r.matched = make(map[journalKey]bool, r.unmatchedCount)
	}
	if !r.matched[p] {
		r.matched[p] = true
		r.unmatchedCount--
	}
}

// findAnswer returns the answer at a position, nil when there is none.
func (r *Replay) findAnswer(p journalKey) *pregel.Answer {
	for i := range r.journal.Answers {
		if a := &r.journal.Answers[i]; a.Scope == p.scope && a.Key == p.key && a.Index == p.index {
			return a
		}
	}
	return nil
}

// findMemo returns the memo at a position, and reports whether it exists.
func (r *Replay) findMemo(p journalKey) (payload.JSON, bool) {
	for i := range r.journal.Memos {
		if m := &r.journal.Memos[i]; m.Scope == p.scope && m.Key == p.key && m.Index == p.index {
			return m.Value, true
		}
	}
	return "", false
}

// answerOrRaise returns the answer of an interrupt, or raises it.
func (r *Replay) answerOrRaise(a pregel.Ask) (payload.JSON, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.difference != nil {
		return "", r.difference
	}
	p := r.nextKey(a.Scope, a.Key)
	a.Index = p.index
	if _, memo := r.findMemo(p); memo {
		r.difference = &api.NonDeterministicError{Before: "memo " + p.String(), Now: "question " + p.String()}
		return "", r.difference
	}
	known := r.findAnswer(p)
	if known == nil {
		r.asks = append(r.asks, a)
		return "", interruptedError(&a)
	}
	r.markMatched(p)
	if !r.CanUseAnswer(known, &a) {
		if r.askedAgain == nil {
			r.askedAgain = make(map[journalKey]bool, 1)
		}
		r.askedAgain[p] = true
		r.asks = append(r.asks, a)
		return "", interruptedError(&a)
	}
	switch {
	case known.Dismissed:
		return "", &api.DismissedError{Question: "question " + p.String(), Note: known.Reason}
	case known.Expired:
		return "", &api.ExpiredError{Question: "question " + p.String()}
	}
	return known.Value, nil
}

// AnswerWithKey returns the answer to the first question with a key, nil when there is none.
func (r *Replay) AnswerWithKey(key string) *pregel.Answer { return r.findAnswer(journalKey{key: key}) }

// CanUseAnswer reports whether an answer may be used for an interrupt: it was given
// to this interrupt, or the program accepts a changed interrupt. It records the use of an
// answer to a changed interrupt, and where all are named that of every answer.
func (r *Replay) CanUseAnswer(known *pregel.Answer, a *pregel.Ask) bool {
	a.SetDriftDefaults(r.spec)
	isShown := known.Matches(a)
	if !isShown && a.Drift != checkpoint.DriftAccept {
		return false
	}
	if isShown && !r.namesAll {
		return true
	}
	used := pregel.UsedAnswer{Scope: a.Scope, Key: a.Key, Index: a.Index, AskedDigest: a.ShownDigest(), HiddenDigest: a.HiddenDigest(known.InterruptID)}
	if !isShown {
		used.Asked = a
	}
	r.usedAnswers = append(r.usedAnswers, used)
	return true
}

// nextMemo returns the record of the next use of a key, "" when there is none. The
// error is a *NonDeterministicError in a scope that waits for an answer at this
// position.
func (r *Replay) nextMemo(scope, key string) (payload.JSON, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.difference != nil {
		return "", 0, r.difference
	}
	p := r.nextKey(scope, key)
	if r.findAnswer(p) != nil {
		r.difference = &api.NonDeterministicError{Before: "question " + p.String(), Now: "memo " + p.String()}
		return "", 0, r.difference
	}
	value, ok := r.findMemo(p)
	if ok {
		r.markMatched(p)
		return value, p.index, nil
	}
	for i := range r.asks {
		if r.asks[i].Scope == scope {
			return "", 0, interruptedError(&r.asks[i])
		}
	}
	return "", p.index, nil
}

func interruptedError(a *pregel.Ask) error {
	return &api.Interrupted{Scope: a.Scope, Key: a.Key, Index: a.Index}
}

// finishReplay returns the asks of the attempt, an unused entry if it exists,
// and the difference from the earlier attempt.
func (r *Replay) finishReplay() (asks []pregel.Ask, unused string, differs error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.difference == nil && r.unmatchedCount > 0 && len(r.asks) > 0 {
		r.difference = r.findMoved()
	}
	if r.difference != nil {
		return nil, "", r.difference
	}
	return r.asks, r.firstUnmatched(), nil
}

// findMoved finds an unused answer in a scope that asked another question: its
// interrupt now has another position or another key. An additional or a missing key
// is allowed, because keys exist for that.
func (r *Replay) findMoved() *api.NonDeterministicError {
	for i := range r.journal.Answers {
		a := &r.journal.Answers[i]
		p := journalKey{a.Scope, a.Key, a.Index}
		if r.matched[p] || isRouterScope(a.Scope) {
			continue
		}
		for k := range r.asks {
			now := &r.asks[k]
			if r.askedAgain[journalKey{now.Scope, now.Key, now.Index}] {
				continue // it kept its position; the entries after it may still be used
			}
			if now.Scope == a.Scope && (a.Key == "" || now.Key == "") {
				return &api.NonDeterministicError{
					Before: "question " + p.String(),
					Now:    "question " + journalKey{now.Scope, now.Key, now.Index}.String(),
				}
			}
		}
	}
	return nil
}

func (r *Replay) firstUnmatched() string {
	if r.unmatchedCount <= 0 {
		return ""
	}
	for i := range r.journal.Answers {
		a := &r.journal.Answers[i]
		if p := (journalKey{a.Scope, a.Key, a.Index}); !r.matched[p] && !isRouterScope(a.Scope) {
			return "question " + p.String()
		}
	}
	for i := range r.journal.Memos {
		m := &r.journal.Memos[i]
		if p := (journalKey{m.Scope, m.Key, m.Index}); !r.matched[p] && !isRouterScope(m.Scope) {
			return "memo " + p.String()
		}
	}
	return ""
}

// isRouterScope reports whether an entry belongs to a conditional edge of the node.
func isRouterScope(scope string) bool { return strings.HasPrefix(scope, routerScopePrefix) }

package worker

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// signLease makes the token of a lease: which task, which server, when, and a mark
// that only the owner of the key can make.
func (h *Hub) signLease(j *job) string {
	h.lastLease++
	body := strings.Join([]string{
		h.incarnation, formatBase36(h.lastLease), formatBase36(j.task.Fence), formatBase36(uint64(max(j.task.Attempt, 0))), j.key,
	}, "/")
	return string(binary.AppendUvarint(nil, uint64(len(body)))) + body + h.computeMAC(body)
}

func formatBase36(n uint64) string { return strconv.FormatUint(n, 36) }

func (h *Hub) computeMAC(body string) string {
	mac := hmac.New(sha256.New, h.opts.Key)
	mac.Write([]byte(body))
	return string(mac.Sum(nil)[:16])
}

// lease is what a token says.
type lease struct {
	incarnation string // of the server
	number      uint64 // among the leases of the server
	fence       uint64 // how often servers had taken the run up
	attempt     uint64
	key         string // of the task
}

// taskID is the id of the leased task.
func (l lease) taskID() string { return taskIDOfKey(l.key) }

// nodePlace is the leased task, whatever it was answered.
func (l lease) nodePlace() string {
	if i := strings.LastIndexByte(l.key, ':'); i > 0 {
		return l.key[:i]
	}
	return l.key
}

func taskIDOfKey(key string) string {
	id, _, _ := strings.Cut(key, ":")
	return id
}

// outlivesServer reports whether the lease may outlive its server. The work of
// routers and reducers depends on results that may have been lost with it.
func (l lease) outlivesServer() bool { return strings.Contains(l.key, nodeKeyMark) }

// isNewer reports whether a lease of the same task was given after another one.
func (l lease) isNewer(than lease) bool {
	order := cmp.Or(cmp.Compare(l.fence, than.fence), cmp.Compare(l.attempt, than.attempt))
	if order == 0 && l.incarnation == than.incarnation {
		order = cmp.Compare(l.number, than.number)
	}
	return order > 0
}

// parseLease checks a token. One that this key has not marked is refused.
func (h *Hub) parseLease(token string) (lease, bool) {
	n, width := binary.Uvarint([]byte(token))
	if width <= 0 || n > uint64(len(token)-width) {
		return lease{}, false
	}
	body, mark := token[width:width+int(n)], token[width+int(n):]
	if !hmac.Equal([]byte(mark), []byte(h.computeMAC(body))) {
		return lease{}, false
	}
	parts := strings.SplitN(body, "/", 5)
	if len(parts) != 5 {
		return lease{}, false
	}
	l := lease{incarnation: parts[0], key: parts[4]}
	for i, n := range []*uint64{&l.number, &l.fence, &l.attempt} {
		var err error
		if *n, err = strconv.ParseUint(parts[i+1], 36, 64); err != nil {
			return lease{}, false
		}
	}
	return l, true
}

// parsedToken is a token and what it says.
type parsedToken struct {
	token string
	lease lease
}

// parseLeases checks tokens, each once. It takes a while for many, so it is done before mu
// is taken. Those that this key has not marked are forged.
func (h *Hub) parseLeases(tokens []string) (all []parsedToken, forged []string) {
	seen := make(map[string]struct{}, len(tokens))
	for _, token := range tokens {
		if _, again := seen[token]; again {
			continue
		}
		seen[token] = struct{}{}
		if l, ok := h.parseLease(token); ok {
			all = append(all, parsedToken{token, l})
		} else {
			forged = append(forged, token)
		}
	}
	return all, forged
}

// leaseSet remembers leases and forgets the oldest. For completed ones: a repeated
// result is acknowledged again.
type leaseSet struct {
	tokens map[string]struct{}
	order  []string
}

// maxRemembered bounds how many leases are remembered.
const maxRemembered = 4096

func (s *leaseSet) addLease(token string) {
	if s.hasLease(token) {
		return
	}
	s.tokens[token] = struct{}{}
	s.order = append(s.order, token)
	if len(s.order) > maxRemembered {
		delete(s.tokens, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *leaseSet) hasLease(token string) bool {
	_, ok := s.tokens[token]
	return ok
}

// requestedTasks remembers the tasks that a run has requested here, and the fence
// of the run then. It forgets the oldest.
type requestedTasks struct {
	fences map[string]uint64
	order  []string
}

func (a *requestedTasks) addTask(t *runtime.Task) {
	if _, ok := a.fences[t.ID]; !ok {
		a.order = append(a.order, t.ID)
	}
	a.fences[t.ID] = t.Fence
	if len(a.order) > maxRemembered {
		delete(a.fences, a.order[0])
		a.order = a.order[1:]
	}
}

// removeTask notes that another server knows better what becomes of a task.
func (a *requestedTasks) removeTask(t *runtime.Task) { delete(a.fences, t.ID) }

// isRequestedSince reports whether the task of a lease was requested here after the
// lease was given.
func (a *requestedTasks) isRequestedSince(l lease) bool {
	fence, ok := a.fences[l.taskID()]
	return ok && l.fence <= fence
}

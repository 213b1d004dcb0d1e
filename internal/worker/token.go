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

// sign makes the token of a lease: which task, which server, when, and a mark
// that only the owner of the key can make.
func (h *Hub) sign(j *job) string {
	h.fence++
	body := strings.Join([]string{
		h.life, text36(h.fence), text36(j.task.Fence), text36(uint64(max(j.task.Attempt, 0))), j.key,
	}, "/")
	return string(binary.AppendUvarint(nil, uint64(len(body)))) + body + h.mark(body)
}

func text36(n uint64) string { return strconv.FormatUint(n, 36) }

func (h *Hub) mark(body string) string {
	mac := hmac.New(sha256.New, h.opts.Key)
	mac.Write([]byte(body))
	return string(mac.Sum(nil)[:16])
}

// lease is what a token says.
type lease struct {
	life    string // of the server
	number  uint64 // among the leases of the server
	fence   uint64 // how often servers had taken the run up
	attempt uint64
	key     string // of the task
}

// task is the id of the leased task.
func (l lease) task() string { return taskOf(l.key) }

// place is the leased task, whatever it was answered.
func (l lease) place() string {
	if i := strings.LastIndexByte(l.key, ':'); i > 0 {
		return l.key[:i]
	}
	return l.key
}

func taskOf(key string) string {
	id, _, _ := strings.Cut(key, ":")
	return id
}

// lasts reports whether the lease may outlive its server. The work of routers
// and reducers depends on results that may have been lost with it.
func (l lease) lasts() bool { return strings.Contains(l.key, nodeKey) }

// newer reports whether a lease of the same task was given after another one.
func (l lease) newer(than lease) bool {
	order := cmp.Or(cmp.Compare(l.fence, than.fence), cmp.Compare(l.attempt, than.attempt))
	if order == 0 && l.life == than.life {
		order = cmp.Compare(l.number, than.number)
	}
	return order > 0
}

// read checks a token. One that this key has not marked is refused.
func (h *Hub) read(token string) (lease, bool) {
	n, width := binary.Uvarint([]byte(token))
	if width <= 0 || n > uint64(len(token)-width) {
		return lease{}, false
	}
	body, mark := token[width:width+int(n)], token[width+int(n):]
	if !hmac.Equal([]byte(mark), []byte(h.mark(body))) {
		return lease{}, false
	}
	parts := strings.SplitN(body, "/", 5)
	if len(parts) != 5 {
		return lease{}, false
	}
	l := lease{life: parts[0], key: parts[4]}
	for i, n := range []*uint64{&l.number, &l.fence, &l.attempt} {
		var err error
		if *n, err = strconv.ParseUint(parts[i+1], 36, 64); err != nil {
			return lease{}, false
		}
	}
	return l, true
}

// given is a token and what it says.
type given struct {
	token string
	lease lease
}

// readAll checks tokens, each once. It takes a while for many, so it is done before mu
// is taken. Those that this key has not marked are forged.
func (h *Hub) readAll(tokens []string) (all []given, forged []string) {
	seen := make(map[string]struct{}, len(tokens))
	for _, token := range tokens {
		if _, again := seen[token]; again {
			continue
		}
		seen[token] = struct{}{}
		if l, ok := h.read(token); ok {
			all = append(all, given{token, l})
		} else {
			forged = append(forged, token)
		}
	}
	return all, forged
}

// settled remembers the leases whose results were taken, so that a result that
// comes again is acknowledged again. It forgets the oldest.
type settled struct {
	known map[string]struct{}
	order []string
}

// maxSettled bounds how many leases are remembered.
const maxSettled = 4096

func (s *settled) add(token string) {
	if s.has(token) {
		return
	}
	s.known[token] = struct{}{}
	s.order = append(s.order, token)
	if len(s.order) > maxSettled {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *settled) has(token string) bool {
	_, ok := s.known[token]
	return ok
}

// asked remembers the tasks that a run has asked for here, and how often servers had
// taken the run up then. It forgets the oldest.
type asked struct {
	fences map[string]uint64
	order  []string
}

func (a *asked) add(t *runtime.Task) {
	if _, ok := a.fences[t.ID]; !ok {
		a.order = append(a.order, t.ID)
	}
	a.fences[t.ID] = t.Fence
	if len(a.order) > maxSettled {
		delete(a.fences, a.order[0])
		a.order = a.order[1:]
	}
}

// remove notes that another server knows better what becomes of a task.
func (a *asked) remove(t *runtime.Task) { delete(a.fences, t.ID) }

// since reports whether the task of a lease was asked for here after the lease was
// given.
func (a *asked) since(l lease) bool {
	fence, ok := a.fences[l.task()]
	return ok && l.fence <= fence
}

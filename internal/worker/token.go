package worker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// sign makes the token of a lease: which task, which server, which fence, and
// a mark that only the owner of the key can make.
func (h *Hub) sign(key string) string {
	h.fence++
	body := strings.Join([]string{h.life, strconv.FormatUint(h.fence, 36), key}, "/")
	return string(binary.AppendUvarint(nil, uint64(len(body)))) + body + h.mark(body)
}

func (h *Hub) mark(body string) string {
	mac := hmac.New(sha256.New, h.opts.Key)
	mac.Write([]byte(body))
	return string(mac.Sum(nil)[:16])
}

// lease is what a token says.
type lease struct {
	life string
	key  string // of the task
}

// task is the id of the leased task.
func (l lease) task() string { return taskOf(l.key) }

func taskOf(key string) string {
	id, _, _ := strings.Cut(key, ":")
	return id
}

// lasts reports whether the lease may outlive its server. The work of routers
// and reducers depends on results that may have been lost with it.
func (l lease) lasts() bool { return strings.Contains(l.key, nodeKey) }

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
	parts := strings.SplitN(body, "/", 3)
	if len(parts) != 3 {
		return lease{}, false
	}
	return lease{life: parts[0], key: parts[2]}, true
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

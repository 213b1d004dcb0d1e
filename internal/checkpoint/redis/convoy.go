package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
)

// convoy brings changes of many threads to one server. A change that finds the
// road free goes at once and alone. While others are on their way the rest
// gathers, and goes together in one exchange: what an exchange costs, and what
// the server's disk takes, is shared by all that are in it, and none of them
// waits for company.
type convoy struct {
	log    *zap.Logger
	client goredis.UniversalClient

	mu      sync.Mutex
	waiting []*rider
	away    int       // exchanges under way
	left    time.Time // when the last of them began
}

// Two exchanges overlap, so that the server has work while the answers to the
// other one are read. When none came back for a while, they may be stuck on
// connections that nobody told to be broken, and more may go.
const (
	sideBySide = 2
	atMost     = 16
	stuck      = 20 * time.Millisecond
	together   = 64      // changes in one exchange
	freight    = 1 << 20 // their bytes, unless one alone is more
)

// newConvoys makes one for a server; in a cluster one per partition, since where
// partitions are may change at any time.
func (s *Store) newConvoys(partitions int) []*convoy {
	if _, many := s.client.(*goredis.ClusterClient); !many {
		partitions = 1
	}
	list := make([]*convoy, partitions)
	for i := range list {
		list[i] = &convoy{client: s.client, log: s.log}
	}
	return list
}

// convoy is what brings changes to the server of a thread.
func (s *Store) convoy(thread string) *convoy {
	if len(s.convoys) == 1 {
		return s.convoys[0]
	}
	return s.convoys[s.keys.partition(thread)]
}

// rider is one change on its way.
type rider struct {
	ctx     context.Context //nolint:containedctx // lives as long as the call
	command []any           // EVALSHA
	source  string          // of the script, for a server that does not know it
	size    int             // in bytes, about
	missed  *lost

	answer reply
	err    error
	done   chan struct{} // closed when answer and err are there; nil for one that goes alone
}

// carry makes one attempt at a change. It returns when the change is answered
// or its context ends; it may then still be made.
func (c *convoy) carry(r *rider) (reply, error) {
	r.answer, r.err, r.done = nil, nil, nil
	if c.goes(r) {
		r.alone(c.client)
		c.back()
		return r.answer, r.err
	}
	select {
	case <-r.done:
		return r.answer, r.err
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// goes reports whether a change may go at once; otherwise it waits for others.
func (c *convoy) goes(r *rider) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.away < sideBySide && len(c.waiting) == 0 || c.away < atMost && now.Sub(c.left) > stuck {
		c.away++
		c.left = now
		return true
	}
	r.done = make(chan struct{})
	c.waiting = append(c.waiting, r)
	return false
}

// back ends an exchange, and begins the next one if somebody waits.
func (c *convoy) back() {
	if list := c.next(); list != nil {
		go contain.Func(func() {
			for list != nil {
				if p := contain.Call(func() { c.travel(list) }); p != nil {
					strand(list, p)
				}
				list = c.next()
			}
		}, contain.Log(c.log, "sending changes together panicked"))()
	}
}

// next takes those who go together now; nil when nobody waits.
func (c *convoy) next() []*rider {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Who has given up must not be taken along: nobody would hear of it.
	c.waiting = slices.DeleteFunc(c.waiting, func(r *rider) bool { return r.ctx.Err() != nil })
	n, size := 0, 0
	for n < len(c.waiting) && n < together && (n == 0 || size+c.waiting[n].size <= freight) {
		size += c.waiting[n].size
		n++
	}
	if n == 0 {
		c.away--
		return nil
	}
	list := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	c.left = time.Now()
	return list
}

// strand answers the changes of an exchange that panicked. They may have been
// made.
func strand(list []*rider, p *contain.PanicError) {
	for _, r := range list {
		select {
		case <-r.done:
		default:
			r.err = p
			close(r.done)
		}
	}
}

// travel makes one exchange.
func (c *convoy) travel(list []*rider) {
	if len(list) == 1 {
		list[0].alone(c.client)
		close(list[0].done)
		return
	}
	// One of them that gives up must not stop the others.
	ctx := context.WithoutCancel(list[0].ctx)
	missed := make(losses, len(list))
	pipe := c.client.Pipeline()
	cmds := make([]*goredis.Cmd, len(list))
	for i, r := range list {
		cmds[i] = goredis.NewCmd(ctx, r.command...)
		missed[cmds[i]] = r.missed
		_ = pipe.Process(ctx, cmds[i]) // only queues it
	}
	_, _ = pipe.Exec(context.WithValue(ctx, lostKey{}, missed)) // each command says what became of it
	for i, r := range list {
		r.answer, r.err = cmds[i].Slice()
		if goredis.HasErrorPrefix(r.err, "NOSCRIPT") {
			r.alone(c.client)
		}
		close(r.done)
	}
}

func (r *rider) alone(client goredis.UniversalClient) {
	ctx := context.WithValue(r.ctx, lostKey{}, r.missed)
	cmd := goredis.NewCmd(ctx, r.command...)
	_ = client.Process(ctx, cmd) // the command says what became of it
	if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		whole := slices.Clone(r.command)
		whole[0], whole[1] = "eval", r.source
		cmd = goredis.NewCmd(ctx, whole...)
		_ = client.Process(ctx, cmd)
	}
	r.answer, r.err = cmd.Slice()
}

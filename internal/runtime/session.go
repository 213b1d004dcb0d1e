package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Why a live run is stopped from outside.
var (
	errLeaseLost = errors.New("the lease of the thread is lost")
	errCancelled = errors.New("the run is cancelled")
	errTimedOut  = errors.New("the run has run out of time")
	errDrain     = errors.New("the server is draining")
)

// session is the hold of this process on a thread while one of its runs is
// live: the lease, the newest head, and the right to commit.
type session struct {
	engine *Engine
	thread string
	topic  *topic
	log    *zap.Logger
	stop   context.CancelCauseFunc // ends the work of the live run
	replay uint64                  // Seq of the checkpoint that the run replays, 0 = none
	target *checkpoint.Checkpoint  // of a subgraph, to be replayed; nil = none
	gone   chan struct{}           // closed when the thread is let go of

	mu      sync.Mutex
	head    checkpoint.Head
	lost    bool
	failure error // of a commit inside a subgraph
	renew   *time.Timer
	renewed time.Time // when the lease was last prolonged, by our clock
}

// commit makes one change under the lease. When somebody else changed the
// thread in between (an answer came, a cancel was asked for) it is computed
// again from the newer head; when the lease is gone the error is errLeaseLost
// and nothing has changed.
func (s *session) commit(ctx context.Context, b build) (checkpoint.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return s.head, errLeaseLost
	}
	for {
		t := newTx(s.head, s.engine.now())
		t.Lease = s.engine.opts.Lease
		if err := b(t); err != nil {
			if errors.Is(err, errNoChange) {
				return s.head, nil
			}
			return s.head, err
		}
		head, err := s.engine.apply(ctx, t)
		switch {
		case err == nil:
			s.head, s.renewed = head, t.now
			s.lost = head.Owner != s.engine.id // given back by the change itself
			s.topic.publish(t.live)
			return head, nil
		case !errors.Is(err, checkpoint.ErrConflict):
			return s.head, err
		}
		if err := s.reload(ctx); err != nil {
			return s.head, err
		}
	}
}

// reload fetches the head after a conflict and checks that the lease is still
// ours. The caller holds mu.
func (s *session) reload(ctx context.Context) error {
	head, err := s.engine.store.Head(ctx, s.thread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		s.lose()
		return errLeaseLost
	}
	if err != nil {
		return storeError(err)
	}
	if head.Owner != s.engine.id || head.Fence != s.head.Fence {
		s.lose()
		return errLeaseLost
	}
	s.head = head
	if head.Cancel != nil {
		s.stop(errCancelled)
	}
	return nil
}

// fault gives the run up because a commit inside a subgraph failed.
func (s *session) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
	}
	s.stop(errLeaseLost)
}

func (s *session) lose() {
	s.lost = true
	s.stop(errLeaseLost)
}

// current returns the newest head that is known.
func (s *session) current() checkpoint.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// keep renews the lease while the run is quiet; each commit renews it too.
func (s *session) keep() {
	every := s.engine.opts.Lease / 3
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew = time.AfterFunc(every, func() {
		_, err := s.commit(s.engine.commits, s.renewal)
		if err != nil && !errors.Is(err, errLeaseLost) {
			s.log.Warn("lease not renewed", zap.Error(err))
			s.loseExpired()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.lost {
			s.renew.Reset(every)
		}
	})
}

// renewal is a change that only prolongs the lease, where no commit has done
// so lately. It runs under mu.
func (s *session) renewal(t *tx) error {
	if t.now.Sub(s.renewed) < s.engine.opts.Lease/3 {
		return errNoChange
	}
	t.Head.Updated = s.head.Updated
	return nil
}

// loseExpired gives the run up once the lease may have passed to another.
func (s *session) loseExpired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine.now().Sub(s.renewed) > s.engine.opts.Lease {
		s.lose()
	}
}

// close lets go of the thread.
func (s *session) close() {
	s.mu.Lock()
	s.lost = true
	if s.renew != nil {
		s.renew.Stop()
	}
	s.mu.Unlock()
	s.engine.drop(s)
	s.engine.hub.leave(s.topic)
	close(s.gone)
}

package redis

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// posts are the servers of this process that are on the roster.
type posts struct {
	beat time.Duration

	mu  sync.Mutex
	all map[*post]struct{}
}

// post implements checkpoint.Post: it says every beat, and as soon as it is
// something else than before, what the workers of its server take.
type post struct {
	store   *Store
	server  string
	changed func()
	kick    chan struct{}
	ended   chan struct{}
	end     func()

	mu     sync.Mutex
	serves []checkpoint.Served
	claims checkpoint.Claims
	others []checkpoint.Station
}

var _ checkpoint.Roster = (*Store)(nil)

// Enlist puts a server on the roster.
func (s *Store) Enlist(server string, changed func()) checkpoint.Post {
	p := &post{
		store: s, server: server, changed: changed, kick: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	if s.ear.closed {
		return p
	}
	s.posts.mu.Lock()
	defer s.posts.mu.Unlock()
	if s.posts.all == nil {
		s.posts.all = make(map[*post]struct{}, 1)
	}
	s.posts.all[p] = struct{}{}
	s.ear.lane(noPartition).want(s.keys.greetings(), true)
	s.ear.work.Go(s.contained(s.ear.ctx, p.run))
	return p
}

// look has all posts look at the roster: another server said something new, or
// could not be heard for a while.
func (a *posts) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range a.all {
		p.hurry()
	}
}

func (p *post) hurry() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Serve says what the workers of this server take from now on.
func (p *post) Serve(served []checkpoint.Served) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.serves, served) {
		p.serves = slices.Clone(served)
		p.hurry()
	}
}

// Claim says which leases of an earlier server this one knows of.
func (p *post) Claim(claims checkpoint.Claims) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !equalClaims(p.claims, claims) {
		p.claims = claims
		p.hurry()
	}
}

func equalClaims(a, b checkpoint.Claims) bool {
	return slices.Equal(a.Holds, b.Holds) && slices.Equal(a.Awaits, b.Awaits)
}

// Others lists the other servers.
func (p *post) Others() []checkpoint.Station {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.others
}

// Close takes the server off the roster.
func (p *post) Close() { p.end() }

// shortest is the least time between two looks at the roster, however often
// workers come and go.
const shortest = 50 * time.Millisecond

// run keeps the server on the roster until the post is closed, or the store.
func (p *post) run(ctx context.Context) {
	defer p.leave(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.kick:
		case <-timer.C:
		case <-p.ended:
			return
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		said := encodeStation(p.serves, p.claims)
		p.mu.Unlock()
		next := p.store.posts.beat
		if p.say(ctx, said) != nil {
			next /= 3
		}
		timer.Reset(next)
		if !pause(ctx, shortest) {
			return
		}
	}
}

// leave takes the server off the roster, if the store answers soon.
func (p *post) leave(ctx context.Context) {
	p.store.posts.mu.Lock()
	delete(p.store.posts.all, p)
	p.store.posts.mu.Unlock()
	_ = p.say(context.WithoutCancel(ctx), "") // else what it said ends by itself
}

// say makes one exchange, and tells the others when it brought them something
// new. What the store does not answer in time is said again.
func (p *post) say(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	s := p.store
	holds := 3*s.posts.beat + sayLimit
	answer, err := s.scripts.roster.Run(
		ctx, s.client, []string{s.keys.roster(), s.keys.meta()}, p.server, holds.Microseconds(), what, s.epoch,
	).Slice()
	if err != nil {
		return err //nolint:wrapcheck // only whether there is one matters
	}
	r := reply(answer)
	p.learn(r[1:])
	if isNew, _ := r.count(0); isNew == 0 {
		return nil
	}
	text := s.origin + string(newsRoster) + sized("")
	if err := s.client.SPublish(ctx, s.keys.greetings(), text).Err(); err != nil {
		return nil // they look by themselves, some time later
	}
	return nil
}

// learn takes note of what the other servers say.
func (p *post) learn(told reply) {
	others := make([]checkpoint.Station, 0, len(told)/2)
	for i := 0; i+1 < len(told); i += 2 {
		station := checkpoint.Station{Server: told.text(i)}
		station.Serves, station.Claims = decodeStation(told.text(i + 1))
		others = append(others, station)
	}
	slices.SortFunc(others, func(a, b checkpoint.Station) int { return strings.Compare(a.Server, b.Server) })
	p.mu.Lock()
	same := slices.EqualFunc(p.others, others, func(a, b checkpoint.Station) bool {
		return a.Server == b.Server && slices.Equal(a.Serves, b.Serves) && equalClaims(a.Claims, b.Claims)
	})
	p.others = others
	p.mu.Unlock()
	if !same {
		p.changed()
	}
}

// served is how what workers take is written down. The last one of a list may
// hold claims in its place.
type served struct {
	Graph   string   `json:"graph"`
	Version string   `json:"version,omitempty"`
	Node    string   `json:"node,omitempty"`
	Holds   []string `json:"holds,omitempty"`
	Awaits  []string `json:"awaits,omitempty"`
}

// encodeStation writes down what a server says of itself, "" = nothing.
func encodeStation(list []checkpoint.Served, claims checkpoint.Claims) string {
	out := make([]served, 0, len(list)+1)
	for _, s := range list {
		out = append(out, served{Graph: s.Graph, Version: s.Version, Node: s.Node})
	}
	if len(claims.Holds)+len(claims.Awaits) > 0 {
		out = append(out, served{Holds: claims.Holds, Awaits: claims.Awaits})
	}
	if len(out) == 0 {
		return ""
	}
	// No field of it can fail to be written.
	b, _ := json.Marshal(out)
	return string(b)
}

// decodeStation reads it. What can't be read, from a newer graphd say, counts as
// nothing.
func decodeStation(text string) (list []checkpoint.Served, claims checkpoint.Claims) {
	var in []served
	if json.Unmarshal([]byte(text), &in) != nil {
		return nil, claims
	}
	list = make([]checkpoint.Served, 0, len(in))
	for _, s := range in {
		if s.Graph == "" {
			claims = checkpoint.Claims{Holds: s.Holds, Awaits: s.Awaits}
			continue
		}
		list = append(list, checkpoint.Served{Graph: s.Graph, Version: s.Version, Node: s.Node})
	}
	return list, claims
}
